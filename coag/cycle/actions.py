"""The action space of a cycle: which actions exist, whether arguments fit, how they run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any, cast

from pydantic import BaseModel

from coag._util.json_schemas import LEVELS, levels, value_fault
from coag.errors import PhaseViolation
from coag.models import ANSWER_CHARACTERS
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSource,
    ActionSpace,
    ActionSpec,
    Candidate,
    CompletesArguments,
    Phase,
    Verdict,
)

RESPOND = ActionSpec(
    name="respond",
    description="Give your answer to the user and end this turn.",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The answer."}},
        "required": ["text"],
    },
    internal=True,
    repeatable=True,
)
"""The internal action that ends a turn with an answer; offered in every Proposal."""


def respond_spec(answer_type: type[BaseModel] | None) -> ActionSpec:
    """The action that answers in the form of a type; with None, in text."""
    if answer_type is None:
        return RESPOND
    schema = answer_type.model_json_schema()
    return RESPOND.model_copy(update={"parameters": {"type": "object", **schema}})


class NoActions:
    """An external action space without actions."""

    async def specs(self) -> Sequence[ActionSpec]:
        """None."""
        return ()

    async def execute(self, call: ActionCall) -> ActionResult:
        """Never reached by a cycle: Evaluation rejects actions that do not exist."""
        raise PhaseViolation(f"There is no external action {call.action!r} to execute.")


class GuardedActions:
    """External actions, internal ones and `respond`, behind one door that opens in Execution.

    Listing actions can be dear (schemas, a workbench in another process), so within a cycle it
    is done twice: when they are first needed, and again before one is executed.

    Args:
        external: The environment's actions (tools).
        sources: Bring internal actions: memory, modules.
        respond: The action that answers, where the answer has another form than a text.
        keep: Is given the whole of each output that was cut.
    """

    def __init__(
        self,
        external: ActionSpace | None = None,
        sources: Sequence[ActionSource] = (),
        *,
        respond: ActionSpec = RESPOND,
        keep: Callable[[str], object] = lambda output: None,
    ) -> None:
        self._keep = keep
        self._external = own = external or NoActions()
        self._completes = own if isinstance(own, CompletesArguments) else None
        self._sources = tuple(sources)
        self.respond = respond
        self.closing = False
        """True while the turn may only be answered: nothing else is offered."""
        self.outputs: dict[str, str] = {}
        """Whole outputs of this cycle's actions, by call, where they were cut."""
        self.running: dict[str, ActionCall] = {}
        """Calls that have begun and not ended; of a loaded state, those it was saved with."""
        self._phase: Phase | None = None
        self._listed: Mapping[str, ActionSpec] | None = None
        self.problems: tuple[str, ...] = ()
        """What the last listing left out, and why."""

    def over(
        self, external: ActionSpace, around: Callable[[ActionSource], ActionSource]
    ) -> GuardedActions:
        """The same actions in another environment, with something around the internal ones.

        Args:
            external: The environment's actions.
            around: Makes what takes the place of each source of internal actions.
        """
        return GuardedActions(external, [around(s) for s in self._sources], respond=self.respond)

    def enter(self, phase: Phase | None) -> None:
        """Tells which phase runs now; None between cycles."""
        self._phase = phase
        if phase in (None, Phase.RETRIEVAL, Phase.EXECUTION):
            self._listed = None
        if phase is Phase.RETRIEVAL:
            self.outputs.clear()

    async def specs(self) -> Mapping[str, ActionSpec]:
        """Every action by name, external ones first; none takes over an internal one's name."""
        if self._listed is not None:
            return self._listed
        if self.closing:
            return {RESPOND.name: self.respond}
        internal: dict[str, ActionSpec] = {}
        for spec in (spec for source in self._sources for spec in source.action_specs()):
            own = spec if spec.internal else spec.model_copy(update={"internal": True})
            internal.setdefault(spec.name, own)
        internal.pop(RESPOND.name, None)
        internal[RESPOND.name] = self.respond
        external = {spec.name: spec for spec in await self._external.specs()}
        taken = [name for name in external if name in internal]
        self.problems = (
            *getattr(self._external, "problems", ()),
            *(f"A tool is named {name!r}; the agent's own action stays." for name in taken),
        )
        result = {name: spec for name, spec in external.items() if name not in internal} | internal
        if self._phase is not None:
            self._listed = MappingProxyType(result)
        return result

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with defaults and conversions, exactly as the action will get them.

        Raises:
            ValueError: The action would not take them.
        """
        if not spec.internal and self._completes is not None:
            return self._completes.complete(spec, arguments)
        return with_defaults(arguments, spec.parameters)

    async def execute(self, call: ActionCall) -> ActionResult:
        """Runs the selected action.

        Raises:
            PhaseViolation: Another phase than Execution asks for it (invariant 1).
        """
        if self._phase is not Phase.EXECUTION:
            now = self._phase.value if self._phase else "no phase"
            raise PhaseViolation(
                f"{call.action!r} was to be run in {now}; actions run in execution only."
            )
        self.running[call.id] = call
        try:
            result = await self._run(call)
        finally:
            self.running.pop(call.id, None)
        if result.output is not None:
            self.outputs[call.id] = result.output
            self._keep(result.output)
        return result

    async def _run(self, call: ActionCall) -> ActionResult:
        spec = (await self.specs()).get(call.action)
        if spec is not None and not spec.internal:
            return await self._external.execute(call)
        if call.action == RESPOND.name:
            text = str(call.arguments.get("text", ""))
            if self.respond is not RESPOND:
                text = json.dumps(call.arguments, ensure_ascii=False)
            return ActionResult(content=text, ends_turn=True)
        for source in self._sources:
            if any(offered.name == call.action for offered in source.action_specs()):
                return await source.run_action(call)
        return await self._external.execute(call)


# ---- The first checks of Evaluation: the action exists, and its arguments fit its schema ----


EXISTS = "action_exists"
IDEMPOTENCY_KEY = "idempotency_key"
"""The parameter of a tool that gets a key from the guard; the model never sees it."""
ARGUMENTS = "arguments"
COMPLETED = "completed: "
"""How the reason of a passing verdict begins that names the arguments that were completed."""
_EXISTS = Verdict(allowed=True, constraint=EXISTS)
FIT = Verdict(allowed=True, constraint=ARGUMENTS)


def existence(candidate: Candidate, specs: Mapping[str, ActionSpec]) -> Verdict:
    """Whether the action exists; where not, which ones do."""
    if candidate.action in specs:
        return _EXISTS
    reason = f"there is no action {candidate.action!r}; there are: {', '.join(specs)}"
    return Verdict.forbid(reason[:1_000], EXISTS)


class ReadyArguments:
    """Arguments that were found, in this cycle, to be just what their action takes.

    Execution judges once more what Evaluation judged; these need no second check by the schema and
    by the tool's own type.
    """

    def __init__(self) -> None:
        self._cycle = 0
        self._held: dict[tuple[str, str], ActionSpec] = {}

    def add(self, spec: ActionSpec, arguments: Mapping[str, Any], cycle: int) -> None:
        """Keeps what an action will be run with."""
        if cycle != self._cycle:
            self._cycle = cycle
            self._held.clear()
        self._held[spec.name, _key(arguments)] = spec

    def holds(self, spec: ActionSpec, arguments: Mapping[str, Any], cycle: int) -> bool:
        """Whether these were kept in this cycle, for the action as it is offered now."""
        if cycle != self._cycle or spec.idempotency_key:  # the guard gives the key each time
            return False
        result = self._held.get((spec.name, _key(arguments)))
        return result is spec or result == spec


def _key(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)


def parse_arguments(
    candidate: Candidate,
    spec: ActionSpec,
    ready: Callable[[dict[str, Any]], bool] = lambda arguments: False,
) -> tuple[dict[str, Any] | None, Verdict]:
    """The arguments as an object that fits the action's schema, or the reason why they do not.

    Those that are `ready` are known to fit.
    """
    if not spec.internal and len(candidate.raw_arguments) >= ANSWER_CHARACTERS:
        # Longer ones were cut to this when they came.
        return None, _forbid(f"they have {ANSWER_CHARACTERS:,} characters or more: give fewer")
    try:
        parsed = json.loads(candidate.raw_arguments or "{}")
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        return None, _forbid(f"the arguments are no JSON object: {error}"[:300])
    if not isinstance(parsed, dict):
        return None, _forbid(f"the arguments must be a JSON object, not {json.dumps(parsed)[:80]}")
    if levels(parsed) > LEVELS:
        return None, _forbid(f"the arguments have more than {LEVELS} levels of lists and objects")
    arguments = cast("dict[str, Any]", parsed)
    if spec.idempotency_key:  # the key is given when it is run
        arguments.pop(IDEMPOTENCY_KEY, None)
    problem = "" if ready(arguments) else value_fault(arguments, _key(spec.parameters))
    return (None, _forbid(problem)) if problem else (arguments, FIT)


def with_defaults(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the defaults of the action's JSON Schema, nested ones included.

    A default of null is left out: a missing argument and None are the same to a rule.
    Under `anyOf` and `oneOf` nothing is filled in unless just one alternative is of the value's
    type.

    Raises:
        ValueError: A default does not fit its own schema.
    """
    filled = deepcopy(dict(arguments))
    _fill(filled, schema, schema)
    if filled != arguments:
        problem = value_fault(filled, _key(schema))
        if problem is not None:
            raise ValueError(f"a default does not fit its own schema: {problem}")
    return filled


