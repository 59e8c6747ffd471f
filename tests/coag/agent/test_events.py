"""What is shown while a phase runs."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import TextMessage, ThoughtEvent
from kits.brains import brain

from coag import CoagAgent
from coag.agent.events import LiveEvents
from coag.errors import ConfigurationError


async def test_of_a_tools_events_only_autogens_are_shown() -> None:
    live = LiveEvents("agent")
    events: list[Any] = [
        ThoughtEvent(content="t", source="x"),
        TextMessage(content="m", source="x"),
    ]
    for event in ("text", 3, *events, object()):
        live.on_tool_event(event)
    assert live.take() == events


async def transfer_to_bob() -> str:
    """A tool that is named as a handoff would be."""
    return "no"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["bob", "bob"], "given twice"),
        (["bob", Handoff(target="eve", name="transfer_to_bob")], "given twice"),
        (["eve", "bob"], "that a tool or an own action has"),
        ([Handoff(target="bob", name="respond")], "that a tool or an own action has"),
        ([3], "3 is no handoff"),
    ],
)
def test_names_must_be_free_and_handoffs_handoffs(given: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        CoagAgent("agent", brain(), handoffs=given, tools=[transfer_to_bob])
