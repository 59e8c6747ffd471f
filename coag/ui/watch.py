"""The state of runs, watched as their traces grow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from coag.errors import TraceError
from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
    one_line,
    phase_after,
)
from coag.tracing import ProblemKind, RunFolder, RunInfo, TraceLine, TraceTail, read_run

# ---- How a run stands, told by its records ----


_TEXT = 600
"""Characters kept of a text; a status is small however large its run is."""
_READ = 8 * _TEXT
"""Characters looked at of a text: where that much is no letter, no more are looked for."""
_NAME = 60
_CANDIDATES = 12
_NOTES = 5
_CONSTRAINTS = 20
"""Constraints that vetoes are counted by; those of further ones are counted together."""
_OTHERS = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStatus:
    """A candidate and what became of it."""

    id: str
    action: str
    arguments: str
    """As the model wrote them, shortened."""
    survived: bool | None = None
    """None before its evaluation."""
    score: float | None = None
    died_of: str = ""
    """The constraint that forbids it; empty for a survivor."""
    reason: str = ""
    """Why it was forbidden, or how it was judged."""
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was selected last."""

    action: str
    decided_by: str
    """`model`, `rank` or `only_survivor`; `nobody` for an impasse."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """How a run stands after some of its records; all texts are cleaned and short."""

    records: int = 0
    turn: int = 0
    cycle: int = 0
    phase: str = ""
    """The phase that goes on now; `model` or `action` for a plain agent; empty between turns."""
    since: datetime | None = None
    """When that began."""
    acting: str = ""
    """The external action that has begun and not ended."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    """Of all model calls."""
    calls: int = 0
    """Requests to models, failed ones included."""
    decision: Decision | None = None
    vetoes: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many candidates each constraint or check has ended."""
    impasses: int = 0
    goal: str = ""
    situation: str = ""
    risks: tuple[str, ...] = ()
    candidates: tuple[CandidateStatus, ...] = ()
    proposed_in: int = 0
    """The cycle of the candidates: the one before, until others are proposed."""
    left_out: int = 0
    """Candidates of that cycle that are not among `candidates`."""
    result: str = ""
    notes: tuple[str, ...] = ()
    """The last few, oldest first."""
    ended_by: str = ""
    """Why the last turn ended; empty while one goes on."""
    response: str = ""

    @property
    def vetoed(self) -> int:
        """Candidates that something ended."""
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
                return _ended(new, record)
            case ModelCall():
                return _called(new, record)
            case Intent():
                return _acting(new, record)
            case Receipt():
                acted = replace(new, acting="", since=record.at)
                return replace(acted, result=short(f"{record.status}: {record.content}"))
            case Note():
                told = short(f"{record.about}: {record.text}", 200)
                return replace(new, notes=(*self.notes, told)[-_NOTES:])
            case Percept():
                return _perceived(new, record)
            case _:
                return _with_outcome(new, record) if record.record == "outcome" else new


def short(text: str, limit: int = _TEXT) -> str:
    """A foreign text on one line, cleaned, cut before it is looked at as a whole."""
    cut = len(text) - _READ
    return one_line(text[:_READ] if cut > 0 else text, limit)


def _ended(status: RunStatus, end: TurnEnd) -> RunStatus:
    return replace(
        status,
        phase="",
        since=end.at,
        acting="",
        ended_by=short(end.reason, _NAME),
        response=short(end.response),
    )


def _called(status: RunStatus, call: ModelCall) -> RunStatus:
    new = replace(status, calls=status.calls + 1, usage=status.usage + call.usage)
    if call.phase is not None:
        return new
    wanted = ", ".join(short(str(one.get("name", "")), _NAME) for one in call.tool_calls[:5])
    decision = Decision(action=wanted, decided_by="model") if wanted else status.decision
    return replace(
        new,
        cycle=call.cycle,
        phase="action" if wanted else "model",
        since=call.at,
        decision=decision,
        situation=short(call.raw) or status.situation,
    )


def _acting(status: RunStatus, intent: Intent) -> RunStatus:
    phase = status.phase if intent.candidate_id is not None else "action"
    arguments = _json(intent.arguments)
    action = short(f"{intent.action} {arguments}", 200)
    return replace(status, acting=action, phase=phase, since=intent.at)


def _perceived(status: RunStatus, percept: Percept) -> RunStatus:
    if percept.sets_goal:
        return replace(status, goal=short(percept.content))
    if percept.kind is PerceptKind.UNKNOWN_OUTCOME:
        told = short(f"unknown outcome: {percept.content}", 200)
        return replace(status, notes=(*status.notes, told)[-_NOTES:])
    return status


