"""What an agent says at the end of a turn, and to the context that keeps its dialogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import (
    BaseChatMessage,
    HandoffMessage,
    StructuredMessage,
    TextMessage,
    ToolCallSummaryMessage,
)
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
)
from pydantic import BaseModel

from coag.context import CoagContext
from coag.cycle import TurnResult
from coag.schema import Executed, ExecutionOutcome

from ._calls import execution_result, function_call
from ._handoffs import Handoffs
from ._live import Live

CARRIED = 20
"""Tool calls of the turn that a handoff carries along, the last ones."""


@dataclass(frozen=True, slots=True)
class SummaryForm:
    """How the answer reads where a turn ends with an action, as in AssistantAgent."""

    form: str
    """May hold `{tool_name}`, `{arguments}`, `{result}` and `{is_error}`."""
    formatter: Callable[[FunctionCall, FunctionExecutionResult], str] | None

    def message(
        self,
        done: Sequence[Executed],
        outputs: Mapping[str, str],
        ids: Mapping[str, str],
        source: str,
        metadata: dict[str, str],
    ) -> ToolCallSummaryMessage:
        """The summary of the executed actions."""
        calls = [function_call(one, ids) for one in done]
        results = [execution_result(one, outputs, ids) for one in done]
        return ToolCallSummaryMessage(
            content="\n".join(map(self._text, calls, results)),
            source=source,
            tool_calls=calls,
            results=results,
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
class AnswerForm:
    """The form of the answers of an agent."""

    content_type: type[BaseModel] | None
    """The type of its answers; None for texts."""
    format_string: str | None
    """How a structured answer reads as text."""

    @property
    def message_type(self) -> type[BaseChatMessage] | None:
        """The message of a structured answer."""
        return StructuredMessage[self.content_type] if self.content_type is not None else None

    def message(
        self, text: str, source: str, metadata: dict[str, str], message_id: str
    ) -> BaseChatMessage:
        """The answer as a message."""
        if self.content_type is None:
            return TextMessage(content=text, source=source, metadata=metadata, id=message_id)
        return StructuredMessage[self.content_type](
            content=self.content_type.model_validate_json(text),
            format_string=self.format_string,
            source=source,
            metadata=metadata,
            id=message_id,
        )


@dataclass(frozen=True, slots=True)
class Voice:
    """Answers for an agent, and lets a foreign context know what was said."""

    name: str
    context: CoagContext[Any]
    summary: SummaryForm
    form: AnswerForm
    handoffs: Handoffs
    live: Live

    @property
    def message_types(self) -> tuple[type[BaseChatMessage], ...]:
        """What the agent's turns can end with. Swarm looks for `HandoffMessage` itself."""
        structured = self.form.message_type
        return (
            *((structured,) if structured is not None else ()),
            TextMessage,
            ToolCallSummaryMessage,
            *((HandoffMessage,) if self.handoffs.by_name else ()),
        )

    async def pass_on(self, message: BaseChatMessage) -> None:
        """Gives what is heard to the context that decides what of the dialogue is shown."""
        foreign = self.context.dialogue_source
        if foreign is not None:
            await foreign.add_message(message.to_model_message())

    async def pass_on_calls(self, outcome: ExecutionOutcome, outputs: Mapping[str, str]) -> None:
        """Gives tool calls and their results on, together, so that no call is without one."""
        foreign = self.context.dialogue_source
        ran = [one for one in outcome.executed if one.intent_id is not None]
        if foreign is None or not ran:
            return
        ids = self.live.call_ids
        calls = [function_call(one, ids) for one in ran]
        results = [execution_result(one, outputs, ids) for one in ran]
        self.context.note_own_calls(call.id for call in calls)
        thought = self.context.thought or None
        await foreign.add_message(
            AssistantMessage(content=calls, thought=thought, source=self.name)
        )
        await foreign.add_message(FunctionExecutionResultMessage(content=results))

    async def answer(
        self,
        result: TurnResult,
        done: Sequence[Executed],
        outputs: Mapping[str, str],
        message_id: str,
        may_say: Callable[[str], bool],
    ) -> BaseChatMessage:
        """The answer of a turn: in the form that was asked for, a handoff, or a summary.

        Args:
            result: How the turn ended.
            done: The tool calls of the turn.
            outputs: Whole outputs of the last cycle's tools, where the outcome holds them cut.
            message_id: The id of the answer.
            may_say: Whether the rules let a text leave the turn.
        """
        metadata = {"ended_by": result.reason, "cycles": str(result.cycles)}
        if result.failed_modules:
            metadata["failed_modules"] = ", ".join(result.failed_modules)
        if self.context.dialogue_source is not None:
            said = AssistantMessage(
                content=result.response, source=self.name, thought=self.context.thought or None
            )
            await self.context.dialogue_source.add_message(said)
        last = result.last
        handoff = self.handoffs.by_name.get((last.ended_by if last else None) or "")
        if handoff is not None:
            own = [one for one in done if one.intent_id not in result.anothers]
            return self._handoff(handoff, own, metadata, may_say)
        cut_off = not result.answered and not result.withheld
        if result.reason == "actions" and last is not None and cut_off:
            ran = [one for one in last.executed if one.intent_id is not None]
            summary = self.summary.message(ran, outputs, self.live.call_ids, self.name, metadata)
            if may_say(summary.to_text()):
                return summary
        if result.answered:
            return self.form.message(result.response, self.name, metadata, message_id)
        return TextMessage(content=result.response, source=self.name, metadata=metadata)

    def _handoff(
        self,
        handoff: Handoff,
        done: Sequence[Executed],
        metadata: dict[str, str],
        may_say: Callable[[str], bool],
    ) -> HandoffMessage:
        """The developer's message; with it go the last calls and results that the rules let out."""
        carried = [
            one
            for one in done[-CARRIED:]
            if may_say(one.result) and may_say(function_call(one).arguments)
        ]
        context: list[LLMMessage] = []
        if carried:
            ids = self.live.call_ids
            calls = [function_call(one, ids) for one in carried]
            results = [execution_result(one, {}, ids) for one in carried]
            context = [
                AssistantMessage(content=calls, source=self.name),
                FunctionExecutionResultMessage(content=results),
            ]
        return HandoffMessage(
            content=handoff.message,
            target=handoff.target,
            source=self.name,
            context=context,
            metadata=metadata,
        )
