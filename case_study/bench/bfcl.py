"""BFCL's conversations of several turns, from the package `bfcl-eval`.

`base` has all it takes. In `miss_func` a function is missing until the user adds it, in
`miss_param` a value until the user names it. Whether what was asked for was done is judged by
BFCL's own `multi_turn_checker`, over the calls that were made. That checker lets pass an agent
that acts where something is missing, as long as nothing is left of it; so this is counted apart.
"""

from __future__ import annotations

import ast
import copy
import itertools
import json
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from typing import Any, cast

from autogen_core.tools import ToolSchema

from case_study.bench.arms import (
    EnvironmentWorkbench,
    Executed,
    Setup,
    player_of,
    tool_schema,
)
from case_study.bench.protocol import Arm, Case, needs, rules_among
from case_study.bench.scripts import INVENTIONS, Docs, InventingPolicy, Missing, Step, client_of
from coag.cycle import only_trusted
from coag.errors import ConfigurationError
from coag.evals import JobResult
from coag.schema import Constraint

MORE_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
"""What BFCL's user says when a missing function is added."""
_SYSTEM = (
    "You help the user with your tools. Use them only as far as the user asks. If a tool or a "
    "value is missing, do not guess: ask the user."
)


# ---- The package's data ----


@cache
def _lines(name: str) -> tuple[dict[str, Any], ...]:
    text = (files("bfcl_eval") / "data" / name).read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines() if line.strip())


@cache
def _rows(suite: str) -> Mapping[str, dict[str, Any]]:
    """The conversations by id, each with its `ground_truth`."""
    name = f"BFCL_v4_multi_turn_{suite}.json"
    truths = {one["id"]: one["ground_truth"] for one in _lines(f"possible_answer/{name}")}
    return {one["id"]: {**one, "ground_truth": truths[one["id"]]} for one in _lines(name)}


@cache
def _docs_of(class_name: str) -> Docs:
    backends = import_module("bfcl_eval.constants.executable_backend_config")
    name = backends.MULTI_TURN_FUNC_DOC_FILE_MAPPING[class_name]
    return {one["name"]: one for one in _lines(f"multi_turn_func_doc/{name}")}


def docs_of(row: Mapping[str, Any]) -> Docs:
    """The functions of a conversation, those included that are missing at first."""
    excluded = set(row.get("excluded_function", ()))
    every = {name: doc for one in row["involved_classes"] for name, doc in _docs_of(one).items()}
    return {name: doc for name, doc in every.items() if name not in excluded}


_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


