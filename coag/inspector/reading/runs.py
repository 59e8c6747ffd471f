"""Runs in a folder: found, counted, and listed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple, cast

from coag.errors import CoagError, ConfigurationError, TraceError
from coag.inspector.views import RunCard, RunList, RunState, TaskOutcome, Trouble
from coag.schema import ModelCall, TokenUsage, TurnEnd
from coag.tracing import RecordKind, RunFolder, RunInfo, TraceIndex, asked_in, read_run

# ---- Foreign text and values in a bounded number of characters ----


LINE = 300
"""Characters of a text in a row."""
_WIDE, _DEEP = 40, 6
"""How many items of a list or an object, and how many levels of them, are shown in a row."""
_READ = 20_000
"""Characters of a text that are read as JSON."""
_DECODER = json.JSONDecoder()


def clip(text: str, limit: int) -> str:
    """The beginning of a text, with a note of how much is missing.

    It costs the same however long the text is. Control characters stay: whoever shows it must
    make them visible.

    Args:
        text: Any text out of a log.
        limit: Characters kept.
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [… {len(text) - limit:,} more characters]"


def in_a_line(text: str, limit: int = LINE) -> str:
    """The beginning of a text with every run of blanks and line breaks as one blank."""
    if len(text) <= 2 * limit:
        return clip(" ".join(text.split()), limit)
    line = " ".join(text[: 2 * limit].split())
    return f"{line[:limit]} [… {len(text) - limit:,} more characters]"


def value_in_a_line(value: Any, limit: int = LINE) -> str:
    """A JSON value on one line; what is long or deep within it is cut first."""
    return in_a_line(json.dumps(_bounded(value, limit, _DEEP), ensure_ascii=False), limit)


def told_in_a_line(text: str, limit: int = LINE) -> str:
    """What came back, on one line: of a JSON object its fields, as `ok true · battery 17`.

    Fields without a value are left out; of what follows the object an ellipsis tells. Other texts
    stay as they are.
    """
    head = text[:_READ].lstrip()
    if not head.startswith("{"):
        return in_a_line(text, limit)
    try:
        value, end = _DECODER.raw_decode(head)
    except (ValueError, RecursionError):
        return in_a_line(text, limit)
    told = {name: item for name, item in cast("dict[str, Any]", value).items() if item is not None}
    if not told:
        return in_a_line(text, limit)
    some = list(islice(told.items(), _WIDE))
    fields = [f"{in_a_line(name, limit)} {_plain(item, limit)}" for name, item in some]
    if len(told) > len(some):
        fields.append(f"{len(told) - len(some):,} more fields")
    line = in_a_line(" · ".join(fields), limit)
    rest = head[end:].strip() or text[_READ:]
    return f"{line} …" if rest and len(line) <= limit else line


def call_in_a_line(name: str, arguments: Mapping[str, Any] | None, limit: int = LINE) -> str:
    """An action with its arguments on one line; without empty ones."""
    shown = in_a_line(name, limit)
    return f"{shown} {value_in_a_line(arguments, limit)}" if arguments else shown


def _plain(value: Any, limit: int) -> str:
    return in_a_line(value, limit) if isinstance(value, str) else value_in_a_line(value, limit)


def _bounded(value: Any, limit: int, depth: int) -> Any:
    if isinstance(value, str):
        return clip(value, limit)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        shown = [_bounded(item, limit, depth - 1) for item in items[:_WIDE]] if depth else []
        return shown + (["…"] if len(items) > len(shown) else [])
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        some = islice(fields.items(), _WIDE if depth else 0)
        kept = {clip(key, limit): _bounded(item, limit, depth - 1) for key, item in some}
        return kept | ({"…": len(fields) - len(kept)} if len(fields) > len(kept) else {})
    return value


# ---- Which folders of runs there are below a folder of logs, by real folders only ----


