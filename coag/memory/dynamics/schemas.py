"""Clusters of what is known: running means of the vectors of records that are alike.

A record joins the nearest cluster if it is similar enough, else it begins one of its own (leader
clustering; Hartigan 1975). That takes one pass and bounded memory, and can continue at any record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coag.store import slices

from .file import DynamicsFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SCHEMA = """
CREATE TABLE IF NOT EXISTS schemas (
  id INTEGER PRIMARY KEY, owner TEXT NOT NULL, size INTEGER NOT NULL, centroid BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS schemas_by_size ON schemas (owner, size)
"""
_LEAST = 3
"""Records that make a cluster something known."""
_MOST = 1_000
"""Clusters of one owner; of more the smallest go, the oldest first."""
_MOST_IDS = 500
"""Ids in one query."""


class SchemaClusters:
    """The clusters of one owner."""

    def __init__(self, file: DynamicsFile, owner: str) -> None:
        self.file = file
        self.owner = owner
        file.create(_SCHEMA)
        self._read: tuple[int, int] = (0, 0)
        self._centroids: dict[str, NDArray[np.float32]] = {}

    def centroids(self) -> dict[str, NDArray[np.float32]]:
        """The means of the clusters of at least three records, by their ids."""
        query = "SELECT COUNT(*) AS n, COALESCE(SUM(size), 0) AS size FROM schemas WHERE owner = ?"
        (row,) = self.file.rows(query, self.owner)
        if (now := (row["n"], row["size"])) != self._read:
            self._centroids = {str(one): mean for one, size, mean in self._rows() if size >= _LEAST}
            self._read = now
        return self._centroids

    def fitting(
        self, vectors: NDArray[np.float32], similarity: float
    ) -> tuple[list[str], list[tuple[int, int, NDArray[np.float32]]]]:
        """Which cluster each record joins, and the clusters as they would be; writes nothing.

        The vectors are of length 1, one row a record; a row of zeros joins none. `similarity` is
        the least cosine to join.

        Returns:
            Ids, empty for none, and the clusters for `put`.
        """
        import numpy as np

        rows = self._rows()
        ids, sizes = [one for one, _, _ in rows], [size for _, size, _ in rows]
        means = np.zeros((len(rows) + len(vectors), vectors.shape[1]), dtype=np.float32)
        units = np.zeros_like(means)
        for place, (_, _, mean) in enumerate(rows):
            means[place], units[place] = mean, mean / (np.linalg.norm(mean) or 1.0)
        changed, joined = dict[int, None](), list[str]()
        (largest,) = self.file.rows("SELECT COALESCE(MAX(id), 0) AS n FROM schemas")
        following = 1 + largest["n"]
        for vector in vectors:
            if not vector.any():
                joined.append("")
                continue
            cosines = units[: len(ids)] @ vector
            place = int(cosines.argmax()) if ids else -1
            if place < 0 or cosines[place] < similarity:
                place = len(ids)
                ids.append(following)
                sizes.append(0)
                following += 1
            means[place] += (vector - means[place]) / (sizes[place] + 1)
            units[place] = means[place] / (np.linalg.norm(means[place]) or 1.0)
            sizes[place] += 1
            changed[place] = None
            joined.append(str(ids[place]))
        return joined, [(ids[place], sizes[place], means[place]) for place in changed]

    def put(self, clusters: list[tuple[int, int, NDArray[np.float32]]]) -> None:
        """Writes clusters as they are now, and drops the smallest of too many."""
        rows = [(one, self.owner, size, mean.tobytes()) for one, size, mean in clusters]
        with self.file.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO schemas VALUES (?, ?, ?, ?)", rows)
            db.execute(
                "DELETE FROM schemas WHERE id IN (SELECT id FROM schemas WHERE owner = ? "
                "ORDER BY size DESC, id DESC LIMIT -1 OFFSET ?)",
                (self.owner, _MOST),
            )

    def removed(self, records: Iterable[str]) -> None:
        """Dissolves the clusters, of every owner, of which records that go are part.

        A mean would still tell what these said; what else was in it joins one at the next sleep.
        """
        with self.file.transaction() as db:
            query = "SELECT DISTINCT schema FROM states WHERE record IN ({})"
            joined = {str(row["schema"]) for row in self.file.rows_of(query, records)}
            for some in slices(filter(None, joined), _MOST_IDS):
                marks = ",".join("?" * len(some))
                db.execute(f"DELETE FROM schemas WHERE id IN ({marks})", some)
                db.execute(f"UPDATE states SET schema = '' WHERE schema IN ({marks})", some)
        self._read, self._centroids = (0, 0), {}

    def _rows(self) -> list[tuple[int, int, NDArray[np.float32]]]:
        import numpy as np

        query = "SELECT id, size, centroid FROM schemas WHERE owner = ? ORDER BY id"
        return [
            (row["id"], row["size"], np.frombuffer(row["centroid"], dtype=np.float32))
            for row in self.file.rows(query, self.owner)
        ]
