"""Streaming: pieces add up to the answer, belong to it, and are never kept."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from autogen_agentchat.messages import ModelClientStreamingChunkEvent
from autogen_core.models import CreateResult
from kits.drop_in import WAYS, add, streamed, way_name
from kits.planned import PlannedModel

from coag import CoagAgent
from coag.models import ModelRequest
from coag.schema import Candidate, Verdict

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)


def pieces_for(items: list[Any], message_id: str) -> list[str]:
    return [
        item.content
        for item in items
        if isinstance(item, ModelClientStreamingChunkEvent) and item.full_message_id == message_id
    ]


@all_ways
@pytest.mark.parametrize("plan", [[], [("add", {"a": 1, "b": 2})]], ids=["alone", "after_tool"])
async def test_pieces_add_up_to_the_answer(way: dict[str, Any], plan: list[Any]) -> None:
    model = PlannedModel("one two three four", *plan)
    agent = CoagAgent("agent", model, tools=[add], model_client_stream=True, **way)
    for _ in range(2):
        items, response = await streamed(agent, "Go.")
        answer = response.chat_message
        pieces = pieces_for(items, answer.id)
        assert "".join(pieces) == answer.to_text() == "one two three four"
        assert len(pieces) > 1 or way["proposal"] == "json"
        kept = response.inner_messages or ()
        assert not any(isinstance(item, ModelClientStreamingChunkEvent) for item in kept)


class TalkingModel(PlannedModel):
    """Says something before it calls a tool, as providers stream it."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        result = await self.answer(request)
        yield result.content if isinstance(result.content, str) else "Let me see. "
        yield result


async def test_an_answer_after_words_beside_a_call_is_streamed_once() -> None:
    model = TalkingModel("It is 3.", ("add", {"a": 1, "b": 2}))
    agent = CoagAgent("agent", model, tools=[add], model_client_stream=True)
    items, response = await streamed(agent, "Go.")
    pieces = [one for one in items if isinstance(one, ModelClientStreamingChunkEvent)]
    assert [one.content for one in pieces] == ["Let me see. ", "It is 3."]
    assert [one.full_message_id == response.chat_message.id for one in pieces] == [False, True]


class OwnTools(PlannedModel):
    """A client that runs its tools itself: words, a tool of its own, and then the answer."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        yield "Let me see. "
        yield "It is 3."
        yield await self.answer(request)


async def test_an_answer_after_words_and_a_tool_of_the_clients_own_is_streamed_once() -> None:
    agent = CoagAgent("agent", OwnTools("It is 3."), model_client_stream=True)
    items, response = await streamed(agent, "Go.")
    pieces = [one for one in items if isinstance(one, ModelClientStreamingChunkEvent)]
    assert [one.content for one in pieces] == ["Let me see. ", "It is 3."]
    assert response.chat_message.to_model_text() == "It is 3."


@all_ways
async def test_nothing_is_streamed_unasked(way: dict[str, Any]) -> None:
    items, _ = await streamed(CoagAgent("agent", PlannedModel(), **way), "Go.")
    assert not any(isinstance(item, ModelClientStreamingChunkEvent) for item in items)


def no_swearing(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    """A rule over answers."""
    del state, projection
    if re.search("damn", candidate.raw_arguments):
        return Verdict.forbid("no swearing")
    return Verdict.allow()


async def test_what_a_rule_may_still_reject_is_not_shown_before() -> None:
    model = PlannedModel().err("damn you", "tools")
    agent = CoagAgent("agent", model, model_client_stream=True, constraints=[no_swearing])
    items, response = await streamed(agent, "Go.")
    text = "".join(i.content for i in items if isinstance(i, ModelClientStreamingChunkEvent))
    assert text == response.chat_message.to_text() == "FINAL"


async def test_a_call_written_as_text_is_an_answer_like_any_other() -> None:
    written = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
    model = PlannedModel().err(written, "tools")
    agent = CoagAgent("agent", model, tools=[add], model_client_stream=True)
    with pytest.warns(UserWarning, match="a text that is a call of a tool"):
        items, response = await streamed(agent, "Go.")
    text = "".join(i.content for i in items if isinstance(i, ModelClientStreamingChunkEvent))
    assert text == response.chat_message.to_text() == written