_DEPTH = 3
"""Folders that runs may lie below the folder of logs: a demo's, a case's, the run's own."""
_LARGEST = 1 << 24
"""Bytes beyond which a `run.json` is none of ours."""
_ID = 100
"""Characters of an id that names a run in addresses."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """By what it is seen that a `run.json` is another one."""

    number: int
    """Of the file: one that replaces another has its own."""
    modified: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A folder of a run, as it was found."""

    folder: RunFolder
    name: str
    """As seen from the folder of logs, with `/`; `.` for that itself."""
    stamp: Stamp | None
    """Of its `run.json`; None where it has a trace but no such file."""

    def now(self) -> Found:
        """The same as it is now."""
        stamp = _stamp(self.folder.info_path)
        return self if stamp == self.stamp else replace(self, stamp=stamp)


def run_folders(logs: Path) -> Iterator[Found]:
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


def _below(folder: Path, within: str, depth: int) -> Iterator[Found]:
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


def _found(path: Path, name: str) -> Found | None:
    folder = RunFolder(path)
    readable = os.fsencode(name).decode("utf-8", "replace")
    stamp = _stamp(folder.info_path)
    if stamp is None and _stamp(folder.trace_path) is None:
        return None
    return Found(folder=folder, name=readable, stamp=stamp)


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    regular = stat.S_ISREG(found.st_mode)
    return Stamp(found.st_ino, found.st_mtime_ns, found.st_size) if regular else None


def info_of(found: Found) -> tuple[RunInfo | None, Trouble | None]:
    """What `run.json` says, or why it cannot be read."""
    if found.stamp is None:
        text = "This folder holds a trace but no run.json, so it is not known whose run it is."
        return None, Trouble(text=text, grave=True)
    if found.stamp.size > _LARGEST:
        text = f"run.json is over {_LARGEST:,} bytes, so this is no run of coag."
        return None, Trouble(text=text, grave=True)
    try:
        return read_run(found.folder.path), None
    except TraceError as error:
        return None, Trouble(text=within_run(error), grave=True)


def within_run(error: TraceError) -> str:
    """What is wrong with a file of a run, without the folders that it lies in."""
    problem = str(error).removeprefix(f"{error.path}: ")
    return f"{error.path.name} {problem}".rstrip(".") + "."


def key_of(found: Found, info: RunInfo | None) -> str:
    """The id of a run, or of one whose id is not known or too long its folder's name."""
    if info is not None and len(info.id) <= _ID:
        return info.id
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", found.folder.path.name)[:_ID]
    return name or "run"


