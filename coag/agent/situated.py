"""`SituatedAgent`: an agent that lives beside its tools, and pursues each goal as an activity."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, Literal, Self

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken, Component
from autogen_core.models import ChatCompletionClient

from coag._util.text import well_formed
from coag.context import SituatedContext
from coag.errors import ConfigurationError, StateError
from coag.memory import LongTermMemory
from coag.memory.consolidation import Intentions
from coag.schema import Clock, SystemClock, Trust
from coag.situated import (
    OPEN_STATES,
    RUNS_NAME,
    STORE_NAME,
    Activity,
    ActivityBudget,
    ActivityScheduler,
    ActivityStore,
    SituatedModule,
    SituatedSettings,
    ToolConnection,
    ToolPerception,
    ToolPerceptionSettings,
    activity_in,
)

from .agent import CoagAgent
from .arguments import MemoryArgument
from .goals import STANDING, Goal, GoalSetter, cancel_delegated, goal_of
from .memories import open_memory
from .minds import ActivityEvents, ActivityMinds, Shown, operations_of
from .situated_config import (
    MakeContext,
    MakeModules,
    SituatedAgentConfig,
    check_arguments,
    from_situated_config,
    to_situated_config,
)

DESCRIPTION = "An agent that works with tools that change by themselves, and waits for them."
SYSTEM_MESSAGE = (
    "You pursue one goal with tools that have a state of their own. Mount a tool's manual before "
    "you use the tool. Where an operation takes time, wait for the signal or property that its "
    "manual names; waiting costs nothing. Answer with `respond` once the goal is reached and you "
    "have seen that it is; give up with `abandon` if it cannot be reached."
)


_LOG = logging.getLogger("coag.agent")
MEMORY_NAME = "memory"
"""The folder of long-term memory, in an agent's folder, where no other is given."""
_NO_MEMORY_ACTIONS = {"remembering": False, "rewriting": False}


def _warn(agent: str, problems: Sequence[str]) -> None:
    for problem in problems:
        _LOG.warning("%s: %s", agent, problem)


def _store_of(place: Path | str | None, agent: str) -> ActivityStore:
    """The store of an agent's activities; refuses one that has those of another agent."""
    store = ActivityStore(place)
    if (other := store.agent() or agent) != agent:
        store.close()
        held = f"{str(place)!r} has the activities of the agent {other!r}"
        raise ConfigurationError(
            f"{held}: give {agent!r} a place of its own, or name it {other!r}."
        )
    return store


def _memory_of(
    memory: MemoryArgument | None,
    folder: Path | None,
    clock: Clock,
    arguments: Mapping[str, Any],
) -> LongTermMemory:
    own = None if folder is None else folder / MEMORY_NAME
    return open_memory(
        own if memory is None else memory,
        scope=arguments["name"],
        clock=clock,
        dynamics=arguments.get("memory_dynamics"),
    )


class ActivityControl:
    """The activities of a `SituatedAgent`, as its users and its tools see them."""

    clock: Clock
    budget: ActivityBudget
    """What one activity may use."""
    store: ActivityStore
    """The activities, and what they wait for."""
    scheduler: ActivityScheduler
    perception: ToolPerception

    @property
    def name(self) -> str:
        """The agent's name."""
        raise NotImplementedError

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
        now = self.clock.now()
        about: dict[str, Any] = {"source": source, "trust": trust, "priority": priority}
        about |= {"created": now, "updated": now, "budget": self.budget, "parent": parent}
        with self.store.together():  # no other worker takes the id in between
            if activity_id is not None and (known := self.store.get(activity_id)) is not None:
                return known
            activity_id = activity_id or self.store.new_id()
            activity = Activity(id=activity_id, agent=self.name, goal=well_formed(goal), **about)
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
        return activity_in(self.store, activity_id)

    def open_activities(self) -> list[Activity]:
        """The activities that have not ended."""
        return self.store.find(*OPEN_STATES)

    async def cancel(
        self, activity_id: str, reason: str = "It was cancelled.", *, delegated: bool = False
    ) -> None:
        """Ends an activity, whatever it does; with `delegated` what it gave other agents, too.

        Raises:
            UnknownNameError: There is no such activity.
            ToolConnectionError: Another agent's server did not answer; the activity has ended.
        """
        self.activity(activity_id)
        await self.scheduler.cancel(activity_id, reason)
        if delegated:
            await cancel_delegated(self.perception, activity_id, reason)

    def wake(self, activity_id: str) -> None:
        """Wakes an activity that waits, before what it waits for has arrived.

        Raises:
            UnknownNameError: There is no such activity.
        """
        self.activity(activity_id)
        self.scheduler.wake(activity_id)


