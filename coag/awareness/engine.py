"""The engines: observe, update, inject (SAGEN §4, algorithm 1).

`AwarenessEngine` is the paper's. `DynamicEngine` adds what changes by itself (see `dynamics`) and
an archive. `SharedEngine` shares its world with other engines. `updated` does the work of all.
"""

from __future__ import annotations

from asyncio import Lock as AsyncLock
from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, TypedDict, Unpack

from coag.errors import AwarenessError, ObservationError
from coag.schema import Clock, SystemClock, Value, estimate_tokens, folded
from coag.store import Embedder

from .adapters.domain_adapter import DomainAdapter
from .archive import Archive, archived, recalled
from .dynamics import DynamicsSettings, weighed, weighed_goals
from .fields import Step
from .names import EngineSettings, NameResolver
from .observation import Observation
from .state import Attention, AwarenessState, Trajectory, WorldModel
from .updating import advanced, updated

Adapter = DomainAdapter
"""What the engines ask of a domain."""
BUDGET = 500
"""Tokens of an injection by default."""


def new_state(
    adapter: Adapter, clock: Clock, settings: EngineSettings | None = None
) -> AwarenessState:
    """The state that an adapter's domain starts with."""
    chosen = settings or EngineSettings()
    return AwarenessState(
        domain=adapter.domain_name,
        trajectory=Trajectory(window=chosen.trajectory_window, sticky=chosen.sticky),
        attention=Attention(scan_patterns=adapter.define_scan_patterns()),
        protocol=adapter.define_protocol_defaults(),
        at=clock.now(),
    )


def of_domain(adapter: Adapter, state: AwarenessState) -> AwarenessState:
    """The state, which must be of the adapter's domain; else an `AwarenessError`."""
    if state.domain != adapter.domain_name:
        raise AwarenessError(
            f"The state is of domain {state.domain!r}, the adapter's is "
            f"{adapter.domain_name!r}: give the adapter that made the state."
        )
    return state


def observed(adapter: Adapter, raw: Mapping[str, object], state: AwarenessState) -> Observation:
    """What the adapter reads in raw input, of the types that it declares."""
    observation = adapter.parse_observation(raw, state)
    for name, declared, things in (
        ("entities", adapter.define_entity_types(), observation.entities),
        ("relationships", adapter.define_relationship_types(), observation.relationships),
    ):
        for place, thing in enumerate(things if declared else ()):
            if thing.type not in declared:
                raise ObservationError(
                    f"{name}[{place}].type",
                    f"the domain has no type {thing.type!r}; it declares {', '.join(declared)}.",
                )
    return observation


def injected(adapter: Adapter, state: AwarenessState, budget: int) -> str:
    """The state as text for a prompt, of at most `budget` tokens, which is checked."""
    _check_budget(budget)
    text = adapter.format_for_injection(state, budget)
    taken = estimate_tokens(text)
    if taken > budget:
        raise AwarenessError(
            f"The adapter of domain {adapter.domain_name!r} gave {taken} tokens for a budget of "
            f"{budget}. Make its `format_for_injection` count as `estimate_tokens` does, or let "
            "`render_injection` choose what fits."
        )
    return text


def _check_budget(budget: int) -> None:
    if not 0 <= budget < float("inf"):
        raise ValueError(f"budget is in tokens and at least 0, not {budget!r}.")


# ---- A world that several engines share ----
#
# Optimistic concurrency control (Kung & Robinson 1981, "On optimistic methods for concurrency
# control"): a change names the version on which it is based; if that is not the present one any
# more, the observation is applied again, to the newer world. So no update is lost, and no engine
# waits for another. Steps are Lamport's (1978): a change gets a step later than the world's and
# the engine's own, so that "last mentioned" means the same to all.


class SharedVersion(Value):
    """The world as it was at a step."""

    step: Step = 0
    """When it was changed last; each version has a later one than all before."""
    world: WorldModel = WorldModel()


class SharedWorldError(AwarenessError):
    """Other engines changed a shared world each time that it was to be changed here."""


