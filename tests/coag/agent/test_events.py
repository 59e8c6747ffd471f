"""What is shown while a phase goes on."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import (
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
)

from coag.agent.events import Handoffs, LiveEvents
from coag.errors import ConfigurationError
from coag.schema import ActionCall


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


# ---- Handoffs as actions ----


async def test_each_is_an_internal_action_without_arguments_that_ends_the_turn() -> None:
    handoffs = Handoffs(["bob", Handoff(target="eve", name="to_eve", message="Eve!")])
    specs = handoffs.action_specs()
    assert [spec.name for spec in specs] == ["transfer_to_bob", "to_eve"]
    assert all(spec.internal for spec in specs)
    assert all(spec.parameters["properties"] == {} for spec in specs)
    result = await handoffs.run_action(ActionCall(id="i", action="to_eve", arguments={}))
    assert (result.content, result.ends_turn, result.is_error) == ("Eve!", True, False)


@pytest.mark.parametrize(
    ("given", "tools", "why"),
    [
        (["bob", "bob"], [], "given twice"),
        (["bob", Handoff(target="eve", name="transfer_to_bob")], [], "given twice"),
        (["bob"], ["transfer_to_bob"], "that a tool or an own action has"),
        ([Handoff(target="bob", name="respond")], [], "that a tool or an own action has"),
        ([3], [], "3 is no handoff"),
    ],
)
def test_names_must_be_free_and_handoffs_handoffs(given: Any, tools: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Handoffs(given, tools)