def _with_outcome(status: RunStatus, outcome: Outcome) -> RunStatus:
    following = phase_after(outcome.phase)
    new = replace(status, cycle=outcome.cycle, phase=following.value, since=outcome.at)
    match outcome:
        case RetrievalOutcome():
            return new
        case ReasoningOutcome():
            risks = tuple(short(risk, 200) for risk in outcome.risks[:5])
            return replace(new, situation=short(outcome.situation), risks=risks)
        case ProposalOutcome():
            shown = tuple(_proposed(one) for one in outcome.candidates[:_CANDIDATES])
            left_out = len(outcome.candidates) - len(shown)
            new = replace(new, candidates=shown, left_out=left_out)
            return replace(new, proposed_in=outcome.cycle)
        case EvaluationOutcome():
            return _evaluated(new, outcome)
        case SelectionOutcome():
            return _selected(new, outcome)
        case ExecutionOutcome():
            return _executed(new, outcome)


def _proposed(candidate: Candidate) -> CandidateStatus:
    return CandidateStatus(
        id=short(candidate.id, _NAME),
        action=short(candidate.action, _NAME),
        arguments=short(candidate.raw_arguments, 200),
        reason=short(candidate.reason, 200),
    )


def _evaluated(status: RunStatus, outcome: EvaluationOutcome) -> RunStatus:
    by_id = {short(one.candidate_id, _NAME): one for one in outcome.evaluations}
    judged = tuple(_judged(one, by_id.get(one.id)) for one in status.candidates)
    vetoes = dict(status.vetoes)
    for evaluation in outcome.evaluations:
        if evaluation.died_of is not None:
            name = short(evaluation.died_of.constraint, _NAME) or "unnamed"
            name = name if name in vetoes or len(vetoes) < _CONSTRAINTS else _OTHERS
            vetoes[name] = vetoes.get(name, 0) + 1
    return replace(status, candidates=judged, vetoes=vetoes)


def _judged(candidate: CandidateStatus, evaluation: Evaluation | None) -> CandidateStatus:
    if evaluation is None:
        return candidate
    fatal = evaluation.died_of
    return replace(
        candidate,
        survived=fatal is None,
        score=evaluation.score,
        died_of="" if fatal is None else short(fatal.constraint, _NAME) or "unnamed",
        reason=short(evaluation.reason if fatal is None else fatal.reason, 200),
    )


def _selected(status: RunStatus, outcome: SelectionOutcome) -> RunStatus:
    reason = short(outcome.reason, 200)
    if outcome.impasse:
        decision = Decision(action="impasse", decided_by="nobody", reason=reason)
        return replace(status, decision=decision, impasses=status.impasses + 1)
    wanted = [short(one, _NAME) for one in outcome.chosen]
    candidates = tuple(replace(one, chosen=one.id in wanted) for one in status.candidates)
    actions = [one.action for one in candidates if one.chosen] or wanted
    decided_by = "nobody" if outcome.decided_by is None else outcome.decided_by.value
    decision = Decision(action=", ".join(actions), decided_by=decided_by, reason=reason)
    return replace(status, decision=decision, candidates=candidates)


def _executed(status: RunStatus, outcome: ExecutionOutcome) -> RunStatus:
    new = replace(status, acting="")
    if outcome.status is ExecutionStatus.NONE:
        return replace(new, result="none: nothing was run")
    said = outcome.result if outcome.response is None else outcome.response
    return replace(new, result=short(f"{outcome.status}: {said}"))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# ---- One run, followed while it is written ----


_WAITING = timedelta(seconds=1)
"""A phase that asks the model and is silent for so long is waiting for it."""
_GRACE = timedelta(seconds=5)
"""A run that nobody holds is taken to be just opening, or just closing, for so long."""
_SILENT = timedelta(minutes=10)
"""Where nobody can tell who holds a trace, a run that is silent for longer has broken off."""
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
        """True if nothing more is awaited of it."""
        return self.state in {RunState.ENDED, RunState.BROKE_OFF, RunState.UNREADABLE}

    @property
    def seconds(self) -> float | None:
        """How long it has been in its phase; None where there is none, or it is over."""
        if self.over or self.status.since is None or self.state is RunState.READING:
            return None
        return max(0.0, (self.at - self.status.since).total_seconds())


class RunWatch:
    """Reads a run as it grows, in slices; keeps its status, never its records.

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
        """The run as it stands.

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
