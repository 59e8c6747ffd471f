"""Runs AutoGen tools and workbenches as an action space: guarded, timed, cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, FunctionTool, Workbench

from coag.errors import ConfigurationError
from coag.schema import ActionCall, ActionResult, ActionSpec

from ._results import OUTPUT_CHARACTERS, read_result

Tool = BaseTool[Any, Any] | Callable[..., Any]
"""An AutoGen tool, or a function with annotated arguments and a docstring."""


@dataclass(frozen=True, slots=True)
class _Returned:
    text: str
    is_error: bool = False


class ToolRunner:
    """The external action space of an agent: its AutoGen tools and workbenches.

    Whatever a tool does (raises, raises `CancelledError`, hangs, returns megabytes), the agent
    gets a result that says so. The action's id reaches the tool as its `call_id`.

    Args:
        tools: AutoGen tools, or functions that become `FunctionTool`s.
        workbenches: AutoGen workbenches; their tools are listed anew for every cycle.
        timeout: Seconds that one call may take.
        output_characters: Characters of output that are kept.

    Raises:
        ConfigurationError: Two tools have the same name, or one is no tool.
    """

    def __init__(
        self,
        tools: Sequence[Tool] = (),
        workbenches: Sequence[Workbench] = (),
        *,
        timeout: float = 60.0,
        output_characters: int = OUTPUT_CHARACTERS,
    ) -> None:
        self.tools = tuple(_as_tool(tool) for tool in tools)
        self.workbenches = tuple(workbenches)
        self._by_name = {tool.name: tool for tool in self.tools}
        self._specs = tuple(_spec(tool.schema) for tool in self.tools)
        self._owners: dict[str, Workbench] = {}
        self._timeout = timeout
        self._limit = output_characters
        names = [tool.name for tool in self.tools]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ConfigurationError(f"Tool names must be unique; given more than once: {doubled}.")

    async def specs(self) -> Sequence[ActionSpec]:
        """The tools that exist now."""
        found = list(self._specs)
        self._owners = {}
        for workbench in self.workbenches:
            for schema in await workbench.list_tools():
                spec = _spec(schema)
                if spec.name in self._by_name or spec.name in self._owners:
                    continue
                self._owners[spec.name] = workbench
                found.append(spec)
        return found

    async def execute(self, call: ActionCall) -> ActionResult:
        """Runs one tool call; every failure is a result, except that this task is cancelled."""
        token = CancellationToken()
        if call.action in self._by_name:
            running = self._run_tool(self._by_name[call.action], call, token)
        elif call.action in self._owners:
            running = self._run_workbench(self._owners[call.action], call, token)
        else:
            return ActionResult(content=f"There is no tool {call.action!r}.", is_error=True)
        return await self._guard(running, call, token)

    async def _guard(
        self, running: Awaitable[_Returned], call: ActionCall, token: CancellationToken
    ) -> ActionResult:
        try:
            async with asyncio.timeout(self._timeout):
                returned = await running
        except TimeoutError:
            _cancel(token)
            text = f"{call.action} gave no answer within {self._timeout:g} s; it may have acted."
            return ActionResult(content=text, is_error=True, outcome_unknown=True)
        except asyncio.CancelledError:
            _cancel(token)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return ActionResult(content=f"{call.action} was cancelled by itself.", is_error=True)
        except Exception as error:  # a user's tool may raise anything; the agent perceives it
            text = f"{call.action} raised {type(error).__name__}: {error}"
            unknown = bool(getattr(error, "may_have_happened", False))
            result = read_result(text, is_error=True, limit=self._limit)
            return result.model_copy(update={"outcome_unknown": unknown})
        return read_result(returned.text, is_error=returned.is_error, limit=self._limit)

    async def _run_tool(
        self, tool: BaseTool[Any, Any], call: ActionCall, token: CancellationToken
    ) -> _Returned:
        value = await tool.run_json(call.arguments, token, call_id=call.id)
        return _Returned(_as_json(value) or tool.return_value_as_string(value))

    async def _run_workbench(
        self, workbench: Workbench, call: ActionCall, token: CancellationToken
    ) -> _Returned:
        result = await workbench.call_tool(
            call.action, call.arguments, cancellation_token=token, call_id=call.id
        )
        return _Returned(result.to_text(replace_image="[image]"), result.is_error)


def _as_tool(tool: Tool) -> BaseTool[Any, Any]:
    if isinstance(tool, BaseTool):
        return cast("BaseTool[Any, Any]", tool)
    if callable(tool):
        return FunctionTool(tool, description=(tool.__doc__ or "").strip())
    raise ConfigurationError(
        f"{tool!r} is no tool: give an AutoGen BaseTool, or a function with annotated arguments."
    )


def _as_json(value: Any) -> str | None:
    """A dictionary or list as JSON; AutoGen would write it as Python does. None for the rest."""
    if not isinstance(value, dict | list):
        return None
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return None


def _spec(schema: Mapping[str, Any]) -> ActionSpec:
    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    parameters: Any = schema.get("parameters") or nothing
    return ActionSpec(
        name=schema["name"],
        description=schema.get("description") or "",
        parameters=json.loads(json.dumps(parameters)),
    )


def _cancel(token: CancellationToken) -> None:
    """Cancels a tool's own token; what it was linked to may be broken (AutoGen's MCP tools)."""
    try:
        token.cancel()
    except AttributeError:
        return
