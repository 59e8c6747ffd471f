"""Pages that are made beside the run, so that it does not wait for them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from coag.schema import ExecutionOutcome, ModelCall, Receipt, TraceRecord, TurnEnd

_MOST = 8
"""How many batches wait at most; then the run waits."""
_PAUSE = 0.05
"""Seconds between two batches within a cycle, at least."""
_BATCH = 200
"""How many records are gathered at most before they are handed over."""


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
        pages: Makes the pages; is used in that thread only.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._thread: ThreadPoolExecutor | None = None
        self._handed_over = -_PAUSE
        self._gathered: list[tuple[TraceRecord, str]] = []
        self._waiting: deque[Future[None]] = deque()

    def add(self, record: TraceRecord, text: str) -> None:
        """Takes note of a record; those that a page is made at are handed over.

        Raises:
            TraceError: If an earlier page could not be written.
            OSError: The same.
        """
        self._gathered.append((record, text))
        if self._is_time(record) or len(self._gathered) >= _BATCH:
            self._hand_over()

    def close(self) -> None:
        """Waits until all pages are there, and ends the thread.

        Raises:
            TraceError: If a page could not be written.
            OSError: The same.
        """
        try:
            self._hand_over()
            while self._waiting:
                self._waiting.popleft().result()
        finally:
            self._waiting.clear()
            if self._thread is not None:
                self._thread.shutdown()

    def _is_time(self, record: TraceRecord) -> bool:
        """At the end of a cycle or turn; where a page is due, also if some time has passed.

        So a person sees each phase of a real model as it ends, and a run without latency is
        not interrupted for each.
        """
        if isinstance(record, ExecutionOutcome | TurnEnd):
            return True
        due = isinstance(record, ModelCall | Receipt) or record.record == "outcome"
        return due and time.monotonic() - self._handed_over > _PAUSE

    def _hand_over(self) -> None:
        while self._waiting and (self._waiting[0].done() or len(self._waiting) >= _MOST):
            self._waiting.popleft().result()
        if not self._gathered:
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="coag-pages")
        self._handed_over = time.monotonic()
        batch, self._gathered = self._gathered, []
        self._waiting.append(self._thread.submit(self._add_all, batch))

    def _add_all(self, batch: Sequence[tuple[TraceRecord, str]]) -> None:
        for record, text in batch:
            self._pages.add(record, text)
