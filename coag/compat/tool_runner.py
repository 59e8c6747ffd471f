"""Running AutoGen's tools and workbenches: listed, timed, their results read and cut."""

from __future__ import annotations

import inspect
import json
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Mapping,
    Sequence,
)
from contextlib import suppress
from math import isfinite
from socket import gaierror
from typing import Any, Protocol, TypeGuard, cast, runtime_checkable

from autogen_core import CancellationToken
from autogen_core.tools import (
    BaseStreamTool,
    BaseTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolOverride,
    ToolResult,
    ToolSchema,
    Workbench,
)

from coag._util.text import well_formed
from coag._util.timeouts import (
    LateError,
    SelfCancelledError,
    describe_error,
    in_thread,
    let_others_run,
    outcome_of,
    within,
)
from coag.context import name_of, shortened
from coag.cycle import RESPOND, with_defaults
from coag.errors import ConfigurationError
from coag.memory import EPISODIC_ACTION, PROCEDURAL_ACTION, SEMANTIC_ACTION
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Failure,
    Reconciliation,
    UnsettledAction,
)

from .tools import (
    UNUSABLE_SCHEMA,
    Tool,
    as_tool,
    completed_arguments,
    effects_in,
    effects_of,
    spec_of,
    tool_in,
    without_key,
)

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
    if not isinstance(workbench, Streams):
        return False
    if not isinstance(workbench, StaticWorkbench):
        return True
    # AutoGen's StaticStreamWorkbench knows the names of overrides only where it does not stream.
    overrides = cast("Mapping[str, ToolOverride]", getattr(workbench, "_tool_overrides", {}))
    return not any(given.name == name != tool for tool, given in overrides.items())


# ---- From what a tool returned to an `ActionResult` ----


OUTPUT_CHARACTERS = 48_000
"""Characters of a tool's output that are kept where nothing says how much fits; of a longer one
the beginning and the end, with a note between them."""
DATA_CHARACTERS = 16_000
"""Characters of JSON that a tool's structured data may have; larger data is not kept."""
DATA_DEPTH = 50
"""Levels of lists and objects that a tool's structured data may have; deeper data is not kept."""


def read_result(
    text: str,
    *,
    is_error: bool = False,
    done: bool | None = True,
    limit: int = OUTPUT_CHARACTERS,
    name: str | None = None,
) -> ActionResult:
    """A tool's text as a result.

    A tool may say how it went in JSON, as its whole output or its first line:
    `{"ok": false, "failure": "deterministic", "reason": "..."}`. `ok: false` is a failure even
    though the tool returned; `failure` says whether repeating the call can help.

    The JSON is kept as `data` within `DATA_CHARACTERS` and `DATA_DEPTH`, and without NaN and
    infinities, which are no JSON; else `data` is None. What it says of failure counts anyway.

    Args:
        text: What the tool returned.
        is_error: Whether it said that it failed.
        done: Whether anything may have been done; None if the outcome is not known.
        limit: Characters that are kept; of a longer text the beginning and the end.
        name: What the agent can ask for the rest by; None where it cannot.
    """
    text = well_formed(text)
    value = _json_of(text)
    failed, failure = is_error, None
    if isinstance(value, Mapping):
        report = cast("Mapping[str, Any]", value)
        failed = failed or report.get("ok") is False
        if failed and report.get("failure") in tuple(Failure):
            failure = Failure(report["failure"])
    content = shortened(text, limit, name)
    return ActionResult(
        content=content,
        output=None if content == text else text,
        data=_bounded(value),
        is_error=failed,
        failure=failure,
        outcome_unknown=done is None,
        nothing_done=done is False,
    )


def _json_of(text: str) -> Any:
    for part in (text, text.partition("\n")[0]):
        stripped = part.strip()
        if not stripped.startswith(("{", "[")):
            continue
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError):  # no JSON, an endless integer, too many brackets
            continue
    return None


def _bounded(value: Any) -> Any:
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


# ---- The tools that there are now, and running them ----


