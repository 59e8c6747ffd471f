"""`Board`: many runs at the terminal, as a table and each in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from coag._util.text import counted
from coag.schema import Clock, SystemClock, one_line
from coag.tracing import CandidateSummary, RunFolder

from .watch import RunState, RunStatus, RunView, RunWatch, short

# ---- Numbers, times and costs for narrow columns ----


def duration(seconds: float) -> str:
    """A length of time in at most six characters: `4 s`, `12 m`, `3.5 h`, `20 d`."""
    if seconds < 60:
        return f"{int(seconds)} s"
    if seconds < 3_600:
        return f"{int(seconds // 60)} m"
    return f"{seconds / 3_600:.1f} h" if seconds < 86_400 else f"{int(seconds // 86_400)} d"


def amount(number: int) -> str:
    """A count in at most six characters: `812`, `9,120`, `91.2k`, `1.4M`."""
    if number < 10_000:
        return f"{number:,}"
    unit, sign = (1_000, "k") if number < 1_000_000 else (1_000_000, "M")
    scaled = number // (unit // 10) / 10 if number < 100 * unit else number // unit
    return f"{scaled}{sign}"


def money(cost: float) -> str:
    """A cost; `-` for none, as where no price is known."""
    return "-" if cost <= 0 else f"{cost:.4f}" if cost < 1 else f"{cost:,.2f}"


# ---- The columns of the table ----


_WIDE, _WIDEST = 120, 160
"""Columns of a terminal from which the wide table is shown, and from which runs are named, too."""
_STATES = {
    RunState.RUNNING: ("green", "running"),
    RunState.WAITING: ("yellow", "waiting for the model"),
    RunState.ACTING: ("cyan", "an action is running"),
    RunState.BROKE_OFF: ("bold red", "broke off: it has not ended, and its process is gone"),
    RunState.UNREADABLE: ("bold red", "its log cannot be read"),
    RunState.ENDED: ("dim", "ended"),
    RunState.READING: ("dim", "its trace is being read"),
    RunState.IDLE: ("dim", "waiting for the next turn"),
}
"""The colour of each state, and what it is in words, which say the same."""


@dataclass(frozen=True, slots=True)
class BoardColumn:
    """A column of the table: its title, its width in characters, and the text of its cells."""

    title: str
    width: int
    cell: Callable[[RunView], str]
    right: bool = False
    """True for numbers."""

    def text(self, view: RunView | None) -> Text:
        """The run's cell, or the title, exactly as long as the column is wide, and a space."""
        words, style = (self.title, "bold") if view is None else (self.cell(view), "")
        if view is not None and self.title == "state":
            style = _STATES[view.state][0]
        text = Text(words, style=style, no_wrap=True, end="")
        text.truncate(self.width, overflow="ellipsis")
        text.align("right" if self.right else "left", self.width)
        return text.append(" ")


def _phase(view: RunView) -> str:
    if view.over:
        return view.status.ended_by if view.state is RunState.ENDED else "-"
    return view.status.phase or "-"


def _decision(view: RunView) -> str:
    status = view.status
    return f"{status.decision} by {status.decided_by}" if status.decision else view.problem or "-"


