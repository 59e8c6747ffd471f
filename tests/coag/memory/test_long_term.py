from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from coag.errors import RecordStoreError
from coag.memory import LongTermMemory
from coag.schema import (
    MemoryKind,
    Provenance,
    RecalledRecord,
    Record,
    SteppingClock,
    Trust,
    record_id,
)
from coag.store import HashEmbedder, InMemoryStore

EPISODIC, SEMANTIC = MemoryKind.EPISODIC, MemoryKind.SEMANTIC


def origin(cycle: int = 1) -> Provenance:
    return Provenance(
        run="run-1",
        activity="main",
        cycle=cycle,
        source="alice",
        source_kind="agent",
        trust=Trust.USER,
    )


@pytest.fixture
async def memory() -> AsyncIterator[LongTermMemory]:
    store = InMemoryStore(HashEmbedder())
    memory = LongTermMemory(store, scope="alice", clock=SteppingClock())
    yield memory
    await memory.close()


async def texts(memory: LongTermMemory, query: str, **options: Any) -> list[str]:
    recall = await memory.recall(query, **options)
    assert recall.problems == ()
    return [hit.record.text for hit in recall.records]


async def test_remembered_text_is_recalled_with_where_it_came_from(memory: LongTermMemory) -> None:
    done = await memory.remember(
        EPISODIC, " wall at (2,1) ", provenance=origin(3), type="obstacle", metadata={"x": 2}
    )

    assert done.new
    (hit,) = (await memory.recall("wall")).records
    assert hit.record == done.record
    assert hit.record.text == "wall at (2,1)"
    assert hit.record.provenance == origin(3)
    assert (hit.record.type, hit.record.metadata, hit.record.scope) == (
        "obstacle",
        {"x": 2},
        "alice",
    )
    written = done.written()
    assert (written.what, written.id, written.cycle) == ("record", hit.record.id, 3)
    assert Record.model_validate(written.content) == hit.record


async def test_text_known_already_stays_as_it_was_and_has_one_more_origin(
    memory: LongTermMemory,
) -> None:
    first = await memory.remember(EPISODIC, "wall at (2,1)", provenance=origin(1))
    again = await memory.remember(EPISODIC, "wall at (2,1)", provenance=origin(2))

    assert again.merged
    assert not again.new
    assert again.record.lineage.also_from == (origin(2),)
    lineage = first.record.lineage
    assert again.record.model_copy(update={"lineage": lineage}) == first.record
    assert await memory.store.get([first.record.id]) == [again.record]


async def test_repetition_of_an_interrupted_action_counts_as_new(memory: LongTermMemory) -> None:
    first = await memory.remember(EPISODIC, "wall at (2,1)", provenance=origin(1))
    again = await memory.remember(EPISODIC, "wall at (2,1)", provenance=origin(1))

    assert (again.record, again.new, again.merged) == (first.record, True, False)


async def test_superseding_fact_takes_the_place_of_the_old_one(memory: LongTermMemory) -> None:
    old = await memory.remember(SEMANTIC, "the door is open", provenance=origin())
    new = await memory.remember(
        SEMANTIC, "the door is shut", provenance=origin(2), supersedes=old.record.id
    )

    assert new.new
    assert new.record.supersedes == old.record.id
    assert await texts(memory, "door") == ["the door is shut"]

    back = await memory.remember(
        SEMANTIC, "the door is open", provenance=origin(3), supersedes=new.record.id
    )
    assert back.new
    assert await texts(memory, "door") == ["the door is open"]


async def test_both_memories_are_merged_by_score(memory: LongTermMemory) -> None:
    await memory.remember(EPISODIC, "red apple on a table", provenance=origin())
    await memory.remember(SEMANTIC, "red apple", provenance=origin())
    await memory.remember(EPISODIC, "red apple pie", provenance=origin())

    assert await texts(memory, "red apple") == [
        "red apple",
        "red apple pie",
        "red apple on a table",
    ]
    assert await texts(memory, "red apple", k=1) == ["red apple"]
    assert await texts(memory, "red apple", kind=SEMANTIC) == ["red apple"]
    assert await texts(memory, "red apple", min_score=0.99) == ["red apple"]


