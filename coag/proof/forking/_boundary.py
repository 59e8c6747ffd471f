"""A place between two phases of a run, from which it can go on otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

from pydantic import Field

from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import PHASES, Entry, Phase, RetrievalOutcome, Snapshot, SnapshotReason, Value
from coag.tracing import RunInfo, known_cycles

_FORM = re.compile(r"\s*(\d{1,9})(?:\.(\w+))?\s*")


class Boundary(Value):
    """Right before a phase of a cycle: what came before is the past, the phase is run anew."""

    cycle: int = Field(ge=1)
    phase: Phase = Phase.RETRIEVAL

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `CYCLE.PHASE`, e.g. `3.evaluation`; `CYCLE` alone means its retrieval.

        Raises:
            ConfigurationError: It is neither.
            UnknownNameError: There is no such phase; lists those there are.
        """
        found = _FORM.fullmatch(text)
        if found is None or int(found[1]) < 1:
            raise ConfigurationError(
                f"{text!r} is no boundary. Write CYCLE.PHASE, e.g. 3.evaluation, or CYCLE alone "
                "for its retrieval; cycles count from 1."
            )
        phase = (found[2] or Phase.RETRIEVAL).casefold()
        if phase not in PHASES:
            raise UnknownNameError("phase", phase, PHASES)
        return cls(cycle=int(found[1]), phase=Phase(phase))

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
        seen = _Seen(self)
        for entry in entries:
            if seen.take(entry):
                break
        if seen.seq is None:
            raise ConfigurationError(seen.problem(run))
        return seen.seq


class _Seen:
    """What was read of a trace while a boundary is looked for in it."""

    def __init__(self, boundary: Boundary) -> None:
        self.seq: int | None = None
        self._boundary = boundary
        self._last: tuple[int, Phase] | None = None

    def take(self, entry: Entry) -> bool:
        """Takes in a line; True once nothing further can matter."""
        boundary, body = self._boundary, entry.body
        if isinstance(body, Snapshot) and _is_at(body, boundary):
            self.seq = entry.seq + 1
        if body.record != "outcome":
            return False
        self._last = (body.cycle, body.phase)
        if boundary.before is None:
            return isinstance(body, RetrievalOutcome) and body.cycle == boundary.cycle
        if self._last == (boundary.cycle, boundary.before):
            self.seq = entry.seq + 1
        return self.seq is not None

    def problem(self, run: RunInfo) -> str:
        """Why the boundary is not there."""
        boundary = self._boundary
        if self._last is None:
            return f"Run {run.id!r} has no cycle yet."
        cycle, phase = self._last
        if cycle == boundary.cycle and boundary.before is not None:
            return (
                f"Cycle {cycle} of run {run.id!r} came as far as {phase.value}: "
                f"{boundary.phase.value} cannot be run anew there."
            )
        return f"Run {run.id!r} has {known_cycles(run, cycle)}: {boundary} is not in its trace."


def _is_at(snapshot: Snapshot, boundary: Boundary) -> bool:
    """Whether a snapshot shows the state at the boundary."""
    phase = snapshot.working_memory.get("phase")
    if boundary.before is None:
        starts = (SnapshotReason.CYCLE, SnapshotReason.FORKED)
        between = phase in (None, Phase.EXECUTION.value)
        return snapshot.cycle == boundary.cycle - 1 and snapshot.reason in starts and between
    here = (snapshot.cycle, phase)
    return snapshot.reason is SnapshotReason.FORKED and here == (boundary.cycle, boundary.before)