def _vetoes(view: RunView) -> str:
    """How many candidates each constraint rejected, the most first; `-` for none."""
    named = sorted(view.status.vetoes.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{number} {name}" for name, number in named) or "-"


def _for(view: RunView) -> str:
    return "" if view.seconds is None else duration(view.seconds)


def _number(title: str, width: int, number: Callable[[RunStatus], int]) -> BoardColumn:
    return BoardColumn(title, width, lambda view: amount(number(view.status)), right=True)


_STATE = BoardColumn("state", 10, lambda view: view.state.value)
_MIDDLE = (
    BoardColumn("phase", 10, _phase),
    BoardColumn("for", 6, _for, right=True),
    _number("cyc", 4, lambda status: status.cycle),
)
_IMPASSES = _number("imp", 3, lambda status: status.impasses)
_NARROW = (
    _STATE,
    BoardColumn("agent", 11, lambda view: view.agent),
    *_MIDDLE,
    _number("tokens", 6, lambda status: status.usage.tokens),
    _number("vet", 3, lambda status: status.vetoed),
    _IMPASSES,
)
_ALL = (
    _STATE,
    BoardColumn("agent", 14, lambda view: view.agent),
    *_MIDDLE,
    _number("prompt", 6, lambda status: status.usage.prompt_tokens),
    _number("cached", 6, lambda status: status.usage.cached_tokens),
    _number("compl", 6, lambda status: status.usage.completion_tokens),
    _number("calls", 5, lambda status: status.calls),
    BoardColumn("cost", 7, lambda view: money(view.status.usage.cost), right=True),
    _IMPASSES,
)
_RUN = BoardColumn("run", 28, lambda view: view.name)


def columns(width: int) -> tuple[BoardColumn, ...]:
    """The columns for a terminal of this width; the last ones take the remaining room."""
    fixed = _NARROW if width < _WIDE else _ALL if width < _WIDEST else (*_ALL, _RUN)
    room = width - sum(column.width + 1 for column in fixed)
    if width < _WIDE:
        return (*fixed, BoardColumn("decision", max(9, room - 1), _decision))
    half = (room - 2) // 2
    last = BoardColumn("vetoes", room - 2 - half, _vetoes)
    return (*fixed, BoardColumn("decision", half, _decision), last)


# ---- Following the runs ----


_MOST = 50
"""Runs watched at once, the ones that something was written of last."""
_SLICE = 200
"""Lines read of one run before the next has its turn."""
_LOOK = 1.0
"""Seconds between two looks for new runs."""
_LOCKS = Path("/proc/locks")


class Board:
    """Follows several runs in slices of time, so that a screen never waits for them.

    Args:
        find: Gives the runs there are; it is asked again from time to time.
        clock: Measures how long phases and reading take.
        held: Gives the inodes of the files on which some process holds a lock; None where that
            cannot be known. A run that has not ended and is not held was interrupted.
    """

    def __init__(
        self,
        find: Callable[[], Sequence[RunFolder]],
        *,
        clock: Clock | None = None,
        held: Callable[[], frozenset[int] | None] | None = None,
    ) -> None:
        self._find = find
        self._clock = clock or SystemClock()
        self._held = held or held_files
        self._watches: dict[Path, RunWatch] = {}
        self._looked: float | None = None
        self.older = 0
        """How many runs there are that are not watched, because others are newer."""

    def advance(self, seconds: float) -> bool:
        """Looks for new runs and reads on for about so long; true if there may be more to read."""
        until = self._clock.monotonic() + seconds
        self._look()
        waiting = list(self._watches.values())
        while waiting:
            waiting = [watch for watch in waiting if watch.advance(_SLICE)]
            if self._clock.monotonic() >= until:
                break
        return bool(waiting)

    def views(self) -> list[RunView]:
        """All watched runs as they are now, those that began last first."""
        now, held = self._clock.now(), self._held()
        views = [watch.view(now, held) for watch in self._watches.values()]

        def began(view: RunView) -> tuple[str, str]:
            return "" if view.info is None else view.info.started_at.isoformat(), view.name

        return sorted(views, key=began, reverse=True)

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._looked is not None and now - self._looked < _LOOK:
            return
        self._looked = now
        runs = list(self._find())
        if len(runs) > _MOST:
            runs.sort(key=_written, reverse=True)
        self.older = max(0, len(runs) - _MOST)
        old = self._watches
        self._watches = {run.path: old.get(run.path) or RunWatch(run) for run in runs[:_MOST]}


def held_files() -> frozenset[int] | None:
    """Inodes of the files that any process of this machine holds a lock on; None if unknown."""
    try:
        locks = _LOCKS.read_text(encoding="ascii")
    except (OSError, UnicodeError):
        return None
    inodes = (word.rpartition(":")[2] for word in locks.split() if word.count(":") == 2)
    return frozenset(int(inode) for inode in inodes if inode.isdecimal())


def _written(run: RunFolder) -> float:
    """When something was written of it last."""
    last = 0.0
    for path in (run.info_path, run.trace_path):
        with suppress(OSError):
            last = max(last, path.stat().st_mtime)
    return last


# ---- One run in detail ----


LABEL = 12
"""Characters that a label has room for."""
_CANDIDATES = 12
Detail = tuple[str, Text]
"""One line about a run: what it is, empty where it belongs to the line before, and the line."""


def head(view: RunView) -> Text:
    """Which run it is: agent, id, model."""
    model = "" if view.info is None else short(view.info.model, 30)
    text = Text(view.agent, style="bold")
    return text.append(f"  {view.name}  {model}", style="not bold dim")


def detail(view: RunView) -> Iterator[Detail]:
    """The run's latest situation, candidates, result and notes; each only where there is one."""
    yield from _rows("problem", [view.problem], "red")
    if view.state is RunState.UNREADABLE:
        return
    status = view.status
    yield from _rows("now", [_now(view)], _STATES[view.state][0].replace("dim", ""))
    yield from _rows("situation", [status.situation])
    yield from _rows("risks", status.risks)
    yield from _candidates(status)
    if status.decision:
        reason = f": {status.reason}" if status.reason else ""
        yield from _rows("decision", [f"{status.decision}, by {status.decided_by}{reason}"])
    yield from _rows("result", [status.result])
    yield from _rows("answer", [status.response], "bold")
    yield from _rows("vetoes", [_vetoes(view)])
    yield from _rows("impasses", [str(status.impasses)])
    yield from _rows("used", [_used(status)])
    yield from _rows("notes", status.notes[::-1], "yellow")
    yield from _rows("goal", [status.goal])


def _rows(label: str, texts: Sequence[str], style: str = "") -> Iterator[Detail]:
    for number, text in enumerate(filter(None, texts)):
        yield "" if number else label, Text(text, style=style)


def _now(view: RunView) -> str:
    status = view.status
    parts = [_STATES[view.state][1]]
    if view.state is RunState.ACTING:
        parts = [f"acting: {status.acting}"]
    elif status.phase and not view.over:
        parts.append(f"{status.phase} of cycle {status.cycle}")
    elif status.ended_by:
        parts.append(f"the last turn by {status.ended_by}, after cycle {status.cycle}")
    return ", ".join([*parts, *([f"for {_for(view)}"] if _for(view) else [])])


def _candidates(status: RunStatus) -> Iterator[Detail]:
    considered = status.considered
    label = "candidates" if considered.cycle == status.cycle else f"in cycle {considered.cycle}"
    for number, candidate in enumerate(considered.candidates[:_CANDIDATES]):
        yield "" if number else label, _candidate(candidate)
    more = len(considered.candidates) - _CANDIDATES
    if more > 0:
        yield "", Text(f"and {more:,} more")


def _candidate(one: CandidateSummary) -> Text:
    fatal, judged = one.rejected_by, one.evaluation
    verdict, style, reason = "proposed", "", one.candidate.reason
    if fatal is not None:
        verdict, style = f"rejected by {short(fatal.constraint, 60) or 'unnamed'}", "red"
        reason = fatal.reason
    elif judged is not None:
        score = "" if judged.score is None else f" {judged.score:.2f}"
        verdict, style = f"{'chosen' if one.chosen else 'survived'}{score}", "green"
        reason = judged.reason
    text = Text().append(verdict, style=style).append("  ")
    text.append(short(one.candidate.action, 60), style="bold")
    text.append(f" {short(one.candidate.raw_arguments, 200)}")
    return text.append(f"  {short(reason, 200)}", style="dim" if one.survived else "")


def _used(status: RunStatus) -> str:
    usage = status.usage
    cost = f", cost {money(usage.cost)}" if usage.cost else ""
    return (
        f"{usage.prompt_tokens:,} prompt tokens ({usage.cached_tokens:,} cached), "
        f"{usage.completion_tokens:,} completion tokens, "
        f"{counted(status.calls, 'model call')}{cost}"
    )


# ---- Plain text ----


def snapshot(board: Board, place: Path, *, width: int) -> Iterator[str]:
    """The table of runs as lines and, of an only run, its details.

    Args:
        board: The runs; read up to their ends.
        place: Where they lie, as the user named it.
        width: Characters a line of the table.
    """
    while board.advance(1.0):
        pass
    views = board.views()
    yield f"{place_of(place)}: {summary(views, board.older)}"
    if not views:
        yield from nothing_yet(place)
        return
    shown = columns(width)
    for view in (None, *views):
        yield "".join(column.text(view).plain for column in shown).rstrip()
    if len(views) == 1:
        yield from ("", head(views[0]).plain)
        yield from (f"{label:<{LABEL}}{text.plain}".rstrip() for label, text in detail(views[0]))
    else:
        yield from (f"{view.name}: {view.problem}" for view in views if view.problem)


def summary(views: list[RunView], older: int) -> str:
    """How many runs there are, and how many of them are open."""
    over = sum(view.over for view in views)
    text = f"{counted(len(views), 'run')}, {len(views) - over} open"
    return f"{text}, {older:,} older ones not shown" if older else text


def nothing_yet(place: Path) -> Iterator[str]:
    """What to do where there is no run."""
    yield f"There are no runs in {place_of(place)} yet. A run is made by an agent with logs, e.g.:"
    yield f"  coag chat --model SPEC --logs {place_of(place)}"
    yield f'  CoagAgent("assistant", model_client=client, logs="{place_of(place)}")'
    yield "It is shown here as soon as it begins."


def place_of(place: Path) -> str:
    """Where the runs lie, harmless to a terminal."""
    return one_line(str(place))
