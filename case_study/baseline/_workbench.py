"""A workbench whose calls are bracketed by intent and receipt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import (
    BaseTool,
    StaticWorkbench,
    TextResultContent,
    ToolResult,
)

from coag.compat import Attempt, Recorder, read_result
from coag.errors import TraceError
from coag.schema import ReceiptStatus


class RecordingWorkbench(StaticWorkbench):
    """Runs tools, each action named by its intent, whatever id the model gave to the call.

    AutoGen's `AssistantAgent` waits for ever for a workbench that raises: what goes wrong with
    the trace is kept in `problem`, for whoever drives the agent to raise.

    Args:
        tools: The tools.
        recorder: Who writes.
    """

    component_provider_override = "case_study.baseline.RecordingWorkbench"

    def __init__(self, tools: Sequence[BaseTool[Any, Any]], recorder: Recorder) -> None:
        super().__init__(list(tools))
        self._recorder = recorder
        self.problem: TraceError | None = None
        """Why the trace could not be written; nothing is run any more then."""
        self.ran: set[str] = set()
        """Ids of the model's calls that were run, as the model gave them."""

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Runs a tool between its intent and its receipt."""
        if call_id is not None:
            self.ran.add(call_id)
        try:
            attempt = self._recorder.begin(name, arguments or {})
        except TraceError as error:
            self.problem = error
            text = f"{name} was not run: its intent could not be written."
            return ToolResult(name=name, result=[TextResultContent(content=text)], is_error=True)
        result = await super().call_tool(name, arguments, cancellation_token, attempt.intent_id)
        try:
            self._end(attempt, result)
        except TraceError as error:
            self.problem = error
        return result

    def _end(self, attempt: Attempt, result: ToolResult) -> None:
        text = result.to_text()
        read = read_result(text, is_error=result.is_error)
        status = ReceiptStatus.FAILED if read.is_error else ReceiptStatus.DONE
        if "may or may not have happened" in text:
            status = ReceiptStatus.UNKNOWN
        self._recorder.end(attempt, status, text, read.failure)
