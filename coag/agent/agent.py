"""`CoagAgent`: AutoGen's chat agent with a mind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal, Self

from autogen_agentchat.base import Handoff, Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
)
from autogen_core import CancellationToken, FunctionCall
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import ChatCompletionClient, FunctionExecutionResult
from autogen_core.tools import Workbench
from pydantic import BaseModel
from typing_extensions import Unpack

from coag.compat import Tool
from coag.cycle import ApprovalPolicy, ApproveFunction, TurnResult, perceive, run_turn, sayable
from coag.errors import ResumeError
from coag.memory import GateSettings, Procedure
from coag.models import Price
from coag.schema import (
    CognitiveModule,
    Constraint,
    Environment,
    Executed,
    ExecutionOutcome,
    Outcome,
    Percept,
    ProposalOutcome,
)
from coag.tracing import Rebuild, Recipe, RunFolder, read_run

from .build import Arguments, make
from .events import Shown, log_event
from .inbox import message_percepts
from .memories import owns_memory
from .mind import build_mind
from .model import check_fits
from .recipes import build_from, refuse_fork
from .resume import read_remains, refuse_missing_rules
from .runs import AssistantNames, Correctable, Inspectable, Runs
from .serialize import Declared
from .settings import SUMMARY, Deliberation, MemoryArgument
from .turns import Turns

DESCRIPTION = "An agent that deliberates before it acts, and uses tools."
SYSTEM_MESSAGE = (
    "You are a helpful AI assistant. Solve tasks using your tools. Reply with TERMINATE when the "
    "task has been completed."
)
"""AssistantAgent's own."""


