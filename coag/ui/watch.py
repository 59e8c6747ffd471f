"""The status of a run, read from its trace as it grows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any

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
    TraceTail,
    read_run,
    summarize_cycle,
)

_TEXT = 600
"""Characters kept of a text; a status is small however large its run is."""
_READ = 8 * _TEXT
"""Characters of a text that are looked at."""
_NAME, _NOTES = 60, 5
_CONSTRAINTS = 20
"""Constraints that vetoes are counted by; those of further ones are counted together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The status of a run after some of its records: sums, and its latest cycle's result.

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
        return replace(self, records=self.records + 1, **_changes(self, record))


def short(text: str, limit: int = _TEXT) -> str:
    """A foreign text on one line, cleaned, cut before it is looked at as a whole."""
    return one_line(text[:_READ], limit)


def _changes(status: RunStatus, record: TraceRecord) -> dict[str, Any]:
    """The fields of a status that a record changes."""
    changes: dict[str, Any] = {"since": record.at}
    match record:
        case TurnStart():
            changes |= {"turn": record.turn, "phase": "retrieval", "ended_by": ""}
        case TurnEnd():
            changes |= {"ended_by": short(record.reason, _NAME), "response": short(record.response)}
            changes |= {"phase": "", "acting": ""}
        case Intent():
            arguments = json.dumps(record.arguments, ensure_ascii=False, default=str)
            plain = record.candidate_id is None
            changes["acting"] = short(f"{record.action} {arguments}", 200)
            changes["phase"] = "action" if plain else status.phase
        case Receipt():
            changes |= {"acting": "", "result": short(f"{record.status}: {record.content}")}
        case Note():
            changes = _noted(status, f"{record.about}: {record.text}")
        case Percept() if record.sets_goal:
            changes = {"goal": short(record.content)}
        case Percept() if record.kind is PerceptKind.UNKNOWN_OUTCOME:
            changes = _noted(status, f"unknown outcome: {record.content}")
        case ModelCall():
            changes = _called(status, record)
        case _:
            changes = _came_to(status, record) if record.record == "outcome" else {}
    return changes


def _noted(status: RunStatus, text: str) -> dict[str, Any]:
    return {"notes": (*status.notes, short(text, 200))[-_NOTES:]}


def _called(status: RunStatus, call: ModelCall) -> dict[str, Any]:
    sums: dict[str, Any] = {"calls": status.calls + 1, "usage": status.usage + call.usage}
    if call.phase is not None:
        return sums
    wanted = ", ".join(short(str(one.get("name", "")), _NAME) for one in call.tool_calls[:5])
    decided = {"decision": wanted, "decided_by": "model"} if wanted else {}
    sums |= {"situation": short(call.raw) or status.situation, "since": call.at}
    return sums | decided | {"cycle": call.cycle, "phase": "action" if wanted else "model"}


def _came_to(status: RunStatus, outcome: Outcome) -> dict[str, Any]:
    earlier = status.outcomes if outcome.cycle == status.cycle else dict[Phase, Outcome]()
    outcomes = {**earlier, outcome.phase: outcome}
    summary = summarize_cycle(outcomes.values(), cycle=outcome.cycle)
    changes: dict[str, Any] = {
        "cycle": outcome.cycle,
        "phase": phase_after(outcome.phase).value,
        "since": outcome.at,
        "outcomes": outcomes,
    }
    changes |= {"considered": summary} if summary.proposal else {}
    match outcome:
        case ReasoningOutcome():
            risks = tuple(short(risk, 200) for risk in outcome.risks[:5])
            return changes | {"situation": short(outcome.situation), "risks": risks}
        case EvaluationOutcome():
            return changes | {"vetoes": _vetoes(status.vetoes, outcome)}
        case SelectionOutcome():
            return changes | _selected(status, summary)
        case ExecutionOutcome():
            ran = outcome.status is not ExecutionStatus.NONE
            result = f"{outcome.status}: {summary.result}" if ran else "none: nothing was run"
            return changes | {"acting": "", "result": short(result)}
        case _:
            return changes


def _vetoes(before: Mapping[str, int], outcome: EvaluationOutcome) -> Mapping[str, int]:
    vetoes = dict(before)
    for verdict in (one.rejected_by for one in outcome.evaluations):
        if verdict is not None:
            name = short(verdict.constraint, _NAME) or "unnamed"
            name = name if name in vetoes or len(vetoes) < _CONSTRAINTS else "others"
            vetoes[name] = vetoes.get(name, 0) + 1
    return vetoes


