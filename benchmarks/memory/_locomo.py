"""Our memory as the evaluation of LoCoMo asks for it: turns in, ids of turns out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from coag.memory import LongTermMemory, Remembered
from coag.memory.dynamics import DYNAMICS_FILE, MemoryDynamics
from coag.schema import Event, MemoryKind, Record
from coag.store import DEFAULT_RANKING, Embedder, Ranking, RecordStore, open_store

from ._contender import Looped, record_of

_SCOPE = "locomo"


def turn_record(name: str, text: str, metadata: Mapping[str, Any]) -> Record:
    """A turn of a conversation as a record: each of the metadata is a field of every record."""
    words = f"{text} {metadata.get('caption') or ''}".strip()
    at = metadata.get("date_iso")
    moment = datetime.fromisoformat(at) if at else datetime(1970, 1, 1)
    return record_of(
        _SCOPE,
        words,
        moment,
        str(metadata.get("speaker", "")),
        name=name,
        event=Event(
            at=moment if at else None,
            episode=str(metadata.get("session", "")),
            order=int(metadata.get("turn", 0)),
        ),
        metadata={"turn": name},
    )


class LocomoStore(Looped):
    """A conversation in a store of ours.

    Args:
        store: Where it is stored.
        ranking: What counts; None for meaning alone.
        dynamics: How it changes with time and use; None for not at all.
    """

    def __init__(
        self,
        store: RecordStore,
        ranking: Ranking | None = DEFAULT_RANKING,
        dynamics: MemoryDynamics | None = None,
    ) -> None:
        super().__init__()
        self._store = store
        self._dynamics = dynamics
        self._memory = LongTermMemory(store, scope=_SCOPE, ranking=ranking, dynamics=dynamics)

    def add(self, turns: Sequence[tuple[str, str, Mapping[str, Any]]]) -> None:
        """Takes in turns: id, text, and speaker, date, session, turn and caption."""
        records = [turn_record(*turn) for turn in turns]
        self.run(self._store.add(records))
        if self._dynamics is not None:
            added = [Remembered(record=one, new=True) for one in records]
            said_by = [one.provenance.trust for one in records]
            self.run(self._dynamics.encoded(added, said_by, self._store))

    def query(self, text: str, k: int) -> list[str]:
        """The ids of the turns that answer best, best first."""
        recall = self.run(self._memory.recall(text, kind=MemoryKind.EPISODIC, k=k))
        return [str(hit.record.metadata["turn"]) for hit in recall.records]

    def close(self) -> None:
        """Releases the store."""
        self.run(self._memory.close())
        self.end()


def locomo_store(
    location: Path | str | None = None, embedder: Embedder | None = None
) -> LocomoStore:
    """A store for one conversation, in RAM unless it is given a place."""
    return LocomoStore(open_store(location, embedder=embedder))


def locomo_store_assistant(
    location: Path | str | None = None, embedder: Embedder | None = None
) -> LocomoStore:
    """The same with the dynamics `assistant`: what one question recalls changes the next answer."""
    path = None if location is None else Path(location) / DYNAMICS_FILE
    dynamics = MemoryDynamics("assistant", path=path, owner=_SCOPE)
    return LocomoStore(open_store(location, embedder=embedder), dynamics=dynamics)
