"""One world that several agents share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock

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
from coag.awareness.state import AwarenessState, Step, WorldModel, folded
from coag.awareness.updating import updated
from coag.errors import AwarenessError
from coag.schema import Clock, SystemClock, Value
from coag.store import Embedder

#
# Optimistic concurrency control (Kung & Robinson 1981, "On optimistic methods for concurrency
# control"): who changes the world says on which one the change rests; if that is not the present
# one any more, the observation is applied again, to the newer world. So no update is lost, and
# nobody waits for another. Steps are Lamport's (1978): a change gets a step later than the
# world's and the engine's own, so that "last mentioned" means the same to all.
_TRIES = 100


class SharedVersion(Value):
    """The world as it was at a step."""

    step: Step = 0
    """When it was changed last, later than all before; two versions never have the same one."""
    world: WorldModel = WorldModel()


class SharedWorldError(AwarenessError):
    """Others changed a shared world each time that it was to be changed here."""


class SharedWorld:
    """The present version of a world; every engine of this process may hold it, in any thread.

    Args:
        world: What it starts with.
        step: When that was changed last.
    """

    def __init__(self, world: WorldModel | None = None, step: int = 0) -> None:
        self._current = SharedVersion(step=step, world=world or WorldModel())
        self._lock = Lock()

    @property
    def current(self) -> SharedVersion:
        """The world now."""
        return self._current

    def swap(self, before: SharedVersion, after: SharedVersion) -> bool:
        """Puts a version in the place of the one that it rests on.

        Returns:
            Whether that was the present one; if it was not, nothing is changed.

        Raises:
            ValueError: `after` is no later than `before`.
        """
        if after.step <= before.step:
            raise ValueError(
                f"A new version is later than the one it rests on: step {after.step!r} is not "
                f"after {before.step!r}."
            )
        with self._lock:
            if self._current is not before:
                return False
            self._current = after
            return True

    def change(
        self, change: Callable[[SharedVersion], SharedVersion], *, tries: int = _TRIES
    ) -> SharedVersion:
        """Changes the world; again on the newer one, where one came between.

        Args:
            change: From the present version to the next. It may be called more than once, so it
                must only compute.
            tries: How often at most.

        Returns:
            The version that was put in place.

        Raises:
            SharedWorldError: Others were faster each time; nothing is changed.
            ValueError: `tries` is below 1.
        """
        if tries < 1:
            raise ValueError(f"tries is at least 1, not {tries!r}.")
        for _ in range(tries):
            before = self.current
            after = change(before)
            if self.swap(before, after):
                return after
        raise SharedWorldError(
            f"The shared world was changed by others {tries} times in a row while it was to be "
            "changed here. Nothing was changed: try later, or give more tries."
        )


def shared_update(
    shared: SharedWorld,
    state: AwarenessState,
    observation: Observation,
    now: datetime,
    *,
    resolver: NameResolver,
) -> AwarenessState:
    """The state one step later, with an observation that all who share the world are to see.

    Entities, relationships, assumptions and unknowns go to the shared world; goals, trajectory,
    self and attention are the engine's own. The state that comes back has the newest world in it.

    Args:
        shared: The world.
        state: The engine's own state; its world counts for nothing.
        observation: What was observed.
        now: When.
        resolver: The engine's own.

    Raises:
        AwarenessError: The observation names what does not exist, or others were faster each time.
            The shared world is as the others left it.
    """
    result = state

    def applied(seen: SharedVersion) -> SharedVersion:
        nonlocal result
        based = joined(state, seen)
        own = _unsettled(observation, seen.world)
        result = updated(based, own, now, resolver=resolver)
        return SharedVersion(step=result.step, world=result.world)

    shared.change(applied)
    return result


def joined(state: AwarenessState, seen: SharedVersion) -> AwarenessState:
    """The state with the shared world in it, at the later of the two steps.

    The life of attention items is counted in the engine's own steps, so they come along.
    """
    ahead = max(0, seen.step - state.step)
    if not ahead:
        return state.model_copy(update={"world": seen.world})
    items = tuple(
        item.model_copy(update={"created_step": item.created_step + ahead})
        for item in state.attention.items
    )
    attention = state.attention.model_copy(update={"items": items})
    return state.model_copy(
        update={"world": seen.world, "step": state.step + ahead, "attention": attention}
    )


def _unsettled(observation: Observation, world: WorldModel) -> Observation:
    """The observation without what another engine has settled already."""
    if not observation.resolved:
        return observation
    beliefs = (*world.assumptions, *world.unknowns)
    open_ones = {folded(one.text) for one in beliefs if one.resolved is None}
    settled = {folded(one.text) for one in beliefs if one.resolved is not None} - open_ones
    resolved = tuple(text for text in observation.resolved if folded(text) not in settled)
    return observation.model_copy(update={"resolved": resolved})


# ---- An engine whose world others change, too ----


class SharedEngine:
    """An awareness engine with its own goals, trajectory, self and attention in a shared world.

    It reads as `AwarenessEngine`. What others learn of the world is seen by each look at `state`.
    One engine takes one call at a time; several work at once, in one thread or in many.

    Args:
        adapter: The domain; engines of one world may have different ones.
        shared: The world.
        clock: Tells the time of each step.
        embedder: Recognises names by meaning; None recognises them by their form only.
        settings: How names are recognised and how much is kept.
        state: Where to go on from, for all but the world; None for a new state.

    Raises:
        AwarenessError: The state is of another domain than the adapter's.
    """

    def __init__(
        self,
        adapter: Adapter,
        shared: SharedWorld,
        *,
        clock: Clock | None = None,
        embedder: Embedder | None = None,
        settings: EngineSettings | None = None,
        state: AwarenessState | None = None,
    ) -> None:
        self._adapter = adapter
        self._shared = shared
        self._clock = clock or SystemClock()
        self._resolver = NameResolver(settings, embedder)
        self._state = of_domain(adapter, state or new_state(adapter, self._clock, settings))

    @property
    def state(self) -> AwarenessState:
        """Where this agent stands, in the world as it is now."""
        return joined(self._state, self._shared.current)

    def observe(self, raw: Mapping[str, object]) -> Observation:
        """What the adapter makes of raw input; nothing changes.

        Raises:
            ObservationError: It breaks the schema, or has a type that the domain does not declare.
        """
        return observed(self._adapter, raw, self.state)

    def update(self, observation: Observation) -> AwarenessState:
        """Takes in an observation, for all, and gives the new state.

        Raises:
            AwarenessError: It names what does not exist or would make a circle, or others were
                faster each time. The own state is as it was, and the world as others left it.
        """
        self._state = shared_update(
            self._shared, self._state, observation, self._clock.now(), resolver=self._resolver
        )
        return self._state

    def inject(self, budget: int = BUDGET) -> str:
        """The state as text for a prompt, of at most `budget` tokens.

        Raises:
            ValueError: The budget is negative.
        """
        return injected(self._adapter, self.state, budget)

    def step(self, raw: Mapping[str, object], budget: int = BUDGET) -> str:
        """Observe, update and inject.

        Raises:
            AwarenessError: As `observe` and `update`.
            ValueError: The budget is negative; the state is as it was.
        """
        check_budget(budget)
        self.update(self.observe(raw))
        return self.inject(budget)