class SharedWorld:
    """The present version of a world; every engine of this process may use it, in any thread.

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

    def change(
        self, change: Callable[[SharedVersion], SharedVersion], *, tries: int = 100
    ) -> SharedVersion:
        """Changes the world; again on the newer one if another engine was faster.

        Args:
            change: From the present version to the next. It may be called more than once, so it
                must only compute.
            tries: How often at most.

        Returns:
            The new version.

        Raises:
            SharedWorldError: Others were faster each time; nothing is changed.
            ValueError: `tries` is below 1, or the new version is no later than the present one.
        """
        if tries < 1:
            raise ValueError(f"tries is at least 1, not {tries!r}.")
        for _ in range(tries):
            before = self.current
            after = change(before)
            if after.step <= before.step:
                raise ValueError(
                    f"A new version is later than the one it is based on: step {after.step!r} is "
                    f"not after {before.step!r}."
                )
            with self._lock:
                if self._current is before:
                    self._current = after
                    return after
        raise SharedWorldError(
            f"The shared world was changed by others {tries} times in a row while it was to be "
            "changed here. Nothing was changed: try later, or give more tries."
        )

    def update(
        self,
        state: AwarenessState,
        observation: Observation,
        now: datetime,
        *,
        resolver: NameResolver,
    ) -> AwarenessState:
        """An engine's state one step later, with an observation that all engines are to see.

        Entities, relationships, assumptions and unknowns go to the shared world; goals,
        trajectory, self and attention are the engine's own. Where the observation names what does
        not exist, or others were faster each time, the shared world is as the others left it.
        """
        result = state

        def applied(version: SharedVersion) -> SharedVersion:
            nonlocal result
            open_only = _without_settled(observation, version.world)
            result = updated(joined(state, version), open_only, now, resolver=resolver)
            return SharedVersion(step=result.step, world=result.world)

        self.change(applied)
        return result


def joined(state: AwarenessState, version: SharedVersion) -> AwarenessState:
    """The state with the shared world in it, at the later of the two steps.

    The life of attention items is counted in the engine's own steps, so they move along.
    """
    ahead = max(0, version.step - state.step)
    changes: dict[str, Any] = {"world": version.world, "step": state.step + ahead}
    if ahead:
        items = tuple(
            item.model_copy(update={"created_step": item.created_step + ahead})
            for item in state.attention.items
        )
        changes["attention"] = state.attention.model_copy(update={"items": items})
    return state.model_copy(update=changes)


def _without_settled(observation: Observation, world: WorldModel) -> Observation:
    """The observation without what another engine has settled already."""
    if not observation.resolved:
        return observation
    beliefs = (*world.assumptions, *world.unknowns)
    open_ones = {folded(one.text) for one in beliefs if one.resolved is None}
    settled = {folded(one.text) for one in beliefs if one.resolved is not None} - open_ones
    resolved = tuple(text for text in observation.resolved if folded(text) not in settled)
    return observation.model_copy(update={"resolved": resolved})


# ---- The engines ----


class EngineOptions(TypedDict, total=False):
    """What every engine takes besides its domain; see `AwarenessEngine`."""

    clock: Clock | None
    embedder: Embedder | None
    settings: EngineSettings | None
    state: AwarenessState | None


class _Engine:
    """What all engines share: a domain, a state, and how it is read and shown."""

    def __init__(
        self,
        adapter: Adapter,
        *,
        clock: Clock | None = None,
        embedder: Embedder | None = None,
        settings: EngineSettings | None = None,
        state: AwarenessState | None = None,
    ) -> None:
        self._adapter = adapter
        self._clock = clock or SystemClock()
        self._resolver = NameResolver(settings, embedder)
        self._state = of_domain(adapter, state or new_state(adapter, self._clock, settings))

    @property
    def state(self) -> AwarenessState:
        """The agent's situation now."""
        return self._state

    @property
    def adapter(self) -> Adapter:
        """The domain."""
        return self._adapter

    def observe(self, raw: Mapping[str, object]) -> Observation:
        """What the adapter reads in raw input; nothing changes.

        An `ObservationError` says where it breaks the schema, or has a type that is not declared.
        """
        return observed(self._adapter, raw, self.state)

    def inject(self, budget: int = BUDGET) -> str:
        """The state as text for a prompt, of at most `budget` tokens."""
        return injected(self._adapter, self.state, budget)