async def test_filters_apply_to_both_or_to_events_only(memory: LongTermMemory) -> None:
    for kind in MemoryKind:
        for place in ("here", "there"):
            await memory.remember(
                kind, f"{kind.value} apple {place}", provenance=origin(), metadata={"at": place}
            )

    here = {"at": "here"}
    assert sorted(await texts(memory, "apple", where=here)) == [
        "episodic apple here",
        "semantic apple here",
    ]
    assert sorted(await texts(memory, "apple", episodic_where=here)) == [
        "episodic apple here",
        "semantic apple here",
        "semantic apple there",
    ]
    found = await texts(memory, "apple", where={"type": "note"}, episodic_where=here)
    assert len(found) == 3


async def test_malformed_filter_is_refused_even_for_an_empty_query(memory: LongTermMemory) -> None:
    with pytest.raises(ValueError, match="Unknown operator"):
        await memory.recall("", where={"x": {"$near": 1}})


async def test_empty_query_recalls_nothing(memory: LongTermMemory) -> None:
    await memory.remember(EPISODIC, "anything", provenance=origin())

    assert await texts(memory, "  ") == []


async def test_empty_text_and_reserved_metadata_are_refused(memory: LongTermMemory) -> None:
    with pytest.raises(ValueError, match="nothing to remember"):
        await memory.remember(EPISODIC, " ", provenance=origin())
    with pytest.raises(ValueError, match="'type' is the name of a field"):
        await memory.remember(EPISODIC, "x", provenance=origin(), metadata={"type": "y"})


async def test_records_of_another_scope_are_not_seen(memory: LongTermMemory) -> None:
    other = LongTermMemory(memory.store, scope="bob")
    done = await memory.remember(EPISODIC, "alice's secret", provenance=origin())

    assert await texts(other, "alice's secret") == []
    assert await other.find(EPISODIC, done.record.id) is None


async def test_record_is_found_by_its_id_and_its_short_form(memory: LongTermMemory) -> None:
    done = await memory.remember(SEMANTIC, "a fact", provenance=origin())
    whole = done.record.id

    assert await memory.find(SEMANTIC, whole) == done.record
    assert await memory.find(SEMANTIC, whole[:8]) == done.record
    assert await memory.find(SEMANTIC, whole[:12]) == done.record
    for name in (whole[:7], whole[:8] + "zz", "", "unknown!"):
        assert await memory.find(SEMANTIC, name) is None
    assert await memory.find(EPISODIC, whole) is None


class Source:
    """A further memory for tests."""

    def __init__(self, name: str, hits: Sequence[RecalledRecord] | Exception | None) -> None:
        self.name = name
        self._hits = hits

    async def recall(self, query: str, k: int) -> Sequence[RecalledRecord]:
        if isinstance(self._hits, Exception):
            raise self._hits
        if self._hits is None:
            await asyncio.Event().wait()
            return []
        return self._hits


def hit(text: str, score: float, kind: MemoryKind = SEMANTIC) -> RecalledRecord:
    record = Record(
        id=record_id(kind, "alice", text),
        kind=kind,
        text=text,
        scope="alice",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        provenance=origin(),
    )
    return RecalledRecord(record=record, score=score)


async def test_further_sources_are_merged_and_doubles_count_once() -> None:
    sources = [
        Source("manuals", [hit("red apple", 0.2), hit("from a manual", 0.9)]),
        Source("events", [hit("an event", 0.95, EPISODIC)]),
    ]
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="alice", sources=sources)
    await memory.remember(SEMANTIC, "red apple", provenance=origin())

    assert await texts(memory, "red apple") == ["red apple", "an event", "from a manual"]
    assert await texts(memory, "red apple", kind=SEMANTIC) == ["red apple", "from a manual"]
    assert await texts(memory, "red apple", k=1) == ["red apple"]


async def test_source_that_fails_or_hangs_does_not_break_the_recall() -> None:
    sources = [Source("broken", KeyError("x")), Source("stuck", None)]
    memory = LongTermMemory(
        InMemoryStore(HashEmbedder()), scope="alice", sources=sources, source_timeout=0.01
    )
    await memory.remember(SEMANTIC, "red apple", provenance=origin())

    recall = await memory.recall("apple")

    assert [found.record.text for found in recall.records] == ["red apple"]
    assert recall.problems == ("broken: KeyError('x')", "stuck: no answer within 0.01 s.")


async def test_store_that_fails_is_a_problem_for_recall_and_an_error_for_remembering(
    memory: LongTermMemory,
) -> None:
    await memory.close()

    recall = await memory.recall("apple")
    assert recall.records == ()
    assert recall.problems == (
        "episodic memory: This store was closed.",
        "semantic memory: This store was closed.",
    )
    with pytest.raises(RecordStoreError, match="closed"):
        await memory.remember(EPISODIC, "apple", provenance=origin())
