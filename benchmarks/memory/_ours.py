"""Our memory as a contender, besides `LocomoStore`: facts, and a bare search by words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from coag.memory import LongTermMemory
from coag.schema import Fact, MemoryKind
from coag.store import Embedder, Ranking, open_store

from ._contender import Item, Looped, SetClock, said_by

WORDS_ALONE = Ranking(
    dense=0.0,
    lexical=1.0,
    neighbours=(),
    episode=0.0,
    source=0.0,
    question=0.0,
    length=0.0,
    recency=0.0,
    importance=0.0,
    untrusted=0.0,
    alike=2.0,
)
"""The words of the lexicon alone."""
_SCOPE = "stream"


class FactMemory(Looped):
    """Puts statements into a `LongTermMemory` one by one.

    Args:
        folder: Where they rest; None for RAM.
        embedder: None for the default.
        as_facts: Whether it gets what a statement is about; otherwise the text alone.
    """

    def __init__(
        self, folder: Path | None = None, embedder: Embedder | None = None, *, as_facts: bool = True
    ) -> None:
        super().__init__()
        self._clock = SetClock(datetime(2025, 1, 1, tzinfo=UTC))
        store = open_store(folder, embedder=embedder)
        self._memory = LongTermMemory(store, scope=_SCOPE, clock=self._clock)
        self._as_facts = as_facts
        self._ids: dict[str, str] = {}

    def add(self, turns: Sequence[Item]) -> None:
        """One by one, with who said it and how far that one is trusted."""
        for name, text, known in turns:
            self._clock.at = known["at"]
            origin = said_by(known["source"], run="stream", activity=name, trusted=known["trusted"])
            fact = Fact(
                subject=known["subject"],
                attribute=known["attribute"],
                value=known["value"],
                valid_from=known["at"],
            )
            remembered = self.run(
                self._memory.remember(
                    MemoryKind.SEMANTIC,
                    text,
                    provenance=origin,
                    metadata={"turn": name},
                    fact=fact if self._as_facts else None,
                )
            )
            self._ids[name] = remembered.record.id

    def query(self, text: str, k: int) -> list[str]:
        """What is recalled, best first."""
        found = self.run(self._memory.recall(text, kind=MemoryKind.SEMANTIC, k=k))
        return [str(hit.record.metadata["turn"]) for hit in found.records]

    def retract(self, names: Sequence[str]) -> bool:
        """Revokes the records that say so."""
        for record in dict.fromkeys(self._ids[name] for name in names):
            self.run(self._memory.revoke(record, "It was said to be a mistake."))
        return True

    def close(self) -> None:
        """Releases the store."""
        self.run(self._memory.close())
        self.end()
