"""What a run was at one of its boundaries, and what of its later life is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import ValidationError

from coag.agent import Remains
from coag.context import WorkingMemory, rebuild
from coag.errors import ConfigurationError
from coag.schema import (
    Entry,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    RecalledRecord,
    RetrievalOutcome,
    Snapshot,
    TraceRecord,
    Trust,
    TurnEnd,
    TurnStart,
    Written,
)
from coag.tracing import REDACTED, RunFolder, RunInfo, read_run, read_trace

from ._boundary import Boundary
from ._story import CycleStory, Stories

_GENERATIONS = 100
"""Forks of forks of forks that are followed back; a trace may be hostile."""


@dataclass(slots=True, kw_only=True)
class Past:
    """A run up to a boundary."""

    run: RunFolder
    info: RunInfo
    boundary: Boundary
    seq: int
    """Number of the first record that is not part of it."""
    remains: Remains = field(default_factory=Remains)
    """What the run's agent is taken up from."""
    at: datetime | None = None
    """When its last record was made."""
    recalled: dict[str, RecalledRecord] = field(default_factory=dict[str, RecalledRecord])
    """What was recalled so far, by the record's id."""
    knows_environment: bool = False
    """True if `remains.environment` is the environment's state as the cycle began."""

    def take(self, record: TraceRecord) -> None:
        """Takes in the next record of the past."""
        self.remains.take(record)
        match record:
            case RetrievalOutcome():
                self.at = record.at
                self.recalled |= {hit.record.id: hit for hit in record.records}
            case Note(about="environment"):
                self.knows_environment, self.remains.environment = False, None
            case Snapshot():
                self.at = record.at
                self.knows_environment = self.remains.environment is not None
            case _:
                self.at = record.at

    def take_over(self, before: Past) -> None:
        """Begins as a fork, in the turn and in the environment of the run it was forked from."""
        old, own = before.remains, self.remains
        own.turn, own.turn_open, own.outcomes = old.turn, old.turn_open, list(old.outcomes)
        own.environment, self.knows_environment = old.environment, before.knows_environment

    @property
    def working_memory(self) -> WorkingMemory:
        """The working memory as it was there."""
        if self.remains.snapshot is None:
            raise AssertionError("A boundary comes after a snapshot.")
        return rebuild(memory_of(self.remains.snapshot), self.remains.since)


@dataclass(slots=True, kw_only=True)
class Later:
    """What the run did from the boundary on."""

    inputs: list[list[Percept]] = field(default_factory=list[list[Percept]])
    """The messages of each later turn."""
    sensed: int = 0
    """Percepts that came on their own, not as messages."""
    written: list[Written] = field(default_factory=list[Written])
    recalled: dict[str, RecalledRecord] = field(default_factory=dict[str, RecalledRecord])
    """What its cycles recalled, by the record's id."""
    retrieved: tuple[RecalledRecord, ...] = ()
    """What the boundary's Retrieval recalled, where it came later."""
    constraints: tuple[str, ...] | None = None
    """Those in force in the boundary's cycle, where its Retrieval came later."""
    stories: Stories
    """Its cycles, from the boundary's on."""
    environment: object = None
    """The last state of the environment that the trace knows."""

    @property
    def cycles(self) -> tuple[CycleStory, ...]:
        """What became of each cycle."""
        return self.stories.told()

    def take(self, record: TraceRecord) -> None:
        """Takes in the next record after the boundary."""
        self.stories.take(record)
        match record:
            case Written():
                self.written.append(record)
            case TurnStart():
                self.inputs.append([])
            case Percept() if record.caused_by is None:
                self._input(record)
            case RetrievalOutcome():
                self.recalled |= {hit.record.id: hit for hit in record.records}
                if self.constraints is None:
                    self.constraints, self.retrieved = record.constraints, record.records
            case Snapshot() if record.environment is not None:
                self.environment = record.environment
            case _:
                pass

    def _input(self, percept: Percept) -> None:
        said = percept.kind is PerceptKind.MESSAGE and percept.trust is not Trust.DEVELOPER
        if said and self.inputs:
            self.inputs[-1].append(percept)
        self.sensed += percept.kind in (PerceptKind.PROPERTY_CHANGE, PerceptKind.SIGNAL)


def read_past(run: RunFolder, boundary: Boundary) -> tuple[Past, Later]:
    """What the run was at the boundary, and what it did from there on; nothing is written.

    Raises:
        ConfigurationError: It is a plain agent's run, has no such boundary, or the trace does not
            keep a secret that the cycle held.
        TraceError: The run cannot be read.
    """
    info = read_run(run.path)
    if info.kind != "coag":
        raise ConfigurationError(
            f"Run {info.id!r} is a plain agent's: it has no phases to go back to. `coag log` shows "
            "what it did."
        )
    seq = boundary.seq_in(_entries(run), info)
    past = Past(run=run, info=info, boundary=boundary, seq=seq)
    inherit(past)
    later = Later(stories=Stories(first=boundary.cycle))
    for entry in _entries(run):
        if entry.seq < seq:
            past.take(entry.body)
            later.stories.take(entry.body)
            later.environment = past.remains.environment
        else:
            later.take(entry.body)
    _check(past)
    return past, later


def inherit(past: Past, generations: int = _GENERATIONS) -> None:
    """What a fork's own trace does not tell of how it began: its turn, its environment."""
    parent = past.info.parent
    if parent is None or not generations:
        return
    folder = RunFolder((past.run.path.parent / parent.path).resolve())
    boundary = Boundary(cycle=parent.cycle, phase=parent.phase)
    if not folder.exists:
        past.remains.turn, past.remains.turn_open = _first_turn(past.run), True
        return
    before = Past(run=folder, info=read_run(folder.path), boundary=boundary, seq=parent.seq)
    inherit(before, generations - 1)
    for entry in _entries(folder):
        if entry.seq >= parent.seq:
            break
        before.take(entry.body)
    past.take_over(before)


def _first_turn(run: RunFolder) -> int:
    """The turn that a fork began in, going by the first one that its trace names."""
    for entry in _entries(run):
        if isinstance(entry.body, TurnEnd):
            return entry.body.turn
        if isinstance(entry.body, TurnStart):
            return entry.body.turn - 1
    return 1


def _check(past: Past) -> None:
    memory = past.working_memory
    if memory.in_cycle and REDACTED in str(memory.to_json()):
        raise ConfigurationError(
            f"Cycle {past.boundary.cycle} of run {past.info.id!r} held a secret that the trace "
            f"does not keep: fork it at its retrieval ({past.boundary.cycle}.retrieval)."
        )


def _entries(run: RunFolder) -> Iterator[Entry]:
    """The lines of a trace; of one that a crash cut off, those that are whole."""
    return read_trace(run.trace_path, lambda problem: None)


def memory_of(snapshot: Snapshot) -> WorkingMemory:
    """The working memory that a snapshot holds.

    Raises:
        ConfigurationError: It holds none that can be read.
    """
    try:
        return WorkingMemory.model_validate(snapshot.working_memory)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(
            f"The working memory in the trace's snapshot of cycle {snapshot.cycle} cannot be read: "
            f"{where}: {first['msg']}."
        ) from error


def outcomes_of(memory: WorkingMemory) -> Iterator[Outcome]:
    """The outcomes of the cycle that a working memory stands in the middle of."""
    if memory.in_cycle:
        for name in type(memory.cognitive_state).model_fields:
            outcome = getattr(memory.cognitive_state, name)
            if outcome is not None:
                yield outcome
