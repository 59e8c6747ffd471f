"""The images of a dialogue: few, the newest, and only where they are looked at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from autogen_agentchat.messages import MultiModalMessage
from autogen_core import Image
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    SystemMessage,
    UserMessage,
)
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PILImage

from coag.agent.inbox import TOO_LARGE, message_percepts
from coag.context import CoagContext, PhaseMaterial, named_images
from coag.context.dialogue import IMAGES_LIMIT, Images
from coag.context.working_memory import Utterance, WorkingMemory
from coag.schema import CountingIds, Phase, PromptMessage, RetrievalOutcome, SteppingClock, Trust

PROMPT = (
    PromptMessage(role="system", content="Be brief."),
    PromptMessage(role="user", content="Look."),
    PromptMessage(role="user", content="Well?"),
)


def memory(*shown: tuple[str, ...]) -> WorkingMemory:
    dialogue = tuple(
        Utterance(
            source="user",
            own=False,
            trust=Trust.USER,
            content="Look.",
            at=datetime(2026, 1, 1, tzinfo=UTC),
            images=images,
        )
        for images in shown
    )
    return WorkingMemory(activity="main", dialogue=dialogue)


@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=3).map(tuple), max_size=6))
def test_the_newest_of_the_dialogue_are_kept_and_shown(shown: list[tuple[str, ...]]) -> None:
    images, seen = Images(), list[tuple[str, ...]]()
    for arrived in shown:
        seen.append(arrived)
        images.keep({name: f"uri-{name}" for name in arrived}, memory(*seen))
    now = memory(*seen)
    names = list(dict.fromkeys(name for names in seen for name in names))[-IMAGES_LIMIT:]
    assert set(images.save()) <= set(names)
    again = Images()
    again.load(images.save())
    prompt = again.put_into(PROMPT, Phase.REASONING, now)
    assert prompt == images.put_into(PROMPT, Phase.REASONING, now)
    assert [message.images for message in prompt if message.role == "system"] == [()]
    assert prompt[2].images == ()
    assert set(prompt[1].images) <= {f"uri-{name}" for name in names}
    assert len(prompt[1].images) == len(images.save())


def picture(size: int = 4) -> Image:
    return Image(PILImage.new("RGB", (size, size)))


def test_a_message_brings_its_images_by_hash() -> None:
    message = MultiModalMessage(content=["Look.", picture(), picture()], source="user")
    (percept,) = message_percepts(message, SteppingClock(), CountingIds())
    assert list(percept.images) == list(named_images([picture().data_uri]))
    assert TOO_LARGE not in percept.content


async def test_an_image_that_is_added_or_shown_by_another_context_is_seen() -> None:
    message = UserMessage(content=["Look.", picture()], source="user")
    for dialogue in (None, UnboundedChatCompletionContext()):
        context = CoagContext[Any](dialogue=dialogue)
        await context.add_message(message)
        await context.refresh_dialogue()
        assert context.images.save() == named_images([picture().data_uri])
        assert context.working_memory.dialogue[-1].images == tuple(context.images.save())


NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_growing_prompt_gives_the_answers_back_as_the_assistants() -> None:
    context = CoagContext[Any](rendering="growing")
    material = PhaseMaterial(instructions={}, forms={})
    context.commit(RetrievalOutcome(cycle=1, at=NOW, query="q"))
    context.build_prompt(Phase.REASONING, material)
    context.build_prompt(Phase.PROPOSAL, material)
    kinds = [type(message) for message in await context.get_messages()]
    assert kinds == [SystemMessage, UserMessage, AssistantMessage, UserMessage]