def _fill(value: Any, schema: Any, root: Mapping[str, Any], level: int = 0) -> None:
    if level > LEVELS or not isinstance(value, dict | list):
        return
    parts = list(_parts(cast("Any", value), schema, root))
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, list):
        inside = [(item, part.get("items")) for item in cast("list[Any]", value) for part in parts]
    else:
        held = cast("dict[str, Any]", value)
        for part in parts:
            properties = part.get("properties")
            known = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
            for name in [one for one in known if one not in held]:  # in the order of the schema
                parts_of_it = _parts(None, known[name], root)
                default = next((one["default"] for one in parts_of_it if "default" in one), None)
                if default is not None:
                    held[name] = deepcopy(default)
            other = part.get("additionalProperties")
            inside += [(held[name], known.get(name, other)) for name in held]
    for item, own in inside:
        _fill(item, own, root, level + 1)


def _parts(
    value: Any, schema: Any, root: Mapping[str, Any], level: int = 0
) -> Iterator[dict[str, Any]]:
    """The schemas that a value is under without ambiguity, outermost first."""
    if not isinstance(schema, dict) or level > LEVELS:
        return
    part = cast("dict[str, Any]", schema)
    yield part
    inside: list[Any] = [_referred(part["$ref"], root)] if "$ref" in part else []
    if isinstance(every := part.get("allOf"), list):
        inside += cast("list[Any]", every)
    for key in ("anyOf", "oneOf"):
        if isinstance(some := part.get(key), list):
            fitting = [one for one in cast("list[Any]", some) if _may_be(value, one, root)]
            inside += fitting if len(fitting) == 1 else []
    for one in inside:
        yield from _parts(value, one, root, level + 1)


