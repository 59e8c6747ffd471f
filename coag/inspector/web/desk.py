"""The runs that are shown, and what is known of them so far."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from coag.errors import CoagError, UnknownNameError
from coag.inspector.drawing import cost_svg
from coag.inspector.pages import Fragments, Pages, Place, Target, WebAddresses, prepare
from coag.inspector.reading import LOG_FAULTS, Filters, Library, OpenRun
from coag.inspector.tracks import Checks, Placed, Side, compare, phase_of
from coag.inspector.views import (
    Comparison,
    CycleRow,
    CycleView,
    Findings,
    Progress,
    RecordView,
    RunCard,
    RunList,
    RunView,
)
from coag.proof import Domain
from coag.schema import escaped_json
from coag.tracing import RunFolder, TraceIndex

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)
_SLICE = 0.05
"""Seconds of counting at a time, so that a page never waits long for it."""
_BREATH = 0.005
"""Seconds between two slices."""
_PAUSE = 0.5
"""Seconds between two looks for what must be counted, where there was nothing."""
_SCAN = 60.0
"""Seconds that a page about the whole of a run waits for its trace to be scanned."""
_CHECKED = 0.05
"""Seconds between two looks whether checks are done."""
_RECORD = 20_000_000
"""Bytes of a record that is shown as text."""


class Desk:
    """What the pages are made from; one for each application.

    Args:
        logs: A folder of logs, or the folder of one run.
        domain: What is known of the runs' domain, for the causes of failures.

    Raises:
        ConfigurationError: There is no such folder.
    """

    def __init__(self, logs: Path, *, domain: Domain | None = None) -> None:
        self.library = Library(logs)
        self._addresses = WebAddresses()
        self.pages = Pages(self._addresses)
        self.fragments = Fragments(self._addresses)
        self._checks = Checks(domain=domain)
        self._closing = threading.Event()
        self._making = 0
        """How many pages are being made."""
        self._opened: list[OpenRun] = []
        """Runs that are to be read to their end."""
        self._failed: WeakSet[OpenRun] = WeakSet()
        """Runs that failed while they were read ahead; each is told of once."""
        self._told = ""
        """Why nothing could be read ahead when that was last told."""

    # ---- its life ----

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """Reads ahead and counts what runs came to in the background, as long as it is open."""
        await asyncio.to_thread(_warm)
        reading = asyncio.ensure_future(self._read_ahead())
        try:
            yield
        finally:
            self.close()
            reading.cancel()
            await asyncio.wait([reading])
            await asyncio.to_thread(self.end)

    async def _read_ahead(self) -> None:
        """Reads on, a little at a time and never while a page is being made.

        Runs that were opened come first, so that any cycle of theirs is found at once; then what
        the cards of all runs say.
        """
        while not self._closing.is_set():
            more = not self._making and await asyncio.to_thread(self._advance)
            await asyncio.sleep(_BREATH if more or self._making else _PAUSE)

    def _advance(self) -> bool:
        """Reads a slice on; True if there is more to read."""
        while self._opened:
            run = self._opened[-1]
            if self._reads_on(run):
                return True
            self._opened.remove(run)
        return self._counts_on()

    def _reads_on(self, run: OpenRun) -> bool:
        """Reads a slice of a run; False at its end, and where it fails."""
        try:
            return run.advance(_SLICE)
        except LOG_FAULTS:  # the other runs are to be read
            _LOG.exception("The run %r cannot be read ahead and is left out", run.key)
            self._failed.add(run)
            return False

    def _counts_on(self) -> bool:
        """Counts a slice; of a folder of logs that is gone nothing, until it is there again."""
        try:
            more = self.library.advance(_SLICE)
        except CoagError as error:
            if str(error) != self._told:
                self._told = str(error)
                _LOG.warning("Nothing can be read ahead: %s", error)
            return False
        self._told = ""
        return more

    def close(self) -> None:
        """Ends every stream of events, now and later; from any thread."""
        self._closing.set()

    def end(self) -> None:
        """Ends what goes on behind the pages."""
        self.close()
        self._checks.close()

    @property
    def closing(self) -> bool:
        """True once it is to end."""
        return self._closing.is_set()

    async def soon(self, make: Callable[[], _T]) -> _T:
        """What a function gives, which is run in a thread."""
        self._making += 1
        try:
            return await asyncio.to_thread(make)
        finally:
            self._making -= 1

    # ---- what there is ----

    def address(self, key: str, number: int, spot: str) -> str:
        """Where a spot of a cycle's page is found."""
        place = Place(target=Target.CYCLE, run=key, number=number, spot=spot)
        return self._addresses.to(place)

    def listing(self, asked: Mapping[str, str], page: int, without: str = "") -> RunList:
        """A page of the runs, but for the one of a key."""
        return self.library.listing(Filters(page=page, without=without), **asked)

    def card(self, key: str) -> RunCard:
        """The card of a run.

        Raises:
            UnknownNameError: There is no such run.
        """
        return self.library.card(key)

    def open(self, key: str) -> OpenRun:
        """A run to be read.

        Raises:
            UnknownNameError: There is no such run.
            TraceError: Its `run.json` cannot be read.
        """
        run = self.library.open(key)
        waits = run not in self._opened and run not in self._failed
        if waits and run.index.size > run.index.scanned:
            self._opened.append(run)
        return run

    def folder(self, key: str) -> RunFolder:
        """The folder of a run.

        Raises:
            UnknownNameError: There is no such run.
            TraceError: Its `run.json` cannot be read.
        """
        return self.open(key).folder

    def scanned(self, key: str) -> TraceIndex:
        """The index of a run's trace, scanned to its end.

        Raises:
            UnknownNameError: There is no such run.
            TraceError: The run cannot be read.
        """
        run = self.open(key)
        run.advance(_SCAN)
        return run.index

    def findings(self, key: str) -> Findings:
        """What the checks of a run found so far; they begin when this is first asked.

        Raises:
            UnknownNameError: There is no such run.
            TraceError: Its `run.json` cannot be read.
        """
        return self._checks.findings(self.folder(key))

    def checked(self, key: str) -> Findings:
        """What the checks of a run found, once they are done; in a thread that can wait.

        Raises:
            UnknownNameError: There is no such run.
            TraceError: Its `run.json` cannot be read.
        """
        while (found := self.findings(key)).progress in (Progress.WAITING, Progress.RUNNING):
            if self._closing.wait(_CHECKED):
                break
        return found

    # ---- views ----

    def run_view(self, key: str, first: int) -> tuple[RunView, Findings]:
        """A run with a page of its timeline and what was found in it."""
        found = self.findings(key)
        return Placed(found).run(self.open(key).view(first)), found

    def cycle_view(self, key: str, number: int) -> CycleView:
        """One cycle with what was found in it."""
        view = self.open(key).cycle(number)
        return Placed(self.findings(key)).cycle(view)

    def comparison(self, left: str, right: str, first: int) -> Comparison:
        """Two runs side by side.

        Args:
            left: Key of the one.
            right: Key of the other.
            first: Position of the first cycle that is shown; negative for where they part.
        """
        return compare(self._side(left), self._side(right), first)

    def _side(self, key: str) -> Side:
        self.scanned(key)
        return Side.of(self.card(key), self.open(key))

    def record(self, key: str, number: int) -> RecordView:
        """One record as it stands in the trace, and where it belongs.

        Raises:
            UnknownNameError: There is no such run or record.
            TraceError: The trace cannot be read.
        """
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
            run=key,
            number=number,
            kind=kind,
            cycle=index.stretch(index.stretch_of(number)).cycle or None,
            phase=phase,
            of=index.lines,
            text=text,
        )


def _warm() -> None:
    """Loads and compiles what the first page would have to wait for."""
    prepare()
    cost_svg([CycleRow(number=1, at=None)], prefix="warm")
