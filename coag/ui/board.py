"""`Board`: many runs at the terminal, as a table and each in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from coag.schema import Clock, SystemClock, one_line
from coag.tracing import CandidateSummary, RunFolder

from .numbers import amount, count, duration, money
from .watch import RunState, RunStatus, RunView, RunWatch, short

# ---- The columns of the table ----


_WIDE = 120
"""Columns of a terminal from which the wide table is shown."""
_WIDEST = 160
"""Those from which runs are named, too."""
_STYLES = {
    RunState.RUNNING: "green",
    RunState.WAITING: "yellow",
    RunState.ACTING: "cyan",
    RunState.BROKE_OFF: "bold red",
    RunState.UNREADABLE: "bold red",
    RunState.ENDED: "dim",
    RunState.READING: "dim",
    RunState.IDLE: "dim",
}


def style_of(state: RunState) -> str:
    """The colour of a state; its word says the same."""
    return _STYLES[state]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardColumn:
    """A column of the table."""

    title: str
    width: int
    """Characters; what is longer is cut."""
    cell: Callable[[RunView], str]
    right: bool = False
    """True for numbers."""

    def text(self, view: RunView) -> Text:
        """The run's cell, exactly as long as the column is wide, with a space behind."""
        style = style_of(view.state) if self.cell is _state else ""
        return self._fitted(self.cell(view), style)

    def head(self) -> Text:
        """The column's title, as long as its cells."""
        return self._fitted(self.title, "bold")

    def _fitted(self, words: str, style: str) -> Text:
        text = Text(words, style=style, no_wrap=True, end="")
        text.truncate(self.width, overflow="ellipsis")
        text.align("right" if self.right else "left", self.width)
        return text.append(" ")


