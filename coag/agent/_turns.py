"""What a turn needs of AutoGen: its cancellation, and its summary of a tool call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from autogen_agentchat.messages import ToolCallSummaryMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import FunctionExecutionResult

from coag.cycle import TurnResult
from coag.schema import ExecutionOutcome, Outcome

from ._events import execution_result, function_call


async def next_item(
    turn: AsyncGenerator[Outcome | TurnResult], token: CancellationToken
) -> Outcome | TurnResult:
    """The turn's next item, waited for in a way that the token can cancel.

    The turn closes its cycle before the cancellation is passed on.
    """

    async def step() -> Outcome | TurnResult:
        return await anext(turn)

    task = asyncio.create_task(step())
    token.link_future(task)
    try:
        return await task
    except asyncio.CancelledError:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        raise


@dataclass(frozen=True, slots=True)
class SummaryForm:
    """How the answer reads where a turn ends with an action, as in AssistantAgent."""

    form: str
    """May hold `{tool_name}`, `{arguments}`, `{result}` and `{is_error}`."""
    formatter: Callable[[FunctionCall, FunctionExecutionResult], str] | None

    def message(
        self, last: ExecutionOutcome, source: str, metadata: dict[str, str]
    ) -> ToolCallSummaryMessage:
        """The summary of the executed action."""
        call, result = function_call(last), execution_result(last)
        return ToolCallSummaryMessage(
            content=self._text(call, result),
            source=source,
            tool_calls=[call],
            results=[result],
            metadata=metadata,
        )

    def _text(self, call: FunctionCall, result: FunctionExecutionResult) -> str:
        if self.formatter is not None:
            return self.formatter(call, result)
        values: dict[str, Any] = {
            "tool_name": call.name,
            "arguments": call.arguments,
            "is_error": result.is_error,
            "result": result.content,
        }
        text = self.form
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text
