"""The status of a run, read from its trace as it grows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from pathlib import Path

from coag.errors import TraceError
from coag.schema import (
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ReasoningOutcome,
    Receipt,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
    one_line,
    phase_after,
)
from coag.tracing import (
    CycleSummary,
    ProblemKind,
    RunFolder,
    RunInfo,
    TraceLine,
    TraceTail,
    read_run,
    summarize_cycle,
)

_TEXT = 600
"""Characters kept of a text; a status is small however large its run is."""
_READ = 8 * _TEXT
"""Characters of a text that are looked at."""
_NAME = 60
_NOTES = 5
_CONSTRAINTS = 20
"""Constraints that vetoes are counted by; those of further ones are counted together."""
_OTHERS = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The status of a run after some of its records: sums, and what its latest cycle came to.

    Its texts are cleaned and short, except for those of `considered`.
    """

    records: int = 0
    turn: int = 0
    cycle: int = 0
    phase: str = ""
    """The current phase; `model` or `action` for a plain agent; empty between turns."""
    since: datetime | None = None
    """When that began."""
    acting: str = ""
    """The external action that has begun and not ended."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    """Of all model calls."""
    calls: int = 0
    """Requests to models, failed ones included."""
    vetoes: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many candidates each constraint or check has rejected."""
    impasses: int = 0
    goal: str = ""
    situation: str = ""
    risks: tuple[str, ...] = ()
    considered: CycleSummary = field(default_factory=lambda: CycleSummary(cycle=0))
    """The cycle of the latest candidates: the one before, until others are proposed."""
    decision: str = ""
    """The action selected last; `impasse` for none."""
    decided_by: str = ""
    """`model`, `rank` or `only_survivor`; `nobody` for an impasse."""
    reason: str = ""
    """Why that was selected."""
    result: str = ""
    notes: tuple[str, ...] = ()
    """The last few, oldest first."""
    ended_by: str = ""
    """Why the last turn ended; empty during one."""
    response: str = ""
    outcomes: Mapping[Phase, Outcome] = field(default_factory=dict[Phase, Outcome])
    """Those of the current cycle."""

    @property
    def vetoed(self) -> int:
        """Candidates that were rejected."""
        return sum(self.vetoes.values())

    def with_record(self, record: TraceRecord) -> RunStatus:
        """The status with one more record."""
        new = replace(self, records=self.records + 1)
        match record:
            case TurnStart():
                return replace(
                    new, turn=record.turn, phase="retrieval", since=record.at, ended_by=""
                )
            case TurnEnd():
                return replace(
                    new,
                    phase="",
                    since=record.at,
                    acting="",
                    ended_by=short(record.reason, _NAME),
                    response=short(record.response),
                )
            case ModelCall():
                return _with_call(new, record)
            case Intent():
                arguments = json.dumps(record.arguments, ensure_ascii=False, default=str)
                action = short(f"{record.action} {arguments}", 200)
                phase = new.phase if record.candidate_id is not None else "action"
                return replace(new, acting=action, phase=phase, since=record.at)
            case Receipt():
                result = short(f"{record.status}: {record.content}")
                return replace(new, acting="", since=record.at, result=result)
            case Note():
                return _with_note(new, f"{record.about}: {record.text}")
            case Percept():
                return _with_percept(new, record)
            case _:
                return _with_outcome(new, record) if record.record == "outcome" else new


def short(text: str, limit: int = _TEXT) -> str:
    """A foreign text on one line, cleaned, cut before it is looked at as a whole."""
    cut = len(text) - _READ
    return one_line(text[:_READ] if cut > 0 else text, limit)


def _with_note(status: RunStatus, text: str) -> RunStatus:
    return replace(status, notes=(*status.notes, short(text, 200))[-_NOTES:])


def _with_percept(status: RunStatus, percept: Percept) -> RunStatus:
    if percept.sets_goal:
        return replace(status, goal=short(percept.content))
    if percept.kind is PerceptKind.UNKNOWN_OUTCOME:
        return _with_note(status, f"unknown outcome: {percept.content}")
    return status


