"""What is kept of one tool: its calls by their keys, from where they come, and its signals.

Each call is run once, and can be asked about later. A goal that an agent passes on has a lineage:
the activities through which it came, the first one first, each `AGENT/ACTIVITY`, so that
delegation does not go in circles. Code hands it on with each call, in process by the context and
over MCP in `_meta`; no model sees or writes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from coag._util.validation import first_error
from coag.schema import Reconciliation

from .operations import OperationRefusedError
from .records import Acknowledgement, Cursor, SignalPage, SignalRecord

LINEAGE_META = "coag.situated/lineage"
"""Where in `_meta` of a call its lineage is."""
_LINEAGE: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=32)]
)


class CallOrigin(NamedTuple):
    """Where the call comes from that is being run."""

    key: str | None = None
    """Its key; None for a call that is not remembered."""
    lineage: tuple[str, ...] = ()
    """The activities on whose behalf it is made; empty where the caller does not say."""


_UNKNOWN = CallOrigin()
_ORIGIN: ContextVar[CallOrigin] = ContextVar("origin", default=_UNKNOWN)


def current_call() -> CallOrigin:
    """The call in which, or by whose internal operations, something happens."""
    return _ORIGIN.get()


@contextmanager
def calling(origin: CallOrigin) -> Generator[None]:
    """What is called inside comes from there."""
    token = _ORIGIN.set(origin)
    try:
        yield
    finally:
        _ORIGIN.reset(token)


def lineage_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The lineage that a caller on another machine sent; `ValueError` where it is none."""
    sent = meta.get(LINEAGE_META, [])
    try:
        return _LINEAGE.validate_python(sent)
    except ValidationError as error:
        raise ValueError(f"{LINEAGE_META!r} is no lineage: {first_error(error)}") from error


KEYS = 10_000
"""Calls that a tool remembers by default."""


class _Call(NamedTuple):
    what: str
    task: asyncio.Task[Acknowledgement]


class CallBook:
    """Remembers the newest calls of a tool, so many as `keep` says, and all that still run."""

    def __init__(self, keep: int = KEYS) -> None:
        self._keep = keep
        self._calls: dict[str, _Call] = {}
        self._running: set[asyncio.Task[Acknowledgement]] = set()
        self._forgotten = False

    async def once(
        self, key: str | None, what: str, run: Callable[[], Coroutine[Any, Any, Acknowledgement]]
    ) -> Acknowledgement:
        """Runs a call, or gives the answer of the one that had the same key; None is no key.

        A call runs on when its caller is cancelled, so that its answer can be asked for again. What
        the same call has in common, and no other, is its operation and arguments (`what`); a key
        that was used for something else is an `OperationRefusedError`.
        """
        if key is not None and (known := self._calls.get(key)) is not None:
            if known.what != what:
                raise OperationRefusedError(
                    f"key {key!r} was used for another operation or other arguments; give each "
                    "call a key of its own"
                )
            answer = await asyncio.shield(known.task)
            return answer.model_copy(update={"repeated": True})
        task = asyncio.create_task(run())
        self._running.add(task)
        task.add_done_callback(self._ended)
        if key is not None:
            self._calls[key] = _Call(what, task)
        return await asyncio.shield(task)

    def knows(self, key: str) -> bool:
        """Whether a call with this key is remembered."""
        return key in self._calls

    def became_of(self, key: str) -> Reconciliation:
        """What became of the call with this key.

        It happened; it did not: it was refused, or never arrived; or that is unknown: it still
        runs, it failed half-way, or calls have been forgotten.
        """
        known = self._calls.get(key)
        if known is None:
            return "unknown" if self._forgotten else "did_not_happen"
        if not known.task.done() or known.task.cancelled() or known.task.exception() is not None:
            return "unknown"
        return "happened" if known.task.result().accepted else "did_not_happen"

    async def close(self, seconds: float) -> None:
        """Waits for calls that run, so many seconds at most; then they are cancelled."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=seconds)
            for task in late:
                task.cancel()

    def _ended(self, task: asyncio.Task[Acknowledgement]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it: who called has it
        over = len(self._calls) - self._keep
        if over > 0:  # only calls that run can stand before those that have ended
            for key in list(islice(self._calls, over + len(self._running))):
                if over > 0 and self._calls[key].task.done():
                    del self._calls[key]
                    over -= 1
                    self._forgotten = True


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
        """Writes a signal behind all others, with the revision that the properties have now.

        The cause is the key of the call that brought it about.
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
        """The signals after a cursor, the oldest first, from the oldest that is kept for None.

        A cursor that this log never gave - of another epoch, or beyond the end - reads from the
        beginning: the page is `truncated`, as it is where signals after the cursor are no longer
        kept.

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
