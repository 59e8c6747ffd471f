"""Whether the pages for reading are those that the trace gives."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from coag.schema import Receipt, ReceiptStatus, TraceRecord
from coag.tracing import PhasePages, PlainPages, RunFolder, RunInfo, TraceLine, page_text

from ._book import Book
from ._violation import Rule

_LONGEST = 1 << 28
"""Bytes of a page that are read at most."""


class PageCheck:
    """Makes each page again out of the trace's records, and compares it with its file.

    A page that is missing or cut off is no violation where a process may have been killed before
    it was made, or where a note says that pages could not be made.

    Args:
        folder: The run's folder.
        info: What `run.json` says.
        book: Takes what is found.
    """

    def __init__(self, folder: RunFolder, info: RunInfo, book: Book) -> None:
        self._folder = folder.cycles_path
        self._book = book
        self._pages = PhasePages(self) if info.kind == "coag" else PlainPages(self)
        self._plain = info.kind != "coag"
        self._ended = info.ended_at is not None
        self._counts: Counter[int] = Counter()
        self._expected: set[str] = set()
        self._wrong: dict[str, str] = {}
        """Pages that are not as they should be, with what is wrong."""
        self._missing: set[str] = set()
        self._resumed = False
        """Whether another process went on since the last page."""
        self._gaps = not self._ended
        """Whether pages may be missing."""
        self._settled: set[int] = set()
        """Cycles of a plain run to which a later process gave receipts."""
        self._last = 0

    def take(self, line: TraceLine) -> None:
        """The next record."""
        record = line.entry and line.entry.body
        if record is None or not line.body:
            self._gaps = True
            return
        self._look(record)
        try:
            self._pages.add(record, line.body.decode())
        except (ValueError, KeyError):
            self._gaps = True  # a record that cannot be read is told of already

    def _look(self, record: TraceRecord) -> None:
        if record.record == "note" and record.about in ("resume", "repair", "pages"):
            self._gaps = self._resumed = True
        elif isinstance(record, Receipt) and record.status is ReceiptStatus.UNKNOWN:
            self._gaps = self._resumed = True
            if self._plain:
                self._settled.add(record.cycle)

    def count(self, cycle: int) -> int:
        """How many pages the cycle must have by now."""
        return self._counts[cycle]

    def write(self, cycle: int, name: str, page: dict[str, Any]) -> None:
        """Compares a page with its file."""
        resumed, self._resumed = self._resumed, False
        self._counts[cycle] += 1
        self._last = max(self._last, cycle)
        place = f"{cycle:04d}/{name}"
        self._expected.add(place)
        self._wrong.pop(place, None)
        self._missing.discard(place)
        path = self._folder / place
        if path.is_symlink() or path.parent.is_symlink():
            self._wrong[place] = "is a link to somewhere else"
            return
        try:
            with path.open("rb") as file:
                there = file.read(_LONGEST)
        except OSError:
            self._missing.add(place)
            return
        if there != page_text(page) and not (resumed and _is_later_part(there, page)):
            whole = _parsed(there) is not None
            if whole or not self._ended:
                self._wrong[place] = "is not what the trace gives"
            if not whole:
                self._wrong.pop(place, None)
                self._missing.add(place)

    def end(self) -> None:
        """The trace ends here: tells of all pages."""
        if not self._folder.exists() and not self._expected:
            return
        if self._folder.is_symlink():
            self._book.violate(Rule.PAGE, "The folder of pages is a link to somewhere else.")
        for place, what in sorted(self._wrong.items()):
            if not self._is_settled(place):
                self._book.violate(Rule.PAGE, f"The page cycles/{place} {what}.")
        missing = [place for place in sorted(self._missing) if not self._is_settled(place)]
        if missing and self._gaps:
            self._book.remark(
                f"{len(missing)} pages are missing or cut off, as where a process was killed, "
                f"from cycles/{missing[0]} on."
            )
        elif missing:
            for place in missing:
                self._book.violate(Rule.PAGE, f"The page cycles/{place} is missing or no JSON.")
        for place in sorted(self._found() - self._expected):
            if not self._is_settled(place) and not self._may_come(place):
                self._book.violate(
                    Rule.PAGE, f"The page cycles/{place} is there, and the trace gives none."
                )

    def _found(self) -> set[str]:
        return {
            Path(place, name).relative_to(self._folder).as_posix()
            for place, folders, names in os.walk(self._folder)
            for name in [*names, *(one for one in folders if Path(place, one).is_symlink())]
            if not name.startswith(".")
        }

    def _may_come(self, place: str) -> bool:
        """Whether the page may be of records that were written since the trace was read."""
        cycle = place.partition("/")[0]
        return not self._ended and cycle.isdigit() and int(cycle) >= self._last

    def _is_settled(self, place: str) -> bool:
        cycle = place.partition("/")[0]
        return cycle.isdigit() and int(cycle) in self._settled


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        found: object = from_json(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _is_later_part(text: bytes, page: dict[str, Any]) -> bool:
    """Whether the page shows only what was recorded since another process went on."""
    there = _parsed(text)
    if there is None or not there.keys() <= page.keys() or page_text(there) != text:
        return False
    return all(
        there.get(name, [] if isinstance(held, list) else None) == held
        or (isinstance(held, list) and _ends_with(cast("list[Any]", held), there.get(name, [])))
        for name, held in page.items()
    )


def _ends_with(whole: list[Any], part: object) -> bool:
    if not isinstance(part, list):
        return False
    last = cast("list[Any]", part)
    return not last or whole[-len(last) :] == last
