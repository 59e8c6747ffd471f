"""Vectors of records for comparing them: from RAM, or made where that is cheap."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coag.schema import Record
from coag.store import (
    Embedder,
    HashEmbedder,
    InMemoryStore,
    RecordStore,
    WordLlamaEmbedder,
    embedder_within,
    innermost,
    text_vectors,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEPT = 16_000
"""Vectors in RAM; 256 numbers each are 16 MB."""
_FEW = 16
_QUICK = (WordLlamaEmbedder, HashEmbedder)
"""Embedders that take a fraction of a millisecond for a text."""


class RecordVectors:
    """Vectors of the records of one store that were seen last."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[np.float32]] = {}

    async def of(
        self, records: Sequence[Record], store: RecordStore
    ) -> dict[str, NDArray[np.float32]]:
        """The unit vectors of these records, by id.

        A store in RAM has them. Those that are not at hand are made if the store's embedder is
        quick, or left out.
        """
        held = innermost(store)
        ids = [one.id for one in records]
        there = held.vectors_of(ids) if isinstance(held, InMemoryStore) else {}
        missing = [one for one in records if one.id not in there and one.id not in self._kept]
        embedder = embedder_within(store) if missing else None
        if isinstance(embedder, _QUICK):
            made = await _embedded(embedder, [one.text for one in missing])
            self.keep(dict(zip((one.id for one in missing), made, strict=True)))
        return there | {one.id: self._kept[one.id] for one in records if one.id in self._kept}

    async def cosines(
        self, text: str, records: Sequence[Record], store: RecordStore
    ) -> dict[str, float]:
        """How alike a text and these records are, 0..1, by id; empty if its embedder is slow."""
        embedder = embedder_within(store)
        if not records or not isinstance(embedder, _QUICK):
            return {}
        vectors = await self.of(records, store)
        (query,) = await _embedded(embedder, [text])
        return {one: max(0.0, float(row @ query)) for one, row in vectors.items()}

    def keep(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        """Keeps vectors at hand; of too many the oldest go."""
        self._kept |= vectors
        while len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]

    def drop(self, ids: Sequence[str]) -> None:
        """Forgets the vectors of records that are gone."""
        for one in ids:
            self._kept.pop(one, None)


async def _embedded(embedder: Embedder, texts: list[str]) -> NDArray[np.float32]:
    """Vectors of texts; of a few at once, since to hand them to a thread takes longer."""
    if len(texts) <= _FEW:
        return text_vectors(embedder, texts)
    return await asyncio.to_thread(text_vectors, embedder, texts)
