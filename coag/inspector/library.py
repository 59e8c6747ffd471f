"""The runs of a folder of logs: found, counted, listed, as they come and go."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from threading import Lock, RLock

from coag._util.text import clip
from coag.errors import CoagError, ConfigurationError, TraceError, UnknownNameError
from coag.schema import Clock, SystemClock
from coag.tracing import RunFolder, RunInfo, read_run

from .open_run import OpenRun, RunSums
from .texts import in_a_line, object_of
from .trace_scan import FileStamp, file_stamp, within_run
from .views import Filters, RunCard, RunList, RunPage, TaskOutcome, Trouble

_LOG = logging.getLogger(__name__)
LOG_FAULTS = (
    CoagError,
    OSError,
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    RecursionError,
)
"""What reading a log may end in, whatever it holds: one run's fault is not the others'."""

# ---- Which folders of runs there are below a folder of logs, by real folders only ----


_DEPTH = 3
"""Folders that runs may lie below the folder of logs: a demo's, a case's, the run's own."""
_LARGEST = 1 << 24
"""Bytes beyond which a `run.json` is none of ours."""
_ID = 100
"""Characters of an id that names a run in addresses."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run is, and the version of its `run.json`."""

    folder: RunFolder
    name: str
    """As seen from the folder of logs, with `/`; `.` for that itself."""
    stamp: FileStamp | None
    """Of its `run.json`; None where it has a trace but no such file."""

    def info(self) -> tuple[RunInfo | None, Trouble | None]:
        """What `run.json` says, or why it cannot be read."""
        if self.stamp is None:
            text = "This folder holds a trace but no run.json, so it is not known whose run it is."
        elif self.stamp.size > _LARGEST:
            text = f"run.json is over {_LARGEST:,} bytes, so this is no run of coag."
        else:
            try:
                return read_run(self.folder.path), None
            except TraceError as error:
                text = within_run(error)
        return None, Trouble(text=text, grave=True)


def _places(folder: Path, name: str = ".", depth: int = _DEPTH) -> Iterator[_Place]:
    """The runs in a folder of logs, by path; of a run's folder that run alone.

    Links are not followed, so nothing outside of the folder is read.
    """
    run = RunFolder(folder)
    stamp = file_stamp(run.info_path)
    if stamp is not None or file_stamp(run.trace_path) is not None:
        yield _Place(run, os.fsencode(name).decode("utf-8", "replace"), stamp)
    elif depth:
        try:
            with os.scandir(folder) as entries:
                names = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
        except OSError:
            return  # it went away, or is not ours to read: there are no runs to show in it
        for each in names:
            yield from _places(folder / each, each if name == "." else f"{name}/{each}", depth - 1)


# ---- One run, as far as it is known ----


_NAME, _WHY = 120, 200
"""Characters of a scenario's name, and of an error that a card shows."""


def card_of(
    key: str,
    folder: str,
    info: RunInfo | None,
    totals: RunSums | None,
    trouble: Trouble | None,
) -> RunCard:
    """The card of a run, from its `run.json` and what was counted in its trace, if it was."""
    result = (info.result if info else None) or {}
    ended, success, summary = info and info.ended_at, result.get("success"), result.get("summary")
    ending = summary if isinstance(summary, str) and summary else totals.ended if totals else ""
    recipe = info.recipe.arguments if info and info.recipe else {}
    scenarios = (object_of(one).get("scenario") for one in (result, recipe, *recipe.values()))
    scenario = next((one for one in scenarios if one and isinstance(one, str)), "")
    outcome = TaskOutcome.UNKNOWN
    if isinstance(success, bool):
        outcome = TaskOutcome.SUCCESS if success else TaskOutcome.FAILURE
    return RunCard(
        key=key,
        folder=folder,
        info=info,
        is_open=ended is None,
        outcome=outcome,
        ending=in_a_line(ending),
        scenario=in_a_line(scenario, _NAME),
        goal=in_a_line(totals.goal, _NAME) if totals else "",
        seconds=(ended - info.started_at).total_seconds() if info and ended else None,
        cycles=totals.cycles if totals else None,
        calls=totals.calls if totals else None,
        usage=totals.usage if totals else None,
        trouble=trouble,
    )