def columns(width: int) -> tuple[BoardColumn, ...]:
    """The columns for a terminal of this width; the last ones take the remaining room.

    Args:
        width: Characters a line.
    """
    if width < _WIDE:
        room = width - _taken(_NARROW)
        return (*_NARROW, BoardColumn(title="decision", width=max(9, room - 1), cell=_decision))
    fixed = (*_ALL, _RUN) if width >= _WIDEST else _ALL
    room = width - _taken(fixed) - 2
    decision = BoardColumn(title="decision", width=room // 2, cell=_decision)
    return (*fixed, decision, BoardColumn(title="vetoes", width=room - room // 2, cell=vetoes))


def vetoes(view: RunView) -> str:
    """How many candidates each constraint rejected, the most first; `-` for none."""
    named = sorted(view.status.vetoes.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{number} {name}" for name, number in named) or "-"


def _taken(fixed: Sequence[BoardColumn]) -> int:
    return sum(column.width + 1 for column in fixed)


def _state(view: RunView) -> str:
    return view.state.value


def _phase(view: RunView) -> str:
    if view.over:
        return view.status.ended_by if view.state is RunState.ENDED else "-"
    return view.status.phase or "-"


def _for(view: RunView) -> str:
    return "" if view.seconds is None else duration(view.seconds)


def _decision(view: RunView) -> str:
    status = view.status
    return f"{status.decision} by {status.decided_by}" if status.decision else view.problem or "-"


def _text(title: str, width: int, cell: Callable[[RunView], str]) -> BoardColumn:
    return BoardColumn(title=title, width=width, cell=cell)


def _count(title: str, width: int, number: Callable[[RunStatus], int]) -> BoardColumn:
    return BoardColumn(
        title=title, width=width, right=True, cell=lambda view: amount(number(view.status))
    )


_FOR = BoardColumn(title="for", width=6, right=True, cell=_for)
_CYCLE = _count("cyc", 4, lambda status: status.cycle)
_IMPASSES = _count("imp", 3, lambda status: status.impasses)
_NARROW = (
    _text("state", 10, _state),
    _text("agent", 11, lambda view: view.agent),
    _text("phase", 10, _phase),
    _FOR,
    _CYCLE,
    _count("tokens", 6, lambda status: status.usage.tokens),
    _count("vet", 3, lambda status: status.vetoed),
    _IMPASSES,
)
_ALL = (
    _text("state", 10, _state),
    _text("agent", 14, lambda view: view.agent),
    _text("phase", 10, _phase),
    _FOR,
    _CYCLE,
    _count("prompt", 6, lambda status: status.usage.prompt_tokens),
    _count("cached", 6, lambda status: status.usage.cached_tokens),
    _count("compl", 6, lambda status: status.usage.completion_tokens),
    _count("calls", 5, lambda status: status.calls),
    BoardColumn(title="cost", width=7, right=True, cell=lambda view: money(view.status.usage.cost)),
    _IMPASSES,
)
_RUN = _text("run", 28, lambda view: view.name)


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
        """Looks for new runs and reads for about so long; true if there may be more to read.

        Args:
            seconds: How long; at least one slice of each run is read.
        """
        until = self._clock.monotonic() + seconds
        self._look()
        waiting = list(self._watches.values())
        while waiting:
            waiting = [watch for watch in waiting if watch.advance(_SLICE)]
            if self._clock.monotonic() >= until:
                break
        return bool(waiting)

    def views(self) -> list[RunView]:
        """All watched runs as they stand, those that began last first."""
        now, held = self._clock.now(), self._held()
        views = [watch.view(now, held) for watch in self._watches.values()]
        return sorted(views, key=_order, reverse=True)

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
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeError):
        return None
    named = [word for line in lines for word in line.split() if word.count(":") == 2]
    inodes = (word.rpartition(":")[2] for word in named)
    return frozenset(int(inode) for inode in inodes if inode.isdecimal())


def _order(view: RunView) -> tuple[str, str]:
    started = "" if view.info is None else view.info.started_at.isoformat()
    return (started, view.name)


def _written(run: RunFolder) -> float:
    """When something was written of it last."""
    times = [0.0]
    for path in (run.info_path, run.trace_path):
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            continue
    return max(times)


# ---- One run in detail ----


LABEL = 12
"""Characters that a label has room for."""
_CANDIDATES = 12
_STATES = {
    RunState.READING: "its trace is being read",
    RunState.RUNNING: "running",
    RunState.WAITING: "waiting for the model",
    RunState.ACTING: "an action is running",
    RunState.IDLE: "waiting for the next turn",
    RunState.ENDED: "ended",
    RunState.BROKE_OFF: "broke off: it has not ended, and its process is gone",
    RunState.UNREADABLE: "its log cannot be read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailRow:
    """One line about a run."""

    label: str
    """What it is; empty where it belongs to the line before."""
    text: Text

    @property
    def plain(self) -> str:
        """The row as one line of plain text."""
        return f"{self.label:<{LABEL}}{self.text.plain}".rstrip()


def head(view: RunView) -> Text:
    """Which run it is: agent, id, model."""
    text = Text(view.agent, style="bold")
    text.append(f"  {view.name}", style="not bold dim")
    model = "" if view.info is None else short(view.info.model, 30)
    return text.append(f"  {model}", style="not bold dim")


def detail(view: RunView) -> Iterator[DetailRow]:
    """The run's latest situation, candidates, result and notes.

    Args:
        view: The run.
    """
    if view.problem:
        yield _row("problem", view.problem, "red")
    if view.state is RunState.UNREADABLE:
        return
    status = view.status
    yield _row("now", _now(view), style_of(view.state).replace("dim", ""))
    if status.situation:
        yield _row("situation", status.situation)
    yield from _rows("risks", status.risks)
    yield from _candidates(status)
    yield from _outcome(status)
    yield _row("vetoes", vetoes(view))
    yield _row("impasses", str(status.impasses))
    yield _row("used", _used(status))
    yield from _rows("notes", tuple(reversed(status.notes)), "yellow")
    if status.goal:
        yield _row("goal", status.goal)


def _now(view: RunView) -> str:
    status = view.status
    parts = [_STATES[view.state]]
    if view.state is RunState.ACTING:
        parts = [f"acting: {status.acting}"]
    elif status.phase and not view.over:
        parts.append(f"{status.phase} of cycle {status.cycle}")
    elif status.ended_by:
        parts.append(f"the last turn by {status.ended_by}, after cycle {status.cycle}")
    if view.seconds is not None:
        parts.append(f"for {duration(view.seconds)}")
    return ", ".join(parts)


def _candidates(status: RunStatus) -> Iterator[DetailRow]:
    considered = status.considered
    label = "candidates" if considered.cycle == status.cycle else f"in cycle {considered.cycle}"
    for number, candidate in enumerate(considered.candidates[:_CANDIDATES]):
        yield DetailRow(label="" if number else label, text=_candidate(candidate))
    if len(considered.candidates) > _CANDIDATES:
        yield _row("", f"and {len(considered.candidates) - _CANDIDATES:,} more")


def _candidate(one: CandidateSummary) -> Text:
    fatal, judged = one.rejected_by, one.evaluation
    score = "" if judged is None or judged.score is None else f" {judged.score:.2f}"
    verdict, style, reason = "proposed", "", one.candidate.reason
    if fatal is not None:
        verdict, style = f"rejected by {short(fatal.constraint, 60) or 'unnamed'}", "red"
        reason = fatal.reason
    elif judged is not None:
        verdict, style = f"{'chosen' if one.chosen else 'survived'}{score}", "green"
        reason = judged.reason
    text = Text().append(verdict, style=style).append("  ")
    text.append(short(one.candidate.action, 60), style="bold")
    text.append(f" {short(one.candidate.raw_arguments, 200)}")
    return text.append(f"  {short(reason, 200)}", style="dim" if one.survived else "")


def _outcome(status: RunStatus) -> Iterator[DetailRow]:
    if status.decision:
        reason = f": {status.reason}" if status.reason else ""
        yield _row("decision", f"{status.decision}, by {status.decided_by}{reason}")
    if status.result:
        yield _row("result", status.result)
    if status.response:
        yield _row("answer", status.response, "bold")


def _used(status: RunStatus) -> str:
    usage = status.usage
    cost = f", cost {money(usage.cost)}" if usage.cost else ""
    return (
        f"{usage.prompt_tokens:,} prompt tokens ({usage.cached_tokens:,} cached), "
        f"{usage.completion_tokens:,} completion tokens, "
        f"{count(status.calls, 'model call')}{cost}"
    )


def _rows(label: str, texts: Sequence[str], style: str = "") -> Iterator[DetailRow]:
    for number, text in enumerate(texts):
        yield _row("" if number else label, text, style)


def _row(label: str, text: str, style: str = "") -> DetailRow:
    return DetailRow(label=label, text=Text(text, style=style))


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
    yield _line([column.head() for column in shown])
    for view in views:
        yield _line([column.text(view) for column in shown])
    for view in views:
        if len(views) == 1:
            yield ""
            yield head(view).plain
            yield from (row.plain for row in detail(view))
        elif view.problem:
            yield f"{view.name}: {view.problem}"


def summary(views: list[RunView], older: int) -> str:
    """How many runs there are, and how many of them go on."""
    over = sum(view.over for view in views)
    text = f"{count(len(views), 'run')}, {len(views) - over} going on"
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


def _line(cells: list[Text]) -> str:
    return "".join(cell.plain for cell in cells).rstrip()
