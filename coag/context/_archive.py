"""All that was said before the dialogue that working memory keeps, to be found again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from coag.schema import MemoryKind, Provenance, RecalledRecord, Record, Trust, record_id
from coag.store import InMemoryStore, Search

from ._working_memory import Utterance

MESSAGES = 5_000
"""Messages that are kept; the oldest go first."""
_SCOPE = "dialogue"
_PIECE = 1_000
"""Characters of a message that are found as one."""


class DialogueArchive:
    """Messages in RAM, searched as long-term memory is: by meaning and by words.

    Nothing is embedded before the first search.
    """

    def __init__(self) -> None:
        self._said: deque[Utterance] = deque(maxlen=MESSAGES)
        self._store: InMemoryStore | None = None
        self._waiting: list[Utterance] = []
        self._indexed: set[str] = set()

    def __len__(self) -> int:
        return len(self._said)

    def add(self, said: Iterable[Utterance]) -> None:
        """Takes in messages that have left the dialogue, the oldest first."""
        for one in said:
            self._said.append(one)
            self._waiting.append(one)

    def clear(self) -> None:
        """Forgets all."""
        self._said.clear()
        self._waiting.clear()
        self._indexed.clear()
        self._store = None

    async def search(self, text: str, k: int) -> Sequence[RecalledRecord]:
        """The messages that are nearest in meaning, best first; those too far away are left out."""
        if not self._said or not text.strip() or k < 1:
            return ()
        if self._store is None:
            self._store, self._waiting = InMemoryStore(), list(self._said)
            self._indexed.clear()
        # What is said again and again ("Go on.") is found once, as it was said first.
        records: dict[str, Record] = {}
        for said in self._waiting:
            for one in _records(said):
                if one.id not in self._indexed:
                    records.setdefault(one.id, one)
        self._waiting = []
        self._indexed.update(records)
        if records:
            await self._store.add(list(records.values()))
        search = Search(text=text, kind=MemoryKind.EPISODIC, k=k, scopes=(_SCOPE,))
        return await self._store.search(search)

    def last(self, count: int) -> list[str]:
        """The last so many messages as lines, the oldest first."""
        said = list(self._said)[-count:] if count > 0 else []
        return [f"{_speaker(one)}: {one.content}" for one in said]

    def text(self) -> str:
        """All messages, the oldest first, a line or more for each."""
        return "\n".join(self.last(len(self._said)))

    def save(self) -> list[dict[str, Any]]:
        """The messages as JSON."""
        return [one.model_dump(mode="json", exclude_defaults=True) for one in self._said]

    def load(self, saved: Iterable[Any]) -> None:
        """Goes on from saved messages."""
        self.clear()
        self.add(Utterance.model_validate(one) for one in saved)


def _speaker(said: Utterance) -> str:
    return "you" if said.own else said.source


def _records(said: Utterance) -> Iterable[Record]:
    """A message as records; its own words are the agent's, which nobody else vouches for."""
    trust = Trust.UNTRUSTED if said.own and said.shown_untrusted else said.trust
    trust = Trust.USER if trust is Trust.DEVELOPER else trust
    for start in range(0, len(said.content), _PIECE):
        text = f"{_speaker(said)}: {said.content[start : start + _PIECE]}"
        yield Record(
            id=record_id(MemoryKind.EPISODIC, _SCOPE, text),
            kind=MemoryKind.EPISODIC,
            text=text,
            scope=_SCOPE,
            created_at=said.at,
            provenance=Provenance(
                run="",
                activity="",
                cycle=0,
                source=_speaker(said),
                source_kind="dialogue",
                trust=trust,
            ),
        )
