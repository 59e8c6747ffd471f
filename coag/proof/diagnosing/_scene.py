"""From the records of a trace to scenes: one cycle each, with what it came to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import ValidationError

from coag.schema import (
    Candidate,
    Entry,
    Evaluation,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    Record,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TraceRecord,
    TurnEnd,
    Written,
    merge_patch,
)

from ._causes import Evidence

RAW = 200
"""Characters of a model's answer that are kept."""


@dataclass(frozen=True, slots=True)
class Call:
    """A model call without its messages."""

    phase: Phase | None
    attempt: int
    error: str | None
    raw: str
    """The beginning of the answer."""
    empty: bool
    """True if the answer holds neither text nor tool calls."""


@dataclass(frozen=True, slots=True)
class Return:
    """What came back of an action, and the state that it led to."""

    seq: int
    percept: Percept
    before: Mapping[str, Any]
    """The perceptual state as it was."""
    after: Mapping[str, Any]
    """The perceptual state as it became."""


@dataclass(slots=True)
class Scene:
    """One cycle: what was known, what each phase gave, and what came back."""

    cycle: int
    state: Mapping[str, Any]
    """The perceptual state that it deliberated on."""
    goal: str
    outcomes: dict[Phase, tuple[int, Outcome]] = field(
        default_factory=dict[Phase, tuple[int, Outcome]]
    )
    """Each phase's outcome with its number."""
    calls: list[tuple[int, Call]] = field(default_factory=list[tuple[int, Call]])
    notes: list[tuple[int, Note]] = field(default_factory=list[tuple[int, Note]])
    intents: list[tuple[int, Intent]] = field(default_factory=list[tuple[int, Intent]])
    receipts: list[tuple[int, Receipt]] = field(default_factory=list[tuple[int, Receipt]])
    returns: list[Return] = field(default_factory=list[Return])
    written: list[tuple[int, Record]] = field(default_factory=list[tuple[int, Record]])
    end: tuple[int, TurnEnd] | None = None
    """The end of its turn, where it was the last cycle of one."""

    @property
    def retrieval(self) -> RetrievalOutcome | None:
        """What Retrieval gave."""
        found = self.outcomes.get(Phase.RETRIEVAL)
        return cast("RetrievalOutcome", found[1]) if found else None

    @property
    def reasoning(self) -> ReasoningOutcome | None:
        """What Reasoning gave."""
        found = self.outcomes.get(Phase.REASONING)
        return cast("ReasoningOutcome", found[1]) if found else None

    @property
    def proposal(self) -> ProposalOutcome | None:
        """What Proposal gave."""
        found = self.outcomes.get(Phase.PROPOSAL)
        return cast("ProposalOutcome", found[1]) if found else None

    @property
    def evaluation(self) -> EvaluationOutcome | None:
        """What Evaluation gave."""
        found = self.outcomes.get(Phase.EVALUATION)
        return cast("EvaluationOutcome", found[1]) if found else None

    @property
    def selection(self) -> SelectionOutcome | None:
        """What Selection gave."""
        found = self.outcomes.get(Phase.SELECTION)
        return cast("SelectionOutcome", found[1]) if found else None

    @property
    def execution(self) -> ExecutionOutcome | None:
        """What Execution gave."""
        found = self.outcomes.get(Phase.EXECUTION)
        return cast("ExecutionOutcome", found[1]) if found else None

    @property
    def executed(self) -> tuple[Executed, ...]:
        """What was run."""
        return self.execution.executed if self.execution else ()

    def candidate(self, name: str | None) -> Candidate | None:
        """The proposed candidate of this id."""
        proposed = self.proposal.candidates if self.proposal else ()
        return next((one for one in proposed if one.id == name), None)

    def judged(self, name: str | None) -> Evaluation | None:
        """What Evaluation found out about the candidate of this id."""
        judged = self.evaluation.evaluations if self.evaluation else ()
        return next((one for one in judged if one.candidate_id == name), None)

    def at(self, phase: Phase, text: str) -> Evidence:
        """A phase's outcome as evidence; the earliest record of the scene where it has none."""
        seq = self.outcomes[phase][0] if phase in self.outcomes else self.first
        return Evidence(seq=seq, cycle=self.cycle, phase=phase, text=text)

    def unanswered(self, phase: Phase) -> bool:
        """Whether a phase had to do without the model's answer: its last call failed."""
        calls = [call for _, call in self.calls if call.phase is phase]
        return bool(calls) and calls[-1].error is not None

    @property
    def first(self) -> int:
        """Number of its earliest record."""
        seqs = [seq for seq, _ in self.outcomes.values()] + [seq for seq, _ in self.calls]
        seqs += [seq for seq, _ in self.intents] + ([self.end[0]] if self.end else [])
        return min(seqs, default=0)


