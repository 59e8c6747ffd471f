"""What is shown while a phase goes on."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.messages import (
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
    ToolCallRequestEvent,
)

from coag.agent.events import LiveEvents
from coag.schema import ActionCall


def live() -> LiveEvents:
    made = LiveEvents("agent")
    made.begin()
    return made


async def test_what_comes_is_taken_once_and_in_order() -> None:
    shown = live()
    shown.on_text("one ")
    shown.on_calls([ActionCall(id="i1", action="add", arguments={"a": 1})])
    shown.on_text("two")
    piece, called, last = shown.take()
    assert isinstance(called, ToolCallRequestEvent)
    assert [(c.id, c.name, c.arguments) for c in called.content] == [("i1", "add", '{"a": 1}')]
    assert all(isinstance(p, ModelClientStreamingChunkEvent) for p in (piece, last))
    assert shown.take() == []


async def test_no_calls_are_no_event() -> None:
    shown = live()
    shown.on_calls([])
    assert shown.take() == []


async def test_of_a_tools_events_only_autogens_are_shown() -> None:
    shown = live()
    events: list[Any] = [
        ThoughtEvent(content="t", source="x"),
        TextMessage(content="m", source="x"),
    ]
    for event in ("text", 3, *events, object()):
        shown.on_tool_event(event)
    assert shown.take() == events


async def test_an_answer_that_was_written_has_the_id_of_its_pieces() -> None:
    shown = live()
    shown.on_text("one ")
    shown.on_text("two")
    (piece, _) = shown.take()
    assert isinstance(piece, ModelClientStreamingChunkEvent)
    assert shown.answer_id("one two") == (piece.full_message_id, True)


async def test_another_answer_than_what_was_written_has_another_id() -> None:
    shown = live()
    shown.on_text("one")
    written = shown.message_id
    message_id, was_written = shown.answer_id("two")
    assert message_id != written
    assert not was_written


async def test_each_turn_begins_anew_with_an_id_of_its_own() -> None:
    shown = live()
    shown.on_text("one")
    before = shown.message_id
    shown.begin()
    assert shown.take() == []
    assert shown.message_id != before
    assert shown.answer_id("two") == (shown.message_id, False)


async def test_who_waits_is_woken_by_an_event_and_by_the_end() -> None:
    shown, going = live(), asyncio.Event()

    async def work() -> None:
        await going.wait()
        shown.wake()

    task = asyncio.create_task(work())
    waiting = asyncio.create_task(shown.until(task))
    await asyncio.sleep(0)
    assert not waiting.done()
    shown.on_text("piece")
    await asyncio.wait_for(waiting, 1)
    shown.take()
    waiting = asyncio.create_task(shown.until(task))
    going.set()
    await asyncio.wait_for(waiting, 1)
    await asyncio.wait_for(shown.until(task), 1)