class SituatedAgent(BaseChatAgent, ActivityControl, Component[SituatedAgentConfig]):
    """A chat agent whose goals are activities that wait at no cost.

    Each goal is pursued by a `CoagAgent` of its own, cycle by cycle, beside the others. It waits by
    an action; while it waits, no model is called. With a folder, activities and what they wait for
    outlive the process: start an agent with the same folder, and they continue.

    Args:
        name: The agent's name.
        model_client: Any AutoGen chat completion client.
        servers: Where the tools are; the agent closes these connections.
        folder: Where activities and their runs are kept; None keeps them in RAM.
        store: `postgresql://HOST/NAME`, shared by workers: processes with this agent and folder.
        answer: `end` answers a message when its activity has ended; `id` at once, with the
            activity's id, so that a team's turn continues.
        goals: Goals that signals and the clock set, beside those in messages; and `Intentions`,
            of which each by time begins an activity. For the others let `modules` make an
            `IntentionModule` with `times=False`.
        context: Makes the context of an activity: `SituatedContext`, or a subclass for the domain.
        modules: Makes further cognitive modules of an activity.
        memory: Long-term memory of all activities; an ended one leaves an experience there. None
            for one of their own, in a folder that is not shared, without actions for the model.
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
    _running = _closed = False

    def __init__(  # noqa: PLR0913 - what there is to say of such an agent
        self,
        name: str,
        model_client: ChatCompletionClient,
        servers: Sequence[ToolConnection],
        *,
        folder: Path | str | None = None,
        store: str | None = None,
        answer: Literal["end", "id"] = "end",
        goals: Sequence[Goal | Intentions] = (),
        context: MakeContext = SituatedContext,
        modules: MakeModules = tuple,
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
        self.clock = clock = clock or SystemClock()
        self._servers, self._answer, self._made = tuple(servers), answer, (context, modules)
        inside = folder if folder is None else Path(folder)
        self._runs = inside and inside / RUNS_NAME
        self.budget, self._situated = budget or ActivityBudget(), situated or SituatedSettings()
        own = {"name": name, "model_client": model_client, "events": "phases"}
        self._arguments = {"system_message": SYSTEM_MESSAGE, **arguments, **own}
        check_arguments(self._arguments, self._servers, goals, store, folder)
        self.store = _store_of(store or (inside and inside / STORE_NAME), name)
        self.memory = _memory_of(memory, None if store else inside, clock, self._arguments)
        """What all activities remember."""
        self._memory_argument, self._owns_memory = memory, self.memory is not memory
        self._events = ActivityEvents()
        self.perception = ToolPerception(
            self._servers,
            self.store,
            clock=self.clock,
            arrived=self._arrived,
            failed=lambda error: self.scheduler.fail(error),  # noqa: PLW0108 - made below
            settings=perception,
            unbounded=frozenset({STANDING}),
        )
        show, ended = self._events.show, self.perception.release
        self.minds = ActivityMinds(
            self._make_agent, self.store, runs=self._runs, live=live, show=show, ended=ended
        )
        self.scheduler = ActivityScheduler(
            self.store, self.minds, clock=clock, workers=workers, claimed=self.perception.adopt
        )
        self._goals = GoalSetter(goals, self.add_goal, self.perception, self.store, self.clock)
        given = {"folder": inside and str(inside), "store": store, "answer": answer, "live": live}
        given |= {"goals": list(goals), "workers": workers, "budget": self.budget}
        given |= {"situated": self._situated, "perception": self.perception.settings}
        self._given: dict[str, Any] = given

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
            _warn(self.name, self.perception.problems)
            await self._goals.start()
            await self.scheduler.start()
        except BaseException:
            await self._stop()
            raise

    async def close(self) -> None:
        """Lets running steps end, lets go of everything, and closes the connections."""
        self._closed = True
        async with AsyncExitStack() as afterwards:  # also where the store had failed
            afterwards.callback(self.store.close)
            if self._owns_memory:
                afterwards.push_async_callback(self.memory.close)
            afterwards.push_async_callback(self.minds.close)
            await self._stop()

    async def _stop(self) -> None:
        if self._running:
            self._running = False
            await self._goals.stop()
            try:
                await self.scheduler.stop()
            finally:
                await self.perception.stop()

    async def __aenter__(self) -> SituatedAgent:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # ---- its activities ----

    def _make_agent(self, activity: Activity) -> tuple[CoagAgent, SituatedModule]:
        context, modules = self._made
        module = SituatedModule(
            activity.id, self.perception, self.store, clock=self.clock, settings=self._situated
        )
        own = {} if self._memory_argument is not None else _NO_MEMORY_ACTIONS
        arguments: dict[str, Any] = {**own, **self._arguments, "memory_dynamics": None}
        agent = CoagAgent(
            **arguments,
            workbench=operations_of(activity.id, self.perception),
            model_context=context(),
            modules=[module, *modules()],
            memory=self.memory,
            logs=self._runs,
        )
        return agent, module

    # ---- what arrives ----

    def _arrived(self, activity_ids: Sequence[str]) -> None:
        if STANDING in activity_ids:
            self._goals.look()
        self.scheduler.arrived([one for one in activity_ids if one != STANDING])

    # ---- as a chat agent ----

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """Texts: the result of an activity, or its id."""
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
        goal, trust = goal_of(messages)
        activity = self.add_goal(goal, source=messages[-1].source, trust=trust)
        if self._answer == "id":
            yield _response(activity, f"Activity {activity.id} has begun: {goal}")
            return
        inner: list[Shown] = []
        ending = asyncio.ensure_future(self.scheduler.ended(activity.id))
        cancellation_token.link_future(ending)
        async with aclosing(self._events.until(activity.id, ending)) as events:
            async for event in events:
                inner.append(event)
                yield event
        over = await ending
        yield _response(over, over.result or f"The activity was {over.end}.", inner)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Cancels all activities; what they left in long-term memory stays."""
        del cancellation_token
        for activity in self.open_activities():
            await self.scheduler.cancel(activity.id, "The agent was reset.")

    async def save_state(self) -> Mapping[str, Any]:
        """Nothing: what it pursues is in its folder. Without one, the log says that it is lost."""
        if not self.store.lasts and self.open_activities():
            _warn(self.name, ["has no folder=, so that save_state keeps none of its activities."])
        return await super().save_state()

    # ---- as an AutoGen component ----

    def _to_config(self) -> SituatedAgentConfig:
        arguments: dict[str, Any] = {**self._arguments, "description": self.description}
        if self._memory_argument is not None:
            arguments["memory"] = self._memory_argument
        return to_situated_config(self._servers, *self._made, self._given, arguments)

    @classmethod
    def _from_config(cls, config: SituatedAgentConfig) -> Self:
        return cls(**from_situated_config(config))


def _response(activity: Activity, text: str, inner: Sequence[Shown] = ()) -> Response:
    facts = {"activity": activity.id, "end": str(activity.end or "")}
    message = TextMessage(content=text, source=activity.agent, metadata=facts)
    return Response(chat_message=message, inner_messages=list(inner))