class AwarenessEngine(_Engine):
    """Keeps one awareness state by the Observe-Update-Inject loop.

    All that it knows is in `state`; the rest is a cache. A new engine with the same state gives
    the same results. One engine takes one call at a time.

    Args:
        adapter: The domain.
        clock: Gives the time of each step.
        embedder: Recognises names by meaning; None recognises them by their form only.
        settings: How names are recognised and how much is kept.
        state: The state to start from; None for a new one.

    Raises:
        AwarenessError: The state is of another domain than the adapter's.
    """

    def update(self, observation: Observation) -> AwarenessState:
        """Applies an observation and returns the new state.

        Raises:
            AwarenessError: It names what does not exist or would form a circle. The state is as
                it was.
        """
        self._state = updated(self._state, observation, self._clock.now(), resolver=self._resolver)
        return self._state

    def step(self, raw: Mapping[str, object], budget: int = BUDGET) -> str:
        """Observe, update and inject, as algorithm 1 has it; what is raised changes nothing."""
        _check_budget(budget)
        self.update(self.observe(raw))
        return self.inject(budget)


class SharedEngine(AwarenessEngine):
    """An engine with its own goals, trajectory, self and attention in a shared world.

    What others learn of the world is visible with each look at `state`. One engine takes one call
    at a time; several work at once, in one thread or in many.

    Args:
        adapter: The domain; engines of one world may have different ones.
        shared: The world.
        options: See `AwarenessEngine`; the world of a given state is not used.
    """

    def __init__(
        self, adapter: Adapter, shared: SharedWorld, **options: Unpack[EngineOptions]
    ) -> None:
        super().__init__(adapter, **options)
        self._shared = shared

    @property
    def state(self) -> AwarenessState:
        """The agent's situation, in the world as it is now."""
        return joined(self._state, self._shared.current)

    def update(self, observation: Observation) -> AwarenessState:
        """Applies an observation for all engines; raises as `SharedWorld.update`."""
        now = self._clock.now()
        self._state = self._shared.update(self._state, observation, now, resolver=self._resolver)
        return self._state


class DynamicEngine(_Engine):
    """An engine for long runs. With nothing switched on it does what `AwarenessEngine` does.

    One step is: what is mentioned returns from the archive; priorities of new goals are moved by
    what was learned; algorithm 1; outcomes are counted; what faded leaves for the archive; what
    lies ahead becomes attention. Calls at the same time wait for each other.

    Args:
        adapter: The domain.
        dynamics: What is on.
        archive: Where goals and things are stored that left; None loses them.
        options: See `AwarenessEngine`.
    """

    def __init__(
        self,
        adapter: Adapter,
        dynamics: DynamicsSettings | None = None,
        *,
        archive: Archive | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        super().__init__(adapter, **options)
        self._dynamics = dynamics or DynamicsSettings()
        self._archive = archive
        self._one_at_a_time = AsyncLock()

    def inject(self, budget: int = BUDGET) -> str:
        """The state as text of at most `budget` tokens, goals by effective priority."""
        return injected(self._adapter, weighed(self._state, self._dynamics.decay), budget)

    async def update(self, observation: Observation) -> AwarenessState:
        """Applies an observation and returns the new state.

        Raises:
            AwarenessError: As `AwarenessEngine.update`; the state is as it was.
            RecordStoreError: The archive cannot be reached; the state is as it was.
        """
        async with self._one_at_a_time:
            return await self._advance(observation, await self._recalled(observation))

    async def take(self, raw: Mapping[str, object]) -> AwarenessState:
        """Observes and updates, and returns the new state; raises what these raise."""
        async with self._one_at_a_time:
            observation = self.observe(raw)
            before = await self._recalled(observation)
            if before is not self._state:  # what was a new topic is a callback now
                observation = observed(self._adapter, raw, before)
            return await self._advance(observation, before)

    async def step(self, raw: Mapping[str, object], budget: int = BUDGET) -> str:
        """Observe, update and inject; whatever is raised, the state is as it was."""
        _check_budget(budget)
        await self.take(raw)
        return self.inject(budget)

    async def _recalled(self, observation: Observation) -> AwarenessState:
        """The state with what an observation mentions that had left it."""
        if self._archive is None:
            return self._state
        chosen = self._dynamics.returning
        return await recalled(self._state, observation, self._archive, self._resolver, chosen)

    async def _advance(self, observation: Observation, before: AwarenessState) -> AwarenessState:
        observation = weighed_goals(observation, before, self._dynamics.learning)
        after = updated(before, observation, self._clock.now(), resolver=self._resolver)
        result = advanced(before, after, self._dynamics)
        if self._archive is not None:
            await self._archive.put(archived(after, result))
        self._state = result
        return self._state
