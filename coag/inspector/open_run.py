"""One run, read a page at a time, also while it is written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from threading import RLock
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from coag.errors import TraceError, UnknownNameError
from coag.schema import (
    PHASES,
    Clock,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    Snapshot,
    SnapshotReason,
    SystemClock,
    TraceRecord,
    merge_patch,
    phase_after,
)
from coag.tracing import (
    CandidateSummary,
    CycleSummary,
    RecordKind,
    RunFolder,
    RunInfo,
    TraceIndex,
    TraceLine,
    known_cycles,
    summarize_cycle,
)

from .prompts import call_views
from .texts import LINE, call_in_a_line, changes, fields_in_a_line, in_a_line
from .trace_scan import CycleSpan, TraceScan, snapshot_at
from .views import (
    CallView,
    CycleRow,
    CycleView,
    PhaseView,
    RejectedRow,
    RunCard,
    RunPage,
    Trouble,
)

# ---- A cycle as a row, from as few of its records as that needs ----


_OF_CYCLES = frozenset({RecordKind.OUTCOME, RecordKind.TURN_END})
_OF_TURNS = frozenset(
    {
        RecordKind.MODEL_CALL,
        RecordKind.INTENT,
        RecordKind.RECEIPT,
        RecordKind.NOTE,
        RecordKind.TURN_END,
    }
)
_ACTIONS = 8
"""Actions of one batch or turn that are named in a row."""


def row_of(index: TraceIndex, span: CycleSpan, *, plain: bool) -> CycleRow:
    """The row of a cycle, or of a plain run's turn.

    Raises:
        TraceError: The trace cannot be read.
    """
    kinds = _OF_TURNS if plain else _OF_CYCLES
    positions = range(span.first, span.end)
    lines = index.read([at for at in positions if index.kind(at) in kinds])
    records = [line.entry.body for line in lines if line.entry is not None]
    began, ended = index.times([span.first, span.end - 1])
    notes = sum(index.kind(at) is RecordKind.NOTE for at in positions)
    return _row(summarize_cycle(records, cycle=span.cycle), began, ended, notes, plain=plain)


def _row(
    summary: CycleSummary,
    began: datetime | None,
    ended: datetime | None,
    notes: int,
    *,
    plain: bool,
) -> CycleRow:
    selection, execution, end = summary.selection, summary.execution, summary.turn_end
    actions = [call_in_a_line(one.action, one.arguments) for one in summary.actions]
    results = [one.result for one in summary.actions if one.result]
    if not results:
        results = [execution.result] if execution else []
    if plain and not summary.actions:
        results = [end.response] if end else [note.text for note in summary.notes]
    elif not plain and execution is None:  # until it is run, what was selected
        actions = [_candidate(one) for one in summary.chosen]
        results = []
    return CycleRow(
        number=summary.cycle,
        at=began,
        seconds=(ended - began).total_seconds() if began and ended else None,
        situation=in_a_line(summary.situation),
        action=_joined(actions),
        internal=bool(execution and execution.executed)
        and all(one.internal for one in summary.actions),
        status=_status(summary, plain=plain),
        result=_joined([fields_in_a_line(result) for result in results]),
        decided_by=selection.decided_by.value if selection and selection.decided_by else "",
        candidates=len(summary.candidates),
        rejected=tuple(map(_rejected, summary.rejected)),
        impasse=summary.impasse,
        phases=tuple(phase for phase in PHASES if phase in summary.outcomes),
        usage=summary.usage,
        recalled=summary.recalled,
        notes=notes,
        ended=in_a_line(end.reason) if end else "",
    )


def _status(summary: CycleSummary, *, plain: bool) -> str:
    """How it ended; a turn without phases failed only if an action of it did."""
    if not plain:
        return summary.execution.status.value if summary.execution else ""
    return summary.status or ""


def _rejected(one: CandidateSummary) -> RejectedRow:
    verdict = one.rejected_by
    return RejectedRow(
        action=_candidate(one),
        constraint=in_a_line(verdict.constraint) if verdict else "",
        reason=in_a_line(verdict.reason) if verdict else "",
    )


def _candidate(one: CandidateSummary) -> str:
    """A candidate on one line, its arguments as the model wrote them."""
    arguments = in_a_line(one.candidate.raw_arguments)
    name = in_a_line(one.candidate.action)
    return name if arguments in ("", "{}") else f"{name} {arguments}"


def _joined(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _ACTIONS} more" if len(texts) > _ACTIONS else ""
    return in_a_line("; ".join(texts[:_ACTIONS]) + more, 2 * LINE)


# ---- How things were when a cycle began, from the snapshots around it ----


_T = TypeVar("_T")
_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
_PERCEPT = TypeAdapter(Percept)
_BACK = 2_000
"""Lines before a cycle in which its snapshot is looked for."""
_LOOKS = 32
"""Snapshots in which the state of the environment is looked for."""
_BEGINS = frozenset({RecordKind.OUTCOME, RecordKind.MODEL_CALL, RecordKind.INTENT})
"""Kinds of which the first one comes after the cycle's beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleStart:
    """How things were when a cycle began."""

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The perceptual state."""
    goal: str = ""
    percepts: tuple[Percept, ...] = ()
    """What had arrived since the last action, where a snapshot of this cycle has it."""
    environment: Any = None
    """The true state of the environment, where the trace has it."""
    inherited: tuple[Outcome, ...] = ()
    """Of the cycle that a fork begins in: what its parent had committed in it."""


def start_of(index: TraceIndex, span: CycleSpan) -> CycleStart:
    """How things were when a cycle began: its snapshot, or the one before and what came since.

    Raises:
        TraceError: The trace cannot be read.
    """
    begun = _begun(index, span)
    found = _snapshot_before(index, begun)
    if found is None:
        return CycleStart(state=_patched({}, index, range(max(begun - _BACK, 0), begun)))
    position, snapshot = found
    memory = snapshot.working_memory
    own = position >= span.first
    return CycleStart(
        state=_patched(_mapping(memory.get("perceptual_state")), index, range(position, begun)),
        goal=_text(memory.get("goal")),
        percepts=_percepts(memory.get("percepts")) if own else (),
        inherited=_inherited(snapshot, span.cycle) if own else (),
        environment=_environment(index, begun),
    )


def _begun(index: TraceIndex, span: CycleSpan) -> int:
    """Position of the first line that shows the cycle at work."""
    positions = range(span.first, span.end)
    return next((at for at in positions if index.kind(at) in _BEGINS), span.end)


def _snapshot_before(index: TraceIndex, position: int) -> tuple[int, Snapshot] | None:
    for at in range(position - 1, max(position - _BACK, 0) - 1, -1):
        if index.kind(at) is RecordKind.SNAPSHOT:
            snapshot = snapshot_at(index, at)
            if snapshot is not None:
                return at, snapshot
    return None


def _patched(
    state: Mapping[str, Any], index: TraceIndex, positions: Sequence[int]
) -> dict[str, Any]:
    """The state after the percepts among some lines."""
    percepts = [at for at in positions if index.kind(at) is RecordKind.PERCEPT]
    changed = dict(state)
    for line in index.read(percepts):
        body = line.entry.body if line.entry else None
        if isinstance(body, Percept) and body.state_patch:
            changed = merge_patch(changed, body.state_patch)
    return changed


def _environment(index: TraceIndex, before: int) -> Any:
    for position in islice(index.environments(before), _LOOKS):
        snapshot = snapshot_at(index, position)
        if snapshot is not None and snapshot.environment is not None:
            return snapshot.environment
    return None


def _inherited(snapshot: Snapshot, cycle: int) -> tuple[Outcome, ...]:
    if snapshot.reason is not SnapshotReason.FORKED:
        return ()
    saved = _mapping(snapshot.working_memory.get("cognitive_state")).values()
    found = [_valid(_OUTCOME, item) for item in saved if item is not None]
    return tuple(outcome for outcome in found if outcome is not None and outcome.cycle == cycle)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _percepts(value: Any) -> tuple[Percept, ...]:
    """The newest percepts in working memory; what is no percept is left out."""
    saved = cast("list[Any]", value) if isinstance(value, list) else []
    found = [_valid(_PERCEPT, item) for item in saved]
    return tuple(percept for percept in found if percept is not None)


def _valid(kind: TypeAdapter[_T], value: Any) -> _T | None:
    """A value of working memory, as a snapshot has it; None for what is not valid."""
    try:
        return kind.validate_json(to_json(value))
    except ValidationError:
        return None


# ---- One cycle with all that happened in it ----


_UNREADABLE = 50
"""Lines that cannot be read and are shown one by one."""


def _cycle_view(
    lines: Sequence[TraceLine],
    cycle: int,
    start: CycleStart,
    earlier: Sequence[ModelCall],
    *,
    plain: bool,
) -> CycleView:
    """The view of a cycle, or of a plain run's turn.

    Args:
        lines: All its lines, in order.
        cycle: Its number.
        start: How things were when it began.
        earlier: Requests of cycles before it, in order.
        plain: True for a plain run.
    """
    records = [line.entry.body for line in lines if line.entry is not None]
    own_summary = summarize_cycle(records, cycle=cycle)
    summary = replace(
        summarize_cycle(records, cycle=cycle, inherited=start.inherited),
        goal=start.goal,
        state=start.state,
        percepts=start.percepts or own_summary.percepts,
    )
    notes, began = _notes_by_phase(records, plain=plain)
    requests = [line for line in lines if line.entry and isinstance(line.entry.body, ModelCall)]
    views = zip(call_views(own_summary.calls, earlier), requests, strict=True)
    calls = [replace(call, seq=line.number - 1) for call, line in views]
    own = set(own_summary.outcomes)
    return CycleView(
        run="",
        row=_row(own_summary, summary.began, summary.ended, len(summary.notes), plain=plain),
        summary=summary,
        phases=() if plain else tuple(_phases(summary, own, calls, notes, began)),
        calls=tuple(call for call in calls if plain or call.call.phase is None),
        notes=tuple(notes.get(None, ())),
        projected={
            one.candidate.id: changes(start.state, one.evaluation.projection)
            for one in summary.candidates
            if one.evaluation and one.evaluation.projection is not None
        },
        environment=start.environment,
        unreadable=_unreadable(lines),
    )


def _unreadable(lines: Sequence[TraceLine]) -> tuple[str, ...]:
    bad = [line.problems[0].text for line in lines if line.entry is None]
    more = [f"and {len(bad) - _UNREADABLE} more lines"] if len(bad) > _UNREADABLE else []
    return (*bad[:_UNREADABLE], *more)


def _notes_by_phase(
    records: Sequence[TraceRecord], *, plain: bool
) -> tuple[dict[Phase | None, list[Note]], datetime | None]:
    """The notes by the phase in which they were written, and when the first phase began."""
    notes: dict[Phase | None, list[Note]] = {}
    began = records[0].at if records else None
    phase: Phase | None = None
    for record in records:
        if isinstance(record, Snapshot):
            began, phase = record.at, None if plain else PHASES[0]
        elif isinstance(record, Note):
            notes.setdefault(phase, []).append(record)
        elif record.record == "outcome":
            phase = None if record.phase is PHASES[-1] else phase_after(record.phase)
    return notes, began


def _phases(
    summary: CycleSummary,
    own: set[Phase],
    calls: Sequence[CallView],
    notes: Mapping[Phase | None, Sequence[Note]],
    began: datetime | None,
) -> Iterator[PhaseView]:
    """The six phases; `own` are those that were not inherited from the run it was forked from."""
    for phase in PHASES:
        outcome = summary.outcomes.get(phase)
        at = outcome.at if outcome and phase in own else None
        yield PhaseView(
            phase=phase,
            outcome=outcome,
            inherited=outcome is not None and phase not in own,
            at=at,
            seconds=(at - began).total_seconds() if at and began else None,
            calls=tuple(call for call in calls if call.call.phase is phase),
            notes=tuple(notes.get(phase, ())),
        )
        began = at or began


# ---- One run, read a page at a time ----


_STRIP = 400
"""Cycles up to which all are shown in the overview."""
_ROWS = 2_000
"""Rows that are kept."""
_EARLIER = 3
"""Cycles before one in which requests are looked for that began as its own do."""


class OpenRun:
    """A run whose trace is read as far as pages ask for it.

    It may be used from several threads; while one reads, the others wait.

    Args:
        key: Names it in addresses.
        folder: Where it is.
        card: Gives its card as it is now.
        clock: Measures budgets.
        ahead: Bytes up to which the rest is scanned for a page at once, so that most runs are
            known whole.
    """

    def __init__(
        self,
        key: str,
        folder: RunFolder,
        card: Callable[[], RunCard],
        *,
        clock: Clock | None = None,
        ahead: int = 1 << 24,
    ) -> None:
        self.key = key
        self.folder = folder
        self._card = card
        self._clock = clock or SystemClock()
        self._ahead = ahead
        self._lock = RLock()
        self._rows: OrderedDict[int, CycleRow] = OrderedDict()
        """By position; never the last one's, which may change."""
        self._scan = TraceScan(folder, self._rows.clear)

    @property
    def index(self) -> TraceIndex:
        """Where the records of its trace stand, as far as it was scanned."""
        return self._scan.index

    @property
    def info(self) -> RunInfo:
        """What `run.json` says now.

        Raises:
            TraceError: It cannot be read any more.
        """
        card = self._card()
        if card.info is None:
            raise TraceError(self.folder.path, card.trouble.text if card.trouble else "is no run.")
        return card.info

    @property
    def plain(self) -> bool:
        """True for a run without phases, whose rows are turns."""
        return self.info.kind == "plain"

    # ---- scanning ----

    def advance(self, budget_seconds: float) -> bool:
        """Scans on in the background; True if there is more to scan."""
        end = self._clock.monotonic() + budget_seconds
        while self._clock.monotonic() < end:
            with self._lock:
                if not self._scan.extend():
                    return False
        return True

    # ---- the whole ----

    def view(self, first: int = 0, page_size: int = 50) -> RunPage:
        """The run with one page of its rows.

        Args:
            first: Position of the first row, from 0; one beyond the end means the last page.
            page_size: How many rows.

        Raises:
            TraceError: The trace cannot be read; what cannot be read of it is in `troubles`.
        """
        with self._lock:
            size = min(max(page_size, 1), 1_000)
            self._scan.reach(max(first, 0) + size, self._ahead)
            of = len(self._scan.timeline)
            first = max(first if first < of else (of - 1) // size * size, 0)
            return RunPage(
                card=self._card(),
                info=self.info,
                rows=self._page(first, size),
                first=first,
                of=of,
                page_size=size,
                scanned=self._scan.share,
                troubles=self.troubles(),
                strip=self._page(0, of) if self._scan.whole and of <= _STRIP else (),
            )

    def rows(self, first: int, count: int) -> tuple[CycleRow, ...]:
        """Some rows, by position from 0; fewer where the run has not as many.

        Raises:
            TraceError: The trace cannot be read.
        """
        with self._lock:
            self._scan.reach(max(first, 0) + count, 0)
            return self._page(max(first, 0), count)

    def _page(self, first: int, count: int) -> tuple[CycleRow, ...]:
        end = min(first + count, len(self._scan.timeline))
        plain = self.plain
        return tuple(self._row(position, plain) for position in range(first, end))

    def _row(self, position: int, plain: bool) -> CycleRow:
        known = self._rows.get(position)
        if known is not None:
            return known
        row = row_of(self.index, self._scan.timeline.span(position), plain=plain)
        if position + 1 < len(self._scan.timeline):
            self._rows[position] = row
            while len(self._rows) > _ROWS:
                self._rows.popitem(last=False)
        return row

    def troubles(self) -> tuple[Trouble, ...]:
        """What is wrong with the trace, as far as it was scanned."""
        with self._lock:
            is_open = self._card().is_open
            return self._scan.troubles(is_open=is_open)

    # ---- one cycle ----

    def position_of(self, number: int) -> int:
        """The position of a cycle among the rows, from 0.

        Raises:
            UnknownNameError: There is no such cycle.
        """
        with self._lock:
            found = self._scan.find(number)
            if found is None:
                last = known_cycles(self.info, self.index.last_cycle)
                what = "turn" if self.plain else "cycle"
                raise UnknownNameError(what, str(number), [last])
            return found

    def rows_of(self, number: int) -> tuple[CycleRow, ...]:
        """The row of a cycle; none where it is not among those that were scanned."""
        with self._lock:
            at = self._scan.timeline.find(number)
            return () if at is None else self._page(at, 1)

    def beside(self, number: int) -> tuple[int | None, int | None]:
        """The numbers of the cycles before and after one; None where there is none.

        Raises:
            UnknownNameError: There is no such cycle.
        """
        with self._lock:
            at, timeline = self.position_of(number), self._scan.timeline
            after = timeline.cycle(at + 1) if at + 1 < len(timeline) else None
            return timeline.cycle(at - 1) if at else None, after

    def cycle(self, number: int) -> CycleView:
        """One cycle, of a plain run one turn, with all that happened in it.

        Raises:
            UnknownNameError: There is no such cycle.
            TraceError: The trace cannot be read.
        """
        with self._lock:
            position = self.position_of(number)
            span = self._scan.timeline.span(position)
            start = start_of(self.index, span)
            before = self._scan.timeline.span(position - 1) if position else None
            was = start_of(self.index, before).state if before else start.state
            more = position + 1 < len(self._scan.timeline)
            view = _cycle_view(
                self.index.read(range(span.first, span.end)),
                number,
                start,
                self._earlier(position),
                plain=self.plain,
            )
            return replace(
                view,
                run=self.key,
                changed=changes(was, start.state),
                before=before.cycle if before else None,
                after=self._scan.timeline.cycle(position + 1) if more else None,
            )

    def _earlier(self, position: int) -> list[ModelCall]:
        """The requests of a few cycles before one, in order."""
        first = self._scan.timeline.span(max(position - _EARLIER, 0)).first
        positions = [
            at
            for at in range(first, self._scan.timeline.span(position).first)
            if self.index.kind(at) is RecordKind.MODEL_CALL
        ]
        bodies = [line.entry.body for line in self.index.read(positions) if line.entry]
        return [body for body in bodies if isinstance(body, ModelCall)]
