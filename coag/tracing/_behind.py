"""Pages that are made beside the run, so that it does not wait for them."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Protocol

from coag.schema import ModelCall, Receipt, TraceRecord

_MOST = 2_000
"""How many records wait at most; then the run waits."""
_PAUSE = 0.02
"""Seconds without a new record after which the run is taken to wait for something itself."""
_PAUSES = 50
"""So many such times at most, a batch is held back: a run that never waits gets its pages too."""


class Pages(Protocol):
    """Makes pages for reading out of the records of a run."""

    def add(self, record: TraceRecord, text: str) -> None:
        """Is told of every record, with its JSON as it stands in the trace."""
        ...


class Behind:
    """Hands records to pages in a thread of its own, in order and several at once.

    Most of what a page costs is making its file, which others need not wait for. What goes wrong
    there is raised here later, at the next record or at the end.

    Args:
        pages: Makes the pages; is used in that thread, and at the end.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[TraceRecord, str]] = deque()
        self._job: Future[None] | None = None
        self._hurry = Event()

    def add(self, record: TraceRecord, text: str) -> None:
        """Takes note of a record; those that a page is made at wake the thread.

        Raises:
            TraceError: If an earlier page could not be written.
            OSError: The same.
        """
        self._waiting.append((record, text))
        makes_page = isinstance(record, ModelCall | Receipt) or record.record == "outcome"
        if self._job is not None and (self._job.done() or len(self._waiting) >= _MOST):
            self._finish(self._job)
        if self._job is None and (makes_page or len(self._waiting) >= _MOST):
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="coag-pages")
            self._job = self._thread.submit(self._add_waiting)

    def close(self) -> None:
        """Waits until all pages are there, and ends the thread.

        Raises:
            TraceError: If a page could not be written.
            OSError: The same.
        """
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
