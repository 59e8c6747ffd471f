"""Names for things: readable, sortable where order matters, unique across runs."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime

IdSource = Callable[[str], str]
"""Gives a fresh id for a kind of thing: `ids("percept") -> "percept-000012"`."""


class CountingIds:
    """Ids that count up per kind; the same calls give the same ids, so runs can be replayed.

    Args:
        prefix: Stands before every id, e.g. a run's id, where ids must be unique across runs.
        counts: Where to go on counting (see `save`).
    """

    def __init__(self, prefix: str = "", counts: dict[str, int] | None = None) -> None:
        self._prefix = prefix
        self._counts = dict(counts or {})

    def __call__(self, kind: str) -> str:
        """The next id of this kind."""
        count = self._counts.get(kind, 0) + 1
        self._counts[kind] = count
        return f"{self._prefix}{kind}-{count:06d}"

    def save(self) -> dict[str, int]:
        """The counts so far, to go on from."""
        return dict(self._counts)

    def load(self, counts: dict[str, int]) -> None:
        """Goes on from saved counts, never back behind those already used."""
        for kind, count in counts.items():
            self._counts[kind] = max(count, self._counts.get(kind, 0))


def new_run_id(now: datetime, name: str) -> str:
    """A run's id: sortable by time, readable, unique: `20261121-221300-assistant-3f9a2c`."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40]
    return f"{now:%Y%m%d-%H%M%S}-{safe}-{secrets.token_hex(3)}"


def content_id(*parts: str) -> str:
    """An id that depends on the parts only: equal parts, equal id (SHA-256, 128 bits kept)."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
