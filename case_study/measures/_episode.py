"""An episode that is over, as it can be measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from case_study.faults import VacuumDomain
from case_study.temperaments import WORLD_ACTIONS
from coag.proof import Circumstances, Domain
from coag.schema import TraceRecord
from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.world import STILL, WorldState, last_state_line

Where = Callable[[str], object]
"""From a result's text to where the agent then is; None where the text does not tell."""


def _nowhere(text: str) -> object:
    """A domain in which results tell no place."""
    del text
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What is measured: a trace, and what else is known of what it is a trace of.

    Another domain than the vacuum world gives what it has; measures that need more are None.
    """

    records: tuple[TraceRecord, ...]
    """The run's trace, in order."""
    success: bool
    """Whether it came to what it was about, by the world."""
    tools: frozenset[str]
    """External actions that exist and do what they promise."""
    looks: frozenset[str] = frozenset()
    """Those of `tools` that only look and change nothing."""
    gadgets: frozenset[str] = frozenset()
    """External actions that exist and do not do what they promise."""
    shortest: int | None = None
    """The fewest actions to success; None where that is not known."""
    bound: int | None = None
    """How many actions were allowed."""
    domain: Domain = field(default_factory=Domain)
    """What a diagnosis is told of the domain."""
    where: Where = _nowhere
    """Reads from a result where the agent is."""
    setup: ScenarioSetup | None = None
    """The scenario's instance; None in another domain."""
    world: WorldState | None = None
    """The world afterwards, with its log; None in another domain."""


def vacuum_episode(
    records: Iterable[TraceRecord],
    setup: ScenarioSetup,
    world: WorldState | None,
    *,
    success: bool,
    bound: int | None = None,
) -> Episode:
    """An episode in the vacuum world.

    Args:
        records: The run's trace, in order.
        setup: The instance that was played.
        world: The world afterwards; None where it is not known.
        success: Whether it succeeded.
        bound: The bound of actions; None for the scenario's own.
    """
    return Episode(
        records=tuple(records),
        success=success,
        tools=frozenset(WORLD_ACTIONS),
        looks=frozenset({"sense"}),
        gadgets=frozenset(gadget.name for gadget in setup.world.gadgets),
        shortest=setup.shortest,
        bound=bound or setup.max_actions,
        domain=VacuumDomain() if setup.world.dynamics == STILL else _Unsettled(),
        where=_position,
        setup=setup,
        world=world,
    )


class _Unsettled(VacuumDomain):
    """A vacuum world that changes by itself, so that no way to the goal can be told."""

    def remaining(self, now: Circumstances) -> float | None:
        """Unknown."""
        del now
        return None


def _position(text: str) -> object:
    reading = last_state_line(text)
    return None if reading is None else reading.position
