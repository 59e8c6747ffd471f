"""What the owner of a `CoagAgent` may read of it, and tell it between its turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage
from autogen_agentchat.utils import remove_images
from autogen_core.memory import Memory
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import ChatCompletionClient, LLMMessage, SystemMessage
from autogen_core.tools import StaticStreamWorkbench, Workbench

from coag.context import CoagContext
from coag.cycle import CompiledProcedure, ConstraintSet, perceive, settled_by_person
from coag.memory import LongTermMemory, ProceduralMemory, Revocation, retract_source
from coag.schema import Environment, Percept, TraceRecord, TraceSink
from coag.tracing import RunFolder

from .arguments import AgentArguments
from .build import Mind
from .runs import RunLog

FieldT = TypeVar("FieldT")


def _reads(read: Callable[[Mind], FieldT]) -> FieldT:
    """A field that can only be read: an agent's parts are wired when it is made."""
    return cast("FieldT", property(lambda agent: read(agent.mind)))


def _memories(mind: Mind) -> Sequence[Memory] | None:
    memory = mind.arguments.memory
    return memory if isinstance(memory, Sequence) and not isinstance(memory, str) else None


def _workbenches(mind: Mind) -> list[Workbench]:
    return list(mind.tools.workbenches) or [StaticStreamWorkbench(list(mind.tools.tools))]


def _handoffs(mind: Mind) -> dict[str, Handoff]:
    return dict(mind.events.handoffs.by_name)


def _system_messages(mind: Mind) -> list[SystemMessage]:
    text = mind.arguments.system_message
    return [] if text is None else [SystemMessage(content=text)]


class OwnedAgent:
    """What can be read of an agent, by its public names and by those of AssistantAgent.

    Between turns it takes in percepts, takes records back, and hears what became of actions.
    Notebooks, samples and tests read the private names of AssistantAgent, too.
    """

    _mind: Mind
    _runs: RunLog

    _model_client = _reads(lambda mind: mind.arguments.model_client)
    _model_client_stream = _reads(lambda mind: mind.arguments.model_client_stream)
    _model_context = _reads(lambda mind: mind.arguments.model_context or mind.context)
    _system_messages = _reads(_system_messages)
    _tools = _reads(lambda mind: list(mind.tools.tools))
    _workbench = _reads(_workbenches)
    _handoffs = _reads(_handoffs)
    _handoff_tools = _reads(lambda mind: [one.handoff_tool for one in _handoffs(mind).values()])
    _memory = _reads(_memories)
    _metadata = _reads(lambda mind: dict(mind.arguments.metadata or {}))
    _output_content_type = _reads(lambda mind: mind.arguments.output_content_type)
    _output_content_type_format = _reads(lambda mind: mind.arguments.output_content_type_format)
    _reflect_on_tool_use = _reads(lambda mind: mind.deps.settings.reflect)
    _max_tool_iterations = _reads(lambda mind: mind.deps.settings.bounds.actions)
    _tool_call_summary_format = _reads(lambda mind: mind.arguments.tool_call_summary_format)
    _tool_call_summary_formatter = _reads(lambda mind: mind.arguments.tool_call_summary_formatter)

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

    def watch(self, watcher: TraceSink) -> Callable[[], None]:
        """Sends every record from now on to a further sink, once it is in the trace.

        Secrets are still in them. The watcher must be quick and must not raise: what it raises
        ends the turn. A `LazySink` is asked for late records, snapshots, by `write_later`.
        """
        return self._mind.trace.watch(watcher)

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """A text, an answer in its form, a handoff, or a summary of tool calls."""
        return self._mind.events.message_types

    @property
    def arguments(self) -> AgentArguments:
        """What the agent was given."""
        return self._mind.arguments

    @property
    def context(self) -> CoagContext[Any]:
        """The context that owns this agent's working memory."""
        return self._mind.context

    @property
    def model_context(self) -> ChatCompletionContext:
        """The context that was given as `model_context`, else the agent's own."""
        return self.arguments.model_context or self.context

    @property
    def constraints(self) -> ConstraintSet:
        """The constraints; one that is added here is in force from the next cycle."""
        return self._mind.deps.constraints

    @property
    def procedures(self) -> ProceduralMemory:
        """The prompts that the agent works by, with all their versions."""
        return self._mind.deps.procedures

    @property
    def compiled_procedures(self) -> tuple[CompiledProcedure, ...]:
        """What it does without asking its model (`depth="auto"`), the oldest first."""
        compiled = self._mind.deps.compiled
        return () if compiled is None else compiled.procedures

    @property
    def long_term_memory(self) -> LongTermMemory:
        """What the agent remembers beyond its turns."""
        return self._mind.memory

    @property
    def environment(self) -> Environment | None:
        """The environment that was given."""
        return self.arguments.environment

    @property
    def run_folder(self) -> RunFolder | None:
        """The folder of the current run; None before the first turn and without `logs`."""
        return self._runs.folder

    @property
    def trace(self) -> tuple[TraceRecord, ...]:
        """The records of this run: the last 10,000 in RAM, or with `logs` all, read at each use."""
        return self._runs.records()

    @property
    def mind(self) -> Mind:
        """The parts in working order, for replays and forks; no part of a stable API."""
        return self._mind

    async def perceive(self, percept: Percept) -> None:
        """Takes in a percept between turns, e.g. a property change or a signal of a sensor.

        It is recorded, changes the state by the context's hook, and the modules observe it.

        Raises:
            StateError: The context's hook could not read it; it is recorded all the same.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open()
        await perceive([percept], self.context, self._mind.deps)
        self._mind.trace.flush()

    async def revoke(self, record_id: str, reason: str) -> Revocation:
        """Takes back a record, all that was concluded from it, and the rules that depend on it.

        For between turns. The trace lists what was removed, and what is valid again; with `logs`
        it is on the disk once this returns. See `LongTermMemory.revoke`, also for the errors.

        Raises:
            TraceError: The run's folder cannot be written to.
        """
        memory = await self._revocable()
        return self._traced(await memory.revoke(record_id, reason, procedures=self.procedures))

    async def revoke_origin(self, record_id: str | None, source: str, reason: str) -> Revocation:
        """Takes back what a source stated; what others stated too keeps their trust.

        For between turns, with a line in the trace as for `revoke`. See
        `coag.memory.retract_source`, also for the errors.

        Args:
            record_id: The record's id; None for all that the source stated.
            source: Whose statements are taken back (`Provenance.source`).
            reason: Why, in one sentence.
        """
        memory, procedures = await self._revocable(), self.procedures
        return self._traced(
            await retract_source(memory, record_id, source, reason, procedures=procedures)
        )

    async def _revocable(self) -> LongTermMemory:
        """What can be revoked: everybody's records, where the agent keeps people apart."""
        self._runs.open()
        apart, memory = self.context.keeps_people_apart, self.long_term_memory
        return await memory.reaching_all() if apart else memory

    def _traced(self, gone: Revocation) -> Revocation:
        self._mind.trace.write_now(*gone.written(self.context.working_memory.cycle))
        return gone

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Says whether an action of unknown outcome had its effect; then it may be run again.

        For between turns. The actions are in `agent.context.working_memory.unsettled`.

        Raises:
            UnknownNameError: No action with this intent is of unknown outcome.
            StateError: The context's hook could not read it; it is recorded all the same.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open()
        deps = self._mind.deps
        await self.perceive(
            settled_by_person(intent_id, happened=happened, context=self.context, deps=deps)
        )
