"""Ids count up: what a snapshot says of them fits what was numbered before it."""

from __future__ import annotations

import re

from coag.schema import ModelCall, Snapshot

from ._book import Book, Taking, shown
from ._violation import Rule

_CALL = re.compile(r"call-(\d{6,12})")


class Ids:
    """Counts of ids never go back, and are not behind the model calls that were numbered."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._counts: dict[str, int] = {}

    @property
    def takes(self) -> Taking:
        """Snapshots, and model calls, which nobody outside of the run numbers."""
        return {"snapshot": self._snapshot, "model_call": self._call}

    def end(self, *, finished: bool) -> None:
        """Nothing is left open."""

    def _call(self, record: ModelCall) -> None:
        if found := _CALL.fullmatch(record.id):
            self._counts["call"] = max(int(found[1]), self._counts.get("call", 0))

    def _snapshot(self, record: Snapshot) -> None:
        for kind, known in self._counts.items() if record.ids else ():
            told = record.ids.get(kind, 0)
            if told < known:
                self.book.violate(
                    Rule.SNAPSHOT,
                    f"The snapshot says that {told} ids of {shown(kind)} had been given; there "
                    f"were {known} before it.",
                )
        self._counts = {**self._counts, **record.ids}
