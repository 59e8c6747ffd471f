"""The replayed model does what the record of a call says that the model did."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from autogen_core.models import CreateResult

from coag.agent.replay_model import ReplayModelClient
from coag.schema import AnswerDetails, ModelCall, OutputMode, SteppingClock, TokenUsage


class One:
    """Knows of one call."""

    def __init__(self, call: ModelCall) -> None:
        self.call = call

    async def answer(self) -> ModelCall:
        return self.call

    def upcoming(self) -> Sequence[ModelCall]:
        return [self.call]


async def again(**fields: Any) -> CreateResult:
    call = ModelCall(
        id="c",
        at=SteppingClock().now(),
        model="tiny",
        rung=OutputMode.PROMPT,
        attempt=1,
        messages=(),
        raw="Aye.",
        finish_reason="stop",
        usage=TokenUsage(prompt_tokens=7, completion_tokens=2, calls=1),
    )
    prompts: list[str] = []
    client = ReplayModelClient(One(call.model_copy(update=fields)), prompts.append)
    try:
        return await client.create([])
    finally:
        assert prompts == ["tiny"]


async def test_an_answer_comes_again_with_what_it_took_unless_that_was_estimated() -> None:
    result = await again()
    assert (result.content, result.finish_reason, result.usage.prompt_tokens) == ("Aye.", "stop", 7)
    assert (await again(usage_estimated=True)).usage is None


@pytest.mark.parametrize("given", [AnswerDetails(ended="cancelled"), None])
async def test_a_call_that_was_cancelled_is_cancelled_again(given: AnswerDetails | None) -> None:
    """Older traces show it by the error alone."""
    with pytest.raises(asyncio.CancelledError):
        await again(raw="", finish_reason="", error="cancelled", given=given)


async def test_a_call_that_took_too_long_is_a_timeout_again() -> None:
    with pytest.raises(TimeoutError, match="no answer within 5 s"):
        await again(raw="", finish_reason="", error="TimeoutError: no answer within 5 s")


@pytest.mark.parametrize("fault", ["refused", None])
async def test_a_call_that_raised_raises_what_reads_alike_and_a_refusal_is_one(
    fault: str | None,
) -> None:
    details = AnswerDetails(ended="raised", fault=fault)
    with pytest.raises(Exception, match="no schemas here") as raised:
        await again(raw="", finish_reason="", error="OddError: no schemas here", given=details)
    assert type(raised.value).__name__ == "OddError"
    assert isinstance(raised.value, ValueError) is (fault == "refused")


async def test_what_nobody_could_read_cannot_be_read_again() -> None:
    none = await again(raw="", finish_reason="", error="The client brought no result, but a str")
    assert not isinstance(none, CreateResult)
    odd = await again(raw="", error="The client brought a content that is no text: 5")
    assert not isinstance(odd.content, str | list)
