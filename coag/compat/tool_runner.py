"""Running AutoGen's tools: arguments completed, results read, time kept."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Protocol, TypeGuard, cast, runtime_checkable

from autogen_core import CancellationToken
from autogen_core.tools import (
    BaseStreamTool,
    BaseTool,
    FunctionTool,
    StaticWorkbench,
    ToolOverride,
    ToolResult,
    Workbench,
)
from pydantic import AliasChoices, BaseModel, RootModel, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from coag._util.timeouts import (
    LateError,
    SelfCancelledError,
    describe_error,
    in_thread,
    outcome_of,
    within,
)
from coag.context import name_of, shortened
from coag.cycle import RESPOND, identity, with_defaults
from coag.errors import ConfigurationError
from coag.memory import EPISODIC_ACTION, PROCEDURAL_ACTION, SEMANTIC_ACTION
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Failure,
    Reconciliation,
    UnsettledAction,
    let_others_run,
    well_formed,
)

from .tool_listing import GIVEN, ToolListing, ToolNames, effects_of, tool_in

# ---- Workbenches that show what their tools do ----


@runtime_checkable
class Streams(Protocol):
    """A workbench that shows what its tools do (AutoGen's `StreamWorkbench`, not public)."""

    def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any, None]:
        """What the tool shows while it runs, its result last."""
        ...


def streams(workbench: Workbench, name: str) -> TypeGuard[Streams]:
    """Whether a call of this tool is to be made as a stream."""
    return isinstance(workbench, Streams) and not _renamed(workbench, name)


def _renamed(workbench: Workbench, name: str) -> bool:
    """Whether a tool has its name from an override.

    AutoGen's StaticStreamWorkbench knows such names only where it does not stream.
    """
    if not isinstance(workbench, StaticWorkbench):
        return False
    overrides = cast("Mapping[str, ToolOverride]", getattr(workbench, "_tool_overrides", {}))
    return any(given.name == name != tool for tool, given in overrides.items())


# ---- From what a tool returned to an `ActionResult` ----


OUTPUT_CHARACTERS = 48_000
"""Characters of a tool's output that are kept where nothing says how much fits; of a longer one
the beginning and the end, with a note between them."""
DATA_CHARACTERS = 16_000
"""Characters of JSON that a tool's structured data may have; larger data is not kept."""
DATA_DEPTH = 50
"""Levels of lists and objects that a tool's structured data may have; deeper data is not kept."""


def cap_text(text: str, limit: int = OUTPUT_CHARACTERS) -> str:
    """The text, or its beginning and its end with a note of how much was left out."""
    return shortened(text, limit)


def read_result(
    text: str,
    *,
    is_error: bool = False,
    limit: int = OUTPUT_CHARACTERS,
    name: str | None = None,
) -> ActionResult:
    """A tool's text as a result.

    A tool may say how it went in JSON, as its whole output or its first line:
    `{"ok": false, "failure": "deterministic", "reason": "..."}`. `ok: false` is a failure even
    though the tool returned; `failure` tells whether repeating the call can help.

    The JSON is kept as `data` within `DATA_CHARACTERS` and `DATA_DEPTH`, and without NaN and
    infinities, which are no JSON; else `data` is None. What it tells of failure counts anyway.

    Args:
        text: What the tool returned.
        is_error: Whether it said that it failed.
        limit: Characters that are kept; of a longer text the beginning and the end.
        name: What the agent can ask for the rest by; None where it cannot.
    """
    text = well_formed(text)
    told = _json_of(text)
    failed, failure = is_error, None
    if isinstance(told, Mapping):
        said = cast("Mapping[str, Any]", told)
        failed = failed or said.get("ok") is False
        if failed and said.get("failure") in tuple(Failure):
            failure = Failure(said["failure"])
    content = shortened(text, limit, name)
    return ActionResult(
        content=content,
        output=None if content == text else text,
        data=_bounded(told),
        is_error=failed,
        failure=failure,
    )


def _json_of(text: str) -> Any:
    """The JSON that the text or its first line is, if it is an object or a list."""
    for part in (text, text.partition("\n")[0]):
        stripped = part.strip()
        if not stripped.startswith(("{", "[")):
            continue
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError):  # no JSON, an integer without end, brackets neither
            continue
    return None


def _bounded(value: Any) -> Any:
    """The value with well-formed texts, or None where it is no JSON within our bounds."""
    try:
        clean = _clean(value, DATA_DEPTH)
        size = len(json.dumps(clean, ensure_ascii=False))
    except ValueError:
        return None
    return clean if size <= DATA_CHARACTERS else None


