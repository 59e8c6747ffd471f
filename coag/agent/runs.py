"""The agent's runs, what can be seen of it between turns, and what can be corrected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage
from autogen_agentchat.utils import remove_images
from autogen_core import FunctionCall
from autogen_core.memory import Memory
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import (
    ChatCompletionClient,
    FunctionExecutionResult,
    LLMMessage,
    SystemMessage,
)
from autogen_core.tools import BaseTool, StaticStreamWorkbench, Workbench
from pydantic import BaseModel

from coag.context import CoagContext
from coag.cycle import ConstraintSet, perceive, settled_by_person, write_snapshot
from coag.memory import LongTermMemory, ProceduralMemory, Revocation, retract_source
from coag.schema import (
    RESUMED,
    Environment,
    Note,
    Outcome,
    SnapshotReason,
    TraceRecord,
    TraceSink,
    new_run_id,
)
from coag.tracing import (
    MemoryTrace,
    Parent,
    Recipe,
    RunFolder,
    RunInfo,
    TraceWriter,
    installed_versions,
    open_trace,
    read_trace,
)

from .build import Arguments, Made
from .events import Voice
from .mind import Mind, MindParts, RunName, SwitchableTrace

# ---- The run of an agent: opened at the first turn, so that nothing is written before ----


RESUMED_TEXT = "Another process goes on with the run from here."


class Runs:
    """Opens, continues and ends the run's folder.

    Args:
        parts: Whose run it is.
        logs: Folder of all runs; None keeps the trace in RAM.
        recipe: How to build the agent again.
    """

    def __init__(self, parts: MindParts, logs: Path | None, recipe: Recipe | None) -> None:
        self.name = RunName()
        self.folder: RunFolder | None = None
        self._parts = parts
        self._logs = logs
        self._recipe = recipe
        self._writer: TraceWriter | None = None

    def open(self, mind: Mind, parent: Parent | None = None) -> None:
        """Starts the run if it has not begun: a new folder where logs are kept, else RAM.

        The state that it begins with, e.g. one that was loaded, is its first record.

        Raises:
            TraceError: The folder cannot be written to. Nothing has been done yet.
        """
        if self.name.value:
            return
        if self._logs is None:
            mind.trace.sink = MemoryTrace()
            self.name.value = new_run_id(self._parts.context.clock.now(), self._parts.name)
        else:
            self.attach(RunFolder.create(self._logs, self._info(parent)), mind.trace)
        mind.deps.told.begin()
        reason = SnapshotReason.FORKED if parent else SnapshotReason.OPENED
        write_snapshot(mind.context, mind.deps, reason)

    def note_state(self, mind: Mind) -> None:
        """Writes down a state that was loaded; before the run begins, `open` will."""
        if self.name.value:
            write_snapshot(mind.context, mind.deps, SnapshotReason.LOADED)
            mind.deps.trace.flush()

    def note_resumed(self, mind: Mind, *, begun: bool) -> None:
        """Says that another process goes on with the run, or begins it if none had."""
        if not begun:
            write_snapshot(mind.context, mind.deps, SnapshotReason.OPENED)
            return
        at = self._parts.context.clock.now()
        cycle = mind.context.working_memory.cycle
        mind.deps.trace.write(Note(at=at, cycle=cycle, about=RESUMED, text=RESUMED_TEXT))

    def attach(self, folder: RunFolder, trace: SwitchableTrace) -> None:
        """Goes on writing in a run's folder."""
        self._writer = open_trace(folder, clock=self._parts.context.clock)
        self.folder, trace.sink, self.name.value = folder, self._writer, folder.path.name

    def _info(self, parent: Parent | None) -> RunInfo:
        now = self._parts.context.clock.now()
        return RunInfo(
            id=new_run_id(now, self._parts.name),
            kind="coag",
            agent=self._parts.name,
            model=self._parts.asker.name,
            recipe=self._recipe,
            seed=self._parts.seed,
            versions=installed_versions(),
            configuration={
                "settings": self._parts.settings.model_dump(mode="json"),
                "remembering": self._parts.remembering,
                "rewriting": self._parts.rewriting,
            },
            started_at=now,
            parent=parent,
        )

    def release(self) -> None:
        """Lets go of the trace without ending the run."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def end(self) -> None:
        """Ends the run: the trace is closed and `run.json` says when; the next turn begins anew.

        The ended run can still be looked at until then.
        """
        if self._writer is not None and self.folder is not None:
            self._writer.close()
            self.folder.finish(at=self._parts.context.clock.now())
            self._writer = None
        self.name.value = ""

    def records(self, trace: SwitchableTrace) -> tuple[TraceRecord, ...]:
        """The records of the run, or of the one that has just ended."""
        if isinstance(trace.sink, MemoryTrace):
            return trace.sink.records
        if self.folder is None:
            return ()
        if self._writer is not None:
            self._writer.flush()
        return tuple(entry.body for entry in read_trace(self.folder.trace_path))


# ---- Taking back what an agent remembers, with a line in its trace ----


class Correctable:
    """What the owner of an agent may take back."""

    _context: CoagContext[Any]
    _long_term: LongTermMemory
    _mind: Mind
    _runs: Runs

    async def revoke(self, record_id: str, reason: str) -> Revocation:
        """Takes back a record, all that was concluded from it, and the rules that rest on it.

        For between turns. The trace says what went, and what holds again; with `logs` it is on
        the disk once this returns. See `LongTermMemory.revoke`.

        Args:
            record_id: The record's id.
            reason: Why, in one sentence.

        Raises:
            ValueError: If the reason is empty, or the record is of a scope that may not be
                written.
            RecordStoreError: If the store or the file of procedures cannot be reached.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open(self._mind)
        procedures = self._mind.deps.procedures
        memory = await self._reached()
        return self._told(await memory.revoke(record_id, reason, procedures=procedures))

    async def revoke_origin(self, record_id: str | None, source: str, reason: str) -> Revocation:
        """Takes back what a source stated; what others stated too is trusted as they are.

        For between turns, with a line in the trace as for `revoke`. See
        `coag.memory.retract_source`.

        Args:
            record_id: The record's id; None for all that the source stated.
            source: Whose word is taken back (`Provenance.source`).
            reason: Why, in one sentence.

        Raises:
            ValueError: If the reason is empty, or the source stated nothing of that which may be
                written.
            RecordStoreError: If the store or the file of procedures cannot be reached.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open(self._mind)
        procedures = self._mind.deps.procedures
        return self._told(
            await retract_source(
                await self._reached(), record_id, source, reason, procedures=procedures
            )
        )

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Says what became of an action of unknown outcome; from then on it may be run again.

        For between turns. The actions are in `agent.context.working_memory.unsettled`.

        Args:
            intent_id: The intent of the action.
            happened: Whether it had its effect.

        Raises:
            UnknownNameError: No action with this intent is of unknown outcome.
            StateError: The context's hook could not read it; it is recorded all the same.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open(self._mind)
        deps = self._mind.deps
        found = settled_by_person(intent_id, happened=happened, context=self._context, deps=deps)
        await perceive([found], self._context, deps)
        self._mind.trace.flush()

    async def _reached(self) -> LongTermMemory:
        """What is taken back from: everybody's records, where the agent keeps people apart."""
        apart = self._context.keeps_people_apart
        return await self._long_term.reaching_all() if apart else self._long_term

    def _told(self, gone: Revocation) -> Revocation:
        """Writes what was taken back to the trace."""
        for line in gone.written(self._context.working_memory.cycle):
            self._mind.trace.write(line)
        self._mind.trace.flush()
        return gone