def _with_call(status: RunStatus, call: ModelCall) -> RunStatus:
    new = replace(status, calls=status.calls + 1, usage=status.usage + call.usage)
    if call.phase is not None:
        return new
    wanted = ", ".join(short(str(one.get("name", "")), _NAME) for one in call.tool_calls[:5])
    return replace(
        new,
        cycle=call.cycle,
        phase="action" if wanted else "model",
        since=call.at,
        decision=wanted or status.decision,
        decided_by="model" if wanted else status.decided_by,
        situation=short(call.raw) or status.situation,
    )


def _with_outcome(status: RunStatus, outcome: Outcome) -> RunStatus:
    earlier = status.outcomes if outcome.cycle == status.cycle else dict[Phase, Outcome]()
    outcomes = {**earlier, outcome.phase: outcome}
    summary = summarize_cycle(outcomes.values(), cycle=outcome.cycle)
    new = replace(
        status,
        cycle=outcome.cycle,
        phase=phase_after(outcome.phase).value,
        since=outcome.at,
        outcomes=outcomes,
        considered=summary if summary.proposal else status.considered,
    )
    match outcome:
        case ReasoningOutcome():
            risks = tuple(short(risk, 200) for risk in outcome.risks[:5])
            return replace(new, situation=short(outcome.situation), risks=risks)
        case EvaluationOutcome():
            return replace(new, vetoes=_vetoes(status.vetoes, outcome))
        case SelectionOutcome():
            return _with_selection(new, summary)
        case ExecutionOutcome():
            ran = outcome.status is not ExecutionStatus.NONE
            result = f"{outcome.status}: {summary.result}" if ran else "none: nothing was run"
            return replace(new, acting="", result=short(result))
        case _:
            return new


def _vetoes(before: Mapping[str, int], outcome: EvaluationOutcome) -> Mapping[str, int]:
    vetoes = dict(before)
    for verdict in (one.died_of for one in outcome.evaluations):
        if verdict is not None:
            name = short(verdict.constraint, _NAME) or "unnamed"
            name = name if name in vetoes or len(vetoes) < _CONSTRAINTS else _OTHERS
            vetoes[name] = vetoes.get(name, 0) + 1
    return vetoes


def _with_selection(status: RunStatus, summary: CycleSummary) -> RunStatus:
    reason = short(summary.reason, 200)
    if summary.impasse:
        impasses = status.impasses + 1
        return replace(
            status, decision="impasse", decided_by="nobody", reason=reason, impasses=impasses
        )
    actions = [one.candidate.action for one in summary.chosen]
    names = actions or (summary.selection.chosen if summary.selection else ())
    return replace(
        status,
        decision=", ".join(short(name, _NAME) for name in names[:5]),
        decided_by=summary.decided_by.value if summary.decided_by else "nobody",
        reason=reason,
    )


# ---- One run, followed while it is written ----


_WAITING = timedelta(seconds=1)
"""A phase that asks the model and has written nothing for so long waits for it."""
_GRACE = timedelta(seconds=5)
"""For so long a run whose trace nobody holds may be just opening or closing."""
_SILENT = timedelta(minutes=10)
"""Where it is not known who holds a trace: a run silent for longer was interrupted."""
_ASKING = frozenset({"reasoning", "proposal", "evaluation", "selection", "model"})
_AGENT = 60


class RunState(StrEnum):
    """What a run is doing."""

    READING = "reading"
    """Its trace has not been read up to its end yet."""
    RUNNING = "running"
    WAITING = "waiting"
    """For the model."""
    ACTING = "acting"
    """An external action has begun and not ended."""
    IDLE = "idle"
    """Between two turns."""
    ENDED = "ended"
    BROKE_OFF = "broke off"
    """It has not ended, and its process is gone."""
    UNREADABLE = "unreadable"
    """Its log is damaged, of a newer version, or none of coag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as it can be shown now."""

    folder: RunFolder
    state: RunState
    status: RunStatus
    info: RunInfo | None = None
    """None where `run.json` cannot be read."""
    problem: str = ""
    """What is wrong with its log, as a sentence; empty if nothing is."""
    at: datetime
    """When this was so."""

    @property
    def name(self) -> str:
        """The run's id."""
        return one_line(self.folder.path.name, _AGENT)

    @property
    def agent(self) -> str:
        """The agent's name, cleaned; `?` where it cannot be known."""
        return "?" if self.info is None else one_line(self.info.agent[:_AGENT]) or "?"

    @property
    def over(self) -> bool:
        """True if nothing more will come."""
        return self.state in {RunState.ENDED, RunState.BROKE_OFF, RunState.UNREADABLE}

    @property
    def seconds(self) -> float | None:
        """How long it has been in its phase; None where there is none, or it is over."""
        if self.over or self.status.since is None or self.state is RunState.READING:
            return None
        return max(0.0, (self.at - self.status.since).total_seconds())


