"""The engine: observes, and injects what matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from coag.errors import AwarenessError, ObservationError
from coag.schema import Clock, SystemClock, estimate_tokens
from coag.store import Embedder

from .observation import Observation
from .resolving import NameResolver
from .settings import EngineSettings
from .state import Attention, AwarenessState, InteractionProtocol, ScanPattern, Trajectory
from .updating import updated

# ---- What the engine asks of a domain's adapter (SAGEN §5, table 2) ----


class Adapter(Protocol):
    """All that is particular to a domain. It keeps nothing: what it knows is in the state."""

    @property
    def domain_name(self) -> str:
        """The domain, e.g. `conversation`."""
        ...

    def define_entity_types(self) -> tuple[str, ...]:
        """The types that its entities may have; none: any."""
        ...

    def define_relationship_types(self) -> tuple[str, ...]:
        """The types that its relationships may have; none: any."""
        ...

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """What to watch for."""
        ...

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What raw input says, given where things stand; the state is only read."""
        ...

    def format_for_injection(self, state: AwarenessState, budget: int) -> str:
        """The state as text for a prompt, of at most `budget` tokens."""
        ...

    def define_protocol_defaults(self) -> InteractionProtocol:
        """The contract that a new state starts with."""
        ...


# ---- What every engine asks of its adapter: a state to begin with, an observation, a text ----


BUDGET = 500
"""Tokens of an injection where nothing else is said."""


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
    """The state, which must be of the adapter's domain.

    Raises:
        AwarenessError: It is of another one.
    """
    if state.domain != adapter.domain_name:
        raise AwarenessError(
            f"The state is of domain {state.domain!r}, the adapter's is "
            f"{adapter.domain_name!r}: give the adapter that kept the state."
        )
    return state


def observed(adapter: Adapter, raw: Mapping[str, object], state: AwarenessState) -> Observation:
    """What the adapter makes of raw input.

    Raises:
        ObservationError: It breaks the schema, or has a type that the domain does not declare.
    """
    observation = adapter.parse_observation(raw, state)
    types = adapter.define_entity_types()
    for place, entity in enumerate(observation.entities):
        _check_type(f"entities[{place}].type", entity.type, types)
    types = adapter.define_relationship_types()
    for place, edge in enumerate(observation.relationships):
        _check_type(f"relationships[{place}].type", edge.type, types)
    return observation


def _check_type(path: str, given: str, declared: tuple[str, ...]) -> None:
    """Refuses a type that is not among the declared ones, where there are any."""
    if declared and given not in declared:
        raise ObservationError(
            path, f"the domain has no type {given!r}; it declares {', '.join(declared)}."
        )


def check_budget(budget: int) -> None:
    """Refuses a budget that is none.

    Raises:
        ValueError: It is negative, or no finite number.
    """
    if not 0 <= budget < float("inf"):
        raise ValueError(f"budget is in tokens and at least 0, not {budget!r}.")


def injected(adapter: Adapter, state: AwarenessState, budget: int) -> str:
    """The state as text for a prompt, of at most `budget` tokens.

    Raises:
        ValueError: The budget is negative.
        AwarenessError: The adapter gave more than that.
    """
    check_budget(budget)
    text = adapter.format_for_injection(state, budget)
    taken = estimate_tokens(text)
    if taken > budget:
        raise AwarenessError(
            f"The adapter of domain {adapter.domain_name!r} gave {taken} tokens for a budget of "
            f"{budget}. Make its `format_for_injection` count as `estimate_tokens` does, or let "
            "`render_injection` choose what fits."
        )
    return text


# ---- The engine: observe, update, inject (SAGEN §4, algorithm 1) ----


class AwarenessEngine:
    """Keeps one awareness state by the Observe-Update-Inject loop.

    All that it knows is in `state`; the rest is a cache. Give a state back to a new engine, and it
    goes on as this one would. One engine takes one call at a time.

    Args:
        adapter: The domain.
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
        *,
        clock: Clock | None = None,
        embedder: Embedder | None = None,
        settings: EngineSettings | None = None,
        state: AwarenessState | None = None,
    ) -> None:
        self._adapter = adapter
        self._clock = clock or SystemClock()
        self._settings = settings or EngineSettings()
        self._resolver = NameResolver(self._settings, embedder)
        self._state = of_domain(adapter, state or new_state(adapter, self._clock, self._settings))

    @property
    def state(self) -> AwarenessState:
        """Where the agent stands now."""
        return self._state

    @property
    def adapter(self) -> Adapter:
        """The domain."""
        return self._adapter

    def observe(self, raw: Mapping[str, object]) -> Observation:
        """What the adapter makes of raw input; nothing changes.

        Raises:
            ObservationError: It breaks the schema, or has a type that the domain does not declare.
        """
        return observed(self._adapter, raw, self._state)

    def update(self, observation: Observation) -> AwarenessState:
        """Takes in an observation and gives the new state.

        Raises:
            AwarenessError: It names what does not exist or would make a circle. The state is as
                it was.
        """
        self._state = updated(self._state, observation, self._clock.now(), resolver=self._resolver)
        return self._state

    def inject(self, budget: int = BUDGET) -> str:
        """The state as text for a prompt, of at most `budget` tokens.

        Raises:
            ValueError: The budget is negative.
        """
        return injected(self._adapter, self._state, budget)

    def step(self, raw: Mapping[str, object], budget: int = BUDGET) -> str:
        """Observe, update and inject, as algorithm 1 has it.

        Raises:
            AwarenessError: As `observe` and `update`; the state is as it was.
            ValueError: The budget is negative; the state is as it was.
        """
        check_budget(budget)
        self.update(self.observe(raw))
        return self.inject(budget)