class Scenes:
    """Reads records and gives a scene when the next one begins; holds one at a time."""

    def __init__(self) -> None:
        self._state: dict[str, Any] = {}
        self._goal = ""
        self._known = False
        self._scene: Scene | None = None

    def of(self, entries: Iterable[Entry | TraceRecord]) -> Iterator[Scene]:
        """The scenes of a trace, in order."""
        for index, entry in enumerate(entries):
            seq, record = (entry.seq, entry.body) if isinstance(entry, Entry) else (index, entry)
            if isinstance(record, Snapshot):
                self._take_snapshot(record)
                continue
            if self._begins(record):
                if self._scene is not None:
                    yield self._scene
                self._scene = self._new(record)
            self._take(seq, record)
        if self._scene is not None:
            yield self._scene

    def _begins(self, record: TraceRecord) -> bool:
        """Retrieval begins a cycle; of a plain run, the first record of a turn does."""
        if isinstance(record, RetrievalOutcome):
            return self._scene is None or bool(self._scene.outcomes) or bool(self._scene.intents)
        if isinstance(record, ModelCall | Intent):
            return self._scene is None or (
                record.cycle != self._scene.cycle and Phase.RETRIEVAL not in self._scene.outcomes
            )
        return False

    def _new(self, record: TraceRecord) -> Scene:
        cycle = 0 if isinstance(record, Percept) else record.cycle
        return Scene(cycle=cycle, state=self._state, goal=self._goal)

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        if snapshot.reason == "cycle" and self._known:
            return
        memory = snapshot.working_memory
        self._state = dict(memory.get("perceptual_state") or {})
        self._goal = str(memory.get("goal") or "")
        self._known = True

    def _take(self, seq: int, record: TraceRecord) -> None:
        if isinstance(record, Percept):
            self._perceive(seq, record)
            return
        scene = self._scene
        if scene is None:
            return
        if isinstance(record, ModelCall):
            empty = not record.raw.strip() and not record.tool_calls
            call = Call(record.phase, record.attempt, record.error, record.raw[:RAW], empty)
            scene.calls.append((seq, call))
        elif isinstance(record, TurnEnd):
            scene.end = (seq, record)
        elif isinstance(record, Written):
            if record.what == "record":
                with suppress(ValidationError):  # a trace may hold anything; `verify` tells of it
                    scene.written.append((seq, Record.model_validate(record.content)))
        elif record.record == "outcome":
            scene.outcomes[record.phase] = (seq, record)
        else:
            _keep(scene, seq, record)

    def _perceive(self, seq: int, percept: Percept) -> None:
        before = self._state
        if percept.state_patch:
            self._state = merge_patch(self._state, percept.state_patch)
        if percept.sets_goal:
            self._goal = percept.content
        if percept.kind is PerceptKind.MESSAGE or self._scene is None:
            return
        self._scene.returns.append(Return(seq, percept, before, self._state))


def _keep(scene: Scene, seq: int, record: TraceRecord) -> None:
    if isinstance(record, Note):
        scene.notes.append((seq, record))
    elif isinstance(record, Intent):
        scene.intents.append((seq, record))
    elif isinstance(record, Receipt):
        scene.receipts.append((seq, record))