class RunWatch:
    """Reads a run as it grows, in slices; keeps its status, not its records.

    Args:
        folder: The run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._tail = TraceTail(folder.trace_path)
        self._status = RunStatus()
        self._info: RunInfo | None = None
        self._stamp: tuple[int, int] | None = None
        self._size = -1
        self._read_all = False
        self._fatal = ""
        self._changed = ""

    def advance(self, lines: int) -> bool:
        """Takes in at most so many further lines; true if there may be more.

        Args:
            lines: How many, at least 1.
        """
        if self._fatal:
            return False
        try:
            self._look_at_info()
            size = _size(self.folder.trace_path)
            if self._read_all and size == self._size:
                return False
            self._read_all = self._take(lines)
            self._size = size
        except TraceError as error:
            self._fatal = one_line(str(error))
        return not (self._read_all or self._fatal)

    def view(self, now: datetime, held: frozenset[int] | None) -> RunView:
        """The run as it is now.

        Args:
            now: The time.
            held: Inodes of the files that somebody holds a lock on; None if that is not known.
        """
        state = self._state(now, held)
        problem = self._fatal or self._changed
        if not problem and state in {RunState.ENDED, RunState.BROKE_OFF} and self._torn():
            problem = "The last line of the trace is truncated."
        return RunView(
            folder=self.folder,
            state=state,
            status=self._status,
            info=self._info,
            problem=problem,
            at=now,
        )

    def _look_at_info(self) -> None:
        """Reads `run.json` if it was replaced."""
        try:
            found = self.folder.info_path.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
        except OSError:
            stamp = None
        if self._info is None or stamp != self._stamp:
            self._info = read_run(self.folder.path)
            self._stamp = stamp

    def _take(self, most: int) -> bool:
        """True if there was no further line."""
        for line in islice(self._tail.lines(), most):
            self._take_line(line)
            most -= 1
        return most > 0

    def _take_line(self, line: TraceLine) -> None:
        for problem in line.problems:
            if problem.kind is ProblemKind.UNREADABLE:
                raise TraceError(problem.path, problem.text)
            self._changed = self._changed or one_line(f"The trace was changed: {problem.text}.")
        if line.entry is not None:
            self._status = self._status.with_record(line.entry.body)

    def _state(self, now: datetime, held: frozenset[int] | None) -> RunState:
        info, status = self._info, self._status
        if self._fatal:
            return RunState.UNREADABLE
        if info is None or not self._read_all:
            return RunState.READING
        if info.ended_at is not None:
            return RunState.ENDED
        quiet = now - (status.since or info.started_at)
        if self._gone(quiet, held):
            return RunState.BROKE_OFF
        if not status.phase:
            return RunState.IDLE if status.records else RunState.RUNNING
        if status.acting:
            return RunState.ACTING
        waits = status.phase in _ASKING and quiet >= _WAITING
        return RunState.WAITING if waits else RunState.RUNNING

    def _gone(self, quiet: timedelta, held: frozenset[int] | None) -> bool:
        if held is None:
            return quiet > _SILENT
        try:
            inode = self.folder.trace_path.stat().st_ino
        except OSError:
            inode = -1
        return inode not in held and quiet > _GRACE

    def _torn(self) -> bool:
        """True if the trace does not end in a whole line."""
        try:
            with self.folder.trace_path.open("rb") as file:
                if not file.seek(0, 2):
                    return False
                file.seek(-1, 2)
                return file.read(1) != b"\n"
        except OSError:
            return False


def _size(path: Path) -> int:
    """The file's size in bytes; 0 if it is not there yet."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
