"""What tools, servers, agents and people seldom do, and what is made of it."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    TextMessage,
    ToolCallExecutionEvent,
)
from autogen_core import CancellationToken
from autogen_core.models import FunctionExecutionResult
from autogen_core.tools import ToolOverride
from PIL import Image as Picture

from coag.compat import RecordedAgent, Recorder
from coag.compat.approval_web import WebApprover
from coag.compat.mcp_tools import McpLimits, ToolDefinition, make_offer, mcp_result
from coag.compat.recorder import AnnouncedCalls
from coag.compat.recording import StockRun
from coag.schema import Note, TraceRecord

# ---- what a server of tools returns ----


def texts_of(*content: dict[str, Any]) -> list[str]:
    result = mcp_result("look", {"content": content}, McpLimits())
    return [part.content for part in result.result if isinstance(part.content, str)]


def test_a_content_of_a_kind_that_nobody_knows_is_named() -> None:
    assert texts_of({"type": "hologram"}) == ["[content of a kind that is not known: hologram]"]


def test_an_image_of_very_many_pixels_is_described_and_not_shown() -> None:
    file = io.BytesIO()
    Picture.new("1", (10_000, 6_000)).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    (text,) = texts_of({"type": "image", "mimeType": "image/png", "data": data})
    assert text.endswith("10000 x 6000 pixels: too large to be shown]")


def test_of_two_tools_that_are_shown_under_one_name_the_second_is_left_out() -> None:
    found = [ToolDefinition.of(name, "Looks.", {"type": "object"}) for name in ("see", "look")]
    tools = {one.name: one for one in found}
    offer = make_offer(tools, {}, {"see": ToolOverride(name="look")}, McpLimits())
    assert offer.own_names == {"look": "see"}
    assert offer.left_out == ("Left out: 'look', a second tool shown as 'look'.",)


# ---- calls ----


def test_a_call_is_taken_over_only_by_who_runs_just_that() -> None:
    recorder = Recorder(agent="clerk")
    recorder.begin_turn()
    calls = AnnouncedCalls()
    first, second = (recorder.begin("look", {"where": place}) for place in ("hall", "attic"))
    calls.announce("1", first)
    calls.announce("1", second)
    assert calls.claim("1", "look", {"where": "cellar"}) is None
    assert calls.claim("1", "fly", {"where": "attic"}) is None
    assert calls.claim("1", "look", {"where": "attic"}) is second
    assert calls.claim("1", "look", {"where": "attic"}) is None
    assert calls.claim("1", "look", {"where": "hall"}) is first


# ---- stock agents ----


class Odd(BaseChatAgent):
    """Gives the items of a test, and counts how often it was reset."""

    def __init__(self, *items: BaseAgentEvent | BaseChatMessage | Response | Exception) -> None:
        super().__init__("odd", "Odd.")
        self.items = items
        self.resets = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        raise AssertionError("It streams.")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        for item in self.items:
            if isinstance(item, Exception):
                raise item
            yield item

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self.resets += 1


def user(text: str) -> TextMessage:
    return TextMessage(content=text, source="user")


async def test_an_agent_that_ends_its_turn_without_a_word_is_an_error() -> None:
    agent = RecordedAgent(Odd(), Recorder(agent="odd"))
    with pytest.raises(RuntimeError, match="'odd' ended its turn without a response"):
        await agent.on_messages([user("Hello.")], CancellationToken())


async def test_a_result_of_a_call_that_nobody_made_is_noted() -> None:
    result = FunctionExecutionResult(content="5", name="add", call_id="c9", is_error=False)
    response = Response(chat_message=TextMessage(content="Done.", source="odd"))
    recorder = Recorder(agent="odd")
    agent = RecordedAgent(
        Odd(ToolCallExecutionEvent(content=[result], source="odd"), response), recorder
    )
    await agent.on_messages([user("Hello.")], CancellationToken())
    notes = [record for record in recorder.records if isinstance(record, Note)]
    assert [note.text for note in notes] == ["A result that belongs to no call: 5"]


def run_again(agent: Odd, recorder: Recorder) -> StockRun:
    def records() -> list[TraceRecord]:
        return []

    return StockRun(agent, recorder, records)


async def test_in_a_replay_what_an_agent_raises_in_its_turn_is_in_the_turns_end() -> None:
    recorder = Recorder(agent="odd")
    agent = RecordedAgent(Odd(KeyError("no such shelf")), recorder)
    run = StockRun(agent, recorder, lambda: [])
    assert await run.say("Hello.") is None
    end = recorder.records[-1]
    assert (end.record, getattr(end, "reason", "")) == ("turn_end", "error")


class Unready(RecordedAgent):
    """Raises before its turn has begun."""

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        raise KeyError("no such shelf")


async def test_in_a_replay_what_an_agent_raises_before_its_turn_is_passed_on() -> None:
    recorder = Recorder(agent="odd")
    run = StockRun(Unready(Odd(), recorder), recorder, lambda: [])
    with pytest.raises(KeyError, match="no such shelf"):
        await run.say("Hello.")


async def test_in_a_replay_an_agent_is_reset_where_it_was_and_repeats_nothing_else() -> None:
    odd = Odd()
    run = run_again(odd, Recorder(agent="odd"))
    assert await run.repeat("weather", "It rains.") is False
    assert odd.resets == 0
    assert await run.repeat("reset", "") is True
    assert odd.resets == 1


# ---- people ----


def test_a_page_that_is_started_twice_is_served_once_and_stopping_twice_does_no_harm() -> None:
    approver = WebApprover()
    try:
        address = approver.start().url
        assert approver.start().url == address
    finally:
        approver.stop()
    approver.stop()
    assert approver.url == ""
