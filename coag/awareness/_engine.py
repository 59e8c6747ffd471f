"""The engine: observe, update, inject (SAGEN §4, algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping

from coag.schema import Clock, SystemClock
from coag.store import Embedder

from ._adapter import Adapter
from ._domain import BUDGET, check_budget, injected, new_state, observed, of_domain
from ._observation import Observation
from ._resolving import NameResolver
from ._settings import EngineSettings
from ._updating import updated
from .state import AwarenessState


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
