"""One run, read a page at a time, also while it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import RLock
from time import monotonic
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from coag._util.json_diff import merge_patch
from coag.errors import TraceError, UnknownNameError
from coag.schema import (
    PHASES,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    Snapshot,
    SnapshotReason,
    TokenUsage,
    TraceRecord,
    TurnEnd,
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
    asked_in,
    known_cycles,
    summarize_cycle,
)

from .prompts import call_views
from .texts import LINE, call_in_a_line, changes, fields_in_a_line, in_a_line, object_of
from .tool_history import read_tools
from .trace_scan import (
    CycleSpan,
    FileStamp,
    TraceScan,
    bodies,
    environment_at,
    file_stamp,
    snapshot_at,
)
from .views import (
    CallView,
    CycleRow,
    CycleView,
    PhaseView,
    RejectedRow,
    RunCard,
    RunPage,
    ToolHistory,
)

_T = TypeVar("_T")

# ---- A cycle as a row, from as few of its records as that needs ----


_OF_CYCLES = frozenset({RecordKind.OUTCOME, RecordKind.TURN_END})
_OF_TURNS = frozenset(
    {RecordKind.MODEL_CALL, RecordKind.INTENT, RecordKind.RECEIPT, RecordKind.NOTE}
    | {RecordKind.TURN_END}
)
_ACTIONS = 8
"""Actions of one batch or turn that are named in a row."""


def _row_of(index: TraceIndex, span: CycleSpan, *, plain: bool) -> CycleRow:
    """The row of a cycle, or of a plain run's turn."""
    kinds = _OF_TURNS if plain else _OF_CYCLES
    records = bodies(index, (at for at in span.lines if index.kind(at) in kinds))
    began, ended = index.times([span.lines.start, span.lines.stop - 1])
    notes = sum(index.kind(at) is RecordKind.NOTE for at in span.lines)
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
        actions, results = [_candidate(one) for one in summary.chosen], []
    status = summary.status if plain else execution and execution.status.value
    return CycleRow(
        number=summary.cycle,
        at=began,
        seconds=(ended - began).total_seconds() if began and ended else None,
        situation=in_a_line(summary.situation),
        action=_joined(actions),
        internal=bool(execution and execution.executed)
        and all(one.internal for one in summary.actions),
        status=status or "",
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


def _rejected(one: CandidateSummary) -> RejectedRow:
    verdict = one.rejected_by
    constraint, reason = (verdict.constraint, verdict.reason) if verdict else ("", "")
    return RejectedRow(
        action=_candidate(one), constraint=in_a_line(constraint), reason=in_a_line(reason)
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


_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
_PERCEPT = TypeAdapter(Percept)
_BACK = 2_000
"""Lines before a cycle in which its snapshot is looked for."""
_BEGINS = frozenset({RecordKind.OUTCOME, RecordKind.MODEL_CALL, RecordKind.INTENT})
"""Kinds of which the first one comes after the cycle's beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CycleStart:
    """How things were when a cycle began."""

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    goal: str = ""
    percepts: tuple[Percept, ...] = ()
    """What had arrived since the last action, where a snapshot of this cycle has it."""
    environment: Any = None
    inherited: tuple[Outcome, ...] = ()
    """Of the cycle that a fork begins in: what its parent had committed in it."""


def _start_of(index: TraceIndex, span: CycleSpan) -> _CycleStart:
    """By the snapshot of a cycle, or by the one before and what came since."""
    begun = next((at for at in span.lines if index.kind(at) in _BEGINS), span.lines.stop)
    for at in range(begun - 1, max(begun - _BACK, 0) - 1, -1):
        snapshot = snapshot_at(index, at) if index.kind(at) is RecordKind.SNAPSHOT else None
        if snapshot is None:
            continue
        memory, own = snapshot.working_memory, at >= span.lines.start
        goal = memory.get("goal")
        forked = own and snapshot.reason is SnapshotReason.FORKED
        outcomes = _valid(_OUTCOME, [*object_of(memory.get("cognitive_state")).values()])
        return _CycleStart(
            state=_patched(object_of(memory.get("perceptual_state")), index, range(at, begun)),
            goal=goal if isinstance(goal, str) else "",
            percepts=_valid(_PERCEPT, memory.get("percepts")) if own else (),
            inherited=tuple(one for one in outcomes if forked and one.cycle == span.cycle),
            environment=environment_at(index, begun),
        )
    return _CycleStart(state=_patched({}, index, range(max(begun - _BACK, 0), begun)))


def _patched(
    state: Mapping[str, Any], index: TraceIndex, positions: Iterable[int]
) -> dict[str, Any]:
    """The state after the percepts among some lines."""
    changed = dict(state)
    for body in bodies(index, (at for at in positions if index.kind(at) is RecordKind.PERCEPT)):
        if isinstance(body, Percept) and body.state_patch:
            changed = merge_patch(changed, body.state_patch)
    return changed


def _valid(kind: TypeAdapter[_T], values: object) -> tuple[_T, ...]:
    """Values of working memory, as a snapshot has them; what is not valid is left out."""
    items: list[_T] = []
    for value in cast("list[Any]", values if isinstance(values, list) else []):
        try:
            items.append(kind.validate_json(to_json(value)))
        except ValidationError:
            continue
    return tuple(items)


# ---- One cycle with all that happened in it ----


_UNREADABLE = 50
"""Lines that cannot be read and are shown one by one."""


def _cycle_view(
    cycle: int,
    lines: Sequence[TraceLine],
    start: _CycleStart,
    earlier: Sequence[ModelCall],
    *,
    plain: bool,
) -> CycleView:
    """What the lines of a cycle say, after how it began and requests of cycles before it."""
    records = [line.entry.body for line in lines if line.entry is not None]
    own = summarize_cycle(records, cycle=cycle)
    summary = replace(
        summarize_cycle(records, cycle=cycle, inherited=start.inherited),
        goal=start.goal,
        state=start.state,
        percepts=start.percepts or own.percepts,
    )
    notes, began = _notes_by_phase(records, plain=plain)
    requests = [line for line in lines if line.entry and isinstance(line.entry.body, ModelCall)]
    views = zip(call_views(own.calls, earlier), requests, strict=True)
    calls = [replace(call, seq=line.number - 1) for call, line in views]
    bad = [line.problems[0].text for line in lines if line.entry is None]
    more = [f"and {len(bad) - _UNREADABLE} more lines"] if len(bad) > _UNREADABLE else []
    return CycleView(
        run="",
        row=_row(own, summary.began, summary.ended, len(summary.notes), plain=plain),
        summary=summary,
        phases=() if plain else tuple(_phases(summary, set(own.outcomes), calls, notes, began)),
        calls=tuple(call for call in calls if plain or call.call.phase is None),
        notes=tuple(notes.get(None, ())),
        projected={
            one.candidate.id: changes(start.state, one.evaluation.projection)
            for one in summary.candidates
            if one.evaluation and one.evaluation.projection is not None
        },
        environment=start.environment,
        unreadable=(*bad[:_UNREADABLE], *more),
    )


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


_COUNTED = frozenset({RecordKind.MODEL_CALL, RecordKind.TURN_END})
_PIECE = 1 << 20
"""Bytes of records that are counted at a time."""
_STRIP = 400
"""Cycles up to which all are shown in the overview."""
_ROWS = 2_000
"""Rows that are kept."""
_EARLIER = 3
"""Cycles before one in which requests are looked for that began as its own do."""


@dataclass(slots=True)
class RunSums:
    """Sums over a trace."""

    cycles: int = 0
    """Its last cycle, of a plain run the last turn."""
    calls: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    ended: str = ""
    goal: str = ""


class OpenRun:
    """A run whose trace is read as far as pages ask for it, and counted in the background.

    It may be used from several threads; while one reads, the others wait. Where its trace cannot
    be read at all, everything raises a TraceError. Of a trace up to so many bytes `ahead` all is
    scanned at once, so that most runs are known whole. `card` gives the card of a key.
    """

    def __init__(
        self,
        key: str,
        folder: RunFolder,
        card: Callable[[str], RunCard],
        *,
        ahead: int = 1 << 24,
    ) -> None:
        self.key = key
        self.folder = folder
        self._card = card
        self._ahead = ahead
        self._lock = RLock()
        self._rows: dict[int, CycleRow] = {}
        """By position; never the last one's, which may change."""
        self._tools: tuple[TraceIndex | None, int, ToolHistory] = (None, 0, ToolHistory())
        """Its tools over time, with the index and its lines of which they were read."""
        self._scan = TraceScan(folder, self._restart)
        self._counted, self._sums = 0, RunSums()
        """How many lines were counted, and their sums."""
        self._stamp: FileStamp | None = None
        """Of the trace when all of it was counted."""
        self.sums: RunSums | None = None
        """The sums over the trace; None until all of it was read once."""

    def _restart(self) -> None:
        self.forget()
        self._counted, self._sums = 0, RunSums()

    def forget(self) -> None:
        """Drops what pages showed; it is read again when they ask for it."""
        with self._lock:
            self._rows.clear()
            self._tools = (None, 0, ToolHistory())

    @property
    def index(self) -> TraceIndex:
        """Where the records of its trace are, as far as it was scanned."""
        return self._scan.index

    @property
    def info(self) -> RunInfo:
        """What `run.json` says now; a TraceError where it cannot be read any more."""
        card = self._card(self.key)
        if card.info is None:
            raise TraceError(self.folder.path, card.trouble.text if card.trouble else "is no run.")
        return card.info

    @property
    def plain(self) -> bool:
        """True for a run without phases, whose rows are turns."""
        return self.info.kind == "plain"

    def advance(self, budget_seconds: float) -> bool:
        """Scans on for about so long; True if there is more to scan."""
        end = monotonic() + budget_seconds
        while monotonic() < end:
            with self._lock:
                if not self._scan.extend():
                    return False
        return True

    @property
    def is_due(self) -> bool:
        """True if there is something to count."""
        return self.sums is None or file_stamp(self.folder.trace_path) != self._stamp

    def count_on(self) -> None:
        """Scans and counts a piece more, as far as the trace can be read."""
        with self._lock:
            stamp = file_stamp(self.folder.trace_path)
            more = self._scan.extend()
            self._count()
            if not more and self._counted == self.index.lines:
                self._stamp, self.sums = stamp, self._sums

    def _count(self) -> None:
        index, sums, read = self.index, self._sums, 0
        while self._counted < index.lines and read < _PIECE:
            at, self._counted = self._counted, self._counted + 1
            kind = index.kind(at)
            if kind in _COUNTED or (kind is RecordKind.PERCEPT and not sums.goal):
                read += index.length(at)
                for body in bodies(index, [at]):
                    if isinstance(body, ModelCall):
                        sums.calls += 1
                        sums.usage += body.usage
                    elif isinstance(body, TurnEnd):
                        sums.ended = body.reason
                    else:
                        sums.goal = asked_in(body)
        sums.cycles = index.last_cycle

    def view(self, first: int = 0, page_size: int = 50) -> RunPage:
        """The run with the page of rows that begins at a position, or the last."""
        with self._lock:
            size = min(max(page_size, 1), 1_000)
            self._scan.reach(max(first, 0) + size, self._ahead)
            of = len(self._scan)
            first = max(first if first < of else (of - 1) // size * size, 0)
            card = self._card(self.key)
            return RunPage(
                card=card,
                info=self.info,
                rows=self._page(first, size),
                first=first,
                of=of,
                tools=self.tools(),
                page_size=size,
                scanned=self._scan.share,
                troubles=self._scan.troubles(is_open=card.is_open),
                strip=self._page(0, of) if self._scan.whole and of <= _STRIP else (),
            )

    def tools(self) -> ToolHistory:
        """Its tools over time, as far as it was scanned."""
        with self._lock:
            known, lines, _ = self._tools
            if known is not self.index or lines != self.index.lines:
                self._tools = (self.index, self.index.lines, read_tools(self.index))
            return self._tools[2]

    def rows(self, first: int, count: int) -> tuple[CycleRow, ...]:
        """Some rows, by position from 0; fewer where the run has not as many."""
        with self._lock:
            self._scan.reach(max(first, 0) + count, 0)
            return self._page(max(first, 0), count)

    def _page(self, first: int, count: int) -> tuple[CycleRow, ...]:
        plain, of, rows = self.plain, len(self._scan), list[CycleRow]()
        for position in range(first, min(first + count, of)):
            row = self._rows.get(position)
            row = row or _row_of(self.index, self._scan.span(position), plain=plain)
            rows.append(row)
            if position + 1 < of:
                self._rows[position] = row
            if len(self._rows) > _ROWS:
                del self._rows[next(iter(self._rows))]
        return tuple(rows)

    def position_of(self, number: int) -> int:
        """The position of a cycle among the rows, from 0; an UnknownNameError if there is none."""
        with self._lock:
            position = self._scan.find(number)
            if position is None:
                last = known_cycles(self.info, self.index.last_cycle)
                what = "turn" if self.plain else "cycle"
                raise UnknownNameError(what, str(number), [last])
            return position

    def rows_of(self, number: int) -> tuple[CycleRow, ...]:
        """The row of a cycle; none where it is not among those that were scanned."""
        with self._lock:
            at = self._scan.known(number)
            return () if at is None else self._page(at, 1)

    def beside(self, number: int) -> tuple[int | None, int | None]:
        """The numbers of the cycles before and after one; None where there is none."""
        with self._lock:
            at = self.position_of(number)
            return self._scan.number_at(at - 1), self._scan.number_at(at + 1)

    def cycle(self, number: int) -> CycleView:
        """One cycle, of a plain run one turn, with all that happened in it."""
        with self._lock:
            before, after = self.beside(number)
            position = self.position_of(number)
            span = self._scan.span(position)
            start = _start_of(self.index, span)
            was = _start_of(self.index, self._scan.span(position - 1)) if position else start
            first = self._scan.span(max(position - _EARLIER, 0)).lines.start
            positions = range(first, span.lines.start)
            earlier = bodies(
                self.index, (at for at in positions if self.index.kind(at) is RecordKind.MODEL_CALL)
            )
            lines = self.index.read(span.lines)
            calls = [body for body in earlier if isinstance(body, ModelCall)]
            view = _cycle_view(number, lines, start, calls, plain=self.plain)
            changed = changes(was.state, start.state)
            return replace(view, run=self.key, changed=changed, before=before, after=after)
