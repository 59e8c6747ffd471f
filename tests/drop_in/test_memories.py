"""Our memory as AutoGen's: what ChromaDBVectorMemory promises, and what it does not keep."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import (
    ListMemory,
    Memory,
    MemoryContent,
    MemoryMimeType,
    MemoryQueryResult,
    UpdateContextResult,
)
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import UserMessage
from kits.drop_in import run, within
from kits.planned import PlannedModel
from numpy.typing import NDArray

from coag import CoagAgent
from coag.compat import AutoGenMemory
from coag.memory import LongTermMemory
from coag.store import HashEmbedder, open_store

FACTS = ("Ada likes apples.", "Bob sails boats.", "Cid paints castles.")


def memory(folder: Path | None = None, scope: str = "s", **given: Any) -> AutoGenMemory:
    store = open_store(folder, embedder=HashEmbedder())
    return AutoGenMemory(LongTermMemory(store, scope=scope), **given)


def text(content: str, **metadata: Any) -> MemoryContent:
    return MemoryContent(content=content, mime_type=MemoryMimeType.TEXT, metadata=metadata or None)


async def filled(folder: Path | None = None, **given: Any) -> AutoGenMemory:
    made = memory(folder, **given)
    for fact in FACTS:
        await made.add(text(fact))
    return made


async def found(given: Memory, query: str) -> list[str]:
    return [str(r.content) for r in (await within(given.query(query))).results]


async def test_what_was_added_is_found_best_first_with_scores_from_0_to_1() -> None:
    results = (await (await filled()).query("apples that Ada likes")).results
    assert results[0].content == FACTS[0]
    scores = [float((r.metadata or {})["score"]) for r in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_what_is_found_can_be_added_again_and_is_kept_once() -> None:
    made = await filled()
    (first, *_) = (await made.query("apples that Ada likes")).results
    await made.add(first)
    assert (await found(made, "apples that Ada likes")).count(FACTS[0]) == 1
    assert first.mime_type in (MemoryMimeType.TEXT, "text/plain")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (FACTS[0], MemoryMimeType.TEXT),
        (FACTS[0], "text/plain"),
        ({"Name": "ADA", "likes": ["Apples"]}, MemoryMimeType.JSON),
    ],
)
async def test_texts_and_json_come_back_as_they_were(content: Any, kind: Any) -> None:
    made = memory()
    await made.add(MemoryContent(content=content, mime_type=kind))
    (result,) = (await made.query("apples that Ada likes")).results
    assert result.content == content


@pytest.mark.parametrize("metadata", [{"a": None}, {"a": {"b": [1]}}, {"a": "x", "n": 1.5}])
async def test_any_metadata_comes_back_and_the_callers_is_left_alone(
    metadata: dict[str, Any],
) -> None:
    made, given = memory(), dict(metadata)
    await made.add(MemoryContent(content=FACTS[0], mime_type=MemoryMimeType.TEXT, metadata=given))
    assert given == metadata
    (result,) = (await made.query("apples that Ada likes")).results
    assert metadata.items() <= (result.metadata or {}).items()


async def test_equal_facts_do_not_crowd_out_others() -> None:
    made = await filled(k=3, min_score=0.0)
    for _ in range(5):
        await made.add(text(FACTS[0]))
    assert set(await found(made, "Ada Bob Cid")) == set(FACTS)


@pytest.mark.parametrize("kind", [CoagAgent, AssistantAgent])
async def test_models_of_both_kinds_of_agent_see_it(kind: Any) -> None:
    model = PlannedModel()
    agent = kind("agent", model, memory=[await filled()])
    for _ in range(3):
        await run(agent, "What does Ada like? apples?")
    assert max(asked.text.count(FACTS[0]) for asked in model.asked) == 1
    assert model.violations == []


# ---- on a disk ----


async def test_it_lasts_and_its_component_finds_it_again(tmp_path: Path) -> None:
    pytest.importorskip("chromadb")
    store = open_store(tmp_path / "memory", embedder=HashEmbedder())
    made = AutoGenMemory(LongTermMemory(store, scope="s"))
    await made.add(text(FACTS[0]))
    dumped = json.loads(made.dump_component().model_dump_json(exclude_none=True))
    await made.close()
    await made.close()
    again = Memory.load_component(dumped)
    assert isinstance(again, AutoGenMemory)
    assert await found(again, "apples that Ada likes") == [FACTS[0]]
    assert json.loads(again.dump_component().model_dump_json(exclude_none=True)) == dumped
    await again.close()
    other = memory(tmp_path / "memory", "another scope")
    assert await found(other, "apples that Ada likes") == []
    await other.close()


class GatedEmbedder:
    """Waits in each call until a test lets it continue, without the loop."""

    name = "gated"
    dimension = 64
    minimum_similarity = 0.1

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.let = threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.set()
        if not self.let.wait(10):
            raise RuntimeError("the loop is held, so that nobody could let it continue")
        return HashEmbedder(self.dimension).embed(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.embed([text])


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.parametrize("asks", [True, False])
async def test_a_slow_embedder_does_not_hold_the_loop(
    asks: bool, on_disk: bool, tmp_path: Path
) -> None:
    embedder = GatedEmbedder()
    store = open_store(tmp_path if on_disk else None, embedder=embedder)
    made = AutoGenMemory(LongTermMemory(store, scope="s"))
    embedder.let.set()
    await made.add(text(FACTS[1]))
    embedder.let.clear()
    embedder.asked.clear()
    under_way = asyncio.ensure_future(
        made.query("apples that Ada likes") if asks else made.add(text(FACTS[0]))
    )
    assert await asyncio.to_thread(embedder.asked.wait, 10)
    embedder.let.set()
    await under_way
    await made.close()


class Tutor(Memory):
    """A memory that finds nothing by itself, and puts advice into the context it is given."""

    component_type = "memory"

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        (asked,) = await model_context.get_messages()
        advice = f"Advice on {str(asked.content)[:20]}: measure twice."
        await model_context.add_message(UserMessage(content=advice, source="user"))
        return UpdateContextResult(memories=MemoryQueryResult(results=[]))

    async def query(
        self, query: str | MemoryContent, cancellation_token: Any = None, **kwargs: Any
    ) -> MemoryQueryResult:
        return MemoryQueryResult(results=[])

    async def add(self, content: MemoryContent, cancellation_token: Any = None) -> None: ...

    async def clear(self) -> None: ...

    async def close(self) -> None: ...


async def test_a_memory_that_works_in_the_context_is_asked() -> None:
    model = PlannedModel("FINAL")
    await run(CoagAgent("agent", model, memory=[Tutor()], depth="compact"), "Saw a board.")
    assert model.asked[-1].text.count("Advice on Saw a board.: measure twice.") == 1


async def test_all_of_a_list_reaches_the_model() -> None:
    notes = ListMemory()
    for number in range(30):
        text = f"Note {number}: {number * 7}."
        await notes.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT))
    model = PlannedModel("FINAL")
    await run(CoagAgent("agent", model, memory=[notes], depth="compact"), "What is noted?")
    sent = model.asked[-1].text
    assert [sent.count(f"Note {number}: {number * 7}.") for number in range(30)] == [1] * 30
