"""The trace of an agent that is not ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coag.errors import ConfigurationError, error_type
from coag.models import CallContext
from coag.schema import (
    Clock,
    CountingIds,
    Failure,
    Intent,
    ModelCall,
    Note,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    Returned,
    SystemClock,
    TraceRecord,
    TraceSink,
    Trust,
    TurnEnd,
    TurnStart,
    new_run_id,
    well_formed,
)
from coag.tracing import (
    MemoryTrace,
    Recipe,
    RunFolder,
    RunInfo,
    TraceWriter,
    installed_versions,
    open_trace,
    read_trace,
)

from ._announced import AnnouncedCalls, Attempt
from ._listed_tools import ListedTools

PERSON = "user"
"""The source of messages from the person whom an agent serves, as AutoGen names it."""


class Recorder:
    """Writes the run of a plain agent down as it happens; a turn is its cycle.

    In RAM, or as a run folder (`kind: plain`) that `coag log` shows. Every record up to an
    intent, a receipt or a turn's end is handed over with it. Once the trace cannot be written,
    each further record raises: an agent that is written down does nothing unrecorded.

    Args:
        logs: The folder of all runs, which gets the run's folder; None keeps the trace in RAM.
        agent: The agent's name.
        model: The model as the user named it.
        seed: The seed of what the agent is put into.
        configuration: The agent's settings, as JSON.
        clock: Dates the records.
        recipe: How to build the agent again, for `coag replay`: its factory gives a function of a
            client, a workbench and a recorder, which makes the agent over them.
        trace: Where the records go instead, without `logs`.

    Raises:
        TraceError: The folder cannot be written to.
    """

    def __init__(
        self,
        logs: Path | str | None = None,
        *,
        agent: str,
        model: str = "",
        seed: int | None = None,
        configuration: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        recipe: Recipe | None = None,
        trace: TraceSink | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.ids = CountingIds()
        self.model = model
        self.turn = 0
        """The turn that is going on, from 1; 0 before the first."""
        self.announced = AnnouncedCalls()
        """Calls whose intents are written, and which nobody has begun to run."""
        self.tools = ListedTools(self.write)
        """What tools there are, as far as somebody has listed them."""
        self._folder: RunFolder | None = None
        self._trace: TraceSink = trace or MemoryTrace()
        self._closed = False
        if logs is None:
            return
        now = self.clock.now()
        info = RunInfo(
            id=new_run_id(now, agent),
            kind="plain",
            agent=agent,
            model=model,
            recipe=recipe,
            seed=seed,
            versions=installed_versions(),
            configuration=dict(configuration or {}),
            started_at=now,
        )
        self._folder = RunFolder.create(Path(logs), info)
        self._trace = open_trace(self._folder, clock=self.clock)

    @property
    def folder(self) -> RunFolder:
        """The run's folder.

        Raises:
            ConfigurationError: There is none: the trace is kept in RAM.
        """
        if self._folder is None:
            raise ConfigurationError("This run is kept in RAM: for a folder, give `logs=DIR`.")
        return self._folder

    @property
    def records(self) -> tuple[TraceRecord, ...]:
        """What was written so far, oldest first.

        Raises:
            TraceError: The trace cannot be read.
        """
        if isinstance(self._trace, MemoryTrace):
            return self._trace.records
        if not self._closed:
            self._trace.flush()
        return tuple(entry.body for entry in read_trace(self.folder.trace_path))

    @property
    def context(self) -> CallContext:
        """For model calls that are made now."""
        return CallContext(clock=self.clock, ids=self.ids, cycle=self.turn, on_call=self.model_call)

    def begin_turn(self) -> None:
        """Notes that messages have arrived and the agent is to act."""
        self.turn += 1
        self._trace.write(TurnStart(at=self.clock.now(), turn=self.turn, cycle=self.turn))

    def end_turn(self, reason: str, response: str, error: BaseException | None = None) -> None:
        """Notes how the turn ended, and what broke it off, if anything did."""
        self._trace.write(
            TurnEnd(
                at=self.clock.now(),
                turn=self.turn,
                cycle=self.turn,
                reason=reason,
                response=well_formed(response),
                error_type=None if error is None else error_type(error),
            )
        )

    def message(self, source: str, text: str) -> None:
        """Writes down a message that reached the agent."""
        self._trace.write(
            Percept(
                id=self.ids("percept"),
                at=self.clock.now(),
                kind=PerceptKind.MESSAGE,
                source=source,
                trust=Trust.USER if source == PERSON else Trust.UNTRUSTED,
                content=well_formed(text),
            )
        )

    def write(self, record: TraceRecord) -> None:
        """Writes any record down.

        Raises:
            TraceError: It cannot be written.
        """
        self._trace.write(record)

    def model_call(self, call: ModelCall) -> None:
        """Writes a model call down."""
        self._trace.write(call)

    def note(self, about: str, text: str) -> None:
        """Writes down something that is none of the others."""
        now = self.clock.now()
        self._trace.write(Note(at=now, cycle=self.turn, about=about, text=well_formed(text)))

    def begin(self, action: str, arguments: Mapping[str, Any]) -> Attempt:
        """Writes and flushes the intent right before an action.

        Raises:
            TraceError: It cannot be written: the action must not be run.
        """
        intent = Intent(
            id=self.ids("intent"),
            at=self.clock.now(),
            cycle=self.turn,
            candidate_id=None,
            action=action,
            arguments=dict(arguments),
        )
        self._trace.write(intent)
        return Attempt(intent=intent, begun=self.clock.monotonic())

    def end(
        self,
        attempt: Attempt,
        status: ReceiptStatus,
        content: str,
        failure: Failure | None = None,
        returned: Returned | None = None,
    ) -> None:
        """Writes and flushes the receipt right after it.

        Raises:
            TraceError: It cannot be written.
        """
        self._trace.write(
            Receipt(
                intent_id=attempt.intent_id,
                at=self.clock.now(),
                cycle=self.turn,
                status=status,
                content=well_formed(content),
                failure=failure,
                seconds=round(self.clock.monotonic() - attempt.begun, 6),
                returned=returned,
            )
        )

    def close(self) -> None:
        """Ends the run's log; closing twice does no harm."""
        if self._closed:
            return
        self._closed = True
        if isinstance(self._trace, TraceWriter):
            self._trace.close()
            self.folder.finish(at=self.clock.now())
