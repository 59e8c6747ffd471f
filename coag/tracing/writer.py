"""Writing a trace: records as lines, pages behind them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Protocol, Self

from pydantic_core import PydanticSerializationError, from_json

from coag.errors import TraceError
from coag.schema import (
    Clock,
    Entry,
    Intent,
    Note,
    Redactor,
    SystemClock,
    TraceRecord,
)

from .files import LineFile
from .hash_chain import LONGEST_LINE, ParsedLine, Unreadable, chained_line, parse_line
from .reader import cycle_of

# ---- Records as JSON text, also where a text in them is broken ----


_DEEP = 150
"""Brackets from which it is worth a look whether a text is nested too deeply to be read."""


def record_text(record: TraceRecord) -> str:
    """A record as it is written in a trace.

    Half characters (lone surrogates), which an answer cut off within an escape gives, cannot
    be written to a file; they become `?`.
    """
    try:
        text = record.model_dump_json()
    except PydanticSerializationError:
        fields = record.model_dump(mode="json")
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        text = text.encode("utf-8", "replace").decode()
    if text.count("{") + text.count("[") >= _DEEP:
        from_json(f"[{text}]")  # the line around it is one level more
    return text


# ---- Pages that are made beside the run, so that it does not wait for them ----


_MOST = 2_000
"""How many records wait at most; then the run waits."""
_PAUSE = 0.02
"""Seconds without a new record after which the run is taken to wait for something itself."""
_PAUSES = 50
"""A batch is held back at most so many such times: a run that never waits gets its pages too."""


class PageMaker(Protocol):
    """Makes pages for reading out of the records of a run."""

    def add(self, record: TraceRecord, text: str) -> None:
        """Takes every record, with its JSON as it is in the trace."""
        ...


class BackgroundPageWriter:
    """Hands records to pages in a thread of its own, in order and several at once.

    Most of what a page costs is making its file, which others need not wait for. What goes wrong
    there is raised here later, at the next record or at the end.
    """

    def __init__(self, pages: PageMaker) -> None:
        self._pages = pages
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[TraceRecord, str]] = deque()
        self._job: Future[None] | None = None
        self._hurry = Event()

    def add(self, record: TraceRecord, text: str) -> None:
        """Takes note of a record; those that a page is made at wake the thread."""
        self._waiting.append((record, text))
        makes_page = record.record in ("outcome", "model_call", "receipt")
        if self._job is not None and (self._job.done() or len(self._waiting) >= _MOST):
            self._finish(self._job)
        if self._job is None and (makes_page or len(self._waiting) >= _MOST):
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="coag-pages")
            self._job = self._thread.submit(self._add_waiting)

    def close(self) -> None:
        """Waits until all pages are there, and ends the thread."""
        self._hurry.set()
        try:
            if self._job is not None:
                self._finish(self._job)
            self._add_waiting()
        finally:
            self._waiting.clear()
            if self._thread is not None:
                self._thread.shutdown()

    def _finish(self, job: Future[None]) -> None:
        self._job = None
        job.result()

    def _add_waiting(self) -> None:
        self._wait_for_a_pause()
        while self._waiting:
            self._pages.add(*self._waiting.popleft())

    def _wait_for_a_pause(self) -> None:
        """Holds back until nothing has come for a moment, for a second at most."""
        known = -1
        for _ in range(_PAUSES):
            if self._hurry.wait(_PAUSE) or len(self._waiting) == known:
                return
            known = len(self._waiting)


# ---- Writing a trace ----


_BOUNDARIES = frozenset({"outcome", "intent", "receipt", "written", "turn_end"})
"""Records after which everything written so far must survive the death of the process."""

_FULL = 1 << 20
"""Bytes that are held back at most before they are handed over early."""

_LOG = logging.getLogger(__name__)

_LOOK_BACK = 1_000
"""How many records are searched for the current cycle when a torn trace is repaired."""


class TraceWriter:
    """Appends a run's records to its `trace.jsonl`; a `TraceSink`.

    Records are numbered without gaps, chained by their hashes, and held back until the next phase
    boundary, intent, receipt or turn's end. Nothing that was written is kept in RAM. An existing
    trace is continued, one of version 1 too; a torn last line is moved to
    `trace.jsonl.torn-SEQ` and a note says so.

    A writer that failed once refuses everything after, so that no action runs unrecorded. So does
    one whose file was removed, replaced or cut: that is looked after before every intent. The
    trace is the truth and pages are for reading: they are made in a thread of their own, so that
    the last ones may be missing where the process was killed; if they fail, a note and a logged
    warning say so and the run continues without.

    Args:
        path: The trace; its folder exists.
        pages: Makes pages for reading beside the trace, or None.
        clock: Dates the note about a repair.
        redactor: Takes secrets out; None for the one that knows this process's environment.
        opening: The hash before the first line of a new trace; see `open_trace`.

    Raises:
        TraceError: If the trace cannot be opened, is held by another writer or is damaged.
    """

    def __init__(
        self,
        path: Path,
        *,
        pages: PageMaker | None = None,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
        opening: str = "",
    ) -> None:
        self._path = path
        self._process = os.getpid()
        self._pages = None if pages is None else BackgroundPageWriter(pages)
        self._clock = clock or SystemClock()
        self._redactor = redactor or Redactor.from_environment()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._failed = False
        self._seq = 0
        self._head = opening
        self._cycle = 0
        self._size = 0
        self._file = LineFile(path)
        try:
            self._go_on()
            self._size = self._file.size
        except BaseException:
            self._file.close()
            raise

    @property
    def count(self) -> int:
        """How many records the trace has, those held back included."""
        return self._seq

    @property
    def head(self) -> str:
        """The hash of the last record, one held back included; empty for an empty trace."""
        return self._head if self._seq else ""

    def write(self, record: TraceRecord) -> None:
        """Appends a record; at boundaries hands all held back to the operating system.

        Raises:
            TraceError: If the trace cannot be written, or the record is no JSON; before an
                intent also if the trace is no longer where it was opened.
        """
        if isinstance(record, Intent):
            self._check_in_place()
        text = self._hold(record)
        if record.record in _BOUNDARIES or self._held_bytes > _FULL:
            self.flush()
        if self._pages is not None:
            self._show(self._pages, record, text)

    def flush(self) -> None:
        """Hands what is held back to the operating system.

        Raises:
            TraceError: If it cannot be written, e.g. because the disk is full.
        """
        self._refuse_if_failed()
        lines = b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        # Cleared only when it worked: after any failure nothing may be written.
        self._failed = True
        self._file.append(lines)
        self._size += len(lines)
        self._failed = False

    def close(self) -> None:
        """Writes what is held back and closes the file; closing twice is fine.

        Raises:
            TraceError: If what is held back cannot be written. The file is closed all the same.
        """
        try:
            self._finish_pages()
            if self._held and not self._failed:
                self.flush()
        finally:
            self._failed = True
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _hold(self, record: TraceRecord) -> str:
        """Numbers a record and holds it back; its JSON as it will be written."""
        self._refuse_if_failed()
        if os.getpid() != self._process:
            raise TraceError(
                self._path,
                "belongs to the process that this one was forked from: build an agent of its own",
            )
        try:
            text = self._redactor.clean(record_text(record))
        except ValueError as error:
            raise TraceError(
                self._path, f"a record {record.record!r} cannot be written as JSON: {error}"
            ) from error
        line, head = chained_line(self._head, self._seq, text.encode())
        if len(line) > LONGEST_LINE:
            raise TraceError(
                self._path,
                f"a record {record.record!r} would be a line of {len(line):,} bytes, and readers "
                f"take {LONGEST_LINE:,}; nothing of it was written",
            )
        self._cycle, self._head = cycle_of(record) or self._cycle, head
        self._held.append(line)
        self._held_bytes += len(line)
        self._seq += 1
        return text

    def _show(self, pages: BackgroundPageWriter, record: TraceRecord, text: str) -> None:
        try:
            pages.add(record, text)
        except (TraceError, OSError, RuntimeError) as error:  # no thread starts at exit
            self._give_up_pages(pages, error)

    def _give_up_pages(self, pages: BackgroundPageWriter, error: Exception) -> None:
        """Makes no more of them for the rest of the run, and says so."""
        self._pages = None
        text = f"No more pages for reading are made; the trace goes on without: {error}"
        self._hold(Note(at=self._clock.now(), cycle=self._cycle, about="pages", text=text))
        _LOG.warning(text)
        with contextlib.suppress(TraceError, OSError):  # the first failure is the one to report
            pages.close()

    def _finish_pages(self) -> None:
        pages, self._pages = self._pages, None
        if pages is None:
            return
        try:
            pages.close()
        except (TraceError, OSError) as error:
            if not self._failed:
                self._give_up_pages(pages, error)

    def _check_in_place(self) -> None:
        """No action may run whose record nobody would find."""
        self._refuse_if_failed()
        try:
            self._file.check_in_place(self._size)
        except TraceError:
            self._failed = True
            raise

    def _refuse_if_failed(self) -> None:
        if self._failed:
            raise TraceError(self._path, "was closed or could not be written to before")

    def _go_on(self) -> None:
        """Finds where an existing trace ends, and repairs a torn last line."""
        lines = self._file.backwards()
        tail = next(lines)
        if tail and not isinstance(parse_line(tail), Unreadable):  # only the newline is missing
            self._file.append(b"\n")
            lines, tail = self._file.backwards(), b""
            next(lines)
        cycle, last = self._look_back(lines)
        torn = self._path.with_name(f"{self._path.name}.torn-{self._seq}")
        if tail:
            self._file.cut_tail(len(tail), torn)
        if last is not None:
            self._head = last.entry.hash or self._file.sha256()
        if tail:
            text = f"The last line was torn; its {len(tail)} bytes were moved to {torn.name}."
            self._hold(Note(at=self._clock.now(), cycle=cycle, about="repair", text=text))
            self.flush()

    def _look_back(self, lines: Iterator[bytes]) -> tuple[int, ParsedLine | None]:
        """The current cycle and the last whole line; takes over the number."""
        last: ParsedLine | None = None
        cycle: int | None = None
        for back, line in enumerate(lines):
            parsed = parse_line(line)
            if isinstance(parsed, Unreadable):
                raise TraceError(self._path, f"line {back + 1} from the end {parsed.why}")
            last = last or parsed
            self._seq = max(self._seq, parsed.entry.seq + 1)
            cycle = cycle_of(parsed.entry.body)
            if cycle is not None or back == _LOOK_BACK:
                break
        return cycle or 0, last


# ---- A trace in RAM, for agents that write nothing to disk, and for tests ----


@dataclass(frozen=True, slots=True)
class _Deferred:
    """A record that is made when it is read."""

    make: Callable[[], TraceRecord]


class MemoryTrace:
    """The last records of a run in RAM; a `TraceSink`.

    Args:
        limit: How many records are kept; older ones are dropped.
    """

    def __init__(self, limit: int = 10_000) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit!r}")
        self._records: deque[TraceRecord | _Deferred] = deque(maxlen=limit)
        self._count = 0

    def write(self, record: TraceRecord) -> None:
        """Appends a record; drops the oldest one if the trace is full."""
        self._append(record)

    def write_later(self, make: Callable[[], TraceRecord]) -> None:
        """Appends a record that is not made before it is read, which most never are."""
        self._append(_Deferred(make))

    def _append(self, record: TraceRecord | _Deferred) -> None:
        self._records.append(record)
        self._count += 1

    def flush(self) -> None:
        """Does nothing: what is in RAM ends with the process."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is kept, oldest first, numbered from the run's first record."""
        return tuple(Entry(seq=seq, body=it) for seq, it in enumerate(self.records, self.dropped))

    @property
    def records(self) -> tuple[TraceRecord, ...]:
        """What is kept, oldest first, without numbers."""
        return tuple(one.make() if isinstance(one, _Deferred) else one for one in self._records)

    @property
    def dropped(self) -> int:
        """How many records are no longer kept."""
        return self._count - len(self._records)
