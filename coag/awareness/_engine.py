"""The engine: observe, update, inject (SAGEN §4, algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping

from coag.errors import AwarenessError, ObservationError
from coag.schema import Clock, SystemClock
from coag.store import Embedder

from ._adapter import Adapter
from ._observation import Observation
from ._resolving import NameResolver
from ._settings import EngineSettings
from ._updating import updated
from .state import Attention, AwarenessState, Trajectory

_BUDGET = 500
"""Tokens of an injection where nothing else is said."""


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
        if state is not None and state.domain != adapter.domain_name:
            raise AwarenessError(
                f"The state is of domain {state.domain!r}, the adapter's is "
                f"{adapter.domain_name!r}: give the adapter that kept the state."
            )
        self._adapter = adapter
        self._clock = clock or SystemClock()
        self._settings = settings or EngineSettings()
        self._resolver = NameResolver(self._settings, embedder)
        self._state = state or new_state(adapter, self._clock, self._settings)

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
        observation = self._adapter.parse_observation(raw, self._state)
        self._check_types(observation)
        return observation

    def update(self, observation: Observation) -> AwarenessState:
        """Takes in an observation and gives the new state.

        Raises:
            AwarenessError: It names what does not exist or would make a circle. The state is as
                it was.
        """
        self._state = updated(self._state, observation, self._clock.now(), resolver=self._resolver)
        return self._state

    def inject(self, budget: int = _BUDGET) -> str:
        """The state as text for a prompt, of at most `budget` tokens.

        Raises:
            ValueError: The budget is negative.
        """
        if budget < 0:
            raise ValueError(f"budget is in tokens and at least 0, not {budget!r}.")
        return self._adapter.format_for_injection(self._state, budget)

    def step(self, raw: Mapping[str, object], budget: int = _BUDGET) -> str:
        """Observe, update and inject, as algorithm 1 has it.

        Raises:
            AwarenessError: As `observe` and `update`; the state is as it was.
            ValueError: The budget is negative; the state is as it was.
        """
        if budget < 0:
            raise ValueError(f"budget is in tokens and at least 0, not {budget!r}.")
        self.update(self.observe(raw))
        return self.inject(budget)

    def _check_types(self, observation: Observation) -> None:
        """Refuses types that the domain does not declare."""
        types = self._adapter.define_entity_types()
        for place, entity in enumerate(observation.entities):
            _check_type(f"entities[{place}].type", entity.type, types)
        types = self._adapter.define_relationship_types()
        for place, edge in enumerate(observation.relationships):
            _check_type(f"relationships[{place}].type", edge.type, types)


def _check_type(path: str, given: str, declared: tuple[str, ...]) -> None:
    """Refuses a type that is not among the declared ones, where there are any."""
    if declared and given not in declared:
        raise ObservationError(
            path, f"the domain has no type {given!r}; it declares {', '.join(declared)}."
        )


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
