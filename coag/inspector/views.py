"""What the pages show of runs and cycles, as values: no file is read here, and no HTML made.

Everything in them comes out of logs, so every text is untrusted. Texts of rows are short; all
others are as they are in the log, however long, so that a page must clip what it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from coag._util.json_diff import JsonDifference
from coag.schema import ModelCall, Note, Outcome, Phase, TokenUsage, Trust
from coag.tracing import CycleSummary, RunInfo

# ---- What the checks found ----


class FindingSort(StrEnum):
    """What sort of finding it is."""

    VIOLATION = "violation"
    """`coag verify`: the trace is not what a run can have left."""
    CAUSE = "cause"
    """`coag diagnose`: something failed, and this is why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A broken invariant, or a failure with its cause."""

    sort: FindingSort
    title: str
    text: str
    cycle: int | None
    phase: Phase | None = None
    seq: int | None = None
    evidence: tuple[tuple[int | None, str], ...] = ()
    """For causes: records (by number) that show it, and what each says."""
    follows: int | None = None
    """An earlier cycle whose finding it may only follow from."""
    cycles: tuple[int, ...] = ()
    """If it was found in several cycles: all of them, in order."""


class CheckProgress(StrEnum):
    """How far the checks of a run are."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is known of a run's correctness and failures; findings are in the order of cycles."""

    progress: CheckProgress
    found: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    """What `verify` says beside violations."""
    checked: int = 0
    trouble: str = ""
    left_out: int = 0

    @property
    def together(self) -> tuple[Finding, ...]:
        """The findings, of which those that say the same of neighbouring cycles are one."""
        merged: list[Finding] = []
        latest: dict[tuple[object, ...], int] = {}
        """Where in `merged` the last one that says so is."""
        for one in self.found:
            content = (one.sort, one.title, one.text, one.phase, one.follows)
            place = latest.get(content, len(merged))
            before = merged[place] if place < len(merged) else None
            cycles = before.cycles or (before.cycle,) if before else (None,)
            if before is not None and cycles[-1] is not None and one.cycle == cycles[-1] + 1:
                known = tuple(each for each in (*cycles, one.cycle) if each is not None)
                merged[place] = replace(before, cycles=known)
            else:
                latest[content] = len(merged)
                merged.append(one)
        return tuple(merged)

    @property
    def first(self) -> Finding | None:
        """Where it first went wrong: the earliest that follows from no other one.

        Within a cycle a cause says more than a violation.
        """
        placed = [one for one in self.together if one.cycle is not None and one.follows is None]
        order = {FindingSort.CAUSE: 0, FindingSort.VIOLATION: 1}
        return min(placed, key=lambda one: (one.cycle or 0, order[one.sort]), default=None)

    def of_cycle(self, cycle: int) -> tuple[Finding, ...]:
        """The findings of one cycle."""
        return tuple(one for one in self.found if one.cycle == cycle)

    def placed_in(self, row: CycleRow) -> CycleRow:
        """A row with the findings of its cycle."""
        return replace(row, findings=findings) if (findings := self.of_cycle(row.number)) else row

    def placed_in_cycle(self, view: CycleView) -> CycleView:
        """A cycle with the findings of its phases, and the others for the cycle itself."""
        findings = self.of_cycle(view.row.number)
        there = {phase.phase for phase in view.phases}
        phases = tuple(
            replace(phase, findings=tuple(one for one in findings if one.phase is phase.phase))
            for phase in view.phases
        )
        rest = tuple(one for one in findings if one.phase not in there)
        return replace(view, row=self.placed_in(view.row), phases=phases, findings=rest)


