"""`SituatedAgent`: an agent that lives beside its tools, and pursues each goal as an activity."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken, Component
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel, ConfigDict, Field

from coag.compat import OperationsWorkbench
from coag.context import CoagContext, SituatedContext
from coag.errors import ConfigurationError, StateError, UnknownNameError
from coag.mcp import StdioServerParams, StreamableHttpServerParams, dumpable
from coag.memory import LongTermMemory
from coag.schema import (
    Clock,
    CognitiveModule,
    SystemClock,
    Trust,
    from_import_name,
    import_name,
)
from coag.situated import (
    RUNS_NAME,
    STORE_NAME,
    Activity,
    ActivityBudget,
    ActivityScheduler,
    ActivityStore,
    McpToolConnection,
    SituatedModule,
    SituatedSettings,
    ToolConnection,
    ToolPerception,
    ToolPerceptionSettings,
)

from .agent import CoagAgent
from .arguments import AgentArguments, MemoryArgument
from .goals import STANDING, GoalSetter, SignalGoal, TimedGoal, check_goals
from .memories import open_memory
from .minds import ActivityMinds, Shown
from .serialize import CoagAgentConfig, from_config, to_config

DESCRIPTION = "An agent that works with tools that change by themselves, and waits for them."
SYSTEM_MESSAGE = (
    "You pursue one goal with tools that have a state of their own. Mount a tool's manual before "
    "you use the tool. Where an operation takes time, wait for the signal or property that its "
    "manual names; waiting costs nothing. Answer with `respond` once the goal is reached and you "
    "have seen that it is; give up with `abandon` if it cannot be reached."
)


class ServerConfig(BaseModel):
    """An MCP server of tools, as a component writes it down."""

    name: str
    params: StdioServerParams | StreamableHttpServerParams = Field(discriminator="type")


class SituatedAgentConfig(BaseModel):
    """The declarative form of a `SituatedAgent`: what `coag run` reads."""

    model_config = ConfigDict(extra="forbid")

    agent: CoagAgentConfig
    """What the agents of its activities are given: name, model, memory, constraints ..."""
    servers: list[ServerConfig]
    folder: str | None = None
    answer: Literal["end", "id"] = "end"
    goals: list[SignalGoal | TimedGoal] = []
    context: str | None = None
    """Import name of what makes the contexts of activities."""
    modules: str | None = None
    """Import name of what makes their further modules."""
    workers: int = 4
    live: int = 32
    budget: ActivityBudget = ActivityBudget()
    perception: ToolPerceptionSettings = ToolPerceptionSettings()
    situated: SituatedSettings = SituatedSettings()


class SituatedAgent(BaseChatAgent, Component[SituatedAgentConfig]):
    """A chat agent whose goals are activities that wait at no cost.

    Each goal is pursued by a `CoagAgent` of its own, cycle by cycle, beside the others. It waits by
    an action; while it waits, no model is called. With a folder, activities and what they wait for
    outlive the process: start an agent with the same folder, and they continue.

    Args:
        name: The agent's name.
        model_client: Any AutoGen chat completion client.
        servers: Where the tools are; the agent closes these connections.
        folder: Where activities and their runs are kept; None keeps them in RAM.
        answer: `end` answers a message when its activity has ended; `id` at once, with the
            activity's id, so that a team's turn continues.
        goals: Goals that signals and the clock set, beside those in messages.
        context: Makes the context of an activity: `SituatedContext`, or a subclass for the domain.
        modules: Makes further cognitive modules of an activity.
        memory: Long-term memory, shared by all activities; an ended one leaves an experience there.
        workers: How many activities may be in a step at the same time.
        live: How many agents of waiting activities stay in memory, where there is a folder.
        budget: What one activity may use.
        perception: How tools are read.
        situated: How activities wait, and what their prompts show.
        description: For teams.
        clock: Gives the time of deadlines and of goals that the clock sets.
        arguments: Further arguments of `CoagAgent`, e.g. `constraints`, `approval`, `bounds`.

    Raises:
        ConfigurationError: Arguments that cannot work together; the message says which.
    """

    component_type = "agent"
    component_config_schema = SituatedAgentConfig
    component_provider_override = "coag.SituatedAgent"

    def __init__(  # noqa: PLR0913 - what there is to say of such an agent
        self,
        name: str,
        model_client: ChatCompletionClient,
        servers: Sequence[ToolConnection],
        *,
        folder: Path | str | None = None,
        answer: Literal["end", "id"] = "end",
        goals: Sequence[SignalGoal | TimedGoal] = (),
        context: Callable[[], CoagContext[Any]] = SituatedContext,
        modules: Callable[[], Sequence[CognitiveModule]] = tuple,
        memory: MemoryArgument | None = None,
        workers: int = 4,
        live: int = 32,
        budget: ActivityBudget | None = None,
        perception: ToolPerceptionSettings | None = None,
        situated: SituatedSettings | None = None,
        description: str = DESCRIPTION,
        clock: Clock | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(name, description)
        self.clock: Clock = clock or SystemClock()
        self._servers = tuple(servers)
        self._folder = None if folder is None else Path(folder)
        self._answer = answer
        self._make_context, self._make_modules = context, modules
        self._budget = budget or ActivityBudget()
        self._situated = situated or SituatedSettings()
        self._arguments: dict[str, Any] = {"system_message": SYSTEM_MESSAGE, **arguments}
        self._arguments |= {"name": name, "model_client": model_client, "events": "phases"}
        _check(self._arguments, goals)
        self.memory: LongTermMemory = open_memory(memory, scope=name, clock=self.clock)
        """What all activities remember."""
        self._memory_argument = memory
        self._owns_memory = self.memory is not memory
        path = None if self._folder is None else self._folder / STORE_NAME
        runs = None if self._folder is None else self._folder / RUNS_NAME
        self.store = ActivityStore(path)
        """The activities, and what they wait for."""
        self._listeners: dict[str, list[asyncio.Queue[Shown | None]]] = {}
        self.minds = ActivityMinds(
            self._make_agent, self.store, runs=runs, live=live, show=self._show
        )
        self.scheduler = ActivityScheduler(
            self.store, self.minds, clock=self.clock, workers=workers
        )
        self.perception = ToolPerception(
            self._servers,
            self.store,
            clock=self.clock,
            arrived=self._arrived,
            settings=perception or ToolPerceptionSettings(),
            unbounded=frozenset({STANDING}),
        )
        self._goals = GoalSetter(goals, self.add_goal, self.perception, self.store, self.clock)
        self._given: dict[str, Any] = {
            "folder": None if folder is None else str(folder),
            "answer": answer,
            "goals": list(goals),
            "workers": workers,
            "live": live,
            "budget": self._budget,
            "perception": perception or ToolPerceptionSettings(),
            "situated": self._situated,
        }
        self._running = self._closed = False

    # ---- its life ----

    async def start(self) -> None:
        """Starts what is not running: perception, scheduler, and the goals that the clock sets.

        Activities of the folder continue.

        Raises:
            StateError: The agent was closed.
            UnknownNameError: A goal names a tool that its server does not have.
        """
        if self._closed:
            raise StateError(f"The agent {self.name!r} was closed: make one with its folder.")
        if self._running:
            return
        self._running = True
        try:
            await self.perception.start()
            await self._goals.start()
            await self.scheduler.start()
        except BaseException:
            await self._stop()
            raise

    async def close(self) -> None:
        """Lets running steps end, lets go of everything, and closes the connections."""
        self._closed = True
        await self._stop()
        await self.minds.close()
        if self._owns_memory:
            await self.memory.close()
        self.store.close()

    async def _stop(self) -> None:
        if self._running:
            self._running = False
            await self._goals.stop()
            await self.scheduler.stop()
            await self.perception.stop()

    async def __aenter__(self) -> SituatedAgent:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # ---- goals ----

    def add_goal(
        self,
        goal: str,
        *,
        source: str = "user",
        trust: Trust = Trust.USER,
        priority: int = 0,
        parent: str | None = None,
        activity_id: str | None = None,
    ) -> Activity:
        """Begins an activity; with an id that there is already, that one is given back.

        Raises:
            ValueError: The goal is empty.
        """
        if not goal.strip():
            raise ValueError("The goal is empty: say what is to be reached.")
        if activity_id is not None and (known := self.store.get(activity_id)) is not None:
            return known
        now = self.clock.now()
        activity = Activity(
            id=activity_id or self.store.new_id(),
            agent=self.name,
            goal=goal,
            created=now,
            updated=now,
            source=source,
            trust=trust,
            priority=priority,
            budget=self._budget,
            parent=parent,
        )
        self.scheduler.add(activity)
        return activity

    async def ended(self, activity_id: str) -> Activity:
        """Waits until an activity has ended.

        Raises:
            UnknownNameError: There is no such activity.
        """
        self.activity(activity_id)
        return await self.scheduler.ended(activity_id)

    def activity(self, activity_id: str) -> Activity:
        """An activity as it is now.

        Raises:
            UnknownNameError: There is no such activity.
        """
        activity = self.store.get(activity_id)
        if activity is None:
            known = [one.id for one in self.store.find()]
            raise UnknownNameError("activity", activity_id, known[:20])
        return activity

    def open_activities(self) -> list[Activity]:
        """The activities that have not ended."""
        return [one for one in self.store.find() if not one.over]

    def _make_agent(self, activity: Activity) -> tuple[CoagAgent, SituatedModule]:
        module = SituatedModule(
            activity.id, self.perception, self.store, clock=self.clock, settings=self._situated
        )
        tools = OperationsWorkbench(
            self.perception.catalogue,
            partial(self.perception.invoke, activity.id),
            self.perception.became_of,
        )
        agent = CoagAgent(
            **self._arguments,
            workbench=tools,
            model_context=self._make_context(),
            modules=[module, *self._make_modules()],
            memory=self.memory,
            logs=None if self._folder is None else self._folder / RUNS_NAME,
        )
        return agent, module

    # ---- what arrives ----

    def _arrived(self, activity_ids: Sequence[str]) -> None:
        """Passes on what has arrived: to activities, or as new goals."""
        if STANDING in activity_ids:
            self._goals.look()
        self.scheduler.arrived([one for one in activity_ids if one != STANDING])

    # ---- as a chat agent ----

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """Texts: what an activity came to, or its id."""
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Begins an activity for the messages, and answers as `answer` says."""
        *_, last = [item async for item in self.on_messages_stream(messages, cancellation_token)]
        if isinstance(last, Response):
            return last
        raise AssertionError("A turn always ends with a response.")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[Shown | Response, None]:
        """The same, with the activity's events on the way.

        A cancellation ends the waiting here; the activity continues. `cancel` ends it.
        """
        if not messages:
            raise ValueError("A situated agent needs a message that says its goal.")
        await self.start()
        goal = "\n".join(message.to_model_text() for message in messages)
        source = messages[-1].source
        by_user = all(message.source == "user" for message in messages)
        activity = self.add_goal(
            goal, source=source, trust=Trust.USER if by_user else Trust.UNTRUSTED
        )
        if self._answer == "id":
            yield self._response(activity, f"Activity {activity.id} has begun: {goal}")
            return
        shown: asyncio.Queue[Shown | None] = asyncio.Queue()
        self._listeners.setdefault(activity.id, []).append(shown)
        inner: list[Shown] = []
        ending = asyncio.ensure_future(self.scheduler.ended(activity.id))
        ending.add_done_callback(lambda _: shown.put_nowait(None))
        cancellation_token.link_future(ending)
        try:
            while (event := await shown.get()) is not None:
                inner.append(event)
                yield event
            over = await ending
        finally:
            ending.cancel()
            self._listeners.pop(activity.id, None)
        yield self._response(over, over.result or f"The activity was {over.end}.", inner)

    def _response(self, activity: Activity, text: str, inner: Sequence[Shown] = ()) -> Response:
        facts = {"activity": activity.id, "end": str(activity.end or "")}
        message = TextMessage(content=text, source=self.name, metadata=facts)
        return Response(chat_message=message, inner_messages=list(inner))

    def _show(self, activity_id: str, event: Shown) -> None:
        for queue in self._listeners.get(activity_id, ()):
            queue.put_nowait(event)

    async def cancel(self, activity_id: str, reason: str = "It was cancelled.") -> None:
        """Ends an activity, whatever it does.

        Raises:
            UnknownNameError: There is no such activity.
        """
        self.activity(activity_id)
        await self.scheduler.cancel(activity_id, reason)

    def wake(self, activity_id: str) -> None:
        """Wakes an activity that waits, before what it waits for has arrived.

        Raises:
            UnknownNameError: There is no such activity.
        """
        self.activity(activity_id)
        self.scheduler.wake(activity_id)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Cancels all activities; what they left in long-term memory stays."""
        del cancellation_token
        for activity in self.store.find():
            if not activity.over:
                await self.scheduler.cancel(activity.id, "The agent was reset.")

    # ---- as an AutoGen component ----

    def _to_config(self) -> SituatedAgentConfig:
        arguments: dict[str, Any] = {**self._arguments, "description": self.description}
        if self._memory_argument is not None:
            arguments["memory"] = self._memory_argument
        context, modules = self._make_context, self._make_modules
        return SituatedAgentConfig(
            agent=to_config(AgentArguments(**arguments).keywords()),
            servers=[_written(server) for server in self._servers],
            context=None if context is SituatedContext else import_name(context),
            modules=None if modules is tuple else import_name(modules),
            **self._given,
        )

    @classmethod
    def _from_config(cls, config: SituatedAgentConfig) -> Self:
        arguments = from_config(config.agent)
        for name in ("events", "recipe", "logs", "modules"):
            arguments.pop(name, None)
        given = {name: getattr(config, name) for name in _PLAIN}
        return cls(
            servers=[McpToolConnection(one.params, one.name) for one in config.servers],
            context=from_import_name(config.context) if config.context else SituatedContext,
            modules=from_import_name(config.modules) if config.modules else tuple,
            **given,
            **arguments,
        )


_PLAIN = ("folder", "answer", "goals", "workers", "live", "budget", "perception", "situated")
"""Fields of the component that are arguments as they are."""


def _written(server: ToolConnection) -> ServerConfig:
    if not isinstance(server, McpToolConnection):
        raise ConfigurationError(
            f"The server {server.name!r} is in this process and cannot be written down. Serve its "
            "workspace by MCP, and give a McpToolConnection."
        )
    return ServerConfig(name=server.name, params=dumpable(server.params))


def _check(arguments: Mapping[str, Any], goals: Sequence[SignalGoal | TimedGoal]) -> None:
    """Refuses what no activity's agent could be made with."""
    own = {"workbench", "tools", "model_context", "logs", "recipe"} & set(arguments)
    if own:
        raise ConfigurationError(
            f"A SituatedAgent makes {', '.join(sorted(own))} itself. Give tools as servers=, "
            "contexts as context=, a folder as folder=."
        )
    AgentArguments(**arguments)
    check_goals(goals)
