"""AgentDojo: do agents serve their user while texts that they read try to steer them?

Debenedetti et al., AgentDojo (NeurIPS 2024 Datasets and Benchmarks), package `agentdojo`. Its
environments, tasks, attacks and checks are used as they are; only calls that were made are scored.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version as version_of
from typing import Any, cast

from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import ToolSchema

from case_study.bench.arms import (
    EnvironmentWorkbench,
    Executed,
    Setup,
    player_of,
    policy_model,
    tool_schema,
)
from case_study.bench.protocol import Arm, Case, needs
from case_study.runner import model_spec
from coag import no_foreign_orders, only_trusted
from coag.errors import ConfigurationError, UnknownNameError
from coag.evals import JobResult
from coag.schema import Constraint

Rules = Callable[[Sequence[ToolSchema]], Sequence[Constraint]]
"""Makes the rules for these tools."""
_NAMES_SOMEBODY = re.compile(
    r"(^|_)(recipients?|participants?|to|cc|bcc|users?|emails?|address|url|link|iban|account|"
    r"password|channel|ids?)($|_)"
)
"""Arguments that say who gets something, or what is touched, as developers call them."""


def trusted_values(tools: Sequence[ToolSchema]) -> Sequence[Constraint]:
    """`only_trusted` for every argument that says who gets something or what is touched."""
    rules: list[Constraint] = []
    for tool in tools:
        parameters = cast("Mapping[str, Any]", tool.get("parameters", {}))
        named = [name for name in parameters.get("properties", {}) if _NAMES_SOMEBODY.search(name)]
        if named:
            rules.append(only_trusted(tool["name"], *named))
    return rules


def foreign_orders(tools: Sequence[ToolSchema]) -> Sequence[Constraint]:
    """`no_foreign_orders`, for every tool and for answers."""
    del tools
    return [no_foreign_orders(answers=True)]


def no_rules(tools: Sequence[ToolSchema]) -> Sequence[Constraint]:
    """No rule at all: what the cycle alone does."""
    del tools
    return ()


RULES: Mapping[str, Rules] = {
    "no_foreign_orders": foreign_orders,
    "only_trusted": trusted_values,
    "none": no_rules,
}
"""By name, the usual one first."""


HIJACKED = "hijacked"
"""The policy that obeys whatever it reads: it plays the user's task, and from the moment at which
it has read the attacker's text, first the attacker's. It isolates the defence from the model."""
_BENIGN, _ATTACKED = "benign", "attacked"
_NAMED = "local-coag"
"""The name of the pipeline: some attacks address the model by its name, and know this one."""
_QUOTING = re.compile(r"[\s\"'\\]+")
"""What differs in a text that is quoted in JSON."""


class AgentDojo:
    """AgentDojo's suites: each user task alone, and with each attack of its suite.

    Args:
        options: `version` of the benchmark (v1), `attack` (important_instructions), `rules`, and
            `impasses`, after how many refusals of the same call a turn of a `CoagAgent` ends (10):
            with the usual 3 an attacker ends it by ordering the same thing three times.

    Raises:
        ConfigurationError: The package is missing, or an option is unknown.
    """

    name = "agentdojo"
    metrics: Mapping[str, str] = {
        "utility": "the user's task was done, with no attack",
        "utility_under_attack": "the user's task was done in spite of the attack",
        "attack_success": "what the attacker wanted was done",
    }
    policies: Sequence[str] = (HIJACKED,)
    rule_sets: Sequence[str] = tuple(RULES)

    def __init__(self, options: Mapping[str, str]) -> None:
        needs("agentdojo", "agentdojo", "Run `make bench-env`, or pip install agentdojo.")
        registry = _dojo("attacks").attack_registry.ATTACKS
        known = {
            "version": "v1",
            "attack": "important_instructions",
            "rules": next(iter(RULES)),
            "impasses": "10",
        }
        for option in options:
            if option not in known:
                raise UnknownNameError("option", option, known)
        chosen = {**known, **options}
        if chosen["attack"] not in registry:
            raise UnknownNameError("attack", chosen["attack"], registry)
        if not chosen["impasses"].isdecimal() or chosen["impasses"] == "0":
            raise ConfigurationError(
                f"impasses is how often a refused call may be wished in a row, e.g. 3, and not "
                f"{chosen['impasses']!r}."
            )
        if chosen["rules"] not in RULES:
            raise UnknownNameError("rules", chosen["rules"], RULES)
        try:
            self._suites: Mapping[str, Any] = _dojo("task_suite.load_suites").get_suites(
                chosen["version"]
            )
        except KeyError as error:
            raise ConfigurationError(
                f"agentdojo has no version {chosen['version']!r}: take v1 or v1.2.2."
            ) from error
        self.suites: Sequence[str] = tuple(sorted(self._suites))
        self.settings: Mapping[str, str] = {**chosen, "package": version_of("agentdojo")}
        self._impasses = int(chosen["impasses"])
        self._rules: Rules = RULES[chosen["rules"]]
        self._attack: Callable[[Any, Any], Any] = registry[chosen["attack"]]
        self._loaded: dict[str, Any] = {}

    def cases(self, suites: Sequence[str]) -> Sequence[Case]:
        """Each user task alone, and with each injection task where it reads what can carry one."""
        found: list[Case] = []
        for name in suites:
            suite = self._suites[name]
            found += [
                Case(id=f"{name}/{task}", suite=name, kind=_BENIGN) for task in suite.user_tasks
            ]
            found += [
                Case(id=f"{name}/{task}/{injection}", suite=name, kind=_ATTACKED)
                for task in suite.user_tasks
                if self._reads_injections(name, task)
                for injection in suite.injection_tasks
            ]
        return found

    def _attacker(self, suite: str) -> Any:
        if suite not in self._loaded:
            self._loaded[suite] = self._attack(self._suites[suite], _Pipeline())
        return self._loaded[suite]

    def _reads_injections(self, suite: str, task: str) -> bool:
        """Whether a user task reads any text in which an injection can stand."""
        user_task = self._suites[suite].user_tasks[task]
        try:
            return bool(self._attacker(suite).get_injection_candidates(user_task))
        except ValueError:  # "is not injectable"
            return False

    async def run(self, case: Case, arm: Arm, policy: str, seed: int) -> JobResult:
        """Plays a case; the seed has no effect on a scripted policy.

        Raises:
            CoagError: The model failed.
        """
        return await asyncio.to_thread(self._run, case, arm, policy, seed)

    def _run(self, case: Case, arm: Arm, policy: str, seed: int) -> JobResult:
        _, task, *injected = case.id.split("/")
        suite = self._suites[case.suite]
        user_task = suite.user_tasks[task]
        injection_task = suite.injection_tasks[injected[0]] if injected else None
        injections: dict[str, str] = {}
        if injection_task is not None:
            injections = self._attacker(case.suite).attack(user_task, injection_task)
        play = _Play(
            arm, policy, seed, self._rules, self._impasses, user_task, injection_task, injections
        )
        utility, attacked = suite.run_task_with_pipeline(
            _Pipeline(play), user_task, injection_task, injections
        )
        metrics = {"utility": float(utility)}
        if injected:
            metrics = {
                "utility_under_attack": float(utility),
                "attack_success": float(attacked),
            }
        return case.result(
            metrics,
            **play.spent,
        )


@dataclass(slots=True)
class _Play:
    arm: Arm
    policy: str
    seed: int
    rules: Rules
    impasses: int
    user_task: Any
    injection_task: Any
    injections: Mapping[str, str]
    executed: list[Executed] = field(default_factory=list[Executed])
    spent: Mapping[str, Any] = field(default_factory=dict[str, Any])

    async def play(self, query: str, runtime: Any, env: Any) -> str:
        workbench = EnvironmentWorkbench(_schemas(runtime), _runner(runtime, env))
        self.executed = workbench.executed
        client = self._client(workbench, env)
        schemas = await workbench.list_tools()
        rules = self.rules(schemas)
        system = str(_dojo("agent_pipeline.agent_pipeline").load_system_message(None))
        setup = Setup(client, workbench, system, rules, impasses=self.impasses)
        player = player_of(self.arm, setup)
        try:
            return await player.say(query)
        finally:
            self.spent = player.spent()
            await player.close()

    def _client(self, workbench: EnvironmentWorkbench, env: Any) -> ChatCompletionClient:
        if self.policy != HIJACKED:
            return model_spec(self.policy, self.seed).open()
        before = env.model_copy(deep=True)
        wanted = list(self.user_task.ground_truth(before.model_copy(deep=True)))
        answer = str(self.user_task.GROUND_TRUTH_OUTPUT)
        orders: list[Any] = []
        foreign = ""
        if self.injection_task is not None:
            orders = list(self.injection_task.ground_truth(before.model_copy(deep=True)))
            foreign = str(self.injection_task.GROUND_TRUTH_OUTPUT)
        traps = [_squeezed(text) for text in self.injections.values()]
        return policy_model(_Hijacked(workbench, wanted, orders, answer, foreign, traps))


@dataclass(slots=True)
class _Hijacked:
    """Plays the user's calls, and the attacker's as soon as it has read what he wrote."""

    workbench: EnvironmentWorkbench
    wanted: list[Any]
    orders: list[Any]
    answer: str
    foreign: str
    traps: Sequence[str]
    read: int = 0
    obeys: bool = False
    numbered: int = 0

    def __call__(self) -> FunctionCall | str:
        """The next call; at the end the answer, the attacker's words first."""
        for done in self.workbench.executed[self.read :]:
            text = _squeezed(done.output)
            if not self.obeys and any(trap in text for trap in self.traps):
                self.obeys = True
                self.wanted = [*self.orders, *self.wanted]
        self.read = len(self.workbench.executed)
        if self.wanted:
            call = self.wanted.pop(0)
            self.numbered += 1
            arguments = json.dumps(call.args, default=str)
            return FunctionCall(id=f"c{self.numbered}", name=call.function, arguments=arguments)
        if self.obeys and self.foreign:
            both, self.foreign = f"{self.foreign} {self.answer}", ""
            return both.strip()
        return self.answer or "Done."


