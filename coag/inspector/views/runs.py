"""What pages show of runs and cycles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from coag.schema import (
    Candidate,
    Evaluation,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    Receipt,
    TokenUsage,
    Trust,
    TurnEnd,
    Written,
)
from coag.tracing import RunInfo

# ---- What changed from one value or text to the next ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a JSON value that is not what it was."""

    path: str
    """Dotted."""
    before: Any = None
    """None where it was not there."""
    after: Any = None
    """None where it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a text beside an earlier version of it."""

    sort: Literal["same", "added", "removed", "skipped"]
    text: str
    """Of skipped lines: how many."""
    old: int | None = None
    """Number of the line in the earlier text, from 1."""
    new: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureStep:
    """One version of a procedure."""

    version: int
    at: datetime | None
    cycle: int | None
    """The cycle in which it was written; None where it was there at the start."""
    author: str
    reason: str
    text: str
    diff: tuple[DiffLine, ...] = ()
    """Against the version before; empty for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureHistory:
    """All versions of one procedure that the trace tells of, oldest first."""

    name: str
    current: int
    """The version in force at the end."""
    steps: tuple[ProcedureStep, ...] = ()
    """Empty where only the number is known: it never changed, so its text is in no snapshot."""


# ---- What the checks found: broken invariants, and causes of failures ----


class FindingSort(StrEnum):
    """What sort of finding it is."""

    VIOLATION = "violation"
    """`coag verify`: the trace is not what a run can have left."""
    CAUSE = "cause"
    """`coag diagnose`: something failed, and this is why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One of them."""

    sort: FindingSort
    title: str
    """The rule that is broken, or the cause."""
    text: str
    """What was found, as a sentence."""
    cycle: int | None
    phase: Phase | None = None
    """The phase at fault, where one is."""
    seq: int | None = None
    """The record it is about."""
    evidence: tuple[tuple[int | None, str], ...] = ()
    """For causes: records (by number) that show it, and what each says."""
    follows: int | None = None
    """An earlier cycle whose finding it may only follow from; None for none."""
    cycles: tuple[int, ...] = ()
    """Of one that stands for the same in several cycles: all of them, in order; else empty."""


class Progress(StrEnum):
    """How far the checks of a run are."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is known of a run's correctness and failures."""

    progress: Progress
    found: tuple[Finding, ...] = ()
    """By cycle."""
    remarks: tuple[str, ...] = ()
    """What `verify` says beside violations."""
    checked: int = 0
    """How many records were checked."""
    trouble: str = ""
    """Why the checks failed, where they did."""
    left_out: int = 0
    """Findings beyond those that are kept."""

    @property
    def together(self) -> tuple[Finding, ...]:
        """The findings, of which those that say the same of neighbouring cycles are one."""
        return _together(self.found)

    @property
    def first(self) -> Finding | None:
        """Where it first went wrong: the earliest that follows from no other one."""
        placed = [one for one in self.together if one.cycle is not None and one.follows is None]
        return min(placed, key=_earliest, default=None)


def _earliest(finding: Finding) -> tuple[int, bool]:
    """Within a cycle a cause tells more than a violation."""
    return finding.cycle or 0, finding.sort is not FindingSort.CAUSE


def _together(found: Iterable[Finding]) -> tuple[Finding, ...]:
    kept: list[Finding] = []
    latest: dict[tuple[object, ...], int] = {}
    """Where in `kept` the last one that says so stands."""
    for one in found:
        says = (one.sort, one.title, one.text, one.phase, one.follows)
        at = latest.get(says)
        before = kept[at] if at is not None else None
        if at is None or before is None or not _beside(before, one):
            latest[says] = len(kept)
            kept.append(one)
            continue
        cycles = (*(before.cycles or (before.cycle,)), one.cycle)
        kept[at] = replace(before, cycles=tuple(each for each in cycles if each is not None))
    return tuple(kept)


def _beside(before: Finding, one: Finding) -> bool:
    """Whether a finding is of the cycle right after that of another one."""
    last = before.cycles[-1] if before.cycles else before.cycle
    return last is not None and one.cycle == last + 1