class CoagAgent(Inspectable, Correctable, AssistantNames, Declared):
    """An AutoGen agent that retrieves, reasons, proposes, evaluates and selects before it acts.

    Takes AssistantAgent's arguments. One message in; cycles until `respond`, a bound or
    cancellation; stock AutoGen events out for every phase; the answer last. Given no folder,
    it writes nothing to disk.

    Args:
        name: The agent's name, a Python identifier.
        model_client: Any AutoGen chat completion client.
        tools: AutoGen tools, or functions with annotated arguments and a docstring.
        workbench: AutoGen workbenches instead of tools.
        handoffs: Agents that this one can hand over to.
        model_context: A `CoagContext` for the domain; any other AutoGen context decides which
            messages of the dialogue are shown.
        description: What the agent can do, for teams.
        system_message: Instructions of the developer. None sends no system message at all.
        model_client_stream: Shows an answer while it is written, where nothing can reject it
            any more; else as one piece.
        reflect_on_tool_use: With a limit on tool use, whether an answer follows the last time
            (True) or a summary of it stands for the answer. False without a limit means once.
        max_tool_iterations: Cycles of a turn that may use tools; None until the turn is
            answered or another bound is reached.
        tool_call_summary_format: Form of the summary where a turn ends with a tool call.
        tool_call_summary_formatter: A function that makes it instead.
        output_content_type: The form that every answer has.
        output_content_type_format: How such an answer reads as text.
        memory: Long-term memory, to which the agent is offered actions: a folder, a Chroma
            server's URL, a `LongTermMemory`, or `":memory:"` for one in RAM. Or a list of AutoGen
            memories, which are only read.
        metadata: Kept with the agent, as AssistantAgent does.
        modules: Cognitive modules.
        constraints: Hard rules in code; see also `agent.constraints`.
        procedures: Prompts that take the place of the seeds of the same name.
        logs: Folder for run folders; None keeps the trace in RAM.
        recipe: How to build this agent again, for `resume`, replays and forks; see docs/recipes.md.
        seed: Seed of the run's random source.
        tool_timeout: Seconds that one tool call, or one action of a module, may take.
        models: Models of their own for phases, e.g. `{"evaluation": strong}`; `model_client`
            serves the rest.
        prices: What models cost, by name, for a budget in money.
        approval: Which actions somebody must approve; all but `respond` if only `approve` is
            given.
        approve: Who is asked: an approver, or a function from a request to True or False.
        environment: What the agent acts in, where it can tell its state: each cycle's snapshot
            holds it, so that a fork can go on from there.
        gate: How strict the gate of procedures is. By default a rule that was made after untrusted
            text was shown waits for approval (`agent.procedures.pending()` and `.approve`).
        rewriting: Whether the agent may change its standing rules; None for where it has a memory
            of its own, i.e. `memory=` is a folder, an address or a `LongTermMemory`.
        events: `stock`: the agent shows what AssistantAgent shows. `phases`: a `ThoughtEvent`
            for every phase, too. The trace, OpenTelemetry and `PhaseConsole` have them anyway.
        **deliberation: See `CycleSettings`: `depth`, `selection`, `proposal`, `bounds`, ...

    Raises:
        ConfigurationError: Arguments that cannot work together; the message says which.
    """

    component_provider_override = "coag.CoagAgent"

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
        tool_call_summary_format: str = SUMMARY,
        tool_call_summary_formatter: Callable[[FunctionCall, FunctionExecutionResult], str]
        | None = None,
        output_content_type: type[BaseModel] | None = None,
        output_content_type_format: str | None = None,
        memory: MemoryArgument | None = None,
        metadata: dict[str, str] | None = None,
        modules: Sequence[CognitiveModule] = (),
        constraints: Sequence[Constraint] = (),
        procedures: Mapping[str, Procedure] | None = None,
        logs: Path | str | None = None,
        recipe: Recipe | None = None,
        seed: int = 0,
        tool_timeout: float = 60.0,
        models: Mapping[str, ChatCompletionClient] | None = None,
        prices: Mapping[str, Price] | None = None,
        approval: ApprovalPolicy | None = None,
        approve: ApproveFunction | None = None,
        environment: Environment | None = None,
        gate: GateSettings | None = None,
        rewriting: bool | None = None,
        events: Literal["stock", "phases"] = "stock",
        **deliberation: Unpack[Deliberation],
    ) -> None:
        given = Arguments.of(locals())
        super().__init__(name, description)
        made = make(given)
        self.metadata = dict(metadata or {})
        self._given = given
        self._made = made
        self._context, self._live = made.context, made.live
        self._long_term = made.memory
        self._voice, self._teller = made.voice, made.teller
        self._runs = Runs(made.parts, None if logs is None else Path(logs), recipe)
        self._mind = build_mind(made.parts, self._runs.name)
        self._turn = 0
        self._begun: list[Outcome] | None = None
        self._turns = Turns(name, made.live)

    # ---- turns ----

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Deliberates on the messages and gives the answer."""
        stream = self.on_messages_stream(messages, cancellation_token)
        *_, response = [item async for item in stream]
        if isinstance(response, Response):
            return response
        raise AssertionError("A turn always ends with a response.")

    def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        """The same, with an event for every phase on the way and the response last.

        Read it to its end, or close it: `await stream.aclose()`. One that was left is ended where
        nobody refers to it any more, or by the next call of whoever read it.

        Raises:
            TurnInProgressError: Another turn goes on; or this one was left, and ended by another.
        """
        return self._turns.hold(self._take_turn(list(messages), cancellation_token))

    async def _take_turn(
        self, messages: Sequence[BaseChatMessage], token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        if token.is_cancelled():
            raise asyncio.CancelledError("The turn was cancelled before it began.")
        deps = self._mind.deps
        await self._begin(messages)
        await self._turns.pass_on(messages, self._voice.pass_on)
        percepts = self._turns.arriving(messages, self._percepts_of)
        begun, self._begun = self._begun, None
        if begun is None:
            self._turn += 1
        inner: list[Shown] = []
        done: list[Executed] = []
        turn = run_turn(percepts, self._context, deps, turn=self._turn, begun=begun)
        self._turns.begin(turn)
        result: TurnResult | None = None
        try:
            while result is None:
                async with aclosing(self._turns.step(token)) as step:
                    async for item in step:
                        if isinstance(item, TurnResult):
                            result = item
                            continue
                        shown = [item] if isinstance(item, Shown) else await self._tell(item, done)
                        for event in shown:
                            log_event(event)
                            if not isinstance(event, ModelClientStreamingChunkEvent):
                                inner.append(event)
                            yield event
        finally:
            await turn.aclose()
        message_id, written = self._live.answer_id(result.response)
        if self._given.model_client_stream and result.answered and not written:
            yield self._live.chunk(result.response)
        outputs = deps.actions.outputs
        answer = await self._voice.answer(result, done, outputs, message_id, self._may_say)
        answer.models_usage = self._live.take_usage()  # none where phases tell it
        yield Response(chat_message=answer, inner_messages=inner)

    async def _begin(self, messages: Sequence[BaseChatMessage]) -> None:
        """Fits the prompts to the model's window and opens the run, if it is not open.

        Raises:
            WindowTooSmallError: The task cannot fit.
        """
        remark = await self._mind.window.learn(self._context)
        await check_fits(messages, self._context, self._mind.deps)
        self._runs.open(self._mind)
        if remark:
            self._mind.deps.note(self._context, "window", remark)

    def _percepts_of(self, message: BaseChatMessage) -> list[Percept]:
        deps = self._mind.deps
        fitting = self._context.fitting if self._context.working_memory.goal_open else _as_it_is
        return message_percepts([message], deps.clock, deps.ids, fitting)

    def _may_say(self, text: str) -> bool:
        return sayable(text, self._context, self._mind.deps, about="summary")

    async def _tell(self, outcome: Outcome, done: list[Executed]) -> list[BaseAgentEvent]:
        """The events of an outcome; the tool calls that it ran are added to `done`."""
        deps = self._mind.deps
        if isinstance(outcome, ExecutionOutcome):
            done += [one for one in outcome.executed if one.intent_id is not None]
            await self._voice.pass_on_calls(outcome, deps.actions.outputs)
        if isinstance(outcome, ProposalOutcome):
            self._voice.handoffs.warn_of_several([one.action for one in outcome.candidates])
        known = await deps.actions.specs()
        memory, outputs = self._context.working_memory, deps.actions.outputs
        return self._teller.events_of(outcome, memory, known, outputs)

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

        The next turn begins a run of its own. Modules that are `Resettable` begin anew, too.
        """
        del cancellation_token
        await self._turns.forget()
        await self._context.clear()
        self._runs.end()
        self._mind.forget()

    @classmethod
    async def resume(cls, run_folder: RunFolder | Path | str, *, trust: Iterable[str] = ()) -> Self:
        """Goes on with a run that was broken off, at the phase where it stood.

        The agent is built again by the recipe in `run.json`. If the turn was not over
        (`in_turn`), the next `on_messages` goes on with it; give it no messages then. An action
        that was begun and has no receipt is perceived as of unknown outcome, never repeated.

        Args:
            run_folder: The run's folder, as `CoagAgent.run_folder` gives it, or its path.
            trust: Modules, or packages with their modules, from which `run.json` may name the
                factory. Those that this program has imported itself, and the script that it was
                started with, need not be named, but for installed packages.

        Raises:
            ResumeError: The run cannot be built again, its factory is not trusted, or the agent
                lacks a rule that was in force.
            TraceError: There is no run in the folder, or its trace cannot be read.
        """
        folder = run_folder if isinstance(run_folder, RunFolder) else RunFolder(Path(run_folder))
        info = read_run(folder.path)
        refuse_fork(info, folder.path)
        remains = read_remains(folder.trace_path)
        agent = await build_from(info.recipe, folder.path, Rebuild(purpose="resume"), trust)
        if not isinstance(agent, cls):
            raise ResumeError(
                f"The recipe of {folder.path} makes a {type(agent).__name__}, not a {cls.__name__}."
            )
        remains.change = lambda mind: refuse_missing_rules(mind, remains.rules, folder.path)
        agent._runs.attach(folder, agent._mind.trace)
        try:
            await agent.take_up(remains)
        except BaseException:
            agent._runs.release()
            raise
        return agent

    async def close(self) -> None:
        """Ends the run's log and closes the memory that this agent opened itself.

        Raises:
            TurnInProgressError: A turn still goes on; nothing was closed.
        """
        await self._turns.end_left()
        self._runs.end()
        if owns_memory(self._given.memory):
            await self._long_term.close()


def _as_it_is(text: str) -> str:
    """A task is never cut."""
    return text
