"""Vectors of unit length and the search among them; the one module that computes with numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from coag.errors import RecordStoreError

from ._embedders import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUERIES_KEPT = 16
"""Query vectors that are kept."""
SCORE_DIGITS = 6
"""Scores are rounded to this many digits, so that noise of single precision breaks no ties."""


def text_vectors(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of texts to be stored; a text of which nothing is known gives zeros.

    Raises:
        RecordStoreError: If the embedder gave another shape than it says, or no numbers.
    """
    return _unit_rows(embedder.embed(texts), rows=len(texts), embedder=embedder)


def query_vector(embedder: Embedder, text: str) -> NDArray[np.float32] | None:
    """The unit vector of a text to be looked for; None if nothing is known of it.

    Raises:
        RecordStoreError: If the embedder gave another shape than it says, or no numbers.
    """
    readable = text.encode(errors="replace").decode()  # no embedder takes lone surrogates
    row = _unit_rows(embedder.embed_query(readable), rows=1, embedder=embedder)[0]
    return row if row.any() else None


class QueryVectors:
    """Vectors of the texts looked for last: a turn asks for the same in every cycle.

    Args:
        embedder: What makes them.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: dict[str, NDArray[np.float32] | None] = {}

    def knows(self, text: str) -> bool:
        """Whether the text's vector is at hand."""
        return text in self._kept

    def of(self, text: str) -> NDArray[np.float32] | None:
        """See `query_vector`; this may take the embedder's time."""
        if text in self._kept:
            return self._kept[text]
        vector = query_vector(self._embedder, text)
        self._kept = {**dict(list(self._kept.items())[1 - QUERIES_KEPT :]), text: vector}
        return vector


def score_of(similarity: float) -> float:
    """A cosine similarity as a score: clamped to 0..1 and rounded."""
    return round(min(1.0, max(0.0, float(similarity))), SCORE_DIGITS)


class VectorTable:
    """Vectors in the order in which they came, searched exactly."""

    def __init__(self, dimension: int) -> None:
        import numpy as np

        self.dimension = dimension
        self._rows: NDArray[np.float32] = np.zeros((64, dimension), dtype=np.float32)
        self._count = 0

    def append(self, vector: NDArray[np.float32]) -> None:
        """Adds a vector as the next row."""
        import numpy as np

        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self._count] = vector
        self._count += 1

    def row(self, number: int) -> NDArray[np.float32]:
        """The vector of a row."""
        return self._rows[number]

    def best_first(self, query: NDArray[np.float32]) -> Iterator[tuple[int, float]]:
        """Every row's number and score for a query vector, best first."""
        import numpy as np

        scores = self._rows[: self._count] @ query
        for row in np.argsort(-scores, kind="stable"):
            yield int(row), score_of(scores.item(int(row)))


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