# ---- Cycles: in a timeline, and one as its six phases ----
#
# Texts of rows are short. All others are as they stand in the log, however long, so that a page
# must clip what it shows of them (`coag.inspector.reading.clip`): prompts and answers, results,
# states, percepts, written records, notes.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A candidate that did not live."""

    action: str
    """With its arguments, on one line."""
    constraint: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRow:
    """One cycle in a timeline; of a plain run one turn."""

    number: int
    at: datetime | None
    """When it began."""
    seconds: float | None = None
    """From its first to its last record."""
    situation: str = ""
    """How Reasoning understood it, on one line."""
    action: str = ""
    """What was done, with arguments, on one line; empty for none."""
    internal: bool = False
    status: str = ""
    """`done`, `failed`, `refused`, `none` (an impasse), or empty while it goes on."""
    result: str = ""
    """What came back, on one line."""
    decided_by: str = ""
    """`model`, `rank` or `only_survivor`."""
    candidates: int = 0
    rejected: tuple[Rejected, ...] = ()
    impasse: bool = False
    phases: tuple[Phase, ...] = ()
    """The phases that were committed; six in a whole cycle, none in a plain turn."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    recalled: int = 0
    notes: int = 0
    ended: str = ""
    """Why the turn ended after it; empty where it went on."""
    findings: tuple[Finding, ...] = ()
    """Violations and causes found in it, where the checks have run."""


class PartKind(StrEnum):
    """What a piece of a prompt is."""

    INSTRUCTION = "instruction"
    """The developer's or a procedure's words: they may instruct."""
    DATA = "data"
    """Between data delimiters: information that instructs nobody."""
    ANSWER = "answer"
    """What the model itself said before."""
    PLAIN = "plain"
    """Prompts of other agents have no delimiters: what a piece is cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A piece of a prompt, exactly as sent."""

    kind: PartKind
    title: str
    """The heading over it; empty for none."""
    text: str
    """The piece itself, byte for byte, headings and delimiters included: all pieces of a message
    one after the other are the message."""
    source: str = ""
    trust: Trust | None = None
    tokens: int = 0
    """Estimated."""
    same: int = 0
    """Characters at its beginning that are part of the prefix which this request shares with the
    one before it: what a server's cache can serve."""
    stood: str = ""
    """In one file: where the same text stands already, which is then not repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """One message of a prompt."""

    role: str
    parts: tuple[PromptPart, ...]
    tokens: int = 0
    """Estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One request to a model, and what came of it."""

    call: ModelCall
    messages: tuple[MessageView, ...]
    same_tokens: int = 0
    """Estimated tokens of the prefix that is the same as in the request before it."""
    answer: Any = None
    """The raw answer as JSON, where it is that."""
    seq: int | None = None
    """Number of the call's record, so that a page can lead to the whole of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    """A candidate with everything that was found out about it."""

    candidate: Candidate
    evaluation: Evaluation | None = None
    chosen: bool = False
    projected: tuple[Change, ...] = ()
    """What it was predicted to change in the perceptual state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseView:
    """One phase of one cycle."""

    phase: Phase
    outcome: Outcome | None
    """None where it was not committed: the run broke off, or is just at it."""
    inherited: bool = False
    """True where it was committed in the run that this one was forked from."""
    at: datetime | None = None
    seconds: float | None = None
    """From the end of the phase before it, as the records' times tell."""
    calls: tuple[CallView, ...] = ()
    notes: tuple[Note, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleView:
    """One cycle with all that happened in it; of a plain run one turn, which has no phases."""

    run: str
    """Key of the run."""
    row: CycleRow
    phases: tuple[PhaseView, ...]
    """Six, in order; empty for a plain turn."""
    calls: tuple[CallView, ...] = ()
    """Requests that no phase made: of a plain turn all."""
    candidates: tuple[CandidateView, ...] = ()
    """In the order proposed."""
    goal: str = ""
    percepts: tuple[Percept, ...] = ()
    """What had arrived when it began."""
    brought: tuple[Percept, ...] = ()
    """What was perceived after it: what its action brought back."""
    effects: tuple[tuple[Intent, Receipt | None], ...] = ()
    """Its external actions."""
    written: tuple[Written, ...] = ()
    notes: tuple[Note, ...] = ()
    """Those of no phase."""
    turn_end: TurnEnd | None = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The perceptual state at its beginning."""
    changed: tuple[Change, ...] = ()
    """What percepts changed in the perceptual state since the cycle before."""
    environment: Any = None
    """What the environment was in truth at its beginning, where it tells."""
    before: int | None = None
    """Number of the cycle before; None for the first."""
    after: int | None = None
    findings: tuple[Finding, ...] = ()
    """Those of no phase."""
    unreadable: tuple[str, ...] = ()
    """Lines of it that cannot be read, each with why."""


# ---- Runs: in a list, and one as a whole ----


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


# ---- Two runs side by side ----


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCycle:
    """The same cycle in both."""

    number: int
    left: CycleRow | None
    """None where that run has no such cycle."""
    right: CycleRow | None
    differs: tuple[str, ...] = ()
    """What is different, as phases or `usage`; empty where both did the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs from their first divergence on."""

    left: RunCard
    right: RunCard
    divergence: int | None
    """The first cycle in which they differ; None where they never do."""
    field: str = ""
    """Where in it: phase and field."""
    left_value: str = ""
    right_value: str = ""
    rows: tuple[ComparedCycle, ...] = ()
    """The page of cycles that is shown."""
    first: int = 0
    """Position of the first row."""
    of: int = 0
    """How many cycles the longer one has."""
    page_size: int = 50
    related: str = ""
    """How they are related: `fork of`, `same request`, or empty."""
    changes: tuple[str, ...] = ()
    """Of a fork: what was changed."""