def with_hash(key: str, found: Found) -> str:
    """The same, made unique by where the folder is."""
    digest = hashlib.sha256(found.name.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{key}-{digest}"


# ---- What a run came to in numbers, found by reading its trace a piece at a time ----


_PIECE = 1 << 22
"""Bytes that are scanned at a time."""
_COUNTED = frozenset({RecordKind.MODEL_CALL, RecordKind.TURN_END})


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
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


class _Stamp(NamedTuple):
    """By what it is seen that a trace has grown or is another one."""

    device: int
    number: int
    size: int
    """Bytes; 0 where it is not there, or is no file of its folder but a link."""


_NOTHING = _Stamp(0, 0, 0)


def _size_and_time(path: Path) -> _Stamp:
    try:
        found = path.lstat()
    except OSError:
        return _NOTHING
    regular = S_ISREG(found.st_mode)
    return _Stamp(found.st_dev, found.st_ino, found.st_size) if regular else _NOTHING


def file_size(path: Path) -> int:
    """Bytes of a trace; 0 where it is not there, or is no file of its folder but a link."""
    return _size_and_time(path).size


class Tally:
    """Counts a trace as far as it was read, and goes on from there when it has grown.

    Args:
        path: A run's `trace.jsonl`; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        """The trace that is counted."""
        self._stamp: _Stamp | None = None
        """Of the trace when all of it was counted; None before that."""
        self._anew()

    def _anew(self) -> None:
        self._index = TraceIndex(self.path)
        self._counted = 0
        """Lines that were counted."""
        self._totals = Totals()

    @property
    def totals(self) -> Totals | None:
        """The sums; None until the whole trace was read once."""
        return None if self._stamp is None else self._totals

    @property
    def is_due(self) -> bool:
        """True if there is something to count."""
        return _size_and_time(self.path) != self._stamp

    def advance(self) -> bool:
        """Counts a piece more.

        Returns:
            True if there is more to count. What cannot be read is done with, as far as it got.
        """
        stamp = _size_and_time(self.path)
        if stamp.size < self._index.scanned:
            self._anew()
        if not stamp.size:
            self._stamp = stamp
            return False
        more = self._scan()
        if self._index.void:
            self._anew()
            return True
        self._count()
        if not more:
            self._stamp = stamp
        return more

    def _scan(self) -> bool:
        """Scans a piece; False at the end, or where it cannot be read on: `OpenRun` says why."""
        try:
            return self._index.extend(_PIECE)
        except TraceError:
            return False

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
        self._totals = Totals(
            cycles=index.last_cycle, calls=calls, usage=usage, ended=ended, goal=goal
        )


# ---- The card of a run, from its `run.json` and what was counted in its trace ----


_NAME = 120
"""Characters of a scenario's name."""


def card_of(
    key: str,
    folder: str,
    info: RunInfo | None,
    totals: Totals | None,
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
        state=RunState.OPEN if ended is None else RunState.ENDED,
        outcome=_outcome(info),
        told=_told(info, totals),
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


def _told(info: RunInfo | None, totals: Totals | None) -> str:
    summary = _result(info).get("summary")
    if isinstance(summary, str) and summary:
        return in_a_line(summary)
    return in_a_line(totals.ended) if totals else ""


def _scenario(info: RunInfo | None) -> str:
    """What the result says, or the recipe: among its arguments, or among those of one of them."""
    recipe = info.recipe.arguments if info and info.recipe else {}
    for told in (_result(info), recipe, *recipe.values()):
        scenario = cast("dict[str, Any]", told).get("scenario") if isinstance(told, dict) else None
        if isinstance(scenario, str) and scenario:
            return in_a_line(scenario, _NAME)
    return ""


def _result(info: RunInfo | None) -> dict[str, Any]:
    return (info.result if info else None) or {}


_LOG = logging.getLogger(__name__)
_DAY = 86_400
_WHY = 200
"""Characters of an error that a card tells."""
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
class Shelf:
    """One run, as far as it is known."""

    found: Found
    info: RunInfo | None
    """None where its `run.json` cannot be read."""
    trouble: Trouble | None
    tally: Tally
    name: str
    """Its id, or what stands for it; the one known before while `run.json` is half written."""
    key: str = ""
    failed: bool = False
    """True if it could not be counted, for a reason nobody thought of: it is left alone."""
    _card: RunCard | None = field(default=None)

    @classmethod
    def of(cls, found: Found, before: Shelf | None) -> Shelf:
        """What is known of a folder, now that its `run.json` is another one.

        Args:
            found: The folder.
            before: What was known of it.
        """
        info, trouble = info_of(found)
        tally = before.tally if before else Tally(found.folder.trace_path)
        name = before.name if before and info is None else key_of(found, info)
        return cls(found, info, trouble, tally, name, failed=before is not None and before.failed)

    @property
    def id(self) -> str:
        """The run's id; empty where it is not known."""
        return self.info.id if self.info else ""

    @property
    def newest(self) -> float:
        """When it began, to sort by; no time that can be written fails."""
        if self.info is None:
            return 0.0
        at = self.info.started_at
        seconds = at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6
        return at.toordinal() * _DAY + seconds - (at.utcoffset() or timedelta()).total_seconds()

    def rename(self, key: str) -> None:
        """Gives it the key by which it is known from now on."""
        if key != self.key:
            self.key, self._card = key, None

    @property
    def card(self) -> RunCard:
        """Its card; one with a trouble where none can be made of what its files say."""
        if self._card is None:
            self._card = self._made()
        return self._card

    def _made(self) -> RunCard:
        name = self.found.name
        try:
            return card_of(self.key, name, self.info, self.tally.totals, self.trouble)
        except LOG_FAULTS as error:  # the other runs are to be shown
            why = f"{type(error).__name__}: {str(error)[:_WHY]}"
            trouble = Trouble(text=f"What this run says cannot be told ({why}).", grave=True)
            return card_of(self.key, name, None, None, trouble)

    @property
    def is_due(self) -> bool:
        """True if there is something to count."""
        return self.info is not None and not self.failed and self.tally.is_due

    def count_on(self) -> None:
        """Counts a piece more of its trace."""
        try:
            self.tally.advance()
        except LOG_FAULTS:  # the other runs are to be counted
            self.failed = True
            _LOG.exception("The run in %r cannot be counted and is left out", self.found.name)

    def counted(self) -> None:
        """Lets its card be made anew, from what was counted."""
        self._card = None


# ---- Runs filtered, sorted and cut into pages ----


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_QUERY = 200
"""Characters of what is looked for."""
_CHOICES = 200
"""Kinds, models and agents that can be filtered by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which runs are wanted, and in which order; an empty text lets all through."""

    query: str = ""
    """Words to be met in id, agent, model, scenario, goal, folder or outcome, in any case."""
    kind: str = ""
    model: str = ""
    outcome: str = ""
    """As `coag.inspector.views.TaskOutcome` has it; `open` for runs that have not ended."""
    agent: str = ""
    without: str = ""
    """Key of a run that is left out, whatever the others let through."""
    sort: str = "newest"
    """`newest`, `oldest`, `cycles`, `tokens`, `cost` or `duration`; another is `newest`."""
    page: int = 1
    """From 1; the last one where there are not as many."""
    page_size: int = 50


def listing_of(logs: str, cards: Sequence[RunCard], filters: Filters) -> RunList:
    """A page of the runs that the filters let through."""
    cards = [card for card in cards if not filters.without or card.key != filters.without]
    words = filters.query[:_QUERY].casefold().split()
    matching = [card for card in cards if _passes(card, filters, words)]
    _sort(matching, filters.sort)
    size = max(filters.page_size, 1)
    pages = max(-(-len(matching) // size), 1)
    page = min(max(filters.page, 1), pages)
    infos = [card.info for card in cards if card.info is not None]
    return RunList(
        logs=logs,
        cards=tuple(matching[(page - 1) * size : page * size]),
        total=len(cards),
        matching=len(matching),
        page=page,
        pages=pages,
        query=filters.query[:_QUERY],
        kind=filters.kind,
        model=filters.model,
        outcome=filters.outcome,
        agent=filters.agent,
        sort=filters.sort if filters.sort in _ORDERS else "newest",
        kinds=_choices([info.kind for info in infos]),
        models=_choices([info.model for info in infos]),
        agents=_choices([info.agent for info in infos]),
    )


def _choices(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value})[:_CHOICES])


def _passes(card: RunCard, filters: Filters, words: Sequence[str]) -> bool:
    info = card.info
    if filters.kind and (info is None or info.kind != filters.kind):
        return False
    if filters.model and (info is None or info.model != filters.model):
        return False
    if filters.agent and (info is None or info.agent != filters.agent):
        return False
    if filters.outcome and filters.outcome not in (card.outcome.value, card.state.value):
        return False
    if not words:
        return True
    named = (info.id, info.agent, info.model) if info else ()
    ended = (card.outcome.value, card.state.value, card.told)
    told = (*named, *ended, card.key, card.scenario, card.goal, card.folder)
    text = "\n".join(clip(each, 1_000) for each in told)
    folded = text.casefold()
    return all(word in folded for word in words)


def _started(card: RunCard) -> datetime:
    return card.info.started_at if card.info else _LONG_AGO


_ORDERS: dict[str, Callable[[RunCard], float | None]] = {
    "newest": lambda card: None,
    "oldest": lambda card: None,
    "cycles": lambda card: card.cycles,
    "tokens": lambda card: card.usage.tokens if card.usage else None,
    "cost": lambda card: card.usage.cost if card.usage else None,
    "duration": lambda card: card.seconds,
}
"""By what each order sorts, highest first; runs of which it is not known come last."""


def _sort(cards: list[RunCard], order: str) -> None:
    cards.sort(key=_moment, reverse=order != "oldest")
    measure = _ORDERS.get(order)
    if measure is not None and order not in ("newest", "oldest"):
        cards.sort(key=lambda card: _height(measure(card)), reverse=True)


def _moment(card: RunCard) -> tuple[float, str]:
    """Times with and without a zone can stand in logs."""
    started = _started(card)
    aware = started if started.tzinfo is not None else started.replace(tzinfo=UTC)
    return ((aware - _LONG_AGO).total_seconds(), card.key)


def _height(value: float | None) -> float:
    return -1.0 if value is None else value
