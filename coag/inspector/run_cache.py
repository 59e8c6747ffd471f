"""The runs that the web application shows, and what is known of them so far."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TypeVar
from weakref import WeakKeyDictionary

from coag._util.text import escaped_json
from coag.errors import CoagError, TraceError, UnknownNameError
from coag.proof import DomainKnowledge
from coag.tracing import RecordKind, TraceIndex, phase_of

from .activities import ActivityPage, ActivityReader
from .awareness import AwarenessReader, is_aware
from .checks import Checks
from .compare import RunComparison, compare
from .fading import MemoryReader
from .library import Library
from .open_run import OpenRun
from .pages import prepare
from .views import Findings, RecordView, RunCard

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)
_SLICE = 0.05
"""Seconds of counting at a time, so that a page never waits long for it."""
_BREATH, _PAUSE = 0.005, 0.5
"""Seconds between two slices; between two looks, where there was nothing to count."""
_SCAN = 60.0
"""Seconds that a page about the whole of a run waits for its trace to be scanned."""
_AHEAD, _PIECE = 1 << 24, 1 << 20
"""Bytes of a trace in which its first snapshot is looked for, and those scanned at a time."""
_RECORD = 20_000_000
"""Bytes of a record that is shown as text."""


class RunCache:
    """The library, the checks and the background work of one application.

    Methods that take the key of a run raise an UnknownNameError where there is none, and a
    TraceError where it cannot be read.
    """

    def __init__(
        self, logs: Path, *, domain: DomainKnowledge | None = None, memory: Path | None = None
    ) -> None:
        self.library = Library(logs)
        self.memory = MemoryReader(memory)
        """The memory of an agent, as it is now."""
        self._activities = ActivityReader(logs)
        self._checks = Checks(domain=domain)
        self._closing = threading.Event()
        self._making = 0
        """How many pages are being made."""
        self._reported = ""
        """The last reason why nothing could be read ahead."""
        self._lock = Lock()
        self._readers: WeakKeyDictionary[TraceIndex, AwarenessReader] = WeakKeyDictionary()

    # ---- background work ----

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """Reads ahead and counts in the background, as long as it is open."""
        await asyncio.to_thread(prepare)
        reading = asyncio.ensure_future(self._read_ahead())
        try:
            yield
        finally:
            self.close()
            reading.cancel()
            await asyncio.wait([reading])
            await asyncio.to_thread(self.end)

    async def _read_ahead(self) -> None:
        """Reads a little at a time and never while a page is being made."""
        while not self.closing:
            more = not self._making and await asyncio.to_thread(self._advance)
            await asyncio.sleep(_BREATH if more or self._making else _PAUSE)

    def _advance(self) -> bool:
        """Reads a slice; True if there is more to read."""
        try:
            more, trouble = self.library.advance(_SLICE), ""
        except CoagError as error:  # the folder of logs is gone, for now
            more, trouble = False, str(error)
        if trouble and trouble != self._reported:
            _LOG.warning("Nothing can be read ahead: %s", trouble)
        self._reported = trouble
        return more

    def close(self) -> None:
        """Ends every stream of events, now and later; from any thread."""
        self._closing.set()

    def end(self) -> None:
        """Ends the background work."""
        self.close()
        self._checks.close()

    @property
    def closing(self) -> bool:
        """True once it is to end."""
        return self._closing.is_set()

    async def soon(self, make: Callable[[], _T]) -> _T:
        """The result of a function, which is run in a thread."""
        self._making += 1
        try:
            return await asyncio.to_thread(make)
        finally:
            self._making -= 1

    # ---- activities ----

    @property
    def has_activities(self) -> bool:
        """Whether the runs are those of a situated agent, which keeps its activities beside."""
        return self._activities.there

    def activities(self, page: int) -> ActivityPage:
        """A page of the agent's activities, as they are now."""
        keys = {card.folder: card.key for card in self.library.cards()}
        return self._activities.page(page, keys)

    # ---- what is known of a run ----

    def open(self, key: str) -> OpenRun:
        """A run to be read."""
        return self.library.open(key)

    def scanned(self, key: str) -> OpenRun:
        """A run whose trace was scanned to its end."""
        run = self.open(key)
        run.advance(_SCAN)
        return run

    def card(self, key: str) -> RunCard:
        """The card of a run, with whether it keeps a state of awareness."""
        index = self.open(key).index
        return replace(self.library.card(key), aware=self._is_aware(index))

    def _is_aware(self, index: TraceIndex) -> bool:
        """As far as it was scanned, up to the first snapshot at least; pages show faults."""
        try:
            while not index.count(RecordKind.SNAPSHOT) and index.scanned < _AHEAD:
                if not index.extend(_PIECE):
                    break
            return is_aware(index)
        except TraceError:
            return False

    def awareness(self, key: str) -> AwarenessReader:
        """Reads the awareness modules of a run; the same one until its trace has grown."""
        index = self.scanned(key).index
        with self._lock:
            reader = self._readers.get(index)
            if reader is None or reader.lines != index.lines:
                reader = self._readers[index] = AwarenessReader(index)
        return reader

    def findings(self, key: str) -> Findings:
        """What the checks of a run found so far; they begin at the first request."""
        return self._checks.findings(self.open(key).folder)

    def comparison(self, left: str, right: str, first: int) -> RunComparison:
        """Two runs side by side, from a position on; negative for the first divergence."""
        runs = [(self.library.card(key), self.scanned(key)) for key in (left, right)]
        return compare(runs[0], runs[1], first)

    def record(self, key: str, number: int) -> RecordView:
        """One record as it is in the trace, and where it belongs."""
        index = self.open(key).index
        while number >= index.lines and index.extend():
            pass
        if not 0 <= number < index.lines:
            raise UnknownNameError("record", str(number), [f"0 to {index.lines - 1}"])
        kind, phase = "", None
        if index.length(number) > _RECORD:
            text = f"This record has {index.length(number):,} bytes; see line {number + 1}."
        else:
            line = index.read([number])[0]
            text = "\n".join(problem.text for problem in line.problems)
            if line.entry is not None:
                kind, phase = line.entry.body.record, phase_of(line.entry.body)
                text = escaped_json(line.entry.model_dump_json(indent=2))
        return RecordView(
            number=number,
            kind=kind,
            cycle=index.stretch(index.stretch_of(number)).cycle or None,
            phase=phase,
            of=index.lines,
            text=text,
        )
