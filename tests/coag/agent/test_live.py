"""What is shown while a phase goes on."""

from __future__ import annotations

from typing import Any

from autogen_agentchat.messages import (
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
)

from coag.agent.events import LiveEvents


def live() -> LiveEvents:
    made = LiveEvents("agent")
    made.begin()
    return made


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
