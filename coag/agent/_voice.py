"""What an agent says at the end of a turn, and to the context that keeps its dialogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autogen_agentchat.messages import BaseChatMessage, TextMessage, ToolCallSummaryMessage
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, FunctionExecutionResult

from coag.context import CoagContext
from coag.cycle import TurnResult
from coag.schema import ExecutionOutcome

from ._events import execution_result, function_call


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


@dataclass(frozen=True, slots=True)
class Voice:
    """Answers for an agent, and lets a foreign context know what was said."""

    name: str
    context: CoagContext[Any]
    summary: SummaryForm

    async def pass_on(self, messages: Sequence[BaseChatMessage]) -> None:
        """Gives what was heard to the context that decides what of the dialogue is shown."""
        foreign = self.context.dialogue_source
        if foreign is not None:
            for message in messages:
                await foreign.add_message(message.to_model_message())

    async def answer(self, result: TurnResult) -> BaseChatMessage:
        """The answer of a turn: a text, or the summary of the action that ended it."""
        metadata = {"ended_by": result.reason, "cycles": str(result.cycles)}
        if result.failed_modules:
            metadata["failed_modules"] = ", ".join(result.failed_modules)
        if self.context.dialogue_source is not None:
            said = AssistantMessage(content=result.response, source=self.name)
            await self.context.dialogue_source.add_message(said)
        if result.reason == "actions" and result.last is not None:
            return self.summary.message(result.last, self.name, metadata)
        return TextMessage(content=result.response, source=self.name, metadata=metadata)
