"""The table of runs: which columns there are, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from ._watch import RunState, RunView
from ._words import amount, duration, money

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
    """The colour of a state, which never tells what its word does not."""
    return _STYLES[state]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
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


def columns(width: int) -> tuple[Column, ...]:
    """The columns for a terminal of this width; the last ones take what is left.

    Args:
        width: Characters a line.
    """
    if width < _WIDE:
        left = width - _taken(_NARROW)
        return (*_NARROW, Column(title="decision", width=max(9, left - 1), cell=_decision))
    fixed = (*_ALL, _RUN) if width >= _WIDEST else _ALL
    left = width - _taken(fixed) - 2
    decision = Column(title="decision", width=left // 2, cell=_decision)
    return (*fixed, decision, Column(title="vetoes", width=left - left // 2, cell=vetoes))


def vetoes(view: RunView) -> str:
    """How many candidates each constraint ended, the busiest first; `-` for none."""
    named = sorted(view.status.vetoes.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{number} {name}" for name, number in named) or "-"


def _taken(fixed: Sequence[Column]) -> int:
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
    decision = view.status.decision
    if decision is None:
        return view.problem or "-"
    return f"{decision.action} by {decision.decided_by}"


_STATE = Column(title="state", width=10, cell=_state)
_PHASE = Column(title="phase", width=10, cell=_phase)
_FOR = Column(title="for", width=6, right=True, cell=_for)
_CYCLE = Column(title="cyc", width=4, right=True, cell=lambda view: amount(view.status.cycle))
_VETOED = Column(title="vet", width=3, right=True, cell=lambda view: amount(view.status.vetoed))
_IMPASSES = Column(title="imp", width=3, right=True, cell=lambda view: amount(view.status.impasses))
_RUN = Column(title="run", width=28, cell=lambda view: view.name)
_NARROW = (
    _STATE,
    Column(title="agent", width=11, cell=lambda view: view.agent),
    _PHASE,
    _FOR,
    _CYCLE,
    Column(title="tokens", width=6, right=True, cell=lambda view: amount(view.status.usage.tokens)),
    _VETOED,
    _IMPASSES,
)
_ALL = (
    _STATE,
    Column(title="agent", width=14, cell=lambda view: view.agent),
    _PHASE,
    _FOR,
    _CYCLE,
    Column(
        title="prompt",
        width=6,
        right=True,
        cell=lambda view: amount(view.status.usage.prompt_tokens),
    ),
    Column(
        title="cached",
        width=6,
        right=True,
        cell=lambda view: amount(view.status.usage.cached_tokens),
    ),
    Column(
        title="compl",
        width=6,
        right=True,
        cell=lambda view: amount(view.status.usage.completion_tokens),
    ),
    Column(title="calls", width=5, right=True, cell=lambda view: amount(view.status.calls)),
    Column(title="cost", width=7, right=True, cell=lambda view: money(view.status.usage.cost)),
    _IMPASSES,
)
