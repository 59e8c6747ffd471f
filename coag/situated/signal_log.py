"""The signals of one tool, in order: numbered from 1, kept up to a count, read after a cursor."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .records import Cursor, SignalPage, SignalRecord

KEEP = 10_000
"""Signals that a log keeps by default."""
PAGE = 500
"""Signals that a page has at most by default."""


class SignalLog:
    """An ordered log of the signals of one tool, numbered from 1 and bounded.

    Args:
        tool: The id of the tool that emits them.
        epoch: Names the tool's present life; a restart that loses the state begins another one.
        keep: How many of the newest signals are kept.

    Raises:
        ValueError: Nothing would be kept.
    """

    def __init__(self, tool: str, epoch: str, keep: int = KEEP) -> None:
        if keep < 1:
            raise ValueError(f"A signal log keeps at least 1 signal (got keep={keep!r}).")
        self.tool = tool
        self.epoch = epoch
        self._keep = keep
        self._records: list[SignalRecord] = []
        self._last = 0

    @property
    def end(self) -> str:
        """The cursor behind the newest signal."""
        return str(Cursor(self.epoch, self._last))

    def append(
        self,
        name: str,
        data: Mapping[str, Any],
        *,
        rev: int,
        timestamp: datetime,
        cause: str | None = None,
    ) -> SignalRecord:
        """Writes a signal behind all others.

        Args:
            name: The signal's name.
            data: Its payload, JSON.
            rev: The revision that the tool's properties have now.
            timestamp: When it is emitted.
            cause: The key of the call that brought it about.
        """
        self._last += 1
        record = SignalRecord(
            event_id=f"{self.tool}/{self.epoch}/{self._last}",
            name=name,
            timestamp=timestamp,
            data=dict(data),
            cursor=self.end,
            rev=rev,
            cause=cause,
        )
        self._records.append(record)
        if len(self._records) > 2 * self._keep:  # in one piece now and then: cheap on average
            del self._records[: -self._keep]
        return record

    def after(self, cursor: str | None, limit: int = PAGE) -> SignalPage:
        """The signals after a cursor, the oldest first.

        A cursor that this log never gave - of another epoch, or beyond the end - reads from the
        beginning: the page is `truncated`, as it is where signals after the cursor are no longer
        kept.

        Args:
            cursor: Where to begin; None for the oldest signal that is kept.
            limit: How many signals the page has at most.

        Raises:
            ValueError: The text is no cursor, or the limit is below 1.
        """
        if limit < 1:
            raise ValueError(f"A page has at least 1 signal (got limit={limit!r}).")
        kept = min(len(self._records), self._keep)
        gone = self._last - kept
        place = Cursor(self.epoch, gone) if cursor is None else Cursor.read(cursor)
        lost = place.epoch != self.epoch or not gone <= place.number <= self._last
        first = gone if lost else place.number
        begin = len(self._records) - (self._last - first)
        events = tuple(self._records[begin : begin + limit])
        return SignalPage(
            events=events,
            cursor=events[-1].cursor if events else self.end,
            truncated=lost,
        )
