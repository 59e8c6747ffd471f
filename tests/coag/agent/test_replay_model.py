"""The double of a model does what the record of a call tells that the model did."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import CreateResult

from coag.agent import ReplayAnswer
from coag.agent.replay_model import ReplayModelClient
from coag.schema import AnswerDetails, ModelCall, OutputMode, SteppingClock, TokenUsage


class One:
    """Knows of one call."""

    def __init__(self, answered: ReplayAnswer) -> None:
        self.answered = answered

    async def answer(self) -> ReplayAnswer:
        return self.answered

    def upcoming(self) -> Sequence[ModelCall]:
        return [self.answered.call]


def recorded(**fields: Any) -> ModelCall:
    call = ModelCall(
        id="c",
        at=SteppingClock().now(),
        cycle=1,
        phase=None,
        model="tiny",
        rung=OutputMode.PROMPT,
        attempt=1,
        messages=(),
        raw="Aye.",
        finish_reason="stop",
        usage=TokenUsage(prompt_tokens=7, completion_tokens=2, calls=1),
        seconds=0.1,
    )
    return call.model_copy(update=fields)


async def again(call: ModelCall, **told: Any) -> CreateResult:
    asked: list[str] = []
    client = ReplayModelClient(One(ReplayAnswer(call=call, **told)), asked.append)
    try:
        return await client.create([])
    finally:
        assert asked == ["tiny"]


async def test_an_answer_comes_again_with_what_it_took() -> None:
    result = await again(recorded())
    assert (result.content, result.finish_reason, result.usage.prompt_tokens) == ("Aye.", "stop", 7)


async def test_usage_that_was_estimated_is_left_to_be_estimated_again() -> None:
    assert (await again(recorded(usage_estimated=True))).usage is None


@pytest.mark.parametrize("given", [AnswerDetails(ended="cancelled"), None])
async def test_a_call_that_was_cancelled_is_cancelled_again(given: AnswerDetails | None) -> None:
    """Older traces tell of it by the error alone."""
    call = recorded(raw="", finish_reason="", error="cancelled", given=given)
    with pytest.raises(asyncio.CancelledError):
        await again(call)


async def test_a_call_that_took_too_long_is_a_timeout_again() -> None:
    call = recorded(raw="", finish_reason="", error="TimeoutError: no answer within 5 s")
    with pytest.raises(TimeoutError, match="no answer within 5 s"):
        await again(call)


@pytest.mark.parametrize(("refused", "kind"), [(True, ValueError), (False, Exception)])
async def test_a_call_that_raised_raises_what_reads_alike_and_a_refusal_is_one(
    refused: bool, kind: type[Exception]
) -> None:
    call = recorded(raw="", finish_reason="", error="OddError: no schemas here")
    with pytest.raises(kind, match="no schemas here") as raised:
        await again(call, refused=refused)
    assert type(raised.value).__name__ == "OddError"
    assert isinstance(raised.value, ValueError) is refused


async def test_what_came_and_was_no_result_at_all_is_none_again() -> None:
    call = recorded(raw="", finish_reason="", error="The client brought no result, but a str")
    assert not isinstance(await again(call), CreateResult)


async def test_a_content_that_nobody_could_read_cannot_be_read_again() -> None:
    call = recorded(raw="", error="The client brought a content that is no text: 5")
    content = (await again(call)).content
    assert not isinstance(content, str | list)


async def test_calls_that_were_too_many_come_again_too() -> None:
    told = {"id": "1", "name": "look", "arguments": "{}"}
    call = recorded(raw="", rung=OutputMode.NATIVE, tool_calls=(told,))
    calls = (await again(call, dropped=2)).content
    assert calls == [FunctionCall(id="1", name="look", arguments="{}")] * 3
