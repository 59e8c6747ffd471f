"""Runs AutoGen tools and workbenches as an action space: guarded, timed, cut."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from autogen_core import CancellationToken
from autogen_core.tools import (
    BaseStreamTool,
    BaseTool,
    FunctionTool,
    ToolResult,
    Workbench,
)

from coag.context import name_of
from coag.cycle import (
    RESPOND,
    LateError,
    SelfCancelledError,
    in_thread,
    outcome_of,
    told,
    with_defaults,
    within,
)
from coag.errors import ConfigurationError
from coag.memory import EPISODIC_ACTION, PROCEDURAL_ACTION, SEMANTIC_ACTION
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Reconciliation,
    UnsettledAction,
    let_others_run,
)

from ._completing import completed
from ._results import OUTPUT_CHARACTERS, read_result
from ._streams import streams
from ._tool_effects import effects_of, tool_in
from ._tool_listing import GIVEN, ToolListing, ToolNames

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
            text = f"{call.action} raised {told(error)}"
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