class _Entry:
    """One run, now that its `run.json` is another one than it was `before`."""

    def __init__(
        self, place: _Place, before: _Entry | None, card: Callable[[str], RunCard]
    ) -> None:
        self.place = place
        self.info, self.trouble = place.info()
        self.run = before.run if before else OpenRun("", place.folder, card)
        self.failed = before is not None and before.failed
        """True if it could not be counted, for an unexpected reason: it is not tried again."""
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", place.folder.path.name)[:_ID] or "run"
        if self.info is not None and len(self.info.id) <= _ID:
            name = self.info.id
        self.name = before.name if before and self.info is None else name
        """Its id, or a replacement; the one known before while `run.json` is half written."""
        self.made: RunCard | None = None
        """Its card, until its key or what was counted is another one."""

    @property
    def card(self) -> RunCard:
        """Its card; one with a trouble where none can be made of what its files say."""
        if self.made is None:
            name, totals = self.place.name, self.run.sums
            try:
                self.made = card_of(self.run.key, name, self.info, totals, self.trouble)
            except LOG_FAULTS as error:  # the other runs are to be shown
                why = f"{type(error).__name__}: {str(error)[:_WHY]}"
                trouble = Trouble(text=f"What this run says cannot be shown ({why}).", grave=True)
                self.made = card_of(self.run.key, name, None, None, trouble)
        return self.made

    @property
    def is_due(self) -> bool:
        return self.info is not None and not self.failed and self.run.is_due

    def count_on(self) -> None:
        try:
            self.run.count_on()
        except LOG_FAULTS:  # the other runs are to be counted
            self.failed = True
            _LOG.exception("The run in %r cannot be counted and is left out", self.place.name)


# ---- Runs filtered, sorted and cut into pages ----


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_QUERY = 200
"""Characters of what is looked for."""
_CHOICES = 200
"""Kinds, models and agents that can be filtered by."""
_ORDERS: dict[str, Callable[[RunCard], float | None]] = {
    "cycles": lambda card: card.cycles,
    "tokens": lambda card: card.usage.tokens if card.usage else None,
    "cost": lambda card: card.usage.cost if card.usage else None,
    "duration": lambda card: card.seconds,
}
"""By what each order sorts, highest first; runs of which it is not known come last."""


