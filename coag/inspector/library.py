"""The runs of a folder of logs: found, counted, listed, as they come and go."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Lock, RLock
from typing import Any, cast

from coag._util.text import clip
from coag.errors import CoagError, ConfigurationError, TraceError, UnknownNameError
from coag.schema import Clock, ModelCall, SystemClock, TokenUsage, TurnEnd
from coag.tracing import RecordKind, RunFolder, RunInfo, TraceIndex, asked_in, read_run

from .open_run import OpenRun
from .texts import in_a_line
from .trace_scan import FileStamp, file_stamp, within_run
from .views import Filters, RunCard, RunList, RunPage, TaskOutcome, Trouble

# ---- Which folders of runs there are below a folder of logs, by real folders only ----


_DEPTH = 3
"""Folders that runs may lie below the folder of logs: a demo's, a case's, the run's own."""
_LARGEST = 1 << 24
"""Bytes beyond which a `run.json` is none of ours."""
_ID = 100
"""Characters of an id that names a run in addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """Where a run is, and the version of its `run.json`."""

    folder: RunFolder
    name: str
    """As seen from the folder of logs, with `/`; `.` for that itself."""
    stamp: FileStamp | None
    """Of its `run.json`; None where it has a trace but no such file."""

    def now(self) -> RunPlace:
        """The same as it is now."""
        stamp = file_stamp(self.folder.info_path)
        return self if stamp == self.stamp else replace(self, stamp=stamp)


def run_folders(logs: Path) -> Iterator[RunPlace]:
    """The runs in a folder of logs, by path; of a run's folder that run alone.

    Links are not followed, so nothing outside of the folder is read.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    if not logs.is_dir():
        raise ConfigurationError(
            f"There is no folder of logs at {str(logs)!r}. Name the one that holds the runs, "
            "or the folder of one run."
        )
    own = _found(logs, ".")
    if own is not None:
        yield own
    else:
        yield from _below(logs, "", _DEPTH)


def _below(folder: Path, within: str, depth: int) -> Iterator[RunPlace]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
    except OSError:
        return  # it went away, or is not ours to read: there are no runs to show in it
    for name in names:
        path = folder / name
        found = _found(path, f"{within}{name}")
        if found is not None:
            yield found
        elif depth > 1:
            yield from _below(path, f"{within}{name}/", depth - 1)


def _found(path: Path, name: str) -> RunPlace | None:
    folder = RunFolder(path)
    readable = os.fsencode(name).decode("utf-8", "replace")
    stamp = file_stamp(folder.info_path)
    if stamp is None and file_stamp(folder.trace_path) is None:
        return None
    return RunPlace(folder=folder, name=readable, stamp=stamp)


def info_of(place: RunPlace) -> tuple[RunInfo | None, Trouble | None]:
    """What `run.json` says, or why it cannot be read."""
    if place.stamp is None:
        text = "This folder holds a trace but no run.json, so it is not known whose run it is."
        return None, Trouble(text=text, grave=True)
    if place.stamp.size > _LARGEST:
        text = f"run.json is over {_LARGEST:,} bytes, so this is no run of coag."
        return None, Trouble(text=text, grave=True)
    try:
        return read_run(place.folder.path), None
    except TraceError as error:
        return None, Trouble(text=within_run(error), grave=True)


def key_of(place: RunPlace, info: RunInfo | None) -> str:
    """The id of a run, or of one whose id is not known or too long its folder's name."""
    if info is not None and len(info.id) <= _ID:
        return info.id
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", place.folder.path.name)[:_ID]
    return name or "run"


