"""The runs of a folder of logs, as they come and go."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Lock, RLock

from coag.errors import TraceError, UnknownNameError
from coag.inspector.views import RunCard, RunList
from coag.schema import Clock, SystemClock

from .open_run import OpenRun
from .runs import Filters, Found, Shelf, listing_of, run_folders, with_hash

_FRESH = 1.0
"""Seconds for which the list of folders is taken to be right."""
_SHARE = 20
"""Looking at all folders takes at most one part in so many of the time."""
_OPEN = 8
"""Runs whose indexes are kept."""
_NAMED = 10
"""Runs that an error names."""


class Library:
    """The runs of a folder of logs.

    New runs appear in it and removed ones vanish. What cannot be read is a card with a trouble.
    Runs are known by keys, which are looked up: no path is made of one, and links are not
    followed. It may be used from several threads.

    Args:
        logs: The folder of all runs, or the folder of one.
        clock: Tells when the folder is worth another look.

    Raises:
        ConfigurationError: If there is no such folder.
    """

    def __init__(self, logs: Path, *, clock: Clock | None = None) -> None:
        self.logs = logs
        self._clock = clock or SystemClock()
        self._lock = RLock()
        self._counting = Lock()
        self._shelves: dict[str, Shelf] = {}
        """By the folder's name."""
        self._keys: dict[str, Shelf] = {}
        self._open: OrderedDict[str, OpenRun] = OrderedDict()
        self._due = 0.0
        """When to look at all folders again."""
        self.refresh()

    # ---- what is there ----

    def refresh(self) -> None:
        """Looks which runs there are now.

        Raises:
            ConfigurationError: If the folder is gone.
        """
        with self._lock:
            began = self._clock.monotonic()
            before, self._shelves = self._shelves, {}
            for found in run_folders(self.logs):
                self._shelves[found.name] = self._shelved(found, before.get(found.name))
            self._name()
            now = self._clock.monotonic()
            self._due = now + max(_FRESH, _SHARE * (now - began))

    def _shelved(self, found: Found, before: Shelf | None) -> Shelf:
        return before if before and before.found == found else Shelf.of(found, before)

    def _name(self) -> None:
        """Gives every run its key; one that is unique is the id alone."""
        ids = [shelf.name for shelf in self._shelves.values()]
        often = Counter(ids)
        self._keys = {}
        for plain, shelf in zip(ids, self._shelves.values(), strict=True):
            unique = with_hash(plain, shelf.found)
            shelf.rename(plain if often[plain] == 1 else unique)
            self._keys.setdefault(plain, shelf)
            self._keys[unique] = shelf

    def _look(self) -> None:
        if self._clock.monotonic() >= self._due:
            self.refresh()

    def _shelf(self, key: str) -> Shelf:
        """The run of a key, as it is now, however long ago all folders were looked at."""
        self._look()
        shelf = self._keys.get(key)
        if shelf is None or shelf.found.now() != shelf.found:
            self.refresh()
            shelf = self._keys.get(key)
        if shelf is None:
            known = islice((each.key for each in self._shelves.values()), _NAMED)
            raise UnknownNameError("run", key[:200], known)
        return shelf

    # ---- cards ----

    def cards(self) -> tuple[RunCard, ...]:
        """The cards of all runs, by folder.

        Raises:
            ConfigurationError: If the folder of logs is gone.
        """
        with self._lock:
            self._look()
            return tuple(shelf.card for shelf in self._shelves.values())

    def card(self, key: str) -> RunCard:
        """The card of one run.

        Args:
            key: As the card has it; an id that several folders share means the first of them.

        Raises:
            UnknownNameError: If there is no such run.
        """
        with self._lock:
            return self._shelf(key).card

    def listing(self, filters: Filters | None = None, **wanted: str | int) -> RunList:
        """A page of the runs.

        Args:
            filters: Which ones and in which order; None for all, newest first.
            **wanted: Fields of `Filters`, in place of those of `filters`.
        """
        chosen = replace(filters or Filters(), **wanted)  # pyright: ignore[reportArgumentType]
        return listing_of(str(self.logs), self.cards(), chosen)

    # ---- relations ----

    def parent_of(self, key: str) -> RunCard | None:
        """The run that a run was forked from, where it is among these."""
        with self._lock:
            info = self._shelf(key).info
            if info is None or info.parent is None:
                return None
            named = [each for each in self._shelves.values() if each.id == info.parent.run]
            there = Path(info.parent.path).parts
            exact = [each for each in named if Path(each.found.name).parts[-2:] == there[-2:]]
            return (exact or named)[0].card if named else None

    def forks_of(self, key: str) -> tuple[RunCard, ...]:
        """The runs among these that were forked from a run, by folder."""
        with self._lock:
            shelf = self._shelf(key)
            forks: list[RunCard] = []
            for each in self._shelves.values():
                parent = each.info.parent if each.info else None
                if parent is not None and parent.run == shelf.id:
                    found = self.parent_of(each.key)
                    forks += [each.card] if found and found.key == shelf.key else []
            return tuple(forks)

    # ---- reading ----

    def open(self, key: str) -> OpenRun:
        """A run to read; the same one again while it is among the last few.

        Raises:
            UnknownNameError: If there is no such run.
            TraceError: If its `run.json` cannot be read.
        """
        with self._lock:
            shelf = self._shelf(key)
            if shelf.info is None:
                text = shelf.trouble.text if shelf.trouble else "holds no run"
                raise TraceError(shelf.found.folder.path, text)
            run = self._open.pop(shelf.found.name, None)
            if run is None or run.key != shelf.key:
                run = OpenRun(shelf.key, shelf.found.folder, self)
            self._open[shelf.found.name] = run
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
            return run

    def advance(self, budget_seconds: float) -> bool:
        """Counts what is not counted yet: cycles, requests and tokens; newest runs first.

        It is meant to be called again and again, in a thread of its own.

        Args:
            budget_seconds: After which it stops; a large record may take a little longer.

        Returns:
            True if there is more to count.
        """
        end = self._clock.monotonic() + budget_seconds
        with self._lock:
            self._look()
            shelves = sorted(self._shelves.values(), key=lambda each: each.newest, reverse=True)
        with self._counting:
            return self._count(shelves, end)

    def _count(self, shelves: Sequence[Shelf], end: float) -> bool:
        for shelf in shelves:
            while shelf.is_due:
                if self._clock.monotonic() >= end:
                    return True
                shelf.count_on()
                with self._lock:
                    shelf.counted()
        return False
