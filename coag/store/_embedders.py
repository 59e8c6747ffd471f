"""Embedders: from texts to vectors whose cosine is their similarity."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class Embedder(Protocol):
    """Turns texts into vectors. Used from worker threads, one call at a time or several."""

    @property
    def name(self) -> str:
        """Names the model exactly; kept with a collection and compared at opening."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        ...

    @property
    def minimum_similarity(self) -> float:
        """Cosine below which two texts have nothing to do with each other, 0..1."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text to be stored."""
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """One row for a text to be looked for."""
        ...


class HashEmbedder:
    """Counts words, hashed into a fixed number of places. For tests and dry runs.

    It knows no meaning at all: two texts are similar as far as they share words, so "car" and
    "automobile" are strangers, and "the" counts as much as any word. The same text gives the
    same vector on every machine, with nothing to load.
    """

    minimum_similarity = 0.2

    def __init__(self, dimension: int = 256) -> None:
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, not {dimension!r}.")
        self.dimension = dimension
        self.name = f"hash-{dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of word counts per text."""
        import numpy as np

        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _WORD.findall(text.casefold()):
                digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
                place = int.from_bytes(digest[:7], "big") % self.dimension
                row[place] += 1.0 if digest[7] % 2 else -1.0
        return rows

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The same as for a stored text."""
        return self.embed([text])
