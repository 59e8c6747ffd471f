"""A model without latency, and the tool it calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage, ModelInfo, RequestUsage

from coag.models import ModelClient, ModelRequest
from coag.schema import estimate_tokens


async def count_stone(number: int) -> str:
    """Counts one stone."""
    return f"Stone {number} is counted."


_REASONING = {"situation": "Some stones are counted.", "risks": ["One may be counted twice."]}
_CANDIDATES = [
    {"reason": reason, "action": "count_stone", "arguments": arguments, "expected_effect": "One."}
    for reason, arguments in (("It is near.", '{"number": 1}'), ("It is far.", '{"number": 2}'))
]
_ANSWERS: Mapping[str, Any] = {
    "ReasoningAnswer": _REASONING,
    "ProposalAnswer": {"candidates": _CANDIDATES},
    "EvaluationAnswer": {
        "evaluations": [{"candidate": n, "reason": "Good.", "score": 1 / n} for n in (1, 2)]
    },
    "SelectionAnswer": {"reason": "It is nearer.", "choice": 1},
    "DeliberationAnswer": {**_REASONING, "candidates": _CANDIDATES},
}
_TEXTS = {name: json.dumps(answer) for name, answer in _ANSWERS.items()}


class InstantModel(ModelClient):
    """Answers at once, looking at the wanted form only: a cost that no history changes."""

    component_provider_override = "overhead.InstantModel"

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sequence[LLMMessage]] = []
        """The messages of each call since this was last emptied."""
        self._usage = RequestUsage(prompt_tokens=1, completion_tokens=1)

    async def answer(self, request: ModelRequest) -> CreateResult:
        """The fixed answer of the wanted form; without a form, a call of the tool."""
        self.sent.append(request.messages)
        content: str | list[FunctionCall] = [
            FunctionCall(id="call", name="count_stone", arguments='{"number": 1}')
        ]
        if request.expected is not None:
            content = _TEXTS[request.expected]
        return CreateResult(finish_reason="stop", content=content, usage=self._usage, cached=False)

    @property
    def model_info(self) -> ModelInfo:
        """Knows schemas, so that forms cost no tokens of the messages."""
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=True,
            structured_output=True,
            family="unknown",
        )


def tokens_of(message: LLMMessage) -> int:
    """Estimated tokens of a message: its text, its tool calls, or its tool results."""
    if isinstance(message.content, str):
        return estimate_tokens(message.content)
    return sum(estimate_tokens(_text_of(part)) for part in message.content)


def _text_of(part: object) -> str:
    if isinstance(part, FunctionCall):
        return f"{part.name} {part.arguments}"
    return str(getattr(part, "content", part))


# ---- A model that answers as planned, at once or after a while, whole or in pieces ----

TEXT = "There are five stones in the yard, and I have counted each of them once."
CHUNKS = 20
_RESPOND = [
    {
        "reason": "All are counted.",
        "action": "respond",
        "arguments": json.dumps({"text": TEXT}),
        "expected_effect": "The user knows.",
    }
]
_ALL_COUNTED: dict[str, Any] = {"situation": "All stones are counted.", "risks": []}
_IN_TEXT = {
    "ReasoningAnswer": json.dumps(_ALL_COUNTED),
    "ProposalAnswer": json.dumps({"candidates": _RESPOND}),
    "DeliberationAnswer": json.dumps({**_ALL_COUNTED, "candidates": _RESPOND}),
}
"""The forms in which a text is answered."""


class PlannedModel(InstantModel):
    """`InstantModel`, or one that answers in text; it keeps nothing of what it is sent.

    Args:
        calls: True if it calls the tool whenever it may, or proposes to; else it answers.
        latency: Seconds until it answers.
    """

    component_provider_override = "overhead.PlannedModel"

    def __init__(self, *, calls: bool, latency: float = 0.0) -> None:
        super().__init__()
        self._calls = calls
        self._latency = latency

    async def answer(self, request: ModelRequest) -> CreateResult:
        """The fixed answer of the wanted form."""
        if self._latency:
            await asyncio.sleep(self._latency)
        if self._calls:
            result = await super().answer(request)
            self.sent.clear()
            return result
        text = TEXT if request.expected is None else _IN_TEXT[request.expected]
        return CreateResult(finish_reason="stop", content=text, usage=self._usage, cached=False)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """The same; a text comes in pieces first."""
        result = await self.answer(request)
        if isinstance(result.content, str):
            size = -(-len(result.content) // CHUNKS)
            for start in range(0, len(result.content), size):
                yield result.content[start : start + size]
        yield result
