"""The trace of runs of a stock agent under guard, and what earlier runs left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coag.context import WorkingMemory
from coag.errors import ConfigurationError, TraceError
from coag.schema import (
    Clock,
    Intent,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    Snapshot,
    TraceRecord,
    UnsettledAction,
    new_run_id,
)
from coag.tracing import (
    MemoryTrace,
    RunFolder,
    TraceWriter,
    list_runs,
    open_trace,
    read_run,
    read_trace,
)

from .recorder import begin_plain_run

_UNSETTLED, _SETTLED = "unsettled", "settled"
"""Keys of a run's result: actions of unknown outcome, and intents whose outcome became known."""
_ENDS = (ReceiptStatus.DONE, ReceiptStatus.FAILED)
_LIVE = (
    "another of this name is at work, and what it has begun is not known here. Give each a name "
    "of its own."
)
_ENDED = "The process ended while this ran. It may or may not have had its effect."


@dataclass(frozen=True, slots=True)
class OpenActions:
    """Actions that earlier runs began and of which they did not record an outcome."""

    intents: tuple[Intent, ...] = ()
    """Intents without a receipt, found now."""
    unsettled: tuple[UnsettledAction, ...] = ()
    """All actions whose outcome neither their run nor a later one learned."""
    problems: tuple[str, ...] = ()
    """Runs that could not be read, and why."""


class GuardTrace:
    """A run's trace, in RAM or in a folder; a `TraceSink`. It begins at the first `open`."""

    def __init__(
        self, logs: Path | None, agent: str, clock: Clock, configuration: Mapping[str, Any]
    ) -> None:
        self.id = ""
        """The run's id; empty before the first run, and between two."""
        self._logs = logs
        self._agent = agent
        self._clock = clock
        self._configuration = dict(configuration)
        self._folder: RunFolder | None = None
        self._trace: TraceWriter | MemoryTrace = MemoryTrace()

    @property
    def folder(self) -> RunFolder:
        """The folder of the run, or of the one that has just ended."""
        if self._folder is None:
            raise ConfigurationError(
                "This run is kept in RAM: for a folder, give `logs=DIR`."
                if self._logs is None
                else "No run has begun: its folder is made with the first call."
            )
        return self._folder

    @property
    def records(self) -> tuple[TraceRecord, ...]:
        """What the run, or the one that has just ended, has written so far, oldest first."""
        if isinstance(self._trace, MemoryTrace):
            return self._trace.records
        if self.id:
            self._trace.flush()
        return tuple(entry.body for entry in read_trace(self.folder.trace_path))

    def open(self) -> OpenActions | None:
        """Begins a run and returns what earlier ones left open; None if a run is open already."""
        if self.id:
            return None
        if self._logs is None:
            self.id, self._trace = new_run_id(self._clock.now(), self._agent), MemoryTrace()
            return OpenActions()
        open_actions = _settle_runs(self._logs, self._agent, self._clock)
        self._folder = begin_plain_run(
            self._logs, self._agent, self._clock, model="", configuration=self._configuration
        )
        self._trace = open_trace(self._folder, clock=self._clock)
        self.id = self._folder.path.name
        return open_actions

    def close(self) -> None:
        """Ends the run, if one is open; the next `open` begins another."""
        if self.id and isinstance(self._trace, TraceWriter):
            self._trace.close()
            records = [entry.body for entry in read_trace(self.folder.trace_path)]
            if not _lost(records):  # else the next run finds it as one that broke off
                self.folder.finish(at=self._clock.now(), result=_outcomes_of(records) or None)
        self.id = ""

    def write(self, record: TraceRecord) -> None:
        """Appends a record; refuses the receipt of a call whose run was ended while it ran."""
        if self._folder is not None and isinstance(record, Receipt):
            run = record.intent_id.rpartition(".")[0]
            if run != self.id:
                raise TraceError(self._folder.path.with_name(run), "was ended while the call ran.")
        self._trace.write(record)

    def flush(self) -> None:
        """Makes what was written survive the death of this process."""
        self._trace.flush()


def _settle_runs(logs: Path, agent: str, clock: Clock) -> OpenActions:
    """Gives intents of this agent's abandoned runs the receipt that they lack.

    A run that another writer holds is still open; it is not touched.
    """
    intents: list[Intent] = []
    problems: list[str] = []
    unsettled: dict[str, UnsettledAction] = {}
    settled: set[str] = set()
    for folder in list_runs(logs) if logs.is_dir() else ():
        try:
            info = read_run(folder.path)
            if info.kind != "plain" or info.agent != agent:
                continue
            result = info.result or {}
            if info.ended_at is None and folder.held:
                problems.append(f"{folder.path.name}: {_LIVE}")
            elif info.ended_at is None:
                lost, result = _settle(folder, clock)
                intents += lost
            actions = map(UnsettledAction.model_validate, result.get(_UNSETTLED, ()))
            unsettled |= {action.intent_id: action for action in actions}
            settled.update(result.get(_SETTLED, ()))
        except (TraceError, ValidationError) as error:
            problems.append(str(error))
    open_actions = tuple(action for name, action in unsettled.items() if name not in settled)
    return OpenActions(tuple(intents), open_actions, tuple(problems))


def _lost(records: Sequence[TraceRecord]) -> list[Intent]:
    ended = {each.intent_id for each in records if isinstance(each, Receipt)}
    return [each for each in records if isinstance(each, Intent) and each.id not in ended]


def _outcomes_of(records: Sequence[TraceRecord]) -> dict[str, Any]:
    known = {
        each.intent_id for each in records if isinstance(each, Receipt) and each.status in _ENDS
    }
    begun = [
        UnsettledAction(
            intent_id=one.id, action=one.action, arguments=one.arguments, cycle=one.cycle
        )
        for one in records
        if isinstance(one, Intent) and one.id not in known
    ]
    settled: set[str] = set()
    for record in records:
        if isinstance(record, Snapshot):
            memory = WorkingMemory.model_validate(record.working_memory)
            begun += memory.unsettled
        if isinstance(record, Percept):
            settled.update(record.settles)
            if record.kind is PerceptKind.UNKNOWN_OUTCOME:
                begun.append(
                    UnsettledAction(
                        intent_id=record.caused_by or record.id,
                        action=record.source,
                        arguments=record.arguments or {},
                        cycle=0,
                    )
                )
    unsettled = {one.intent_id: one for one in begun if one.intent_id not in settled}
    actions = [one.model_dump(mode="json") for one in unsettled.values()]
    return {_UNSETTLED: actions, _SETTLED: sorted(settled)} if actions or settled else {}


def _settle(folder: RunFolder, clock: Clock) -> tuple[list[Intent], dict[str, Any]]:
    writer = open_trace(folder, clock=clock)  # refused while somebody else writes
    try:
        records = [entry.body for entry in read_trace(folder.trace_path)]
        lost = _lost(records)
        for intent in lost:
            writer.write(
                Receipt(
                    intent_id=intent.id,
                    at=clock.now(),
                    cycle=intent.cycle,
                    status=ReceiptStatus.UNKNOWN,
                    content=_ENDED,
                )
            )
    finally:
        writer.close()
    result = {"unknown_outcomes": [intent.id for intent in lost], **_outcomes_of(records)}
    folder.finish(at=clock.now(), result=result)
    return lost, result
