"""Where a run can be forked, and what its cycles decided."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import Self

from pydantic import Field

from coag._util.text import well_formed
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import (
    PHASES,
    Candidate,
    Entry,
    ModelCall,
    OutputMode,
    Phase,
    RetrievalOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    Value,
)
from coag.tracing import CycleSummary, RunInfo, known_cycles, summarize_cycle

# ---- A place between two phases of a run, from which it can be continued otherwise ----


_FORM = re.compile(r"\s*(\d{1,9})(?:\.(\w+))?\s*")


class Boundary(Value):
    """Right before a phase of a cycle: what came before is the past, the phase is run again."""

    cycle: int = Field(ge=1)
    phase: Phase = Phase.RETRIEVAL

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `CYCLE.PHASE`, e.g. `3.evaluation`; `CYCLE` alone means its retrieval.

        Raises:
            ConfigurationError: It is neither.
            UnknownNameError: There is no such phase; lists those there are.
        """
        match = _FORM.fullmatch(text)
        if match is None or int(match[1]) < 1:
            problem = f"{text!r} is no boundary: write CYCLE.PHASE, e.g. 3.evaluation, or CYCLE"
            raise ConfigurationError(f"{problem} alone; cycles count from 1.")
        phase = (match[2] or Phase.RETRIEVAL).casefold()
        if phase not in PHASES:
            raise UnknownNameError("phase", phase, PHASES)
        return cls(cycle=int(match[1]), phase=Phase(phase))

    def __str__(self) -> str:
        return f"{self.cycle}.{self.phase.value}"

    @property
    def before(self) -> Phase | None:
        """The phase whose outcome ends the past; None before Retrieval."""
        number = PHASES.index(self.phase)
        return PHASES[number - 1] if number else None

    def seq_in(self, entries: Iterable[Entry], run: RunInfo) -> int:
        """The number of the first record of a trace that is not part of the past.

        Args:
            entries: The trace.
            run: The run, for errors.

        Raises:
            ConfigurationError: The trace has no such cycle, or did not come so far in it.
        """
        seq: int | None = None
        last: tuple[int, Phase] | None = None
        for entry in entries:
            body = entry.body
            if isinstance(body, Snapshot) and self._is_state_of(body):
                seq = entry.seq + 1
            if body.record != "outcome":
                continue
            last = (body.cycle, body.phase)
            if last == (self.cycle, self.before):
                seq = entry.seq + 1
            begun = isinstance(body, RetrievalOutcome) and body.cycle == self.cycle
            if begun if self.before is None else seq is not None:
                break
        if seq is None:
            raise ConfigurationError(self._problem(last, run))
        return seq

    def _is_state_of(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot shows the state at the boundary."""
        phase = snapshot.working_memory.get("phase")
        if self.before is None:
            starts = (SnapshotReason.CYCLE, SnapshotReason.FORKED)
            between = phase in (None, Phase.EXECUTION.value)
            return snapshot.cycle == self.cycle - 1 and snapshot.reason in starts and between
        here = (snapshot.cycle, phase)
        return snapshot.reason is SnapshotReason.FORKED and here == (self.cycle, self.before)

    def _problem(self, last: tuple[int, Phase] | None, run: RunInfo) -> str:
        if last is None:
            return f"Run {run.id!r} has no cycle yet."
        cycle, phase = last
        if cycle == self.cycle and self.before is not None:
            return (
                f"Cycle {cycle} of run {run.id!r} came as far as {phase.value}: "
                f"{self.phase.value} cannot be run again there."
            )
        return f"Run {run.id!r} has {known_cycles(run, cycle)}: {self} is not in its trace."


# ---- The result of each cycle, in a form in which two runs can be compared ----


class Choice(Value):
    """An action with its arguments: what two decisions are compared by."""

    action: str
    arguments: str
    """The arguments as JSON, in one form."""

    @classmethod
    def of(cls, candidate: Candidate) -> Choice:
        """What a candidate is to do."""
        raw = candidate.raw_arguments
        with suppress(ValueError, RecursionError):  # what is no JSON stays as it is
            raw = well_formed(json.dumps(json.loads(raw), ensure_ascii=False, sort_keys=True))
        return cls(action=candidate.action, arguments=raw)

    def __str__(self) -> str:
        return f"{self.action} {self.arguments}"


class Rejection(Value):
    """A candidate that did not survive Evaluation."""

    choice: Choice
    constraint: str
    """The check or rule that forbade it."""
    reason: str


class CycleResult(Value):
    """A cycle's decision and its result."""

    cycle: int
    chosen: tuple[Choice, ...] | None = None
    """Empty for an impasse; None if the cycle did not come so far."""
    decided_by: str | None = None
    reason: str = ""
    """Why it was chosen."""
    deaths: tuple[Rejection, ...] = ()
    """The rejected candidates."""
    status: str | None = None
    """How Execution ended; None if it was not reached."""
    result: str = ""


def choices(summary: CycleSummary) -> tuple[Choice, ...] | None:
    """What was chosen in a cycle; None before its Selection."""
    if summary.selection is None:
        return None
    return tuple(Choice.of(one.candidate) for one in summary.chosen)


def cycle_results(records: Iterable[TraceRecord], first: int = 1) -> Iterator[CycleResult]:
    """The results of a trace's cycles, in order; the last one may have no end.

    Args:
        records: The trace; only outcomes count.
        first: The first cycle of interest.
    """
    outcomes = (one for one in records if one.record == "outcome" and one.cycle >= first)
    for _, of_cycle in groupby(outcomes, key=lambda outcome: outcome.cycle):
        summary = summarize_cycle(of_cycle)
        execution = summary.execution
        yield CycleResult(
            cycle=summary.cycle,
            chosen=choices(summary),
            decided_by=summary.decided_by,
            reason=summary.reason,
            deaths=tuple(
                Rejection(
                    choice=Choice.of(one.candidate),
                    constraint=one.rejected_by.constraint,
                    reason=one.rejected_by.reason,
                )
                for one in summary.rejected
                if one.rejected_by is not None
            ),
            status=None if execution is None else execution.status.value,
            result=summary.result,
        )


def procedure_of(call: ModelCall) -> str:
    """The procedure by which a model was asked; empty if there was none."""
    if call.expected == "DeliberationAnswer":
        return "deliberation"
    if call.rung is OutputMode.NATIVE:
        return "native"
    return call.phase.value if call.phase else ""
