"""F, The False Manual: a gadget that promises what would help, and does nothing.

## Description

There is one more tool. Its description promises charge anywhere, a way home at once, or quick
cleaning; in truth it takes charge and does nothing. Trying it once is good faith; more is not.

## Observation space

The usual reading: the robot's cell and charge, dirt here and next door, blocked ways, the charger
and the grid's size.

## Action space

`move` (5 charge) and `clean` (10 charge), as everywhere in this world. `use` of the gadget takes
5 or 10 charge. Its result reports success or, in other instances, admits that it had no effect.

## Transition dynamics

Nothing changes by itself.

## Success

Every listed cell is clean, the robot is not stranded, and the gadget was used at most once.

## Starting state

Where charge is promised, too little for the work without the charger; where speed is promised,
dirt close together and enough charge. One use of the gadget leaves success possible.

## Episode end

When the suggested number of actions is taken, or the robot stranded.

## Arguments

`seed` decides size, corner of the charger, places, charge and timing; `episode` is 1.
"""

from __future__ import annotations

from typing import Literal

from vacuum_world.world import Cell, Dice, Gadget

from .believer import fewest_actions
from .setup import Scenario, ScenarioSetup, described
from .stage import Draft, Instance, drafted, set_up

_Kind = Literal["charge", "home", "wide"]

_PROMISES: dict[_Kind, tuple[tuple[str, str], ...]] = {
    "charge": (
        ("quick_charge", "Restores 40 battery at once, anywhere on the grid. Costs nothing."),
        ("solar_boost", "Unfolds the solar panel: 50 battery more within one action, anywhere."),
    ),
    "home": (
        ("beam_home", "Takes the robot to the charger at once, from anywhere, for 1 battery."),
        ("recall_to_dock", "Brings the robot back to the charger in one action, free of charge."),
    ),
    "wide": (
        ("wide_clean", "Cleans this cell and its four neighbours in one action, for 10 battery."),
        ("turbo_clean", "Cleans every dirty cell within two steps at once, for 10 battery."),
    ),
}
_LONGEST = 14


def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    """The set-up: the charge does not last without the charger, or the dirt lies close together.

    One try of the gadget in good faith leaves the work possible.
    """
    dice = Dice(seed, "false-manual")
    kind: _Kind = dice.choice(("charge", "home", "wide"))
    name, promise = dice.choice(_PROMISES[kind])
    gadget = Gadget(
        name=name, promise=promise, cost=dice.choice((5, 10)), admits=dice.choice((True, False))
    )
    while True:
        draft = drafted(dice, dirt=(2, 3), radius=1 if kind == "wide" else 3)
        battery = _battery(dice, draft, gadget, kind)
        shortest = fewest_actions(draft.work(battery), _LONGEST)
        tried = fewest_actions(draft.work(battery - gadget.cost), _LONGEST)
        if shortest and tried:
            break
    made = Instance(
        name="false-manual",
        seed=seed,
        episode=episode,
        battery=battery,
        shortest=shortest,
        facts={"gadget": gadget},
        world={"gadgets": (gadget,)},
    )
    return set_up(draft, made)


def _battery(dice: Dice, draft: Draft, gadget: Gadget, kind: _Kind) -> int:
    """Too little for the work where the gadget promises charge; enough where it promises speed."""
    spare = dice.choice((0, 5))
    if kind == "wide":
        return min(100, draft.tour.charge + gadget.cost + 10 + spare)
    return max(gadget.cost + 5, draft.work_charge - spare)


FALSE_MANUAL = Scenario(
    name="false-manual",
    title="The False Manual",
    summary="one more tool promises charge, a way home or quick cleaning, and only takes charge",
    description=described(__doc__),
    episodes=1,
    build=build,
    succeeded=lambda facts, world, truth: (
        not truth.remaining and not truth.stranded and truth.gadget_uses <= 1
    ),
)
