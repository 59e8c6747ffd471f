"""Memories, and statements of sources that they remember."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from coag.memory import LongTermMemory, Remembered, Scopes
from coag.models import ScriptedModel, StructuredModel, scripted_answers
from coag.schema import Fact, MemoryKind, Provenance, Record, SteppingClock, Trust
from coag.store import HashEmbedder, InMemoryStore, RecordStore

EPISODIC, SEMANTIC = MemoryKind.EPISODIC, MemoryKind.SEMANTIC
USER, UNTRUSTED, DEVELOPER = Trust.USER, Trust.UNTRUSTED, Trust.DEVELOPER


def origin(
    source: str = "ann",
    trust: Trust = USER,
    kind: str = "message",
    *,
    run: str = "run",
    cycle: int = 1,
) -> Provenance:
    return Provenance(
        run=run, activity="main", cycle=cycle, source=source, source_kind=kind, trust=trust
    )


ANN, WEB = origin(), origin("web", UNTRUSTED, "tool_return")
ROBBIE = origin("robbie", kind="agent")
"""An agent's own conclusion."""


def memory_over(
    store: RecordStore | None = None, scope: str | Scopes = "alice", **options: Any
) -> LongTermMemory:
    """A memory whose clock ticks; over a store in RAM unless another is given."""
    own = InMemoryStore(HashEmbedder()) if store is None else store
    options.setdefault("clock", SteppingClock())
    return LongTermMemory(own, scope=scope, **options)


def model_of(*answers: object) -> StructuredModel:
    """A model that gives these answers, or raises them, one after the other."""
    return StructuredModel(ScriptedModel(scripted_answers(answers)))  # type: ignore[arg-type]


def door(value: str, since: datetime | None = None, attribute: str = "state") -> Fact:
    return Fact(subject="door", attribute=attribute, value=value, valid_from=since)


async def tell(
    memory: LongTermMemory,
    text: str,
    by: Provenance = ANN,
    value: str = "",
    *rests_on: Record,
    kind: MemoryKind = SEMANTIC,
    **options: Any,
) -> Remembered:
    """A source states a text; with a value, one on the state of the door."""
    return await memory.remember(
        kind,
        text,
        provenance=by,
        fact=door(value) if value else options.pop("fact", None),
        derived_from=[one.id for one in rests_on],
        **options,
    )


async def texts(memory: LongTermMemory, query: str, **options: Any) -> list[str]:
    """The texts that a query recalls, best first."""
    options.setdefault("k", 10)
    recall = await memory.recall(query, **options)
    assert recall.problems == ()
    return [hit.record.text for hit in recall.records]


async def stored(memory: LongTermMemory, ids: Sequence[str] | None = None) -> dict[str, Record]:
    """All records of a store, or some of them, by their ids."""
    if ids is not None:
        return {one.id: one for one in await memory.store.get(ids)}
    return {one.id: one async for some in memory.store.scan() for one in some}
