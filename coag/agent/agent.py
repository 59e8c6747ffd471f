"""`CoagAgent`: AutoGen's chat agent with a mind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Self

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.agents._assistant_agent import AssistantAgentConfig
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
)
from autogen_core import CancellationToken, Component, ComponentModel

from coag.compat import NamedComponent
from coag.cycle import TurnResult, run_turn, sayable
from coag.schema import Executed, Outcome, TurnEnd
from coag.tracing import Parent, RunFolder, read_run

from .arguments import AgentArguments, takes_arguments
from .build import Mind
from .events import Shown, log_event
from .inbox import Inbox
from .owner import OwnedAgent
from .recipes import build_for_resume
from .resume import RecoveredState, recover_state, refuse_missing_rules, restore
from .runs import RunLog
from .serialize import (
    CoagAgentConfig,
    assistant_arguments,
    config_arguments,
    from_config,
    load_agent_state,
    read_agent_state,
    save_agent_state,
    to_config,
)
from .turns import TurnRunner


class CoagAgent(OwnedAgent, NamedComponent, BaseChatAgent, Component[CoagAgentConfig]):
    """An AutoGen agent that retrieves, reasons, proposes, evaluates and selects before it acts.

    Takes AssistantAgent's arguments, and more: `coag/agent/arguments.py` explains each. One message
    in; cycles until `respond`, a bound or cancellation; stock AutoGen events out for every phase;
    the answer last. Without a folder, it writes nothing to disk.

    Raises:
        ConfigurationError: Arguments that cannot work together; the message says which.
    """

    component_type = "agent"
    component_config_schema = CoagAgentConfig
    component_provider_override = "coag.CoagAgent"

    @takes_arguments(AgentArguments)
    def __init__(self, arguments: AgentArguments) -> None:
        """Makes an agent; `coag/agent/arguments.py` explains what it takes."""
        super().__init__(arguments.name, arguments.description)
        self._mind = Mind(arguments)
        self.metadata = dict(arguments.metadata or {})
        self._runs = RunLog(self._mind)
        self._turns = TurnRunner(arguments.name, self._mind.live)
        self._inbox = Inbox(self._mind.context, self._mind.events.pass_on)
        self.turn = 0
        """How many turns have begun."""
        self._resumed_outcomes: list[Outcome] | None = None

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
        """The same, with events on the way and the response last.

        Read it to its end, or close it: `await stream.aclose()`. One that was abandoned is ended
        where nobody refers to it any more, or by the reader's next call.

        Raises:
            TurnInProgressError: Another turn is in progress, or has ended this one.
        """
        return self._turns.hold(self._take_turn(list(messages), cancellation_token))

    async def _take_turn(
        self, messages: Sequence[BaseChatMessage], token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        if token.is_cancelled():
            raise asyncio.CancelledError("The turn was cancelled before it began.")
        await self._runs.open_for(messages)
        mind = self._mind
        percepts = await self._inbox.receive(messages)
        started, self._resumed_outcomes = self._resumed_outcomes, None
        self.turn += started is None
        turn = run_turn(
            percepts,
            mind.context,
            mind.deps,
            turn=self.turn,
            begun=started,
            taken_in=self._inbox.taken_in,
        )
        inner: list[Shown] = []
        calls: list[Executed] = []
        result: TurnResult | None = None
        async with aclosing(self._turns.steps(turn, token)) as steps:
            async for item in steps:
                if isinstance(item, TurnResult):
                    result = item
                    continue
                shown = isinstance(item, Shown)
                for event in [item] if shown else await mind.events.events_of(item, calls):
                    log_event(event)
                    if not isinstance(event, ModelClientStreamingChunkEvent):
                        inner.append(event)
                    yield event
        if result is None:
            raise AssertionError("A turn always ends with a result.")
        self._inbox.forget()
        message_id, written = mind.live.answer_id(result.response)
        if self.arguments.model_client_stream and result.answered and not written:
            yield mind.live.chunk(result.response)
        may_say = partial(sayable, context=mind.context, deps=mind.deps, about="summary")
        answer = await mind.events.answer(result, calls, message_id, may_say)
        answer.models_usage = mind.live.take_usage()  # None where phases report it
        yield Response(chat_message=answer, inner_messages=inner)

    # ---- life ----

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Clears the dialogue and the activity; long-term memory and procedures stay.

        The next turn begins a run of its own. Modules that are `Resettable` are cleared, too.
        """
        del cancellation_token
        await self._turns.end_abandoned()
        self._inbox.forget()
        await self.context.clear()
        self._runs.end()
        self._mind.forget()

    async def close(self) -> None:
        """Ends the run's log and closes the memory that this agent opened itself.

        Raises:
            TurnInProgressError: A turn is in progress; nothing was closed.
        """
        await self._turns.end_abandoned()
        self._runs.end()
        if self.long_term_memory is not self.arguments.memory:
            await self.long_term_memory.close()

    @classmethod
    async def resume(cls, run_folder: RunFolder | Path | str, *, trust: Iterable[str] = ()) -> Self:
        """Continues an interrupted run, at the phase where it stopped.

        The recipe in `run.json` builds the agent. If the turn was not over (`in_turn`), the next
        `on_messages` continues it; give it no messages then. An action that had begun and has no
        receipt is perceived as of unknown outcome, never repeated.

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
        agent = await build_for_resume(folder, cls, trust)
        await agent.continue_run(folder)
        return agent

    def begin_run(self) -> RunFolder | None:
        """Opens the run before its first turn; its folder, or None where it is kept in RAM.

        Raises:
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open()
        return self.run_folder

    async def continue_run(self, folder: RunFolder) -> TurnEnd | None:
        """Continues a run in this agent, which has taken no turn yet; see `resume`.

        Returns:
            How the last turn ended; None if it is open, or there was none.
        """
        recovered = recover_state(folder.trace_path)
        recovered.change = lambda mind: refuse_missing_rules(mind, recovered.rules, folder.path)
        self._runs.attach(folder)
        self._mind.continue_as(read_run(folder.path).configuration)
        try:
            await self.restore(recovered)
        except BaseException:
            self._runs.release()
            raise
        return recovered.ended

    async def leave_run(self, *, in_turn: bool = False) -> None:
        """Lets go of the run's folder without ending the run, so that it can be continued.

        Args:
            in_turn: Also in the middle of a turn that waits for somebody: the folder has it as
                after a crash. End its stream then; what it does is not written any more.

        Raises:
            TurnInProgressError: A turn is in progress.
        """
        if not in_turn:
            await self._turns.end_abandoned()
        self._runs.release(lost=in_turn)

    async def restore(self, recovered: RecoveredState, parent: Parent | None = None) -> None:
        """Continues where a trace says that a run stopped; for `resume` and for forks.

        With a `parent`, which a fork comes from, a run of its own begins there.

        Raises:
            TraceError: The run's folder cannot be written to.
        """
        if parent is None:
            self._runs.note_resumed(begun=recovered.begun)
        await restore(self._mind, recovered)
        self.turn = recovered.turn
        self._resumed_outcomes = recovered.outcomes if recovered.turn_open else None
        if parent is not None:
            self._runs.open(parent)

    async def save_state(self) -> Mapping[str, Any]:
        """The whole mind as JSON: working memory, procedures, modules, detector, counters."""
        return (await save_agent_state(self._mind, self.turn)).model_dump(mode="json")

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state; an AssistantAgent's messages become dialogue.

        Raises:
            StateError: It is no agent's state, one of a newer version, or damaged.
        """
        read = read_agent_state(state)
        await self._turns.end_abandoned()
        self._inbox.forget()
        self.turn = await load_agent_state(read, self._mind)
        self._runs.note_state()

    # ---- as an AutoGen component ----

    def _to_config(self) -> CoagAgentConfig:
        rules = self.constraints.own()
        return to_config(
            self.arguments.keywords() | ({"constraints": list(rules)} if rules else {})
        )

    @classmethod
    def _from_config(cls, config: CoagAgentConfig | AssistantAgentConfig) -> Self:
        if isinstance(config, AssistantAgentConfig):
            return cls(**config_arguments(config))
        return cls(**from_config(config))

    @classmethod
    def from_assistant(
        cls, given: ComponentModel | Mapping[str, Any] | AssistantAgent, **further: Any
    ) -> Self:
        """An agent as an AssistantAgent's component describes it.

        Args:
            given: The component, also as JSON; or an AssistantAgent, without its dialogue.
            further: Arguments of ours, which also take the place of the component's.

        Raises:
            ConfigurationError: It is no component of an AssistantAgent.
        """
        return cls(**{**assistant_arguments(given), **further})

    @property
    def in_turn(self) -> bool:
        """True for a resumed agent whose turn was interrupted; the next call continues it."""
        return self._resumed_outcomes is not None
