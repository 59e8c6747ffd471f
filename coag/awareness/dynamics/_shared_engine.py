"""An engine whose world others change, too."""

from __future__ import annotations

from collections.abc import Mapping

from coag.awareness._adapter import Adapter
from coag.awareness._domain import BUDGET, check_budget, injected, new_state, observed, of_domain
from coag.awareness._observation import Observation
from coag.awareness._resolving import NameResolver
from coag.awareness._settings import EngineSettings
from coag.awareness.state import AwarenessState
from coag.schema import Clock, SystemClock
from coag.store import Embedder

from ._shared_world import SharedWorld, joined, shared_update


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
