"""Images reach models that see, and never one that does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from autogen_agentchat.messages import MultiModalMessage
from autogen_core import Image
from autogen_core.model_context import BufferedChatCompletionContext
from kits.drop_in import WAYS, run, way_name
from kits.planned import Asked, PlannedModel
from PIL import Image as PILImage

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)


def picture(colour: int = 0) -> MultiModalMessage:
    image = Image(PILImage.new("RGB", (4, 4), (colour, 0, 0)))
    return MultiModalMessage(content=[f"Look {colour}.", image], source="user")


def images_in(asked: Asked) -> list[str]:
    parts = [part for m in asked.messages if isinstance(m.content, list) for part in m.content]
    return [part.to_base64() for part in parts if isinstance(part, Image)]


@all_ways
async def test_a_model_that_sees_is_shown_them_and_sees_them_still_in_the_next_turn(
    way: dict[str, Any],
) -> None:
    model = PlannedModel(vision=True)
    agent = CoagAgent("agent", model, **way)
    await run(agent, picture())
    assert any(images_in(one) for one in model.asked)
    before = len(model.asked)
    await run(agent, "What colour was it?")
    assert any(images_in(one) for one in model.asked[before:])


@all_ways
async def test_a_model_that_does_not_see_is_sent_none(way: dict[str, Any]) -> None:
    model = PlannedModel()
    await run(CoagAgent("agent", model, **way), picture(7))
    assert not any(images_in(asked) for asked in model.asked)
    assert "Look 7." in model.heard


async def test_they_come_back_with_the_state() -> None:
    first = CoagAgent("agent", PlannedModel(vision=True))
    await run(first, picture())
    model = PlannedModel(vision=True)
    second = CoagAgent("agent", model)
    await second.load_state(json.loads(json.dumps(await first.save_state())))
    await run(second, "What colour was it?")
    assert any(images_in(asked) for asked in model.asked)


async def test_no_more_than_the_newest_are_shown_and_kept() -> None:
    model = PlannedModel(vision=True)
    agent = CoagAgent("agent", model, depth="compact")
    for colour in range(8):
        await run(agent, picture(colour))
    assert len(images_in(model.asked[-1])) <= 4
    assert json.dumps(await agent.save_state()).count("data:image") <= 4


async def test_a_given_context_lets_them_through_too() -> None:
    model = PlannedModel(vision=True)
    agent = CoagAgent("agent", model, model_context=BufferedChatCompletionContext(4))
    await run(agent, picture())
    assert any(images_in(asked) for asked in model.asked)
    blind = PlannedModel()
    await run(CoagAgent("agent", blind, model_context=BufferedChatCompletionContext(4)), picture())
    assert not any(images_in(asked) for asked in blind.asked)