def _listing_of(logs: str, cards: Sequence[RunCard], filters: Filters) -> RunList:
    """A page of the runs that the filters let through."""
    cards = [card for card in cards if not filters.without or card.key != filters.without]
    words = filters.query[:_QUERY].casefold().split()
    matching = [card for card in cards if _passes(card, filters, words)]
    matching.sort(key=_started, reverse=filters.sort != "oldest")
    if measure := _ORDERS.get(filters.sort):
        known = {card.key: measure(card) for card in matching}
        matching.sort(key=lambda card: (known[card.key] is None, -(known[card.key] or 0.0)))
    size = max(filters.page_size, 1)
    pages = max(-(-len(matching) // size), 1)
    page = min(max(filters.page, 1), pages)
    kinds, models, agents = (
        tuple(sorted({getattr(card.info, name) for card in cards if card.info} - {""})[:_CHOICES])
        for name in ("kind", "model", "agent")
    )
    return RunList(
        logs=logs,
        cards=tuple(matching[(page - 1) * size : page * size]),
        total=len(cards),
        matching=len(matching),
        pages=pages,
        filters=replace(filters, query=filters.query[:_QUERY], page=page),
        kinds=kinds,
        models=models,
        agents=agents,
    )


def _passes(card: RunCard, filters: Filters, words: Sequence[str]) -> bool:
    info, state = card.info, "open" if card.is_open else "ended"
    for name in ("kind", "model", "agent"):
        wanted = getattr(filters, name)
        if wanted and getattr(info, name, None) != wanted:
            return False
    if filters.outcome and filters.outcome not in (card.outcome.value, state):
        return False
    named = (info.id, info.agent, info.model) if info else ()
    texts = (*named, card.outcome.value, state, card.ending, card.key, card.scenario, card.goal)
    text = "\n".join(clip(each, 1_000) for each in (*texts, card.folder)).casefold()
    return all(word in text for word in words)


def _started(card: RunCard) -> tuple[float, str]:
    """When a run began, and its key; logs may hold times with and without a zone."""
    started = card.info.started_at if card.info else _LONG_AGO
    aware = started if started.tzinfo is not None else started.replace(tzinfo=UTC)
    return ((aware - _LONG_AGO).total_seconds(), card.key)


# ---- The library ----


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

    Methods that take a key raise an UnknownNameError where there is no such run, and all raise a
    ConfigurationError where the folder is gone.
    """

    def __init__(self, logs: Path, *, clock: Clock | None = None) -> None:
        self.logs = logs
        self._clock = clock or SystemClock()
        self._lock = RLock()
        self._counting = Lock()
        self._entries: dict[str, _Entry] = {}
        """By the folder's name."""
        self._keys: dict[str, _Entry] = {}
        self._open: dict[str, OpenRun] = {}
        """The runs that were opened last, by the folder's name; the latest is the last one."""
        self._due = 0.0
        """When to look at all folders again."""
        self._refresh()

    # ---- what is there ----

    def _refresh(self) -> None:
        """Looks which runs there are now, and gives each its key: the id alone where it is one."""
        began = self._clock.monotonic()
        if not self.logs.is_dir():
            raise ConfigurationError(
                f"There is no folder of logs at {str(self.logs)!r}. Name the one that holds the "
                "runs, or the folder of one run."
            )
        before, self._entries, self._keys = self._entries, {}, {}
        for place in _places(self.logs):
            known = before.get(place.name)
            if known is None or known.place != place:
                known = _Entry(place, known, self.card)
            self._entries[place.name] = known
        often = Counter(entry.name for entry in self._entries.values())
        for entry in self._entries.values():
            digest = hashlib.sha256(entry.place.name.encode("utf-8", "replace")).hexdigest()
            unique = f"{entry.name}-{digest[:6]}"
            key = entry.name if often[entry.name] == 1 else unique
            if entry.made is None or key != entry.run.key:
                entry.run.key, entry.made = key, None
            self._keys.setdefault(entry.name, entry)
            self._keys[unique] = entry
        now = self._clock.monotonic()
        self._due = now + max(_FRESH, _SHARE * (now - began))

    def _look(self) -> None:
        if self._clock.monotonic() >= self._due:
            self._refresh()

    def _entry(self, key: str) -> _Entry:
        """The run of a key, as it is now, however long ago all folders were looked at."""
        self._look()
        entry = self._keys.get(key)
        if entry is None or file_stamp(entry.place.folder.info_path) != entry.place.stamp:
            self._refresh()
            entry = self._keys.get(key)
        if entry is None:
            known = islice((each.run.key for each in self._entries.values()), _NAMED)
            raise UnknownNameError("run", key[:200], known)
        return entry

    # ---- cards ----

    def cards(self) -> tuple[RunCard, ...]:
        """The cards of all runs, by folder."""
        with self._lock:
            self._look()
            return tuple(entry.card for entry in self._entries.values())

    def card(self, key: str) -> RunCard:
        """The card of one run; an id that several folders share means the first of them."""
        with self._lock:
            return self._entry(key).card

    def listing(self, filters: Filters | None = None, **wanted: str | int) -> RunList:
        """A page of the runs."""
        chosen = replace(filters or Filters(), **wanted)  # pyright: ignore[reportArgumentType]
        return _listing_of(str(self.logs), self.cards(), chosen)

    # ---- relations ----

    def parent_of(self, key: str) -> RunCard | None:
        """The run that a run was forked from, where it is among these."""
        with self._lock:
            info = self._entry(key).info
            if info is None or info.parent is None:
                return None
            entries = self._entries.values()
            named = [one for one in entries if one.info and one.info.id == info.parent.run]
            there = Path(info.parent.path).parts[-2:]
            exact = [each for each in named if Path(each.place.name).parts[-2:] == there]
            return (exact or named)[0].card if named else None

    def forks_of(self, key: str) -> tuple[RunCard, ...]:
        """The runs among these that were forked from a run, by folder."""
        with self._lock:
            card = self._entry(key).card
            parents = {one.run.key: one.info and one.info.parent for one in self._entries.values()}
            of = card.info.id if card.info else ""
            forks = [fork for fork, parent in parents.items() if parent and parent.run == of]
            return tuple(self.card(fork) for fork in forks if self.parent_of(fork) == card)

    # ---- reading ----

    def page(self, key: str, first: int = 0, page_size: int = 50) -> RunPage:
        """A run with one page of its rows, its parent and its forks; see `OpenRun.view`."""
        view = self.open(key).view(first, page_size)
        return replace(view, parent=self.parent_of(key), forks=self.forks_of(key))

    def open(self, key: str) -> OpenRun:
        """A run to read; what pages showed of it is kept while it is among the last few."""
        with self._lock:
            entry = self._entry(key)
            if entry.info is None:
                text = entry.trouble.text if entry.trouble else "holds no run"
                raise TraceError(entry.place.folder.path, text)
            self._open.pop(entry.place.name, None)
            self._open[entry.place.name] = entry.run
            old = [self._open.pop(name) for name in list(self._open)[:-_OPEN]]
        for run in old:  # not under the lock: a run that makes a page asks for its card
            run.forget()
        return entry.run

    def advance(self, budget_seconds: float) -> bool:
        """Reads what is not read yet, and counts its cycles, requests and tokens.

        Runs that were opened come first, the latest before others, so that any cycle of theirs is
        found at once; then the newest. It is meant to be called again and again, in a thread of its
        own; a large record may take it a little longer than the budget. True if there is more.
        """
        end = self._clock.monotonic() + budget_seconds
        with self._lock:
            self._look()
            opened = [self._entries[one] for one in reversed(self._open) if one in self._entries]
            newest = sorted(
                self._entries.values(), key=lambda each: _started(each.card), reverse=True
            )
        with self._counting:
            for entry in (*opened, *newest):
                while entry.is_due:
                    if self._clock.monotonic() >= end:
                        return True
                    entry.count_on()
                    with self._lock:
                        entry.made = None
        return False