def _clean(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value!r} is no JSON.")
    if not isinstance(value, dict | list):
        return value
    if not levels:
        raise ValueError(f"There are more than {DATA_DEPTH} levels.")
    if isinstance(value, list):
        return [_clean(item, levels - 1) for item in cast("list[Any]", value)]
    items = cast("dict[str, Any]", value).items()
    return {well_formed(key): _clean(item, levels - 1) for key, item in items}


# ---- What a local tool makes of arguments: validated and completed by its own type, as JSON ----
#
# Rules judge, people approve and traces hold what comes out, and the tool is run with it.


_DIGITS = 100
"""Digits of a decimal without fraction that is shown as an integer."""
_LEVELS = 60


def completed(tool: BaseTool[Any, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as JSON, as the tool's type takes them: another round changes nothing.

    Decimals become numbers where that is exact. Defaults of None are not filled in: a missing
    argument and None are the same to a rule.

    Raises:
        ValueError: The tool does not take them, or they cannot be shown to rules as they are.
    """
    kind, problem = tool.args_type(), ""
    for numbers in (True, False):
        value, dump = _validated(kind, arguments, tool.name), _Dump(numbers=numbers)
        try:
            shown = dump.object(value)
            again = kind.model_validate(shown)
            stable = _text(dump.object(again)) == _text(shown) and (dump.lazy or again == value)
        except (ValueError, PydanticSerializationError, RecursionError) as error:
            problem = problem or _reason(error)
            continue
        if stable:
            return {name: _as_written(name, own, arguments) for name, own in shown.items()}
        problem = problem or "the type makes other values of its own values"
    raise ValueError(
        f"what {tool.name!r} would run with cannot be judged: {problem}. Give its parameters types "
        "and defaults that JSON can show"
    )


def _validated(kind: type[BaseModel], given: Mapping[str, Any], name: str) -> BaseModel:
    try:
        return kind.model_validate(given)
    except ValueError as error:
        raise ValueError(_reason(error)) from error
    except Exception as error:  # a validator of the tool's author may raise anything
        raise ValueError(
            f"{name} could not check its arguments: {describe_error(error)}"
        ) from error


def _as_written(name: str, shown: Any, given: Mapping[str, Any]) -> Any:
    """What was written, where JSON calls it the same: 60 stays 60, also where a float is meant."""
    if name in given and identity(name, {name: given[name]}) == identity(name, {name: shown}):
        return given[name]
    return shown


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return describe_error(error)
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where + ': ' if where else ''}{first['msg']}"


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


class _Dump:
    """Shows a validated value as JSON: what the tool really gets, whatever its serializers say.

    Args:
        numbers: Whether decimals are shown as numbers.
    """

    def __init__(self, *, numbers: bool) -> None:
        self._numbers = numbers
        self.lazy = False
        """Whether the last value had iterators in it, which are never equal."""

    def object(self, value: BaseModel) -> dict[str, Any]:
        self.lazy = False
        shown = self._any(value, 0)
        if not isinstance(shown, dict):
            raise ValueError("its arguments are no JSON object")
        return cast("dict[str, Any]", shown)

    def _any(self, value: Any, level: int) -> Any:
        if level > _LEVELS:
            raise ValueError(f"they have more than {_LEVELS} levels")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self._any(value.value, level + 1)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(f"{value!r} is no JSON number")
            return float(value)
        if isinstance(value, Decimal):
            return _number(value) if self._numbers else str(value)
        return self._parts(value, level + 1)

    def _parts(self, value: Any, level: int) -> Any:
        if isinstance(value, RootModel):
            return self._any(value.root, level)  # pyright: ignore[reportUnknownMemberType] - any type
        if isinstance(value, BaseModel):
            return self._model(value, level)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return {each.name: self._any(getattr(value, each.name), level) for each in fields}
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {_name(key): self._any(item, level) for key, item in items}
        if isinstance(value, Set):
            return sorted((self._any(item, level) for item in cast("Set[Any]", value)), key=_text)
        if isinstance(value, list | tuple | deque | Iterator):
            self.lazy = self.lazy or isinstance(value, Iterator)
            return [self._any(item, level) for item in cast("Iterator[Any]", value)]
        return to_jsonable_python(value)

    def _model(self, value: BaseModel, level: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for name, field in type(value).model_fields.items():
            own = getattr(value, name)
            if own is None and name not in value.model_fields_set:
                continue
            alias = field.validation_alias
            first = alias.choices[0] if isinstance(alias, AliasChoices) else alias
            shown[first if isinstance(first, str) else name] = self._any(own, level)
        for name, own in (value.model_extra or {}).items():
            shown[name] = self._any(own, level)
        return shown


def _name(key: Any) -> str:
    return key if type(key) is str else next(iter(to_jsonable_python({key: None})))


def _number(value: Decimal) -> int | float | str:
    """A decimal as a JSON number of the same value; as text where there is none."""
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and value.adjusted() < _DIGITS:
        return int(value)
    near = float(value)
    return near if math.isfinite(near) and Decimal(repr(near)) == value else str(value)


# ---- Runs AutoGen tools and workbenches as an action space: guarded, timed, cut ----


Tool = BaseTool[Any, Any] | Callable[..., Any]
"""An AutoGen tool, or a function with annotated arguments and a docstring."""
RESERVED = frozenset({RESPOND.name, EPISODIC_ACTION, SEMANTIC_ACTION, PROCEDURAL_ACTION})
"""Names of the agent's own actions; no tool takes one over."""


@dataclass(frozen=True, slots=True)
class _Returned:
    text: str
    is_error: bool = False
    unknown: bool = False
    """True if it may or may not have had its effect."""


class ToolRunner:
    """The external action space of an agent: its AutoGen tools and workbenches.

    Whatever a tool does (raises, swallows or raises `CancelledError`, hangs, returns megabytes),
    the agent gets a result that says so. The action's id reaches the tool as its `call_id`.
    A workbench that cannot list its tools, and a tool of one that cannot be offered, are left
    out for now; `problems` says why.

    Args:
        tools: AutoGen tools, or functions that become `FunctionTool`s.
        workbenches: AutoGen workbenches; their tools are listed anew for every cycle.
        timeout: Seconds that one call may take.
        output_characters: Characters of output that are kept.
        on_event: Is told what streaming tools show while they run.
        readable: Tells how many characters are kept where the agent can read on in what was cut
            (by `read_more`); takes the place of `output_characters`.
        reserved: Names of the agent's own actions.

    Raises:
        ConfigurationError: Two tools have the same name, one has the name of an action of the
            agent's own, one is no tool, or its schema cannot be offered.
    """

    def __init__(
        self,
        tools: Sequence[Tool] = (),
        workbenches: Sequence[Workbench] = (),
        *,
        timeout: float = 60.0,
        output_characters: int = OUTPUT_CHARACTERS,
        on_event: Callable[[object], None] = lambda event: None,
        readable: Callable[[], int] | None = None,
        reserved: Collection[str] = RESERVED,
    ) -> None:
        self.tools = tuple(as_tool(tool) for tool in tools)
        self.workbenches = tuple(workbenches)
        self._by_name = {tool.name: tool for tool in self.tools}
        self._listing = ToolListing(self.tools, self.workbenches, timeout, reserved)
        self._timeout = timeout
        self._limit = output_characters
        self._readable = readable
        self._on_event = on_event

    @property
    def names(self) -> ToolNames:
        """Whose each name is."""
        return self._listing.names

    @property
    def problems(self) -> tuple[str, ...]:
        """What the last listing left out, and why."""
        return self._listing.problems

    async def specs(self) -> Sequence[ActionSpec]:
        """The tools that exist now."""
        return await self._listing.specs()

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that the tool will get; see `ActionSpace`.

        Raises:
            ValueError: The tool's own type refuses them.
        """
        owner = self.names.owner(spec.name)
        tool = self._by_name.get(spec.name)
        if owner is not None and owner != GIVEN:
            tool = tool_in(self.workbenches[owner - 1], spec.name)
        return (
            with_defaults(arguments, spec.parameters)
            if tool is None
            else completed(tool, arguments)
        )

    async def execute(self, call: ActionCall) -> ActionResult:
        """Runs one tool call; every failure is a result, except that this task is cancelled.

        The tool gets arguments of its own, so that what it does to them changes no record.
        """
        owner = self.names.owner(call.action)
        if owner is None:
            return ActionResult(content=f"There is no tool {call.action!r}.", is_error=True)
        token = CancellationToken()
        call = call.model_copy(deep=True)
        if owner == GIVEN:
            tool = self._by_name[call.action]
            return await self._guard(lambda: self._run_tool(tool, call, token), call, token)
        bench = self.workbenches[owner - 1]
        return await self._guard(lambda: self._run_workbench(bench, call, token), call, token)

    async def reconcile(self, action: UnsettledAction) -> Reconciliation:
        """What the tool itself can find out about a call of unknown outcome; see `tool`."""
        tool = self._by_name.get(action.action)
        ask: Any = None if tool is None else effects_of(tool).reconcile
        if ask is None:
            return "unknown"
        if inspect.iscoroutinefunction(ask):
            return await ask(action)
        given = await outcome_of(in_thread(lambda: ask(action), "coag-reconcile"))
        return await given if inspect.isawaitable(given) else given

    async def _guard(
        self,
        running: Callable[[], Awaitable[_Returned]],
        call: ActionCall,
        token: CancellationToken,
    ) -> ActionResult:
        ended = False
        try:
            returned = await within(self._timeout, running)
            ended = True
            result = self._read(returned.text, is_error=returned.is_error)
            return result.model_copy(update={"outcome_unknown": returned.unknown})
        except LateError:
            text = f"{call.action} gave no answer within {self._timeout:g} s; it may have acted."
            return ActionResult(content=text, is_error=True, outcome_unknown=True)
        except SelfCancelledError:
            text = f"{call.action} was cancelled by itself; it may have acted."
            return ActionResult(content=text, is_error=True, outcome_unknown=True)
        except Exception as error:  # a user's tool may raise anything; the agent perceives it
            ended = True
            text = f"{call.action} raised {describe_error(error)}"
            result = self._read(text, is_error=True)
            return result.model_copy(update={"outcome_unknown": _may_have_happened(error)})
        finally:
            if not ended:
                _cancel(token)

    def _read(self, text: str, *, is_error: bool) -> ActionResult:
        if self._readable is None:
            return read_result(text, is_error=is_error, limit=self._limit)
        return read_result(text, is_error=is_error, limit=self._readable(), name=name_of(text))

    async def _run_tool(
        self, tool: BaseTool[Any, Any], call: ActionCall, token: CancellationToken
    ) -> _Returned:
        if isinstance(tool, BaseStreamTool):
            streaming = cast("BaseStreamTool[Any, Any, Any]", tool)
            value, number = None, 0
            async for item in streaming.run_json_stream(call.arguments, token, call_id=call.id):
                if value is not None:
                    self._on_event(value)
                value, number = item, number + 1
                await let_others_run(number)
        else:
            value = await tool.run_json(call.arguments, token, call_id=call.id)
        return _Returned(_as_json(value) or tool.return_value_as_string(value))

    async def _run_workbench(
        self, workbench: Workbench, call: ActionCall, token: CancellationToken
    ) -> _Returned:
        if not streams(workbench, call.action):
            result = await workbench.call_tool(
                call.action, call.arguments, cancellation_token=token, call_id=call.id
            )
        else:
            result, number = None, 0
            async for item in workbench.call_tool_stream(
                call.action, call.arguments, cancellation_token=token, call_id=call.id
            ):
                if isinstance(item, ToolResult):
                    result = item
                else:
                    self._on_event(item)
                number += 1
                await let_others_run(number)
        if result is None:
            return _Returned(f"{call.action} ended without a result.", is_error=True)
        return _Returned(
            result.to_text(replace_image="[image]"),
            result.is_error,
            bool(getattr(result, "may_have_happened", False)),
        )


def as_tool(tool: Tool) -> BaseTool[Any, Any]:
    """The tool, or the function as one.

    Raises:
        ConfigurationError: It is neither.
    """
    if isinstance(tool, BaseTool):
        return cast("BaseTool[Any, Any]", tool)
    if callable(tool):
        return FunctionTool(tool, description=(tool.__doc__ or "").strip())
    raise ConfigurationError(
        f"Unsupported tool type: {tool!r} is no tool. Give an AutoGen BaseTool, or a function with "
        "annotated arguments."
    )


def _as_json(value: Any) -> str | None:
    """A dictionary or list as JSON; AutoGen would write it as Python does. None for the rest."""
    if not isinstance(value, dict | list):
        return None
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return None


def _may_have_happened(error: Exception) -> bool:
    """What the error says of it; one that cannot even say, or is a time-out, leaves it unknown."""
    try:
        said = getattr(error, "may_have_happened", None)
        return _is_time_out(error) if said is None else bool(said)
    except Exception:  # a user's error may raise anything, too
        return True


def _is_time_out(error: Exception) -> bool:
    """Whether something gave no answer in time, or the line broke, after it had been reached.

    Clients of HTTP and databases have errors of their own, told by their names: `ReadTimeout`.
    """
    if isinstance(
        error, TimeoutError | ConnectionResetError | ConnectionAbortedError | BrokenPipeError
    ):
        return True
    names = [kind.__name__ for kind in type(error).__mro__]
    if any(name.startswith(("Connect", "Pool")) for name in names):
        return False
    return any(name.endswith(("Timeout", "TimeoutError", "TimeoutException")) for name in names)


def _cancel(token: CancellationToken) -> None:
    """Cancels a tool's own token; what it was linked to may be broken (AutoGen's MCP tools)."""
    try:
        token.cancel()
    except AttributeError:
        return