def with_hash(key: str, place: RunPlace) -> str:
    """The same, made unique by where the folder is."""
    digest = hashlib.sha256(place.name.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{key}-{digest}"


# ---- What a run came to in numbers, found by reading its trace a piece at a time ----


_PIECE = 1 << 22
"""Bytes that are scanned at a time."""
_COUNTED = frozenset({RecordKind.MODEL_CALL, RecordKind.TURN_END})


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTotals:
    """Sums over a whole trace."""

    cycles: int = 0
    """Its last cycle, of a plain run the last turn."""
    calls: int = 0
    """Requests to models, failed ones too."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    ended: str = ""
    """Why the last turn ended; empty where none did."""
    goal: str = ""
    """What was asked first; empty where nothing was."""


class TraceCounter:
    """Counts a trace as far as it was read, and continues from there when it has grown.

    Args:
        path: A run's `trace.jsonl`; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        """The trace that is counted."""
        self._stamp: FileStamp | None = None
        """Of the trace when all of it was counted."""
        self._whole = False
        """True once the whole trace was read."""
        self._restart()

    def _restart(self) -> None:
        self._index = TraceIndex(self.path)
        self._counted = 0
        """Lines that were counted."""
        self._totals = TraceTotals()

    @property
    def totals(self) -> TraceTotals | None:
        """The sums; None until the whole trace was read once."""
        return self._totals if self._whole else None

    @property
    def is_due(self) -> bool:
        """True if there is something to count."""
        return not self._whole or file_stamp(self.path) != self._stamp

    def advance(self) -> bool:
        """Counts a piece more.

        Returns:
            True if there is more to count; False also where it cannot be read further.
        """
        stamp = file_stamp(self.path)
        if stamp is None or stamp.size < self._index.scanned:
            self._restart()
        if stamp is None or not stamp.size:
            self._stamp, self._whole = stamp, True
            return False
        try:
            more = self._index.extend(_PIECE)
        except TraceError:  # `OpenRun` says why
            more = False
        if self._index.void:
            self._restart()
            return True
        self._count()
        if not more:
            self._stamp, self._whole = stamp, True
        return more

    def _count(self) -> None:
        index, totals = self._index, self._totals
        positions = range(self._counted, index.lines)
        calls, usage, ended, goal = totals.calls, totals.usage, totals.ended, totals.goal
        for at in positions:
            kind = index.kind(at)
            if kind not in _COUNTED and (goal or kind is not RecordKind.PERCEPT):
                continue
            entry = index.read([at])[0].entry
            if entry is not None and isinstance(entry.body, ModelCall):
                calls, usage = calls + 1, usage + entry.body.usage
            elif entry is not None and isinstance(entry.body, TurnEnd):
                ended = entry.body.reason
            elif entry is not None:
                goal = asked_in(entry.body)
        self._counted = positions.stop
        self._totals = TraceTotals(
            cycles=index.last_cycle, calls=calls, usage=usage, ended=ended, goal=goal
        )


# ---- The card of a run, from its `run.json` and what was counted in its trace ----


_NAME = 120
"""Characters of a scenario's name."""


def card_of(
    key: str,
    folder: str,
    info: RunInfo | None,
    totals: TraceTotals | None,
    trouble: Trouble | None,
) -> RunCard:
    """The card of a run.

    Args:
        key: Names it in addresses.
        folder: Its folder as seen from the folder of logs.
        info: Its `run.json`; None where that cannot be read.
        totals: What its trace holds; None where that is not known yet.
        trouble: Why it cannot be shown, or not whole.
    """
    ended = info.ended_at if info else None
    return RunCard(
        key=key,
        folder=folder,
        info=info,
        is_open=ended is None,
        outcome=_outcome(info),
        ending=_ending(info, totals),
        scenario=_scenario(info),
        goal=in_a_line(totals.goal, _NAME) if totals else "",
        seconds=(ended - info.started_at).total_seconds() if info and ended else None,
        cycles=totals.cycles if totals else None,
        calls=totals.calls if totals else None,
        usage=totals.usage if totals else None,
        trouble=trouble,
    )


def _outcome(info: RunInfo | None) -> TaskOutcome:
    match _result(info).get("success"):
        case True:
            return TaskOutcome.SUCCESS
        case False:
            return TaskOutcome.FAILURE
        case _:
            return TaskOutcome.UNKNOWN


def _ending(info: RunInfo | None, totals: TraceTotals | None) -> str:
    summary = _result(info).get("summary")
    if isinstance(summary, str) and summary:
        return in_a_line(summary)
    return in_a_line(totals.ended) if totals else ""


def _scenario(info: RunInfo | None) -> str:
    """What the result says, or the recipe: among its arguments, or among those of one of them."""
    recipe = info.recipe.arguments if info and info.recipe else {}
    for fields in (_result(info), recipe, *recipe.values()):
        if not isinstance(fields, dict):
            continue
        scenario = cast("dict[str, Any]", fields).get("scenario")
        if isinstance(scenario, str) and scenario:
            return in_a_line(scenario, _NAME)
    return ""


def _result(info: RunInfo | None) -> dict[str, Any]:
    return (info.result if info else None) or {}


_LOG = logging.getLogger(__name__)
_WHY = 200
"""Characters of an error that a card shows."""
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


@dataclass(slots=True)
class RunEntry:
    """One run, as far as it is known."""

    place: RunPlace
    info: RunInfo | None
    """None where its `run.json` cannot be read."""
    trouble: Trouble | None
    counter: TraceCounter
    name: str
    """Its id, or a replacement; the one known before while `run.json` is half written."""
    key: str = ""
    failed: bool = False
    """True if it could not be counted, for an unexpected reason: it is not tried again."""
    _card: RunCard | None = field(default=None)

    @classmethod
    def of(cls, place: RunPlace, before: RunEntry | None) -> RunEntry:
        """What is known of a folder, now that its `run.json` is another one.

        Args:
            place: The folder.
            before: What was known of it.
        """
        info, trouble = info_of(place)
        counter = before.counter if before else TraceCounter(place.folder.trace_path)
        name = before.name if before and info is None else key_of(place, info)
        return cls(place, info, trouble, counter, name, failed=before is not None and before.failed)

    @property
    def id(self) -> str:
        """The run's id; empty where it is not known."""
        return self.info.id if self.info else ""

    def rename(self, key: str) -> None:
        """Gives it the key by which it is known from now on."""
        if key != self.key:
            self.key, self._card = key, None

    @property
    def card(self) -> RunCard:
        """Its card; one with a trouble where none can be made of what its files say."""
        if self._card is None:
            self._card = self._make_card()
        return self._card

    def _make_card(self) -> RunCard:
        name = self.place.name
        try:
            return card_of(self.key, name, self.info, self.counter.totals, self.trouble)
        except LOG_FAULTS as error:  # the other runs are to be shown
            why = f"{type(error).__name__}: {str(error)[:_WHY]}"
            trouble = Trouble(text=f"What this run says cannot be shown ({why}).", grave=True)
            return card_of(self.key, name, None, None, trouble)

    @property
    def is_due(self) -> bool:
        """True if there is something to count."""
        return self.info is not None and not self.failed and self.counter.is_due

    def count_on(self) -> None:
        """Counts a piece more of its trace."""
        try:
            self.counter.advance()
        except LOG_FAULTS:  # the other runs are to be counted
            self.failed = True
            _LOG.exception("The run in %r cannot be counted and is left out", self.place.name)

    def counted(self) -> None:
        """Has its card made again, from what was counted."""
        self._card = None


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


def listing_of(logs: str, cards: Sequence[RunCard], filters: Filters) -> RunList:
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
    infos = [card.info for card in cards if card.info is not None]
    return RunList(
        logs=logs,
        cards=tuple(matching[(page - 1) * size : page * size]),
        total=len(cards),
        matching=len(matching),
        pages=pages,
        filters=replace(filters, query=filters.query[:_QUERY], page=page),
        kinds=_choices([info.kind for info in infos]),
        models=_choices([info.model for info in infos]),
        agents=_choices([info.agent for info in infos]),
    )


def _choices(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value})[:_CHOICES])


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
        self._entries: dict[str, RunEntry] = {}
        """By the folder's name."""
        self._keys: dict[str, RunEntry] = {}
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
            before, self._entries = self._entries, {}
            for place in run_folders(self.logs):
                known = before.get(place.name)
                if known is None or known.place != place:
                    known = RunEntry.of(place, known)
                self._entries[place.name] = known
            self._name()
            now = self._clock.monotonic()
            self._due = now + max(_FRESH, _SHARE * (now - began))

    def _name(self) -> None:
        """Gives every run its key; one that is unique is the id alone."""
        ids = [entry.name for entry in self._entries.values()]
        often = Counter(ids)
        self._keys = {}
        for plain, entry in zip(ids, self._entries.values(), strict=True):
            unique = with_hash(plain, entry.place)
            entry.rename(plain if often[plain] == 1 else unique)
            self._keys.setdefault(plain, entry)
            self._keys[unique] = entry

    def _look(self) -> None:
        if self._clock.monotonic() >= self._due:
            self.refresh()

    def _entry(self, key: str) -> RunEntry:
        """The run of a key, as it is now, however long ago all folders were looked at."""
        self._look()
        entry = self._keys.get(key)
        if entry is None or entry.place.now() != entry.place:
            self.refresh()
            entry = self._keys.get(key)
        if entry is None:
            known = islice((each.key for each in self._entries.values()), _NAMED)
            raise UnknownNameError("run", key[:200], known)
        return entry

    # ---- cards ----

    def cards(self) -> tuple[RunCard, ...]:
        """The cards of all runs, by folder.

        Raises:
            ConfigurationError: If the folder of logs is gone.
        """
        with self._lock:
            self._look()
            return tuple(entry.card for entry in self._entries.values())

    def card(self, key: str) -> RunCard:
        """The card of one run.

        Args:
            key: As the card has it; an id that several folders share means the first of them.

        Raises:
            UnknownNameError: If there is no such run.
        """
        with self._lock:
            return self._entry(key).card

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
            info = self._entry(key).info
            if info is None or info.parent is None:
                return None
            named = [each for each in self._entries.values() if each.id == info.parent.run]
            there = Path(info.parent.path).parts
            exact = [each for each in named if Path(each.place.name).parts[-2:] == there[-2:]]
            return (exact or named)[0].card if named else None

    def forks_of(self, key: str) -> tuple[RunCard, ...]:
        """The runs among these that were forked from a run, by folder."""
        with self._lock:
            entry = self._entry(key)
            forks: list[RunCard] = []
            for each in self._entries.values():
                parent = each.info.parent if each.info else None
                if parent is not None and parent.run == entry.id:
                    found = self.parent_of(each.key)
                    forks += [each.card] if found and found.key == entry.key else []
            return tuple(forks)

    # ---- reading ----

    def page(self, key: str, first: int = 0, page_size: int = 50) -> RunPage:
        """A run with one page of its rows, its parent and its forks; see `OpenRun.view`.

        Raises:
            UnknownNameError: If there is no such run.
            TraceError: If it cannot be read.
        """
        view = self.open(key).view(first, page_size)
        return replace(view, parent=self.parent_of(key), forks=self.forks_of(key))

    def open(self, key: str) -> OpenRun:
        """A run to read; the same one again while it is among the last few.

        Raises:
            UnknownNameError: If there is no such run.
            TraceError: If its `run.json` cannot be read.
        """
        with self._lock:
            entry = self._entry(key)
            if entry.info is None:
                text = entry.trouble.text if entry.trouble else "holds no run"
                raise TraceError(entry.place.folder.path, text)
            run = self._open.pop(entry.place.name, None)
            if run is None or run.key != entry.key:
                run = OpenRun(entry.key, entry.place.folder, partial(self.card, entry.key))
            self._open[entry.place.name] = run
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
            entries = sorted(
                self._entries.values(), key=lambda each: _started(each.card), reverse=True
            )
        with self._counting:
            return self._count(entries, end)

    def _count(self, entries: Sequence[RunEntry], end: float) -> bool:
        for entry in entries:
            while entry.is_due:
                if self._clock.monotonic() >= end:
                    return True
                entry.count_on()
                with self._lock:
                    entry.counted()
        return False
