"""What is remembered and recalled, and what breaks neither."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest
from kits.statements import EPISODIC, SEMANTIC, memory_over, origin, tell, texts

from coag.errors import RecordStoreError
from coag.memory import LongTermMemory, Scopes
from coag.schema import MemoryKind, RecalledRecord


async def test_superseding_text_takes_the_place_of_the_old_one(memory: LongTermMemory) -> None:
    last = (await tell(memory, "the door is open")).record.id
    for cycle, text in enumerate(("the door is shut", "the door is open"), start=2):
        new = await tell(memory, text, origin(cycle=cycle), supersedes=last)
        assert (new.new, new.record.supersedes) == (True, last)
        assert await texts(memory, "door") == [text]
        last = new.record.id


async def test_both_memories_are_merged_by_score(memory: LongTermMemory) -> None:
    await tell(memory, "red apple on a table", kind=EPISODIC)
    await tell(memory, "red apple")
    await tell(memory, "red apple pie", kind=EPISODIC)
    best_first = ["red apple", "red apple pie", "red apple on a table"]
    assert await texts(memory, "red apple") == best_first
    for only in ({"k": 1}, {"kind": SEMANTIC}, {"min_score": 0.99}):
        assert await texts(memory, "red apple", **only) == ["red apple"]
    assert await texts(memory, "  ") == []


async def test_filters_apply_to_both_or_to_events_only(memory: LongTermMemory) -> None:
    for kind in MemoryKind:
        for place in ("here", "there"):
            await tell(memory, f"{kind} apple {place}", kind=kind, metadata={"at": place})
    here, events, facts = {"at": "here"}, "episodic apple here", "semantic apple here"
    assert sorted(await texts(memory, "apple", where=here)) == [events, facts]
    found = [events, facts, "semantic apple there"]
    assert sorted(await texts(memory, "apple", episodic_where=here)) == found
    both = await texts(memory, "apple", where={"type": "note"}, episodic_where=here)
    assert sorted(both) == found
    with pytest.raises(ValueError, match="Unknown operator"):
        await memory.recall("", where={"x": {"$near": 1}})


async def test_reserved_metadata_and_a_kind_that_is_none_are_refused(
    memory: LongTermMemory,
) -> None:
    with pytest.raises(ValueError, match="'type' is the name of a field"):
        await tell(memory, "x", metadata={"type": "y"})
    with pytest.raises(ValueError, match=r"MemoryKind.EPISODIC or MemoryKind.SEMANTIC"):
        await tell(memory, "x", **{"kind": "fact"})  # pyright: ignore[reportArgumentType]


async def test_record_is_found_by_its_id_and_its_short_form_in_its_scope(
    memory: LongTermMemory,
) -> None:
    done = await tell(memory, "a fact")
    whole = done.record.id
    for name in (whole, whole[:8], whole[:12]):
        assert await memory.find(SEMANTIC, name) == done.record
    for name in (whole[:7], whole[:8] + "zz", "", "unknown!"):
        assert await memory.find(SEMANTIC, name) is None
    assert await memory.find(EPISODIC, whole) is None
    other = memory_over(memory.store, "bob")
    assert await other.find(SEMANTIC, whole) is None
    assert await texts(other, "a fact") == []


class Source:
    """A further memory."""

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


async def test_source_that_fails_or_hangs_does_not_break_the_recall() -> None:
    sources = [Source("broken", KeyError("x")), Source("stuck", None)]
    memory = memory_over(sources=sources, source_timeout=0.01)
    await tell(memory, "red apple")
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
        await tell(memory, "apple")


async def test_two_memories_of_one_team_lose_no_origin() -> None:
    one = memory_over(scope=Scopes(own="a", writes=("team",)))
    two = memory_over(one.store, Scopes(own="b", writes=("team",)))
    await asyncio.gather(
        *(
            tell(memory, f"Door {n} is used.", origin(who, cycle=n), scope="team")
            for n in range(10)
            for memory, who in ((one, "a"), (two, "b"))
        )
    )
    recall = await two.recall("door used", k=10, min_score=0.0)
    assert len(recall.records) == 10
    for found in recall.records:
        lineage = found.record.lineage
        sources = {found.record.provenance.source, *(o.source for o in lineage.also_from)}
        assert sources == {"a", "b"}


def test_a_memory_is_used_from_the_loops_of_two_threads() -> None:
    memory = memory_over()

    def writing(who: str) -> Callable[[], None]:
        async def write() -> None:
            for n in range(20):
                await tell(memory, f"{who} says {n}.", origin(who, cycle=n))

        return lambda: asyncio.run(write())

    threads = [threading.Thread(target=writing(who)) for who in ("ann", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert not any(thread.is_alive() for thread in threads)
    assert asyncio.run(memory.store.count(SEMANTIC)) == 40