def _selected(status: RunStatus, summary: CycleSummary) -> dict[str, Any]:
    reason = {"reason": short(summary.reason, 200)}
    if summary.impasse:
        nobody = {"decision": "impasse", "decided_by": "nobody"}
        return reason | nobody | {"impasses": status.impasses + 1}
    actions = [one.candidate.action for one in summary.chosen]
    names = actions or (summary.selection.chosen if summary.selection else ())
    return reason | {
        "decision": ", ".join(short(name, _NAME) for name in names[:5]),
        "decided_by": summary.decided_by.value if summary.decided_by else "nobody",
    }


# ---- One run, followed while it is written ----


_WAITING = timedelta(seconds=1)
"""A phase that asks the model and has written nothing for so long waits for it."""
_GRACE = timedelta(seconds=5)
"""For so long a run whose trace nobody holds may be just opening or closing."""
_SILENT = timedelta(minutes=10)
"""Where it is not known who holds a trace: a run silent for longer was interrupted."""
_ASKING = frozenset({"reasoning", "proposal", "evaluation", "selection", "model"})


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
        return one_line(self.folder.path.name, _NAME)

    @property
    def agent(self) -> str:
        """The agent's name, cleaned; `?` where it cannot be known."""
        return "?" if self.info is None else one_line(self.info.agent[:_NAME]) or "?"

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
    """Reads a run as it grows, in slices; keeps its status, not its records."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._tail = TraceTail(folder.trace_path)
        self._status = RunStatus()
        self._info: RunInfo | None = None
        self._stamp = (0, 0)
        """Of `run.json` as it was read."""
        self._size: int = -1
        self._read_all = False
        self._fatal = ""
        self._changed = ""

    def advance(self, lines: int) -> bool:
        """Takes in at most so many further lines, at least 1; true if there may be more."""
        if self._fatal:
            return False
        try:
            self._look_at_info()
            size = self._stat("st_size")
            if self._read_all and size == self._size:
                return False
            self._read_all, self._size = self._take(lines) < lines, size
        except TraceError as error:
            self._fatal = one_line(str(error))
        return not (self._read_all or self._fatal)

    def view(self, now: datetime, held: frozenset[int] | None) -> RunView:
        """The run as it is now."""
        state = self._state(now, held)
        problem = self._fatal or self._changed
        if not problem and state in {RunState.ENDED, RunState.BROKE_OFF} and self._is_torn():
            problem = "The last line of the trace is truncated."
        return RunView(
            folder=self.folder,
            state=state,
            status=self._status,
            info=self._info,
            problem=problem,
            at=now,
        )

    def _stat(self, name: str) -> int:
        """Something of the trace's file; 0 if that is not there."""
        try:
            return int(getattr(self.folder.trace_path.stat(), name))
        except OSError:
            return 0

    def _look_at_info(self) -> None:
        stamp = (0, 0)
        with suppress(OSError):
            status = self.folder.info_path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
        if self._info is None or stamp != self._stamp:
            self._info, self._stamp = read_run(self.folder.path), stamp

    def _take(self, most: int) -> int:
        """Reads on; how many lines there were."""
        taken = 0
        for line in islice(self._tail.lines(), most):
            taken += 1
            for problem in line.problems:
                if problem.kind is ProblemKind.UNREADABLE:
                    raise TraceError(problem.path, problem.text)
                changed = one_line(f"The trace was changed: {problem.text}.")
                self._changed = self._changed or changed
            if line.entry is not None:
                self._status = self._status.with_record(line.entry.body)
        return taken

    def _state(self, now: datetime, held: frozenset[int] | None) -> RunState:
        info, status = self._info, self._status
        if self._fatal:
            return RunState.UNREADABLE
        if info is None or not self._read_all:
            return RunState.READING
        if info.ended_at is not None:
            return RunState.ENDED
        quiet = now - (status.since or info.started_at)
        gone = quiet > _GRACE and held is not None and self._stat("st_ino") not in held
        if gone or (held is None and quiet > _SILENT):
            return RunState.BROKE_OFF
        if not status.phase:
            return RunState.IDLE if status.records else RunState.RUNNING
        if status.acting:
            return RunState.ACTING
        waits = status.phase in _ASKING and quiet >= _WAITING
        return RunState.WAITING if waits else RunState.RUNNING

    def _is_torn(self) -> bool:
        """True if the trace does not end in a whole line."""
        try:
            with self.folder.trace_path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(size - 1, 0))
                return bool(size) and file.read(1) != b"\n"
        except OSError:
            return False
