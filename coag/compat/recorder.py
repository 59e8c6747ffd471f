"""`Recorder`: the run of a stock agent in our log format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from autogen_core.tools import ToolSchema

from coag._util.text import well_formed
from coag.errors import ConfigurationError, error_type
from coag.models import CallContext
from coag.schema import (
    UNPARSED,
    ActionsListed,
    ActionSpec,
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

from .exchanges import plain_json

# ---- Tool calls from their intent on, until they are run or their end is reported ----


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAttempt:
    """A tool call that is being run."""

    intent: Intent
    """What was written of it before."""
    begun: float
    """The clock's monotonic reading, in seconds."""


def in_form(arguments: object) -> dict[str, Any]:
    """A call's arguments as they are recorded; models write others than objects, too."""
    if isinstance(arguments, Mapping):
        return dict(cast("Mapping[str, Any]", arguments))
    return {} if arguments is None else {UNPARSED: json.dumps(arguments, default=str)}


class AnnouncedCalls:
    """Calls that an agent has announced and that have not ended yet.

    An agent's announcement and a recording workbench would both write the same call down: who
    runs it takes it over from here, and then they record its end.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[str, ToolAttempt]] = []

    def announce(self, call_id: str, attempt: ToolAttempt) -> None:
        """A call is about to be run."""
        self._waiting.append((call_id, attempt))

    def claim(
        self, call_id: str | None, action: str, arguments: Mapping[str, Any]
    ) -> ToolAttempt | None:
        """Takes over a call in order to run it; None if no such call was announced."""
        for name, attempt in self._waiting:
            known = attempt.intent.arguments
            alike = known == dict(arguments) or (UNPARSED in known and UNPARSED in arguments)
            if name == (call_id or "") and attempt.intent.action == action and alike:
                self.settle(name, attempt)
                return attempt
        return None

    def settle(self, call_id: str, attempt: ToolAttempt) -> bool:
        """Removes a call; False if it was taken over or ended already."""
        waits = (call_id, attempt) in self._waiting
        if waits:
            self._waiting.remove((call_id, attempt))
        return waits


# ---- What tools there are, written down when that changes, and read again ----


SCHEMAS_NOTE = "tools"
"""The sort of note that holds schemas that say more, or less, than an `ActionSpec`."""
_IN_SPEC = ("name", "description", "parameters")
_SAME = True
"""Written in that note for each of them that is as in the spec."""


class ListedTools:
    """The tools of all workbenches of a run, by name: of two with one name the later counts."""

    def __init__(self, write: Callable[[TraceRecord], None]) -> None:
        self._write = write
        self._listed: dict[str, ToolSchema] = {}
        self._owners: dict[str, object] = {}

    def take(self, owner: object, schemas: Sequence[ToolSchema], at: datetime, cycle: int) -> None:
        """Takes a workbench's tools down, and writes all there are if they have changed."""
        of_others = {n: s for n, s in self._listed.items() if self._owners[n] is not owner}
        listed = of_others | {schema["name"]: schema for schema in schemas}
        self._owners |= {schema["name"]: owner for schema in schemas}
        if listed == self._listed:
            return
        specs = tuple(_spec(schema) for schema in listed.values())
        self._write(ActionsListed(at=at, cycle=cycle, specs=specs))
        pairs = zip(specs, listed.values(), strict=True)
        beside = {spec.name: _beside(spec, schema) for spec, schema in pairs}
        details = {name: fields for name, fields in beside.items() if fields is not None}
        if details:
            text = "Schemas of tools that are not as their specs have them."
            self._write(Note(at=at, cycle=cycle, about=SCHEMAS_NOTE, text=text, details=details))
        self._listed = listed


def schemas_of(specs: Sequence[ActionSpec], beside: Mapping[str, Any]) -> list[ToolSchema]:
    """The schemas of recorded tools, with the details of the note about them, if there is one."""
    schemas: list[ToolSchema] = []
    for spec in specs:
        plain, details = cast("dict[str, Any]", _plain(spec)), beside.get(spec.name)
        if details is not None:
            same = (key for key, value in details.items() if key in _IN_SPEC and value is _SAME)
            plain = {**details, **{key: plain[key] for key in same}, "name": spec.name}
        schemas.append(cast("ToolSchema", plain))
    return schemas


def _spec(schema: ToolSchema) -> ActionSpec:
    fields: dict[str, Any] = {
        "name": schema["name"],
        "description": plain_json(schema.get("description", "")),
    }
    if "parameters" in schema:
        fields["parameters"] = plain_json(schema["parameters"])
    return ActionSpec.model_validate(fields)


def _plain(spec: ActionSpec) -> ToolSchema:
    """The schema of most tools: what `FunctionTool` gives."""
    parameters = cast("Any", spec.parameters)
    return ToolSchema(
        name=spec.name, description=spec.description, parameters=parameters, strict=False
    )


def _beside(spec: ActionSpec, schema: ToolSchema) -> dict[str, Any] | None:
    """The keys of a schema with what differs from its spec; None if nothing does."""
    plain, own = cast("dict[str, Any]", _plain(spec)), cast("dict[str, Any]", plain_json(schema))
    if own == plain:
        return None
    return {
        key: _SAME if key in _IN_SPEC and plain[key] == value else value
        for key, value in own.items()
    }


# ---- The trace of an agent that is not ours ----


PERSON = "user"
"""The source of messages from the person whom an agent serves, as AutoGen names it."""


def begin_plain_run(logs: Path, agent: str, clock: Clock, **fields: Any) -> RunFolder:
    """The folder of a plain agent's run that begins now, with further fields of `RunInfo`."""
    now = clock.now()
    own: dict[str, Any] = {"kind": "plain", "versions": installed_versions(), "started_at": now}
    return RunFolder.create(logs, RunInfo(id=new_run_id(now, agent), agent=agent, **own, **fields))


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
        """The open turn, from 1; 0 before the first."""
        self.announced = AnnouncedCalls()
        """Calls whose intents are written, and which nobody has begun to run."""
        self.tools = ListedTools(self.write)
        """What tools there are, as far as somebody has listed them."""
        self._folder: RunFolder | None = None
        self._trace: TraceSink = trace or MemoryTrace()
        self._closed = False
        if logs is not None:
            given = {"model": model, "recipe": recipe, "seed": seed}
            set_by = dict(configuration or {})
            self._folder = begin_plain_run(
                Path(logs), agent, self.clock, configuration=set_by, **given
            )
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

    def begin(self, action: str, arguments: Mapping[str, Any]) -> ToolAttempt:
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
        return ToolAttempt(intent=intent, begun=self.clock.monotonic())

    def end(
        self,
        attempt: ToolAttempt,
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
                intent_id=attempt.intent.id,
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