# ---- What can be looked at in a `CoagAgent` ----


class Inspectable:
    """The parts of an agent that its users may read."""

    _given: Arguments
    _context: CoagContext[Any]
    _long_term: LongTermMemory
    _mind: Mind
    _runs: Runs
    _voice: Voice
    _turn: int
    _begun: list[Outcome] | None

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """A text, an answer in its form, a handoff, or a summary of tool calls."""
        return self._voice.message_types

    @property
    def context(self) -> CoagContext[Any]:
        """The context that owns this agent's working memory."""
        return self._context

    @property
    def model_context(self) -> ChatCompletionContext:
        """The context that was given as `model_context`, else the agent's own."""
        return self._given.model_context or self._context

    @property
    def constraints(self) -> ConstraintSet:
        """The constraints; what is added here is in force from the next cycle."""
        return self._mind.deps.constraints

    @property
    def procedures(self) -> ProceduralMemory:
        """The prompts that the agent works by, with all their versions."""
        return self._mind.deps.procedures

    @property
    def long_term_memory(self) -> LongTermMemory:
        """What the agent remembers beyond its turns."""
        return self._long_term

    @property
    def run_folder(self) -> RunFolder | None:
        """The folder of the current run; None before the first turn and without `logs`."""
        return self._runs.folder

    @property
    def trace(self) -> tuple[TraceRecord, ...]:
        """The records of this run: the last 10,000 in RAM, or with `logs` all, read anew."""
        return self._runs.records(self._mind.trace)

    def watch(self, watcher: TraceSink) -> Callable[[], None]:
        """Tells a further sink of every record from now on, once it is in the trace.

        Secrets are still in them. The watcher must be quick and must not raise: what it raises
        ends the turn. A `LazySink` is asked for late records, snapshots, by `write_later`.

        Returns:
            What ends the watching.
        """
        return self._mind.trace.watch(watcher)

    @property
    def environment(self) -> Environment | None:
        """What the agent was told that it acts in."""
        return self._given.environment

    @property
    def arguments(self) -> Arguments:
        """What the agent was given."""
        return self._given

    @property
    def mind(self) -> Mind:
        """The parts in working order, for what takes a run up again; no part of a stable API."""
        return self._mind

    @property
    def turn(self) -> int:
        """How many turns have begun."""
        return self._turn

    @property
    def in_turn(self) -> bool:
        """True for a resumed agent whose turn was broken off; the next call goes on with it."""
        return self._begun is not None


