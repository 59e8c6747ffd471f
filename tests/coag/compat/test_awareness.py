"""Situational awareness in a stock AutoGen agent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import Image
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import SystemMessage, UserMessage
from kits.shelves import FailingShelf, shelf
from PIL import Image as Pictures

from coag.awareness import (
    AwarenessState,
    CodingAdapter,
    ConversationAdapter,
    DecaySettings,
    DynamicsSettings,
    EngineSettings,
    ToolAdapter,
)
from coag.compat import AutoGenMemory
from coag.compat.awareness import AwarenessMemory
from coag.context import CoagContext
from coag.errors import AwarenessError, ConfigurationError, ObservationError
from coag.memory import LongTermMemory
from coag.models import ScriptedModel, message_text
from coag.schema import estimate_tokens
from coag.store import HashEmbedder, InMemoryStore

HEAD = "Where things stand."
PYTHON = {"topics": ["Python"], "goals": ["Learn Python"]}
COOKING = {"topics": ["cooking"]}


def analysed(analysis: Mapping[str, Any]) -> MemoryContent:
    return MemoryContent(content=dict(analysis), mime_type=MemoryMimeType.JSON)


def text_content(text: str) -> MemoryContent:
    return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT)


async def situation_of(memory: AwarenessMemory) -> str:
    return "\n".join(str(one.content) for one in (await memory.query("anything")).results)


async def texts(context: ChatCompletionContext) -> list[str]:
    return [message_text(message) for message in await context.get_messages()]


# ---- in an AssistantAgent ----


async def test_the_situation_is_put_once_right_before_the_last_request() -> None:
    model = ScriptedModel(lambda request: "Of course.")
    memory = AwarenessMemory()
    agent = AssistantAgent("tutor", model, memory=[memory])
    for analysis, request in ((PYTHON, "Teach me."), (COOKING, "Or cook?"), (PYTHON, "No, teach.")):
        await memory.add(analysed(analysis))
        await agent.run(task=request)
    sent = model.requests[-1].messages
    assert sum(HEAD in message_text(message) for message in sent) == 1
    assert sum(isinstance(message, SystemMessage) for message in sent) == 1
    assert HEAD in message_text(sent[-2])
    assert message_text(sent[-1]) == "No, teach."
    assert "[explicit] Learn Python (p=0.7)" in message_text(sent[-2])
    assert "Callback to earlier topic: {'Python'}" in message_text(sent[-2])
    assert 'trust="untrusted"' in message_text(sent[-2])


@pytest.mark.parametrize("first", ["awareness", "memory"])
async def test_it_goes_together_with_long_term_memory_in_any_order(first: str) -> None:
    store = LongTermMemory(InMemoryStore(HashEmbedder()), scope="tutor")
    recalled, memory = AutoGenMemory(store, min_score=0.0), AwarenessMemory()
    await recalled.add(text_content("Ann knows Java."))
    await memory.add(analysed(PYTHON))
    model = ScriptedModel(lambda request: "Yes.")
    both = [memory, recalled] if first == "awareness" else [recalled, memory]
    agent = AssistantAgent("tutor", model, memory=list(both))
    for _ in range(3):
        await agent.run(task="Does Ann know Java?")
    sent = [message_text(message) for message in model.requests[-1].messages]
    assert sum(HEAD in text for text in sent) == 1
    assert sum("What long-term memory holds" in text for text in sent) == 1
    assert sent[-1] == "Does Ann know Java?"


@pytest.mark.parametrize(
    "context",
    [
        UnboundedChatCompletionContext(),
        BufferedChatCompletionContext(buffer_size=20),
        CoagContext[Any](),
    ],
    ids=["unbounded", "buffered", "ours"],
)
async def test_a_context_never_holds_the_same_situation_twice(
    context: ChatCompletionContext,
) -> None:
    memory = AwarenessMemory()
    await memory.add(analysed(PYTHON))
    await context.add_message(UserMessage(content="Teach me.", source="user"))
    for _ in range(3):
        await memory.update_context(context)
    assert sum(HEAD in text for text in await texts(context)) == 1


# ---- what is added ----


class Echo:
    """A perception for which what is said is a goal."""

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        return {"message": text, "goals": [f"{text} ({state.step})"]}


async def test_a_text_is_read_by_the_perception_where_things_stand_so() -> None:
    memory = AwarenessMemory(perception=Echo())
    await memory.add(text_content("Learn"))
    await memory.add(text_content("Cook"))
    assert [one.description for one in memory.state.goals.goals] == ["Learn (0)", "Cook (1)"]


async def test_without_a_perception_a_text_is_a_message_that_nobody_analysed() -> None:
    memory = AwarenessMemory()
    await memory.add(text_content("Learn"))
    assert memory.state.step == 1
    assert memory.state.goals.goals == ()


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (analysed({"goals": 3}), ObservationError, "goals"),
        (analysed({"completed": ["fly"]}), AwarenessError, "fly"),
        (MemoryContent(content="{", mime_type=MemoryMimeType.JSON), ValueError, "is not"),
        (MemoryContent(content="[1]", mime_type=MemoryMimeType.JSON), ValueError, "not a list"),
        (
            MemoryContent(
                content=Image(Pictures.new("RGB", (1, 1))), mime_type=MemoryMimeType.IMAGE
            ),
            ValueError,
            "image",
        ),
    ],
)
async def test_what_cannot_be_read_is_refused_and_nothing_changes(
    content: MemoryContent, error: type[Exception], message: str
) -> None:
    memory = AwarenessMemory()
    await memory.add(analysed(PYTHON))
    before = memory.state
    with pytest.raises(error, match=message):
        await memory.add(content)
    assert memory.state == before


# ---- the rest of the interface ----


@pytest.mark.parametrize("budget", [1, 30, 200])
async def test_the_situation_keeps_to_its_budget_and_may_be_nothing(budget: int) -> None:
    memory, context = AwarenessMemory(budget=budget), UnboundedChatCompletionContext()
    for n in range(20):
        await memory.add(analysed({"goals": [f"Learn language {n}"]}))
    text = await situation_of(memory)
    assert estimate_tokens(text) <= budget
    await memory.update_context(context)
    assert len(await texts(context)) == bool(text)


async def test_a_stored_state_is_continued_and_clear_forgets_it() -> None:
    memory = AwarenessMemory()
    await memory.add(analysed(PYTHON))
    other = AwarenessMemory(
        state=AwarenessState.model_validate_json(memory.state.model_dump_json())
    )
    assert await situation_of(other) == await situation_of(memory)
    await other.clear()
    assert other.state.step == 0
    assert "Learn Python" in await situation_of(memory)
    await memory.close()
    await memory.close()


async def test_another_domain_s_state_no_budget_and_further_arguments_are_refused() -> None:
    with pytest.raises(AwarenessError, match="domain 'conversation'"):
        AwarenessMemory(CodingAdapter(), state=AwarenessMemory().state)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        AwarenessMemory(budget=0)
    with pytest.raises(TypeError, match=r"\['k'\]"):
        await AwarenessMemory().query("", k=3)


# ---- over long runs ----

QUICK = DynamicsSettings(decay=DecaySettings(every=1, threshold=-0.5))


async def test_an_archive_that_fails_leaves_the_state_as_it_was() -> None:
    memory = AwarenessMemory(dynamics=QUICK, archive=FailingShelf())
    before = memory.state
    with pytest.raises(OSError, match="locked"):
        await memory.add(analysed(PYTHON))
    assert memory.state == before


def test_a_component_holds_the_dynamics_and_refuses_an_archive_that_is_open() -> None:
    memory = AwarenessMemory(dynamics=DynamicsSettings.all_on())
    dumped = json.loads(json.dumps(memory.dump_component().model_dump()))
    assert AwarenessMemory.load_component(dumped).dump_component() == memory.dump_component()
    assert set(dumped["config"]["dynamics"]) == {"decay", "learning", "projection"}
    with pytest.raises(ConfigurationError, match="archive=: A RecordArchive"):
        AwarenessMemory(archive=shelf()).dump_component()


@pytest.mark.parametrize("adapter", [ConversationAdapter(), ToolAdapter(entities={"id": "order"})])
async def test_a_component_holds_the_domain_and_not_the_state(
    adapter: ConversationAdapter | ToolAdapter,
) -> None:
    memory = AwarenessMemory(adapter, budget=77, settings=EngineSettings(trajectory_window=2))
    dumped = json.loads(json.dumps(memory.dump_component().model_dump()))
    loaded = AwarenessMemory.load_component(dumped)
    assert loaded.dump_component().model_dump() == memory.dump_component().model_dump()
    assert loaded.state.domain == adapter.domain_name
    assert loaded.state.trajectory.window == 2
    assert loaded.state.step == 0


def test_a_perception_that_nobody_can_import_is_no_component() -> None:
    class Local(Echo):
        """Made within a function."""

    with pytest.raises(ConfigurationError, match="perception="):
        AwarenessMemory(perception=Local()).dump_component()
