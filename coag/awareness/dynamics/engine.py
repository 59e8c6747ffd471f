"""An engine whose state fades, learns, looks ahead and remembers what left it."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Collection, Mapping

from coag.awareness.engine import (
    BUDGET,
    Adapter,
    check_budget,
    injected,
    new_state,
    observed,
    of_domain,
)
from coag.awareness.observation import Observation
from coag.awareness.resolving import NameResolver
from coag.awareness.settings import EngineSettings
from coag.awareness.state import AwarenessState
from coag.awareness.updating import updated
from coag.schema import Clock, SystemClock
from coag.store import Embedder

from .archive import Archive, archived, recalled
from .decay import Decayed, decayed, weighed
from .learning import learned, weighed_goals
from .projection import with_projection, with_readings
from .settings import DynamicsSettings


def moved_on(
    before: AwarenessState,
    after: AwarenessState,
    settings: DynamicsSettings,
    *,
    staying: Collection[str] = (),
) -> Decayed:
    """The state after a step as it changes by itself: learning, decay, projection.

    Pure: the same states and settings give the same. With nothing switched on it is `after`.

    Args:
        before: The state before the step, with what returned from the archive.
        after: The state after it.
        settings: What is on.
        staying: Ids of goals that stay whatever happens.
    """
    state, result = after, Decayed(state=after)
    if settings.learning is not None:
        state = learned(before.goals, state, settings.learning)
    if settings.projection is not None:
        state = with_readings(state, settings.projection)
    decay = settings.decay
    if decay is not None and before.step // decay.every != after.step // decay.every:
        result = decayed(state, decay, staying=staying)
        state = result.state
    if settings.projection is not None:
        state = with_projection(state, settings.projection)
    return Decayed(state=state, left=result.left)


class DynamicEngine:
    """An awareness engine for long runs. With nothing switched on it does what the plain one does.

    One step is: what is mentioned returns from the archive; priorities of new goals are moved by
    what was learned; algorithm 1; outcomes are counted; what faded leaves for the archive; what
    lies ahead becomes attention. Calls at the same time wait for each other.

    Args:
        adapter: The domain.
        dynamics: What is on.
        archive: Where goals and things rest that left; None loses them.
        clock: Tells the time of each step.
        embedder: Recognises names by meaning; None recognises them by their form only.
        settings: How names are recognised and how much is kept.
        state: Where to go on from; None for a new state.

    Raises:
        AwarenessError: The state is of another domain than the adapter's.
    """

    def __init__(
        self,
        adapter: Adapter,
        dynamics: DynamicsSettings | None = None,
        *,
        archive: Archive | None = None,
        clock: Clock | None = None,
        embedder: Embedder | None = None,
        settings: EngineSettings | None = None,
        state: AwarenessState | None = None,
    ) -> None:
        self._adapter = adapter
        self._dynamics = dynamics or DynamicsSettings()
        self._archive = archive
        self._clock = clock or SystemClock()
        self._resolver = NameResolver(settings, embedder)
        self._state = of_domain(adapter, state or new_state(adapter, self._clock, settings))
        self._one_at_a_time = Lock()

    @property
    def state(self) -> AwarenessState:
        """Where the agent stands now."""
        return self._state

    def observe(self, raw: Mapping[str, object]) -> Observation:
        """What the adapter makes of raw input; nothing changes.

        Raises:
            ObservationError: It breaks the schema, or has a type that the domain does not declare.
        """
        return observed(self._adapter, raw, self._state)

    async def update(self, observation: Observation) -> AwarenessState:
        """Takes in an observation and gives the new state.

        Raises:
            AwarenessError: It names what does not exist or would make a circle. The state is as
                it was.
            RecordStoreError: The archive cannot be reached. The state is as it was.
        """
        async with self._one_at_a_time:
            return await self._updated(observation, await self._returned(observation))

    def inject(self, budget: int = BUDGET) -> str:
        """The state as text for a prompt, of at most `budget` tokens, goals by effective priority.

        Raises:
            ValueError: The budget is negative.
        """
        decay = self._dynamics.decay
        shown = self._state if decay is None else weighed(self._state, decay)
        return injected(self._adapter, shown, budget)

    async def step(self, raw: Mapping[str, object], budget: int = BUDGET) -> str:
        """Observe, update and inject.

        Where something returns from the archive, the adapter reads the input again in its light:
        what was a new topic is a callback then.

        Raises:
            AwarenessError: As `observe` and `update`; the state is as it was.
            RecordStoreError: As `update`.
            ValueError: The budget is negative; the state is as it was.
        """
        check_budget(budget)
        await self.take(raw)
        return self.inject(budget)

    async def take(self, raw: Mapping[str, object]) -> AwarenessState:
        """Observe and update, as `step` does, and gives the new state.

        Raises:
            AwarenessError: As `observe` and `update`; the state is as it was.
            RecordStoreError: As `update`.
        """
        async with self._one_at_a_time:
            observation = self.observe(raw)
            before = await self._returned(observation)
            if before is not self._state:
                observation = observed(self._adapter, raw, before)
            return await self._updated(observation, before)

    async def _returned(self, observation: Observation) -> AwarenessState:
        """The state with what an observation mentions that had left it."""
        if self._archive is None:
            return self._state
        chosen = self._dynamics.returning
        return await recalled(self._state, observation, self._archive, self._resolver, chosen)

    async def _updated(self, observation: Observation, before: AwarenessState) -> AwarenessState:
        """Takes in an observation, going on from a state in which nothing is missing."""
        dynamics = self._dynamics
        if dynamics.learning is not None:
            observation = weighed_goals(observation, before, dynamics.learning)
        after = updated(before, observation, self._clock.now(), resolver=self._resolver)
        moved = moved_on(before, after, dynamics)
        if self._archive is not None:
            await self._archive.put(archived(moved.left, after.goals, after.step, after.at))
        self._state = moved.state
        return self._state
