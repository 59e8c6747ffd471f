"""The record of a request whose answer has no form: a text, or tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autogen_core.models import CreateResult, LLMMessage
from autogen_core.tools import Tool, ToolSchema

from coag.errors import error_type
from coag.schema import Asked, Given, ModelCall, Rung, TokenUsage

from .messages import sent_call, sent_messages, storable
from .request import CallContext, reason_of
from .scripted import tool_schema


class UnformedCall:
    """One request to a model as AutoGen's agents make it, on its way into the record.

    Args:
        messages: What is sent.
        tools: What is offered.
        model: What the model is called in records.
        context: Who asks, and who is told when the call is over.
        attempt: 1, or more for a request that repeats another one.
        expected: Name of the answer's type, where the agent asks for one.
        asked: The rest of the request, where it is to be replayed.
    """

    def __init__(
        self,
        messages: Sequence[LLMMessage],
        tools: Sequence[Tool | ToolSchema] = (),
        *,
        model: str,
        context: CallContext,
        attempt: int = 1,
        expected: str | None = None,
        asked: Asked | None = None,
    ) -> None:
        self._messages = sent_messages(messages)
        self._tools = tuple(tool_schema(tool)["name"] for tool in tools)
        self._model = model
        self._context = context
        self._attempt = attempt
        self._expected = expected
        self._asked = asked
        self._at, self._begun = context.clock.now(), context.clock.monotonic()

    def answered(
        self,
        result: CreateResult,
        usage: TokenUsage,
        *,
        repaired: bool = False,
        error: str | None = None,
        given: Given | None = None,
    ) -> ModelCall:
        """Writes down what came: its text, or its thought and its tool calls.

        Args:
            result: The answer as it came.
            usage: What the request used.
            repaired: The answer had faults and is used all the same.
            error: Why the answer cannot be used.
            given: The rest of the answer, where it is to be replayed.
        """
        # A careless client may bring None against its type: `or` makes that an empty answer.
        content = result.content or ""
        text = content if isinstance(content, str) else result.thought or ""
        calls = () if isinstance(content, str) else tuple(sent_call(call) for call in content)
        call = self._call(usage).model_copy(
            update={
                "raw": storable(text),
                "tool_calls": calls,
                "finish_reason": result.finish_reason,
                "repaired": repaired,
                "error": error,
                "given": given,
            }
        )
        self._context.on_call(call)
        return call

    def failed(
        self, reason: str | Exception, usage: TokenUsage, given: Given | None = None
    ) -> ModelCall:
        """Writes down that no answer came, and why."""
        why: dict[str, Any] = {"error": reason}
        if isinstance(reason, Exception):
            why = {"error": reason_of(reason), "error_type": error_type(reason)}
        call = self._call(usage).model_copy(update={**why, "given": given})
        self._context.on_call(call)
        return call

    def _call(self, usage: TokenUsage) -> ModelCall:
        return ModelCall(
            id=self._context.ids("call"),
            at=self._at,
            cycle=self._context.cycle,
            phase=self._context.phase,
            model=self._model,
            expected=self._expected,
            rung=Rung.NATIVE if self._tools else Rung.TEXT,
            attempt=self._attempt,
            messages=self._messages,
            raw="",
            tools=self._tools,
            usage=usage,
            seconds=round(self._context.clock.monotonic() - self._begun, 6),
            asked=self._asked,
        )