# ---- The private names of AssistantAgent that notebooks, samples and tests read ----
#
# They are read only: an agent's parts are wired when it is made. Give its constructor what you
# want.


class AssistantNames:
    """What AssistantAgent keeps in private fields, as this agent was given it."""

    _given: Arguments
    _made: Made

    @property
    def _model_client(self) -> ChatCompletionClient:
        return self._given.model_client

    @property
    def _model_client_stream(self) -> bool:
        return self._given.model_client_stream

    @property
    def _model_context(self) -> ChatCompletionContext:
        return self._given.model_context or self._made.context

    @property
    def _system_messages(self) -> list[SystemMessage]:
        told = self._given.system_message
        return [] if told is None else [SystemMessage(content=told)]

    @property
    def _tools(self) -> list[BaseTool[Any, Any]]:
        return list(self._made.parts.tools.tools)

    @property
    def _workbench(self) -> list[Workbench]:
        benches = self._made.parts.tools.workbenches
        return list(benches) if benches else [StaticStreamWorkbench(self._tools)]

    @property
    def _handoffs(self) -> dict[str, Handoff]:
        return dict(self._made.parts.handoffs.by_name)

    @property
    def _handoff_tools(self) -> list[BaseTool[Any, Any]]:
        return [handoff.handoff_tool for handoff in self._handoffs.values()]

    @property
    def _memory(self) -> Sequence[Memory] | None:
        given = self._given.memory
        if given is None or not isinstance(given, Sequence) or isinstance(given, str):
            return None
        return given

    @property
    def _metadata(self) -> Mapping[str, str]:
        return dict(self._given.metadata or {})

    @property
    def _output_content_type(self) -> type[BaseModel] | None:
        return self._given.output_content_type

    @property
    def _output_content_type_format(self) -> str | None:
        return self._given.output_content_type_format

    @property
    def _reflect_on_tool_use(self) -> bool:
        return self._made.parts.settings.reflect

    @property
    def _max_tool_iterations(self) -> int | None:
        return self._made.parts.settings.bounds.actions

    @property
    def _tool_call_summary_format(self) -> str:
        return self._given.tool_call_summary_format

    @property
    def _tool_call_summary_formatter(
        self,
    ) -> Callable[[FunctionCall, FunctionExecutionResult], str] | None:
        return self._given.tool_call_summary_formatter

    @staticmethod
    def _get_compatible_context(
        model_client: ChatCompletionClient, messages: list[LLMMessage]
    ) -> Sequence[LLMMessage]:
        return messages if model_client.model_info["vision"] else remove_images(messages)

    @staticmethod
    async def _add_messages_to_context(
        model_context: ChatCompletionContext, messages: Sequence[BaseChatMessage]
    ) -> None:
        for message in messages:
            if isinstance(message, HandoffMessage):
                for carried in message.context:
                    await model_context.add_message(carried)
            await model_context.add_message(message.to_model_message())
