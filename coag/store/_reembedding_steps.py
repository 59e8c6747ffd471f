"""How the records of one kind get into a collection with other vectors, step by step.

All of it can be broken off anywhere and begun anew: what to do next is seen from the collections
alone. Every function blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coag.schema import MemoryKind

from ._chroma_types import ROW_PARTS, Collection, chroma_errors
from ._embedders import Embedder
from ._location import Server
from ._vectors import text_vectors

_MOST_CHARACTERS = 4_000_000
"""About so many characters of text are written in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The records of one kind on their way into a collection with other vectors."""

    kind: MemoryKind
    source: Collection
    """Where they are read and, until the end, written."""
    target: Collection
    """Where they are copied to, in the order in which they arrived at the source."""
    embedder: Embedder
    """What makes the vectors of the target."""
    batch: int
    """At most so many records are held at once."""
    location: Path | Server
    """Named in errors."""

    def in_line(self) -> Iterator[int]:
        """Makes the target hold what the source holds; gives the number done after each batch.

        Rows that are there already are compared and not embedded again. Where the source is
        written to meanwhile, another pass is needed.
        """
        done = 0
        while True:
            page = self._rows(self.source, done, self.batch)
            ids: list[str] = page["ids"]
            if not ids:
                break
            held = self._aligned(ids, done)
            pairs = zip(page["metadatas"], held["metadatas"], strict=False)
            changed = [one for one, (new, old) in zip(ids, pairs, strict=False) if new != old]
            self._rewrite(changed, dict(zip(held["ids"], held["metadatas"], strict=True)))
            self._copy(ids[len(held["ids"]) :])
            done += len(ids)
            yield done
        while surplus := self._rows(self.target, done, self.batch)["ids"]:
            self._drop(surplus)

    def _rows(self, collection: Collection, first: int, most: int) -> Mapping[str, Any]:
        with chroma_errors(self.location):
            return collection.get(limit=most, offset=first, include=["metadatas"])

    def _aligned(self, ids: Sequence[str], first: int) -> Mapping[str, Any]:
        """What the target holds in these places, once all that does not belong there is removed."""
        while True:
            held = self._rows(self.target, first, len(ids))
            there: list[str] = held["ids"]
            wrong = next((n for n, one in enumerate(there) if one != ids[n]), None)
            if wrong is None:
                return held
            strangers = there[wrong:]
            if ids[wrong] in strangers:
                strangers = strangers[: strangers.index(ids[wrong])]
            self._drop(strangers)

    def _drop(self, ids: list[str]) -> None:
        with chroma_errors(self.location):
            self.target.delete(ids=ids)

    def _copy(self, ids: Sequence[str]) -> None:
        for rows in self._read(ids):
            vectors = text_vectors(self.embedder, rows["documents"])
            with chroma_errors(self.location):
                self.target.add(**rows, embeddings=vectors.tolist())

    def _rewrite(self, ids: Sequence[str], held: Mapping[str, Mapping[str, Any]]) -> None:
        """Writes anew what changed at the source; Chroma keeps keys of which nothing is said."""
        for rows in self._read(ids):
            vectors = text_vectors(self.embedder, rows["documents"])
            told = zip(rows["ids"], rows["metadatas"], strict=True)
            rows["metadatas"] = [{**dict.fromkeys(held[one]), **new} for one, new in told]
            with chroma_errors(self.location):
                self.target.update(**rows, embeddings=vectors.tolist())

    def _read(self, ids: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
        """Rows of the source in this order, in portions that fit one call, without those gone."""
        if not ids:
            return
        with chroma_errors(self.location):
            found = self.source.get(ids=list(ids), include=list(ROW_PARTS))
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        by_id = {row[0]: row for row in rows}
        portion: list[tuple[str, str, Mapping[str, Any]]] = []
        size = 0
        for one in ids:
            if one not in by_id:
                continue
            if portion and size + len(by_id[one][1]) > _MOST_CHARACTERS:
                yield _columns(portion)
                portion, size = [], 0
            portion.append(by_id[one])
            size += len(by_id[one][1])
        if portion:
            yield _columns(portion)


def _columns(rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> dict[str, list[Any]]:
    return {
        "ids": [row[0] for row in rows],
        "documents": [row[1] for row in rows],
        "metadatas": [row[2] for row in rows],
    }
