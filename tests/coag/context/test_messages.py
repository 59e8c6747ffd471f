from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from PIL import Image as Picture

from coag.context import CoagContext, PhaseMaterial
from coag.schema import Phase, RetrievalOutcome, Trust

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def heard(*messages: LLMMessage) -> list[tuple[str, str, Trust, bool]]:
    context = CoagContext[Any]()
    for message in messages:
        await context.add_message(message)
    said = context.working_memory.dialogue
    return [(one.source, one.content, one.trust, one.own) for one in said]


async def test_the_users_words_have_the_users_trust_and_others_none() -> None:
    assert await heard(
        UserMessage(content="hello", source="user"),
        UserMessage(content="psst", source="stranger"),
    ) == [
        ("user", "hello", Trust.USER, False),
        ("stranger", "psst", Trust.UNTRUSTED, False),
    ]


async def test_a_system_message_is_no_dialogue() -> None:
    assert await heard(SystemMessage(content="Be kind.")) == []


async def test_tool_results_are_untrusted_words_of_their_tools() -> None:
    result = FunctionExecutionResult(content="5", name="add", call_id="c1", is_error=False)
    assert await heard(FunctionExecutionResultMessage(content=[result])) == [
        ("add", "5", Trust.UNTRUSTED, False)
    ]


async def test_tool_calls_are_shown_as_text() -> None:
    call = FunctionCall(id="c1", name="add", arguments='{"a": 1}')
    ((source, content, _, _),) = await heard(AssistantMessage(content=[call], source="helper"))
    assert source == "helper"
    assert '"name": "add"' in content


async def test_images_stand_as_a_placeholder() -> None:
    image = Image(Picture.new("RGB", (1, 1)))
    ((_, content, _, _),) = await heard(UserMessage(content=["look:", image], source="user"))
    assert content == "look:\n[image]"


async def test_a_growing_prompt_gives_the_answers_back_as_the_assistants() -> None:
    context = CoagContext[Any](rendering="growing")
    material = PhaseMaterial(instructions={}, forms={})
    context.commit(RetrievalOutcome(cycle=1, at=NOW, query="q"))
    context.build_prompt(Phase.REASONING, material)
    context.build_prompt(Phase.PROPOSAL, material)
    kinds = [type(message) for message in await context.get_messages()]
    assert kinds == [SystemMessage, UserMessage, AssistantMessage, UserMessage]
