"""Whether the files of a run are as they were written: seals, anchors and pages."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from coag.errors import TraceError
from coag.schema import TRACE_VERSION, Receipt, ReceiptStatus, TraceRecord
from coag.tracing import (
    PhasePages,
    PlainPages,
    RunFolder,
    RunInfo,
    TraceLine,
    Witness,
    Witnessed,
    closing_hash,
    file_hash,
    info_fields,
    page_text,
    seal_problems,
    witness_problems,
)

from .findings import Checker, Findings, Rule, remark, shown

# ---- Whether a run's files are those that were sealed ----


@dataclass(slots=True)
class ReadTrace:
    """What was read of a trace file, as far as seals need it."""

    records: int = 0
    head: str = ""
    version: int = TRACE_VERSION
    bound: bool = False
    """True if the first line follows from `run.json`."""
    whole: bool = True
    """False if it ends in what is no whole line."""


@dataclass(slots=True, kw_only=True)
class Anchors:
    """What a run is compared with that is not in its folder."""

    head: str | None = None
    key: str | Path | None = None
    witness: Path | None = None
    _entries: list[Witnessed] = field(default_factory=list[Witnessed])
    _heads: dict[int, str] = field(default_factory=lambda: {0: ""})
    """Hashes of the lines that a witness saw as the last, by the number of records."""

    def read_witness(self, run: str) -> None:
        """Reads what was witnessed of the run."""
        if self.witness is not None:
            self._entries = [one for one in Witness(self.witness).entries() if one.run == run]

    def see(self, records: int, head: str) -> None:
        """So many records end with this hash."""
        if any(one.records == records for one in self._entries):
            self._heads[records] = head

    def witness_problems(self, run: Path) -> tuple[list[str], list[str]]:
        """Violations and remarks by what was witnessed."""
        if self.witness is None:
            return [], []
        if not self._entries:
            return [f"The run {run.name!r} is not witnessed: the file has no entry of it."], []
        return witness_problems(run, self._entries, self._heads)


def check_info(folder: RunFolder, info: RunInfo, read: ReadTrace) -> Findings:
    """Compares `run.json` with what was sealed when the run began and ended."""
    for path in (folder.info_path, folder.trace_path, folder.remembered_path):
        if path.is_symlink():
            yield Rule.SEAL.says(f"{path.name} is a link to somewhere else.")
    if repeated := _repeated(folder.info_path):
        yield Rule.SEAL.says(f"run.json has the field {shown(repeated)} more than once.")
    seal = info.seal
    if seal is None or not seal.closing:
        yield from _check_unclosed(info, read)
        return
    if not _ends_whole(folder.trace_path):
        yield Rule.SEAL.says("The trace does not end with a newline, as a sealed one does.")
    try:
        remembered = file_hash(folder.remembered_path)
    except OSError as error:
        yield Rule.SEAL.says(f"remembered.jsonl cannot be read: {error.strerror}.")
        return
    fields = info_fields(folder.info_path) or {}
    if closing_hash(fields, seal.records, seal.hash, remembered) != seal.closing:
        yield Rule.SEAL.says(
            "What was sealed at the run's end has changed: what run.json says (agent, model, "
            "seed, settings, times, result), its seal, or remembered.jsonl."
        )


def _check_unclosed(info: RunInfo, read: ReadTrace) -> Findings:
    if read.bound and info.ended_at is not None and info.seal is not None:
        yield Rule.SEAL.says("The run has ended, and the seal of its run.json was taken away.")
    elif read.bound and info.ended_at is None and info.result is not None:
        yield Rule.SEAL.says("run.json has a result, and the run has not ended.")
    elif read.records and read.version == TRACE_VERSION and not read.bound:
        yield remark(
            "run.json and the pages are not sealed in this run: an older version of coag wrote it."
        )


def check_anchors(folder: RunFolder, info: RunInfo, read: ReadTrace, anchors: Anchors) -> Findings:
    """Compares a run with a noted hash, a signature and a witness, where they are given."""
    closing = info.seal.closing if info.seal else ""
    if anchors.head is not None and anchors.head not in {read.head, closing} - {""}:
        yield Rule.SEAL.says(
            f"The run was to end with the hash {shown(anchors.head)}; it ends with "
            f"{shown(closing or read.head)}."
        )
    elif anchors.head is not None and closing and anchors.head == read.head:
        yield remark("The noted hash is that of the last line: it does not cover run.json.")
    name = folder.path.resolve().name
    if name != info.id:
        text = f"The folder is named {shown(name)}, the run {shown(info.id)}"
        if anchors.witness is not None or anchors.key is not None:
            yield Rule.SEAL.says(f"{text}: another run may have taken its place.")
        else:
            yield remark(f"{text}.")
    try:
        wrong = list(seal_problems(folder.path, anchors.key))
        more, remarks = anchors.witness_problems(folder.path)
    except TraceError as error:
        yield Rule.SEAL.says(f"{error}.")
        return
    yield from map(Rule.SEAL.says, (*wrong, *more))
    yield from map(remark, remarks)


def _ends_whole(trace: Path) -> bool:
    if not trace.is_file() or trace.stat().st_size == 0:
        return True
    with trace.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


def _repeated(path: Path) -> str | None:
    """A field that a JSON file has more than once in one object."""
    problems: list[str] = []

    def look(pairs: Iterable[tuple[str, Any]]) -> None:
        counts = Counter(name for name, _ in pairs)
        problems.extend(name for name, count in counts.items() if count > 1)

    try:
        json.loads(path.read_bytes(), object_pairs_hook=look)
    except (OSError, ValueError, RecursionError):
        return None
    return next(iter(problems), None)


# ---- Whether the pages for reading are those that the trace gives ----


_LONGEST = 1 << 28
"""Bytes of a page that are read at most."""


class PageRules(Checker):
    """Makes each page again from the trace's records, and compares it with its file.

    A page that is missing or cut off is no violation where a process may have been killed before
    it was made, or where a note says that pages could not be made.
    """

    def __init__(self, folder: RunFolder, info: RunInfo) -> None:
        self._folder = folder.cycles_path
        self._plain = info.kind != "coag"
        self._pages = PlainPages(self) if self._plain else PhasePages(self)
        self._ended = info.ended_at is not None
        self._counts: Counter[int] = Counter()
        self._expected: set[str] = set()
        self._wrong: dict[str, str] = {}
        """Pages that are not as they should be, with what is wrong."""
        self._missing: set[str] = set()
        self._resumed = False
        """Whether another process continued the run since the last page."""
        self._gaps = not self._ended
        """Whether pages may be missing."""
        self._settled: set[int] = set()
        """Cycles of a plain run to which a later process gave receipts."""
        self._last = 0

    def take_line(self, line: TraceLine) -> None:
        """Makes the pages of the next record."""
        record = line.entry and line.entry.body
        if record is None or not line.body:
            self._gaps = True
            return
        self._note_gaps(record)
        try:
            self._pages.add(record, line.body.decode())
        except (ValueError, KeyError):
            self._gaps = True  # a record that cannot be read is a finding of its own

    def _note_gaps(self, record: TraceRecord) -> None:
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
        if there == page_text(page) or (resumed and _is_later_part(there, page)):
            return
        if _parsed(there) is None:
            self._missing.add(place)
        else:
            self._wrong[place] = "is not what the trace gives"

    def end(self, *, finished: bool) -> Findings:
        """What is wrong with the pages."""
        if not self._folder.exists() and not self._expected:
            return
        if self._folder.is_symlink():
            yield Rule.PAGE.says("The folder of pages is a link to somewhere else.")
        for place, what in sorted(self._wrong.items()):
            if not self._is_settled(place):
                yield Rule.PAGE.says(f"The page cycles/{place} {what}.")
        missing = [place for place in sorted(self._missing) if not self._is_settled(place)]
        if missing and self._gaps:
            yield remark(
                f"{len(missing)} pages are missing or cut off, as where a process was killed, "
                f"from cycles/{missing[0]} on."
            )
        else:
            for place in missing:
                yield Rule.PAGE.says(f"The page cycles/{place} is missing or no JSON.")
        for place in sorted(self._files() - self._expected):
            if not self._is_settled(place) and not self._may_be_new(place):
                yield Rule.PAGE.says(f"The page cycles/{place} is there, and the trace gives none.")

    def _files(self) -> set[str]:
        return {
            Path(place, name).relative_to(self._folder).as_posix()
            for place, folders, names in os.walk(self._folder)
            for name in [*names, *(one for one in folders if Path(place, one).is_symlink())]
            if not name.startswith(".")
        }

    def _may_be_new(self, place: str) -> bool:
        """Whether the page may be of records that were written since the trace was read."""
        cycle = place.partition("/")[0]
        return not self._ended and cycle.isdigit() and int(cycle) >= self._last

    def _is_settled(self, place: str) -> bool:
        cycle = place.partition("/")[0]
        return cycle.isdigit() and int(cycle) in self._settled


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        value: object = from_json(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _is_later_part(text: bytes, page: dict[str, Any]) -> bool:
    """Whether the page has only what was recorded since another process continued the run."""
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