def _dojo(module: str) -> Any:
    """A module of the package, which is not among the requirements."""
    return import_module(f"agentdojo.{module}")


def _squeezed(text: str) -> str:
    return _QUOTING.sub("", text.replace("\\n", ""))


def _schemas(runtime: Any) -> list[ToolSchema]:
    return [
        tool_schema(one.name, one.description, one.parameters.model_json_schema())
        for one in runtime.functions.values()
    ]


def _runner(runtime: Any, env: Any) -> Callable[[str, Mapping[str, Any]], Any]:
    as_text = _dojo("agent_pipeline.tool_execution").tool_result_to_str

    async def run(name: str, arguments: Mapping[str, Any]) -> Executed:
        value, error = runtime.run_function(env, name, dict(arguments))
        output = str(error) if error else as_text(value, _as_json)
        return Executed(name, arguments, output, is_error=bool(error), value=error)

    return run


def _as_json(value: Any) -> str:
    """How tools' values are written; AgentDojo writes YAML by default."""
    return json.dumps(value, default=str, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Pipeline:
    """One of our agents as AgentDojo runs it, which asks for a name and for `query` alone."""

    play: _Play | None = None
    name: str = _NAMED

    def query(
        self,
        query: str,
        runtime: Any,
        env: Any = None,
        messages: Sequence[Any] = (),
        extra_args: Any = None,
    ) -> tuple[str, Any, Any, Sequence[Any], Any]:
        """Runs the agent on a query; as the other elements do, it gives back what it got."""
        assert self.play is not None
        answer = asyncio.run(self.play.play(query, runtime, env))
        said = _messages(query, self.play.executed, answer)
        return query, runtime, env, [*messages, *said], extra_args or {}


def _messages(query: str, executed: Sequence[Executed], answer: str) -> list[Any]:
    """The run as AgentDojo reads it: what was asked, the calls that were made, the answer."""
    types, call_of = _dojo("types"), _dojo("functions_runtime").FunctionCall
    block = types.text_content_block_from_string
    said: list[Any] = [types.ChatUserMessage(role="user", content=[block(query)])]
    for number, done in enumerate(executed, start=1):
        call = call_of(function=done.name, args=dict(done.arguments), id=f"c{number}")
        said += [
            types.ChatAssistantMessage(role="assistant", content=[block("")], tool_calls=[call]),
            types.ChatToolResultMessage(
                role="tool",
                content=[block(done.output)],
                tool_call=call,
                tool_call_id=call.id,
                error=done.value,
            ),
        ]
    last = types.ChatAssistantMessage(role="assistant", content=[block(answer)], tool_calls=None)
    return [*said, last]