def _may_be(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether a list or object may be meant by an alternative; other values have no parts."""
    kind = "object" if isinstance(value, dict) else "array"
    types = [part["type"] for part in _parts(None, schema, root) if "type" in part]
    return isinstance(value, dict | list) and all(kind == one or kind in one for one in types)


def _referred(pointer: Any, root: Mapping[str, Any]) -> Any:
    """What a reference within the schema points to; None if it leads elsewhere."""
    result: Any = root
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        return None
    for step in pointer[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        result = cast("dict[str, Any]", result).get(name) if isinstance(result, dict) else None
    return result


def completed_arguments(
    arguments: dict[str, Any],
    complete: Callable[[ActionSpec, dict[str, Any]], dict[str, Any]],
    spec: ActionSpec,
) -> tuple[dict[str, Any] | None, Verdict]:
    """The arguments exactly as the action will get them, or the reason why it will not."""
    try:
        completed = complete(spec, deepcopy(arguments))
    except Exception as error:  # a tool's own validators may raise anything; nothing passes then
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return None, _forbid(text[:300])
    changed = [
        name
        for name in {**arguments, **completed}
        if name not in arguments or name not in completed or arguments[name] != completed[name]
    ]
    if not changed:
        return completed, FIT
    return completed, FIT.model_copy(update={"reason": COMPLETED + json.dumps(changed)[1:-1]})


def _forbid(reason: str) -> Verdict:
    return Verdict.forbid(reason, ARGUMENTS)
