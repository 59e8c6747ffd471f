"""`CoagAgent`: AutoGen's face of a deliberating agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Handoff, Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    TextMessage,
    ToolCallSummaryMessage,
)
from autogen_core import CancellationToken, FunctionCall
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import ChatCompletionClient, FunctionExecutionResult
from autogen_core.tools import Workbench
from pydantic import BaseModel
from typing_extensions import Unpack

from coag.compat import Tool
from coag.context import CoagContext
from coag.cycle import ConstraintSet, TurnResult, perceive, run_turn
from coag.errors import ResumeError
from coag.memory import LongTermMemory, ProceduralMemory, Procedure
from coag.models import Asker
from coag.schema import CognitiveModule, Constraint, Outcome, Percept, TraceRecord
from coag.tracing import Recipe, RunFolder, read_run

from ._arguments import context_from, refuse_unsupported, tool_runner
from ._events import events_of
from ._inbox import message_percepts
from ._memories import open_memory, open_procedures
from ._mind import MindParts, build_mind
from ._resume import build_from, read_remains, restore
from ._runs import Runs
from ._settings import Deliberation, MemoryArgument, cycle_settings
from ._state import AgentState, load_agent_state, save_agent_state
from ._turns import Turns
from ._voice import SummaryForm, Voice

DESCRIPTION = "An agent that deliberates before it acts, and uses tools."
SYSTEM_MESSAGE = "You are a helpful AI assistant. Solve tasks using your tools."


class CoagAgent(BaseChatAgent):
    """An AutoGen agent that retrieves, reasons, proposes, evaluates and selects before it acts.

    Takes AssistantAgent's arguments. One message in; cycles until `respond`, a bound or
    cancellation; stock AutoGen events out for every phase; the answer last. Given no folder,
    it writes nothing to disk.

    Args:
        name: The agent's name, a Python identifier.
        model_client: Any AutoGen chat completion client.
        tools: AutoGen tools, or functions with annotated arguments and a docstring.
        workbench: AutoGen workbenches instead of tools.
        model_context: A `CoagContext` for the domain; any other AutoGen context decides which
            messages of the dialogue are shown.
        description: What the agent can do, for teams.
        system_message: Instructions of the developer.
        max_tool_iterations: External actions a turn; None until `respond` or a bound.
        tool_call_summary_format: Form of the answer where a turn ends with an action.
        memory: Long-term memory: a folder, a Chroma server's URL, a `LongTermMemory`, or
            AutoGen memories, which are further sources of recall. None keeps it in RAM.
        metadata: Kept with the agent, as AssistantAgent does.
        modules: Cognitive modules.
        constraints: Hard rules in code; see also `agent.constraints`.
        procedures: Prompts that take the place of the seeds of the same name.
        logs: Folder for run folders; None keeps the trace in RAM.
        recipe: How to build this agent again, for `resume`.
        seed: Seed of the run's random source.
        tool_timeout: Seconds that one tool call may take.
        **deliberation: See `CycleSettings`: `depth`, `selection`, `proposal`, `bounds`, ...

    Raises:
        ConfigurationError: Arguments that cannot work together; the message says which.
    """

    def __init__(  # noqa: PLR0913 - AssistantAgent's arguments and ours
        self,
        name: str,
        model_client: ChatCompletionClient,
        *,
        tools: Sequence[Tool] | None = None,
        workbench: Workbench | Sequence[Workbench] | None = None,
        handoffs: Sequence[Handoff | str] | None = None,
        model_context: ChatCompletionContext | None = None,
        description: str = DESCRIPTION,
        system_message: str | None = SYSTEM_MESSAGE,
        model_client_stream: bool = False,
        reflect_on_tool_use: bool | None = None,
        max_tool_iterations: int | None = None,
        tool_call_summary_format: str = "{result}",
        tool_call_summary_formatter: Callable[[FunctionCall, FunctionExecutionResult], str]
        | None = None,
        output_content_type: type[BaseModel] | None = None,
        memory: MemoryArgument | None = None,
        metadata: dict[str, str] | None = None,
        modules: Sequence[CognitiveModule] = (),
        constraints: Sequence[Constraint] = (),
        procedures: Mapping[str, Procedure] | None = None,
        logs: Path | str | None = None,
        recipe: Recipe | None = None,
        seed: int = 0,
        tool_timeout: float = 60.0,
        **deliberation: Unpack[Deliberation],
    ) -> None:
        super().__init__(name, description)
        refuse_unsupported(handoffs, model_client_stream, output_content_type, reflect_on_tool_use)
        self.metadata = dict(metadata or {})
        self._context = context_from(model_context)
        summary = SummaryForm(tool_call_summary_format, tool_call_summary_formatter)
        self._voice = Voice(name, self._context, summary)
        self._memory = open_memory(memory, scope=name, clock=self._context.clock)
        self._owns_memory = memory is None or isinstance(memory, str | Path)
        parts = MindParts(
            name=name,
            asker=Asker(model_client),
            tools=tool_runner(tools, workbench, tool_timeout),
            context=self._context,
            memory=self._memory,
            procedures=open_procedures(memory, procedures or {}, self._context.clock),
            modules=modules,
            constraints=constraints,
            settings=cycle_settings(deliberation, max_tool_iterations),
            system_message=system_message or "",
            seed=seed,
        )
        self._runs = Runs(parts, None if logs is None else Path(logs), recipe)
        self._mind = build_mind(parts, self._runs.name)
        self._turn = 0
        self._begun: list[Outcome] | None = None
        self._turns = Turns(name)

    # ---- what can be looked at ----

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """A text, or a summary of the tool call that ended the turn."""
        return (TextMessage, ToolCallSummaryMessage)

    @property
    def model_context(self) -> CoagContext[Any]:
        """The context that owns this agent's working memory."""
        return self._context

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
        return self._memory

    @property
    def run_folder(self) -> RunFolder | None:
        """The folder of the current run; None before the first turn and without `logs`."""
        return self._runs.folder

    @property
    def trace(self) -> tuple[TraceRecord, ...]:
        """The records of this run: the last 10,000 in RAM, or with `logs` all, read anew."""
        return self._runs.records(self._mind.trace)

    @property
    def turn(self) -> int:
        """How many turns have begun."""
        return self._turn

    @property
    def in_turn(self) -> bool:
        """True for a resumed agent whose turn was broken off; the next call goes on with it."""
        return self._begun is not None

    # ---- turns ----

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Deliberates on the messages and gives the answer."""
        async for item in self.on_messages_stream(messages, cancellation_token):
            if isinstance(item, Response):
                return item
        raise AssertionError("A turn always ends with a response.")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        """The same, with an event for every phase on the way and the response last."""
        if cancellation_token.is_cancelled():
            raise asyncio.CancelledError("The turn was cancelled before it began.")
        deps = self._mind.deps
        await self._turns.end_abandoned()
        self._runs.open(self._mind)
        percepts = message_percepts(messages, deps.clock, deps.ids)
        await self._voice.pass_on(messages)
        begun, self._begun = self._begun, None
        if begun is None:
            self._turn += 1
        inner: list[BaseAgentEvent | BaseChatMessage] = []
        turn = run_turn(percepts, self._context, deps, turn=self._turn, begun=begun)
        self._turns.begin(turn)
        try:
            while True:
                item = await self._turns.step(cancellation_token)
                if isinstance(item, TurnResult):
                    break
                known = await deps.actions.specs()
                for event in events_of(item, self._context.working_memory, self.name, known):
                    inner.append(event)
                    yield event
        finally:
            await turn.aclose()
        yield Response(chat_message=await self._voice.answer(item), inner_messages=inner)

    async def perceive(self, percept: Percept) -> None:
        """Takes in a percept between turns, e.g. a property change or a signal of a sensor.

        It is recorded, changes the state by the context's hook, and the modules are told.

        Raises:
            StateError: The context's hook could not read it; it is recorded all the same.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open(self._mind)
        await perceive([percept], self._context, self._mind.deps)
        self._mind.trace.flush()

    # ---- life ----

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forgets the dialogue and the activity; long-term memory and procedures stay.

        The next turn begins a run of its own.
        """
        del cancellation_token
        await self._context.clear()
        self._mind.deps.detector.load_state({})
        self._runs.end()

    async def save_state(self) -> Mapping[str, Any]:
        """The whole mind as JSON: working memory, procedures, modules, detector, counters."""
        return (await save_agent_state(self._mind, self._turn)).model_dump(mode="json")

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved state; an AssistantAgent's messages become dialogue."""
        self._turn = await load_agent_state(AgentState.model_validate(state), self._mind)
        self._runs.note_state(self._mind)

    @classmethod
    async def resume(cls, run_folder: Path | str) -> Self:
        """Goes on with a run that was broken off, at the phase where it stood.

        The agent is built again by the recipe in `run.json`. If the turn was not over
        (`in_turn`), the next `on_messages` goes on with it; give it no messages then. An action
        that was begun and has no receipt is perceived as of unknown outcome, never repeated.

        Raises:
            ResumeError: The run cannot be built again.
            TraceError: There is no run in the folder, or its trace cannot be read.
        """
        folder = RunFolder(Path(run_folder))
        info = read_run(folder.path)
        remains = read_remains(folder.trace_path)
        agent = await build_from(info.recipe, folder.path)
        if not isinstance(agent, cls):
            raise ResumeError(
                f"The recipe of {folder.path} makes a {type(agent).__name__}, not a {cls.__name__}."
            )
        agent._runs.attach(folder, agent._mind.trace)
        try:
            await restore(agent._mind, remains)
        except BaseException:
            agent._runs.release()
            raise
        agent._turn = remains.turn
        agent._begun = remains.outcomes if remains.turn_open else None
        return agent

    async def close(self) -> None:
        """Ends the run's log and closes the memory that this agent opened itself."""
        self._runs.end()
        if self._owns_memory:
            await self._memory.close()