_GIVEN = 0
"""Owns the tools that were given without a workbench; the nth workbench is n."""
_PROBLEM = 500
"""Characters of a problem that are kept."""
_TAKEN = "the one that was offered first under this name stays. Rename one of them."
RESERVED = frozenset({RESPOND.name, EPISODIC_ACTION, SEMANTIC_ACTION, PROCEDURAL_ACTION})
"""Names of the agent's own actions; no tool takes one over."""


class ToolRunner:
    """The external action space of an agent: its AutoGen tools and workbenches.

    Whatever a tool does (raises, swallows or raises `CancelledError`, hangs, returns megabytes),
    the agent gets a result that says so. The action's id reaches the tool as its `call_id`.
    A workbench that cannot list its tools, and a tool of one that cannot be offered, are left
    out for now; `problems` says why. A name belongs to the first that offers it, and never to
    another: what was judged and approved as the tool of one workbench is never run by another, even
    if the first one is away, late or without the tool by then.

    Args:
        tools: AutoGen tools, or functions that become `FunctionTool`s.
        workbenches: AutoGen workbenches; their tools are listed again for every cycle.
        timeout: Seconds that one call may take.
        output_characters: Characters of output that are kept.
        on_event: Gets what streaming tools show while they run.
        readable: Returns how many characters are kept where the agent can read on in what was cut
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
        _check_names([tool.name for tool in self.tools], reserved)
        self.problems: tuple[str, ...] = ()
        """What the last listing of specs left out, and why."""
        self.own = StaticStreamWorkbench(list(self.tools))
        """The tools without a workbench, as one."""
        self._specs = tuple(map(_given_spec, self.tools))
        self._by_name = {tool.name: tool for tool in self.tools}
        self._owners = dict.fromkeys(self._by_name, _GIVEN)
        self._last: dict[int, list[ToolSchema]] = {}
        self._noted: set[str] = set()
        """Notes that said that a name is taken."""
        self._reserved = frozenset(reserved)
        self._timeout = timeout
        self._limit = output_characters
        self._readable = readable
        self._on_event = on_event

    # ---- which tools there are now, and whose each one is ----

    def home(self, name: str) -> Workbench | None:
        """The workbench that runs a name; None if nobody has offered it."""
        owner = self._owners.get(name)
        return None if owner is None else self._of(owner)

    async def specs(self) -> list[ActionSpec]:
        """The tools that exist now as actions, each name once; the rest is in `problems`."""
        specs = {spec.name: spec for spec in self._specs}
        problems: list[str] = []
        for number, workbench in enumerate(self.workbenches, start=1):
            for spec in await self._offered(workbench, problems):
                if problem := self._taken(spec.name, number, specs):
                    problems.append(problem)
                else:
                    specs[spec.name] = spec
        self.problems = tuple(problems)
        return list(specs.values())

    async def schemas(self, note: Callable[[str], None]) -> list[ToolSchema]:
        """The tools as they are offered: overrides, `strict` and tools that come and go included.

        A stock agent hangs where a listing raises in the middle of its turn. A workbench that
        has listed its tools before therefore keeps that list where it fails.
        """
        schemas: dict[str, ToolSchema] = {}
        for number, workbench in enumerate((self.own, *self.workbenches)):
            try:
                self._last[number] = await self._list(workbench)
            except RuntimeError as error:
                if number not in self._last:
                    raise
                kind = type(workbench).__name__
                note(f"{kind} keeps the tools that it listed last: {error}")
            for schema in self._last[number]:
                name = schema["name"]
                if problem := self._taken(name, number, schemas):
                    if problem not in self._noted:
                        note(problem)
                    self._noted.add(problem)
                    continue
                parameters = cast("dict[str, Any]", schema.get("parameters") or {})
                plain = without_key(parameters)
                changed = {} if plain is parameters else {"parameters": plain}
                schemas[name] = cast("ToolSchema", {**schema, **changed})
        return list(schemas.values())

    def _taken(self, name: str, owner: int, offered: Container[str]) -> str:
        """Why this owner's tool is left out; empty if not: what nobody has had becomes its name."""
        if name in self._reserved:
            why = "the agent's own action stays."
        elif name in offered or self._owners.setdefault(name, owner) != owner:
            why = _TAKEN
        else:
            return ""
        return f"{type(self._of(owner)).__name__} has a tool {name!r}: {why}"

    def _of(self, owner: int) -> Workbench:
        return self.own if owner == _GIVEN else self.workbenches[owner - 1]

    async def _offered(self, workbench: Workbench, problems: list[str]) -> list[ActionSpec]:
        """What a workbench offers now; what it cannot offer becomes a problem."""
        try:
            schemas = await self._list(workbench)
        except RuntimeError as error:
            problems.append(str(error)[:_PROBLEM])
            return []
        specs: list[ActionSpec] = []
        for schema in schemas:
            try:
                specs.append(spec_of(schema, effects_in(workbench, schema["name"])))
            except UNUSABLE_SCHEMA as error:
                problem = f"a tool that is left out: {describe_error(error)}"
                problems.append(f"{type(workbench).__name__} has {problem}"[:_PROBLEM])
        return specs

    async def _list(self, workbench: Workbench) -> list[ToolSchema]:
        try:
            return list(await within(self._timeout, workbench.list_tools))
        except LateError as error:
            cause, problem = error, f"did not list its tools within {self._timeout:g} s."
        except SelfCancelledError as error:
            cause, problem = error, "was cancelled by itself when it was to list its tools."
        except Exception as error:  # a workbench may raise anything
            cause, problem = error, f"could not list its tools: {describe_error(error)}"
        raise RuntimeError(f"{type(workbench).__name__} {problem}") from cause

    # ---- running them: guarded, timed, cut ----

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that the tool will get; see `ActionSpace`.

        Raises:
            ValueError: The tool's own type refuses them.
        """
        home = self.home(spec.name)
        tool = None if home is None else tool_in(home, spec.name)
        if tool is None:
            return with_defaults(arguments, spec.parameters)
        return completed_arguments(tool.args_type(), tool.name, arguments)

    async def execute(self, call: ActionCall) -> ActionResult:
        """Runs one tool call; every failure is a result, except that this task is cancelled.

        The tool gets arguments of its own, so that what it does to them changes no record.
        """
        home = self.home(call.action)
        if home is None:
            problem = f"There is no tool {call.action!r}."
            return ActionResult(content=problem, is_error=True, nothing_done=True)
        call, token = call.model_copy(deep=True), CancellationToken()
        ended = False

        async def run() -> ToolOutput:
            nonlocal ended
            try:
                output = await self._run(home, call, token)
            except Exception:
                ended = True
                raise
            ended = True
            return output

        try:
            critical = effects_in(home, call.action).critical
            text, is_error, done = await output_of(call.action, self._timeout, run, critical)
        finally:
            if not ended:
                with suppress(AttributeError):  # what it was linked to may be broken: MCP tools
                    token.cancel()
        limit, name = self._limit, None
        if self._readable is not None:
            limit, name = self._readable(), name_of(text)
        return read_result(text, is_error=is_error, done=done, limit=limit, name=name)

    async def reconcile(self, action: UnsettledAction) -> Reconciliation:
        """What the tool itself can find out about a call of unknown outcome; see `tool`."""
        ask: Any = effects_of(self._by_name.get(action.action)).reconcile
        if ask is None:
            if self.home(action.action) is None:  # nothing is listed yet: a run is continued
                await self.specs()
            ask = getattr(self.home(action.action), "reconcile", None)
        if ask is None:
            return "unknown"
        if inspect.iscoroutinefunction(ask):
            return await ask(action)
        answer = await outcome_of(in_thread(lambda: ask(action), "coag-reconcile"))
        return await answer if inspect.isawaitable(answer) else answer

    async def _run(self, home: Workbench, call: ActionCall, token: CancellationToken) -> ToolOutput:
        if home is self.own:
            return await self._run_tool(self._by_name[call.action], call, token), False, True
        name, given, own_id = call.action, call.arguments, call.id
        result: ToolResult | None = None
        if not streams(home, name):
            result = await home.call_tool(name, given, token, own_id)
        else:
            number = 0
            async for item in home.call_tool_stream(name, given, token, own_id):
                if isinstance(item, ToolResult):
                    result = item
                else:
                    self._on_event(item)
                number += 1
                await let_others_run(number)
        if result is None:
            return f"{name} ended without a result.", True, True
        done = None if getattr(result, "may_have_happened", False) else True
        return result.to_text(replace_image="[image]"), result.is_error, done

    async def _run_tool(
        self, tool: BaseTool[Any, Any], call: ActionCall, token: CancellationToken
    ) -> str:
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
        if isinstance(value, dict | list):  # as JSON; AutoGen would write it as Python does
            with suppress(TypeError, ValueError):
                return json.dumps(value, ensure_ascii=False)
        return tool.return_value_as_string(value)


def _check_names(names: Sequence[str], reserved: Collection[str]) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigurationError(f"Tool names must be unique; given more than once: {doubled}.")
    if taken := sorted(set(reserved).intersection(names)):
        raise ConfigurationError(
            f"These tools have the names of the agent's own actions: {taken}. Rename them."
        )


def _given_spec(tool: BaseTool[Any, Any]) -> ActionSpec:
    try:
        return spec_of(tool.schema, effects_of(tool))
    except UNUSABLE_SCHEMA as error:
        problem = f"Tool {tool.name!r} cannot be offered: {describe_error(error)}"
        raise ConfigurationError(problem) from error


ToolOutput = tuple[str, bool, bool | None]
"""The text, whether it is an error, and whether anything may have been done; None if the outcome
is not known."""


async def output_of(
    name: str, timeout: float, run: Callable[[], Awaitable[ToolOutput]], critical: bool = False
) -> ToolOutput:
    """What came of running a tool, whatever it does, within so many seconds.

    What a `critical` tool raises leaves its outcome unknown, unless the error says otherwise.
    """
    try:
        return await within(timeout, run)
    except LateError:
        return f"{name} gave no answer within {timeout:g} s; it may have acted.", True, None
    except SelfCancelledError:
        return f"{name} was cancelled by itself; it may have acted.", True, None
    except Exception as error:  # a user's tool may raise anything; the agent perceives it
        done = None if _may_have_happened(error, critical) else False
        return f"{name} raised {describe_error(error)}", True, done


def _may_have_happened(error: Exception, critical: bool) -> bool:
    """What the error says of it; where it says nothing, whether its kind leaves it open."""
    try:
        declared = getattr(error, "may_have_happened", None)
        if declared is not None:
            return bool(declared)
        return not _never_reached(error) and (critical or _lost_the_answer(error))
    except Exception:  # a user's error may raise anything, too
        return True


_UNREACHED = (
    *("ConnectError", "ConnectTimeout", "ConnectionTimeout", "Pool", "ClientConnector"),
    "NewConnection",
)
"""Beginnings of the names that clients of HTTP and databases give to errors before sending."""
_LOST = (
    *("Timeout", "TimeoutError", "TimeoutException", "NetworkError", "ConnectionError"),
    *("ConnectionClosed", "ConnectionClosedError", "DisconnectedError", "RemoteProtocolError"),
    *("PayloadError", "IncompleteRead"),
)
"""Ends of the names that they give to an answer that did not come."""


def _never_reached(error: Exception) -> bool:
    inner = getattr(error.args[0], "reason", None) if error.args else None  # as requests has it
    kinds = [*type(error).__mro__, *type(inner).__mro__]
    refused = any(issubclass(kind, ConnectionRefusedError | gaierror) for kind in kinds)
    return refused or any(kind.__name__.startswith(_UNREACHED) for kind in kinds)


def _lost_the_answer(error: Exception) -> bool:
    """Whether something gave no answer in time, or the line broke, after it was reached."""
    if isinstance(error, TimeoutError | ConnectionError | EOFError):
        return True
    return any(kind.__name__.endswith(_LOST) for kind in type(error).__mro__)