# ---- Cycles: in a timeline, and one as its six phases ----


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRow:
    """A candidate that was rejected, with its arguments, on one line."""

    action: str
    constraint: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRow:
    """One cycle in a timeline; of a plain run one turn. Each text is on one line."""

    number: int
    at: datetime | None
    seconds: float | None = None
    situation: str = ""
    action: str = ""
    internal: bool = False
    status: str = ""
    """`done`, `failed`, `refused`, `none` (an impasse), or empty during the cycle."""
    result: str = ""
    decided_by: str = ""
    """`model`, `rank` or `only_survivor`."""
    candidates: int = 0
    rejected: tuple[RejectedRow, ...] = ()
    impasse: bool = False
    phases: tuple[Phase, ...] = ()
    """The phases that were committed; six in a whole cycle, none in a plain turn."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    recalled: int = 0
    notes: int = 0
    ended: str = ""
    """Why the turn ended after it; empty where it continued."""
    findings: tuple[Finding, ...] = ()


class PartKind(StrEnum):
    """What a piece of a prompt is."""

    INSTRUCTION = "instruction"
    """The developer's or a procedure's words: they may instruct."""
    DATA = "data"
    """Between data delimiters: information, not instructions."""
    ANSWER = "answer"
    """What the model itself said before."""
    PLAIN = "plain"
    """Prompts of other agents have no delimiters: what a piece is, is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPiece:
    """A piece of a prompt, exactly as sent: all pieces of a message together are the message."""

    kind: PartKind
    title: str
    text: str
    source: str = ""
    trust: Trust | None = None
    tokens: int = 0
    same: int = 0
    """Characters at its beginning that are part of the prefix which this request shares with the
    one before it: what a server's cache can serve."""
    shown_in: str = ""
    """In one file: where the same text is shown already; it is not repeated then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """One message of a prompt, with an estimate of its tokens."""

    role: str
    parts: tuple[PromptPiece, ...]
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One request to a model, and what came of it."""

    call: ModelCall
    messages: tuple[MessageView, ...]
    same_tokens: int = 0
    """Estimated tokens of the prefix that is the same as in the request before it."""
    answer: Any = None
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseView:
    """One phase of one cycle."""

    phase: Phase
    outcome: Outcome | None
    """None where it was not committed: the run broke off, or is just at it."""
    inherited: bool = False
    at: datetime | None = None
    seconds: float | None = None
    """From the end of the phase before it, by the records' times."""
    calls: tuple[CallView, ...] = ()
    notes: tuple[Note, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleView:
    """One cycle with all that happened in it; of a plain run one turn, which has no phases.

    Calls, notes and findings are those of no phase.
    """

    run: str
    row: CycleRow
    summary: CycleSummary
    phases: tuple[PhaseView, ...]
    calls: tuple[CallView, ...] = ()
    notes: tuple[Note, ...] = ()
    changed: tuple[JsonDifference, ...] = ()
    """What percepts changed in the perceptual state since the cycle before."""
    projected: Mapping[str, tuple[JsonDifference, ...]] = field(
        default_factory=dict[str, tuple[JsonDifference, ...]]
    )
    """By the id of a candidate what it was predicted to change in the perceptual state."""
    environment: Any = None
    """The true state of the environment at its beginning, where the trace has it."""
    before: int | None = None
    after: int | None = None
    findings: tuple[Finding, ...] = ()
    unreadable: tuple[str, ...] = ()


# ---- The tools of a situated agent over time ----


class ToolEventSort(StrEnum):
    """What happened with a tool."""

    PROPERTIES = "properties"
    SIGNAL = "signal"
    WAIT = "wait"
    TIME_OUT = "time-out"
    GAP = "gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvent:
    """Something that an agent perceived of a tool, or that it waited for the tool."""

    sort: ToolEventSort
    tool: str
    """Of what concerns no tool: the activity, or the action that waited."""
    at: datetime
    cycle: int
    name: str = ""
    """A signal's name, or a gap's reason."""
    text: str = ""
    until: datetime | None = None
    """When a wait ended; None if it had not when the trace ended."""
    is_error: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One tool over time."""

    tool: str
    properties: Mapping[str, tuple[tuple[datetime, Any], ...]]
    """Each property: when it was another value than before, and the value."""
    events: tuple[ToolEvent, ...]
    """All but its properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHistory:
    """The tools of a situated agent over time; no rows for a run of another agent."""

    rows: tuple[ToolRow, ...] = ()
    rows_of: int = 0
    events: tuple[ToolEvent, ...] = ()
    """The last ones of all, in order; of properties what changed."""
    events_of: int = 0
    left_out: int = 0
    """Percepts at the beginning of a long run that were not looked at."""


# ---- Runs: in a list, and one as a whole ----


class TaskOutcome(StrEnum):
    """The measured result of a run; unknown where it was not measured."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why something cannot be shown, or not whole, and what to do; grave if nothing can be."""

    text: str
    grave: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCard:
    """One run in the list of runs; None for what is not known yet."""

    key: str
    """Names the run in addresses: its id, made unique where two folders hold the same."""
    folder: str
    info: RunInfo | None
    is_open: bool
    """True if it has not ended: it is running, or was interrupted; its trace does not say."""
    outcome: TaskOutcome
    ending: str
    scenario: str = ""
    goal: str = ""
    seconds: float | None = None
    cycles: int | None = None
    """Its last cycle, of a plain run the last turn."""
    calls: int | None = None
    usage: TokenUsage | None = None
    trouble: Trouble | None = None
    aware: bool = False
    """Whether it keeps the state of an awareness module, as far as its trace was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which runs are wanted, and in which order; an empty text lets all through."""

    query: str = ""
    """Words to be met in id, agent, model, scenario, goal, folder or outcome, in any case."""
    kind: str = ""
    model: str = ""
    outcome: str = ""
    """A value of `TaskOutcome`; `open` for runs that have not ended."""
    agent: str = ""
    without: str = ""
    """Key of a run that is left out, whatever the others let through."""
    sort: str = "newest"
    """`newest`, `oldest`, `cycles`, `tokens`, `cost` or `duration`; another is `newest`."""
    page: int = 1
    """From 1; the last one where there are not as many."""
    page_size: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """A page of the runs of a folder of logs."""

    logs: str
    cards: tuple[RunCard, ...]
    total: int
    matching: int
    pages: int = 1
    filters: Filters = field(default_factory=Filters)
    kinds: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    activities: bool = False
    """Whether there is a page of the activities of the agent whose runs they are."""
    memory: bool = False
    """Whether there is a page of the memory as it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """One run as a whole, with one page of its timeline."""

    card: RunCard
    info: RunInfo
    rows: tuple[CycleRow, ...]
    first: int
    of: int
    """How many rows the whole run has, as far as it was scanned."""
    tools: ToolHistory = field(default_factory=ToolHistory)
    page_size: int
    scanned: float = 1.0
    """Share of the trace that was scanned: under 1, `of` will grow."""
    troubles: tuple[Trouble, ...] = ()
    parent: RunCard | None = None
    forks: tuple[RunCard, ...] = ()
    strip: tuple[CycleRow, ...] = ()
    """Every cycle in short, for the overview's strip; empty for long runs that have no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """One record of a trace, whole."""

    number: int
    """From 0; one less than its line."""
    kind: str
    """What it is, such as `outcome`; empty where it cannot be read."""
    cycle: int | None
    phase: Phase | None
    of: int
    text: str
    """Its JSON on many lines, with all escaped that steers a terminal; else why it is not shown."""


# ---- What an agent's awareness modules held as cycles began ----


class Move(StrEnum):
    """What became of something since the cycle before."""

    ADDED = "added"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One thing of a state that is not as it was."""

    kind: str
    """`goal`, `attention`, `transition` and so on."""
    name: str
    move: Move
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRow:
    """One thing of a state, e.g. a goal."""

    cells: tuple[str, ...]
    since: int | None = None
    """The first cycle looked at that began with it; None where that is not known."""
    move: Move | None = None
    depth: int = 0
    """Of a goal: how many goals are above it, of those that it serves."""
    strong: bool = False
    """Whether it is emphasised: the goal that is pursued."""
    closed: bool = False
    """Whether it can be folded: a closed goal on which nothing open depends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTable:
    """The things of one kind, the first ones of many."""

    kind: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[StateRow, ...]
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleState:
    """What one awareness module held as a cycle began."""

    module: str
    cycle: int
    trouble: str = ""
    domain: str = ""
    mode: str = ""
    """Who decides, e.g. `autonomous`."""
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[StateTable, ...] = ()
    """Goals and attention first; what holds nothing is left out."""
    changes: tuple[StateChange, ...] = ()
    changes_of: int = 0
    before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSpan:
    """Neighbouring cycles in which something was the same."""

    first: int
    last: int
    """The last cycle looked at that began so."""
    state: str = ""
    """A goal's status; of attention `visible` or `suppressed`; of a transition empty."""
    weight: float = 0.5
    """A goal's priority, or the greatest urgency."""
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One thing over the cycles: a `goal`, a `transition` or an object of `attention`."""

    kind: str
    label: str
    spans: tuple[LaneSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSeries:
    """A number over the cycles."""

    name: str
    values: tuple[float | None, ...]
    capacity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleChange:
    """What a cycle began with that the one before did not."""

    cycle: int
    counts: tuple[int, int, int] = (0, 0, 0)
    """How much was added, changed and gone."""
    main: tuple[StateChange, ...] = ()
    grave: bool = False
    """Whether something failed, was reversed, or became a threat."""

    @property
    def of(self) -> int:
        """How much it is together."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleHistory:
    """What one awareness module held over the cycles."""

    module: str
    cycles: tuple[int, ...]
    lanes: tuple[Lane, ...] = ()
    lanes_of: int = 0
    series: tuple[StateSeries, ...] = ()
    """Resources, then counts that are not the same throughout."""
    changes: tuple[CycleChange, ...] = ()
    """One for each cycle looked at, except the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwarenessView:
    """An agent's awareness as one cycle began, and over all of them."""

    cycle: int
    last: int
    """The last cycle whose beginning is in the trace."""
    modules: tuple[tuple[ModuleState, ModuleHistory], ...]
    modules_of: int = 0
    every: int = 1
    """Of a long or a large run every how-many-eth cycle is looked at over time."""
    steps: tuple[int, ...] = ()
    """The cycles that can be shown, in order; some of many."""
    steps_of: int = 0
    before: int | None = None
    after: int | None = None
