"""Texts as vectors."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from coag.errors import RecordStoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_WORD = re.compile(r"\w+")


class Embedder(Protocol):
    """Turns texts into vectors. Used from worker threads, one call at a time or several."""

    @property
    def name(self) -> str:
        """Names the model exactly; stored with a collection and compared at opening."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        ...

    @property
    def minimum_similarity(self) -> float:
        """Cosine below which two texts are unrelated, 0..1."""
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


_LOADING = threading.Lock()


class _Model(Protocol):
    def embed(self, texts: list[str]) -> NDArray[np.float32]: ...


class WordLlamaEmbedder:
    """Static word vectors of the `wordllama` package, 256 numbers a text, no network.

    Loaded at the first text (about half a second), shared by all of a process; after that a
    text takes a fraction of a millisecond. Safe to use from several threads.
    """

    name = "wordllama-l2_supercat-256"
    dimension = 256
    minimum_similarity = 0.15
    """Measured, see docs/embedders.md."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text."""
        with _LOADING:
            model = _load()
        return model.embed(list(texts))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The same as for a stored text."""
        return self.embed([text])


@cache
def _load() -> _Model:
    root, guard = logging.getLogger(), logging.NullHandler()
    root.addHandler(guard)  # else importing wordllama configures the root logger
    try:
        import wordllama
    finally:
        root.removeHandler(guard)
    # The loader looks for the weights next to the wrong package unless it is given the right one.
    folder = Path(wordllama.__file__).parent
    return cast("_Model", wordllama.WordLlama.load(cache_dir=folder, disable_download=True))


QUERIES_KEPT = 16
"""Query vectors that are kept."""
SCORE_DIGITS = 6
"""Scores are rounded to this many digits, so that noise of single precision breaks no ties."""


def text_vectors(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of texts to be stored; a text of which nothing is known gives zeros."""
    return _unit_rows(embedder.embed(texts), rows=len(texts), embedder=embedder)


class QueryVectors:
    """Vectors of the texts looked for last: a turn asks for the same in every cycle."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: dict[str, NDArray[np.float32] | None] = {}

    def knows(self, text: str) -> bool:
        """Whether the text's vector is at hand."""
        return text in self._kept

    def of(self, text: str) -> NDArray[np.float32] | None:
        """The unit vector of a text; None if nothing is known of it. It may ask the embedder."""
        if text in self._kept:
            return self._kept[text]
        readable = text.encode(errors="replace").decode()  # no embedder takes lone surrogates
        row = _unit_rows(self._embedder.embed_query(readable), rows=1, embedder=self._embedder)[0]
        vector = row if row.any() else None
        self._kept = {**dict(list(self._kept.items())[1 - QUERIES_KEPT :]), text: vector}
        return vector


def row_products(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of each row with a vector, on one core: `@` would keep all of them busy."""
    import numpy as np

    return np.einsum("ij,j->i", rows, vector)


def score_of(similarity: float) -> float:
    """A cosine similarity as a score: clamped to 0..1 and rounded."""
    return round(min(1.0, max(0.0, float(similarity))), SCORE_DIGITS)


def _unit_rows(
    vectors: NDArray[np.float32], *, rows: int, embedder: Embedder
) -> NDArray[np.float32]:
    import numpy as np

    matrix = np.asarray(vectors, dtype=np.float32)
    if matrix.shape != (rows, embedder.dimension):
        raise RecordStoreError(
            f"Embedder {embedder.name!r} gave vectors of shape {matrix.shape} "
            f"for {rows} text(s) of dimension {embedder.dimension}."
        )
    if not np.isfinite(matrix).all():
        raise RecordStoreError(f"Embedder {embedder.name!r} gave a vector that is not finite.")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
