"""The trace of a plain agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coag.schema import (
    Clock,
    CountingIds,
    Failure,
    Intent,
    ModelCall,
    Note,
    Receipt,
    ReceiptStatus,
    SystemClock,
    TraceRecord,
    TurnEnd,
    TurnStart,
    new_run_id,
)
from coag.tracing import RunFolder, RunInfo, TraceWriter, installed_versions, open_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A tool call that reached Execution."""

    intent_id: str
    """Names it in the trace, and the action in the world."""
    begun: float
    """The clock's monotonic reading, in seconds."""


class PlainRecorder:
    """Writes a plain agent's run down as it happens; a turn is its cycle.

    Args:
        logs: Gets the run's folder.
        agent: The agent's name.
        model: The model as the user named it.
        seed: The seed of what the agent is put into.
        configuration: The agent's settings, as JSON.
        clock: Dates the records.

    Raises:
        TraceError: The folder cannot be written to.
    """

    def __init__(
        self,
        logs: Path,
        *,
        agent: str,
        model: str,
        seed: int,
        configuration: Mapping[str, Any],
        clock: Clock | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.ids = CountingIds()
        self.model = model
        self.turn = 0
        """The turn that is going on, from 1."""
        now = self.clock.now()
        info = RunInfo(
            id=new_run_id(now, agent),
            kind="plain",
            agent=agent,
            model=model,
            seed=seed,
            versions=installed_versions(),
            configuration=dict(configuration),
            started_at=now,
        )
        self.folder = RunFolder.create(logs, info)
        self._writer: TraceWriter = open_trace(self.folder, clock=self.clock)

    def begin_turn(self) -> None:
        """Notes that messages have arrived and the agent is to act."""
        self.turn += 1
        self._write(TurnStart(at=self.clock.now(), turn=self.turn, cycle=self.turn))

    def end_turn(self, reason: str, response: str) -> None:
        """Notes how the turn ended."""
        now = self.clock.now()
        self._write(
            TurnEnd(at=now, turn=self.turn, cycle=self.turn, reason=reason, response=response)
        )

    def model_call(self, call: ModelCall) -> None:
        """Writes a model call down."""
        self._write(call)

    def note(self, about: str, text: str) -> None:
        """Writes down something that is neither of the others."""
        self._write(Note(at=self.clock.now(), cycle=self.turn, about=about, text=text))

    def begin(self, action: str, arguments: Mapping[str, Any]) -> Attempt:
        """Writes and flushes the intent right before an action."""
        intent = Intent(
            id=self.ids("intent"),
            at=self.clock.now(),
            cycle=self.turn,
            candidate_id=None,
            action=action,
            arguments=dict(arguments),
        )
        self._write(intent)
        return Attempt(intent_id=intent.id, begun=self.clock.monotonic())

    def end(
        self,
        attempt: Attempt,
        status: ReceiptStatus,
        content: str,
        failure: Failure | None = None,
    ) -> None:
        """Writes and flushes the receipt right after it."""
        seconds = round(self.clock.monotonic() - attempt.begun, 6)
        self._write(
            Receipt(
                intent_id=attempt.intent_id,
                at=self.clock.now(),
                cycle=self.turn,
                status=status,
                content=content,
                failure=failure,
                seconds=seconds,
            )
        )

    def close(self) -> None:
        """Ends the run's log."""
        self._writer.close()
        self.folder.finish(at=self.clock.now())

    def _write(self, record: TraceRecord) -> None:
        self._writer.write(record)
