"""A model that answers as planned, at once or after a while, whole or in pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from autogen_core.models import CreateResult

from coag.models import ModelRequest

from ._model import InstantModel

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
_REASONING: dict[str, Any] = {"situation": "All stones are counted.", "risks": []}
_IN_TEXT = {
    "ReasoningAnswer": json.dumps(_REASONING),
    "ProposalAnswer": json.dumps({"candidates": _RESPOND}),
    "DeliberationAnswer": json.dumps({**_REASONING, "candidates": _RESPOND}),
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
        """The standing answer of the wanted form."""
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