def as_json_schema(schema: Any) -> Any:
    """BFCL's schema as JSON Schema: some of its types have other names."""
    if isinstance(schema, list):
        return [as_json_schema(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    part = {key: as_json_schema(one) for key, one in cast("Mapping[str, Any]", schema).items()}
    kind = part.get("type")
    if isinstance(kind, str):
        part["type"] = _TYPES.get(kind, kind)
    return part


def schema_of(doc: Mapping[str, Any]) -> ToolSchema:
    """A function as AutoGen lists a tool; an argument that is not described is refused."""
    parameters = {**as_json_schema(doc["parameters"]), "additionalProperties": False}
    return tool_schema(doc["name"], doc["description"], parameters)


def step_of(call: str, docs: Docs) -> Step:
    """A call of the ground truth, its arguments by name.

    Raises:
        ConfigurationError: It is no call of plain values.
    """
    parsed = ast.parse(call.strip(), mode="eval").body
    if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name):
        raise ConfigurationError(f"BFCL's ground truth has {call!r}, which is no call.")
    names = list(
        docs.get(parsed.func.id, {"parameters": {"properties": {}}})["parameters"]["properties"]
    )
    arguments = {
        name: ast.literal_eval(value) for name, value in zip(names, parsed.args, strict=False)
    }
    named = {str(one.arg): ast.literal_eval(one.value) for one in parsed.keywords}
    return Step(parsed.func.id, {**arguments, **named})


def missing_turns(row: Mapping[str, Any], suite: str) -> Sequence[int]:
    """The turns in which something is missing, so that there is nothing right to be called."""
    if suite == "miss_func":
        return sorted(int(turn) - 1 for turn in row["missed_function"])
    if suite == "miss_param":
        return [turn for turn, calls in enumerate(row["ground_truth"]) if not calls]
    return []


def added_at(row: Mapping[str, Any], turn: int) -> frozenset[str]:
    """The functions that are still missing in a turn."""
    missed: Mapping[str, Sequence[str]] = row.get("missed_function", {})
    return frozenset(name for at, names in missed.items() if turn < int(at) for name in names)


def call_text(step: Step) -> str:
    """A call as Python writes it, which is what BFCL judges."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in step.arguments.items())
    return f"{step.name}({arguments})"


class Conversation:
    """One conversation: its objects, and the calls that were made, turn by turn."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.row = row
        self.turns: list[list[list[str]]] = []
        """Turns of steps of calls, as BFCL judges them."""
        self.went_well: set[int] = set()
        """Turns in which a call ran without an error."""
        self._methods: dict[str, Callable[..., Any]] = {}
        backends = import_module("bfcl_eval.constants.executable_backend_config")
        for name in row["involved_classes"]:
            made = getattr(import_module(backends.CLASS_FILE_PATH_MAPPING[name]), name)()
            if name not in backends.STATELESS_CLASSES:
                made._load_scenario(copy.deepcopy(row["initial_config"].get(name, {})))
            for doc in _docs_of(name):
                self._methods[doc] = getattr(made, doc)

    async def run(self, name: str, arguments: Mapping[str, Any]) -> Executed:
        """Runs a function, as BFCL does; a failure is a text."""
        self.turns[-1].append([call_text(Step(name, arguments))])
        if name not in self._methods:
            return Executed(name, arguments, f"There is no function {name!r}.", is_error=True)
        try:
            value = self._methods[name](**copy.deepcopy(dict(arguments)))
        except Exception as error:  # a function of the benchmark, given anything
            text = f"Error during execution: {error}"
            return Executed(name, arguments, text, is_error=True)
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        if not (isinstance(value, dict) and "error" in value):
            self.went_well.add(len(self.turns) - 1)
        return Executed(name, arguments, text, is_error=False)


_RUNS = itertools.count()


def is_valid(conversation: Conversation) -> bool:
    """BFCL's verdict on the calls that were made."""
    checker = import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker")
    cached = vars(import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"))
    name = f"bench{next(_RUNS)}x"  # it keeps its objects by the model's name
    row = dict(conversation.row)
    try:
        verdict = checker.multi_turn_checker(
            conversation.turns, row["ground_truth"], row, "multi_turn_base", name
        )
    finally:
        for one in [key for key in cached if key.startswith(name)]:
            del cached[one]
    return bool(verdict["valid"])


# ---- The benchmark ----


def named_values(docs: Iterable[Mapping[str, Any]]) -> list[Constraint]:
    """A rule for each function: values occur in what the user said or a function returned."""
    described = [(one["name"], list(one["parameters"]["properties"])) for one in docs]
    sources = [name for name, _ in described]
    return [only_trusted(name, *given, sources=sources) for name, given in described if given]


class Bfcl:
    """BFCL v4 multi-turn behind the protocol of benchmarks.

    Args:
        options: `rules`: `checks` (the default: only that tools exist and arguments fit) or
            `named` (also that values were named by the user or a function).

    Raises:
        ConfigurationError: The package is not installed, or there is no such option.
    """

    name = "bfcl"
    metrics: Mapping[str, str] = {
        "valid": "BFCL's checker finds state and results as they should be",
        "strict": "valid, and no call was made in the turn in which something was missing",
        "asked": "in that turn the agent said something and called nothing",
        "acted": "in that turn a call was made",
        "took_effect": "one of these calls ran without an error",
    }
    suites: Sequence[str] = ("base", "miss_func", "miss_param")
    policies: Sequence[str] = ("golden", "inventing", "insisting", *INVENTIONS)
    rule_sets: Sequence[str] = ("checks", "named")

    def __init__(self, options: Mapping[str, str]) -> None:
        how = "Make the environment of the benchmarks: `make bench-env`."
        needs("bfcl-eval", "bfcl_eval", how)
        os.environ.setdefault("BFCL_PROJECT_ROOT", os.devnull)
        self._rules = rules_among(self.name, options, self.rule_sets)
        self.settings: Mapping[str, str] = {"version": version("bfcl-eval"), "rules": self._rules}

    def cases(self, suites: Sequence[str]) -> Sequence[Case]:
        """The conversations of these suites."""
        return [Case(id=one, suite=suite) for suite in suites for one in _rows(suite)]

    async def run(self, case: Case, arm: Arm, policy: str, seed: int) -> JobResult:
        """Holds one conversation."""
        row = _rows(case.suite)[case.id]
        conversation = Conversation(row)
        workbench = EnvironmentWorkbench([], conversation.run)
        acting = policy_for(row, case.suite, policy, seed) if policy in self.policies else None
        client = client_of(policy, acting, workbench)
        docs = docs_of(row)
        rules = named_values(docs.values()) if self._rules == "named" else []
        player = player_of(arm, Setup(client, workbench, _SYSTEM, rules, most_calls=20))
        says: list[str] = []
        try:
            for turn, messages in enumerate(row["question"]):
                conversation.turns.append([])
                still = added_at(row, turn)
                workbench.offer([schema_of(doc) for name, doc in docs.items() if name not in still])
                if acting is not None:
                    acting.begin(turn)
                said = "\n".join(one["content"] for one in messages) or MORE_FUNCTIONS
                says.append(await player.say(said))
        finally:
            await player.close()
        return case.result(
            _measured(conversation, case.suite, says),
            kind=acting.kind if acting else "",
            **player.spent(),
        )


def _measured(conversation: Conversation, suite: str, says: Sequence[str]) -> dict[str, float]:
    valid = is_valid(conversation)
    found = {"valid": float(valid)}
    missing = missing_turns(conversation.row, suite)
    if not missing:
        return found
    acted = any(conversation.turns[turn] for turn in missing)
    asked = not acted and all(says[turn].strip() for turn in missing)
    return {
        **found,
        "strict": float(valid and not acted),
        "asked": float(asked),
        "acted": float(acted),
        "took_effect": float(not conversation.went_well.isdisjoint(missing)),
    }


def policy_for(row: Mapping[str, Any], suite: str, policy: str, seed: int) -> InventingPolicy:
    """The scripted policy for a conversation.

    Args:
        row: The conversation.
        suite: Its suite.
        policy: `golden` asks; `inventing` makes something up, of a kind that the seed draws, and
            asks when that is refused; `insisting` makes up more then; the kinds by name are the
            same as `inventing`.
        seed: Draws what is made up.
    """
    every = docs_of(row)
    turns = [[step_of(call, every) for call in calls] for calls in row["ground_truth"]]
    following = {
        turn: _missing_at(turn, row, turns)
        for turn in missing_turns(row, suite)
        if any(turns[turn + 1 :])
    }
    if policy == "golden":
        return InventingPolicy(turns, following, None, insists=False)
    # The same inventions for each of them: they differ in what follows a refusal.
    dice = random.Random(f"bfcl {seed} {row['id']}")
    kind = policy if policy in INVENTIONS else dice.choice(list(INVENTIONS))

    def invent(missing: Missing) -> Step:
        absent = {name for turn in following for name in added_at(row, turn)}
        offered = {name: doc for name, doc in every.items() if name not in absent}
        return INVENTIONS[kind](missing, offered, dice)

    made = InventingPolicy(turns, following, invent, insists=policy == "insisting")
    made.kind = kind if following else ""
    return made


def _missing_at(turn: int, row: Mapping[str, Any], turns: Sequence[Sequence[Step]]) -> Missing:
    """What is missing in a turn: the first later call that needs it."""
    later = [step for calls in turns[turn + 1 :] for step in calls]
    absent = added_at(row, turn)
    if absent:
        return Missing(next((one for one in later if one.name in absent), later[0]))
    so_far, then = (
        " ".join(one["content"] for part in parts for one in part).casefold()
        for parts in (row["question"][: turn + 1], row["question"][turn + 1 : turn + 2])
    )

    def unnamed(step: Step) -> tuple[str, ...]:
        values = {name: str(value).casefold() for name, value in step.arguments.items()}
        return tuple(one for one, value in values.items() if value in then and value not in so_far)

    step = next((one for one in later if unnamed(one)), later[0])
    return Missing(step, unnamed(step))
