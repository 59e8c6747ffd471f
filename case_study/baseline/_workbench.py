"""The tools of the plain agent, written down."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, TextResultContent, ToolResult, ToolSchema, Workbench

from coag.compat import Recorder, RecordingWorkbench, status_of
from coag.schema import ReceiptStatus


class WorldWorkbench(RecordingWorkbench):
    """Runs tools, each action named by its intent, whatever id the model gave to the call.

    Where only so many actions are left, what goes beyond is not run, and is no action.

    Args:
        tools: The tools, or a workbench.
        recorder: Who writes.
    """

    def __init__(self, tools: Sequence[BaseTool[Any, Any]] | Workbench, recorder: Recorder) -> None:
        super().__init__(tools, recorder, intent_ids=True, status_of=_status_of)
        self._fixed = not isinstance(tools, Workbench)
        self._listed: list[ToolSchema] | None = None
        self.ran: set[str] = set()
        """Ids of the model's calls that were run, as the model gave them."""
        self.spared: set[str] = set()
        """Ids of those that were not run because no action was left."""
        self.left: int | None = None
        """How many actions may still be run; None for no bound."""

    async def list_tools(self) -> list[ToolSchema]:
        """The tools; those that were given as such do not change, and are described once."""
        if self._listed is None or not self._fixed:
            self._listed = await super().list_tools()
        return self._listed

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """Runs a tool, as `AssistantAgent` does, if an action is left."""
        if not self._claimed(call_id):
            yield _none_left(name)
            return
        items = super().call_tool_stream(name, arguments, cancellation_token, call_id)
        async with aclosing(items):
            async for item in items:
                yield item

    def _claimed(self, call_id: str | None) -> bool:
        """Whether an action is left for this call, which takes it."""
        given = set[str]() if call_id is None else {call_id}
        if self.left == 0:
            self.spared |= given
            return False
        if self.left is not None:
            self.left -= 1
        self.ran |= given
        return True


def _status_of(result: ToolResult) -> ReceiptStatus:
    """The status; the world's client says in words that an outcome is not known."""
    unknown = "may or may not have happened" in result.to_text(replace_image="")
    return ReceiptStatus.UNKNOWN if unknown else status_of(result)


def _none_left(name: str) -> ToolResult:
    text = f"{name} was not run: no action is left. Nothing was done."
    return ToolResult(name=name, result=[TextResultContent(content=text)], is_error=True)
