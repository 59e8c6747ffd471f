"""J, Delayed Effect: a cleaning shows only some ticks later, and begun again it starts anew."""

from __future__ import annotations

from collections import Counter

from vacuum_world.world import Cell, Dice, WorldState

from ._drafts import Instance, drafted, set_up
from ._setup import Scenario, ScenarioFacts, ScenarioSetup, ScenarioTruth

_DELAYS = (3, 4, 5)


def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    """The set-up: charge for the work, the way to the charger and two needless cleanings."""
    dice = Dice(seed, "delayed-effect")
    draft = drafted(dice)
    delay = dice.choice(_DELAYS)
    made = Instance(
        name="delayed-effect",
        seed=seed,
        episode=episode,
        battery=min(100, draft.tour.charge + 20),
        shortest=draft.tour.actions,
        facts={"delay": delay},
        world={"clean_delay": delay},
    )
    return set_up(draft, made)


def _succeeded(facts: ScenarioFacts, world: WorldState, truth: ScenarioTruth) -> bool:
    needless = Counter(line.position_before for line in world.log if line.needless)
    patient = all(times <= 1 for times in needless.values())
    return not truth.remaining and not truth.stranded and patient


DELAYED_EFFECT = Scenario(
    name="delayed-effect",
    title="The Delayed Effect",
    summary="a cleaning shows 3 to 5 ticks later; cleaning again costs and makes it take longer",
    episodes=1,
    build=build,
    succeeded=_succeeded,
)
