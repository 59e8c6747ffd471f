"""Runs: in a list, and one as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coag.schema import TokenUsage
from coag.tracing import RunInfo

from ._cycles import CycleRow


class RunState(StrEnum):
    """Where a run is."""

    ENDED = "ended"
    """It was closed."""
    OPEN = "open"
    """It goes on, or it broke off: its trace cannot tell."""


class TaskOutcome(StrEnum):
    """What a run came to, as whoever ran it found."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"
    """Nobody measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why something cannot be shown, or not whole."""

    text: str
    """What is wrong and what to do, as a sentence."""
    grave: bool = False
    """True if nothing can be shown; False if the rest is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCard:
    """One run in the list of runs."""

    key: str
    """Names the run in addresses: its id, made unique where two folders hold the same."""
    folder: str
    """Its folder as seen from the folder of logs, with `/`."""
    info: RunInfo | None
    """None where `run.json` cannot be read."""
    state: RunState
    outcome: TaskOutcome
    told: str
    """In a few words how it ended: the measured result or the last turn's reason."""
    scenario: str = ""
    """What it was about, where its recipe or result tells; empty otherwise."""
    goal: str = ""
    """The first words of what it was asked; empty where that is not known yet."""
    seconds: float | None = None
    """How long it took; None while it is open."""
    cycles: int | None = None
    """Its last cycle, of a plain run the last turn; None where that is not known yet."""
    calls: int | None = None
    """Requests to models; None where that is not known yet."""
    usage: TokenUsage | None = None
    """Tokens and cost of all calls; None where that is not known yet."""
    trouble: Trouble | None = None
    aware: bool = False
    """Whether it keeps the state of an awareness module, as far as its trace was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """The runs of a folder of logs, filtered, newest first unless sorted otherwise."""

    logs: str
    """The folder, as it was named."""
    cards: tuple[RunCard, ...]
    """Those on this page."""
    total: int
    """How many runs there are, filters apart."""
    matching: int
    """How many the filters let through."""
    page: int = 1
    pages: int = 1
    query: str = ""
    """Words that must be met in id, agent, model, scenario, goal, folder or outcome."""
    kind: str = ""
    model: str = ""
    outcome: str = ""
    agent: str = ""
    sort: str = "newest"
    """`newest`, `oldest`, `cycles`, `tokens`, `cost` or `duration`."""
    kinds: tuple[str, ...] = ()
    """What can be filtered by, as met in all runs."""
    models: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run as a whole, with one page of its timeline."""

    card: RunCard
    info: RunInfo
    rows: tuple[CycleRow, ...]
    """The cycles of this page, in order; of a plain run the turns."""
    first: int
    """Position of the first row, from 0."""
    of: int
    """How many rows the whole run has, as far as it was scanned."""
    page_size: int
    scanned: float = 1.0
    """Share of the trace that was scanned: under 1, `of` will grow."""
    troubles: tuple[Trouble, ...] = ()
    """E.g. that the last line is half written, or lines cannot be read."""
    parent: RunCard | None = None
    """The run that this one was forked from, where it is among the logs."""
    forks: tuple[RunCard, ...] = ()
    """Runs forked from this one."""
    strip: tuple[CycleRow, ...] = ()
    """Every cycle in short, for the overview's strip; empty for long runs that have no room."""
