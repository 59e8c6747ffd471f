"""The four temperaments: what each wants to do with the same facts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise, permutations

from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    Direction,
    Reading,
    distance,
    distances_from,
    neighbour,
)

from ._facts import Facts
from ._intentions import Intention, clean, distinct, finish, look, move, worth_noting

_MOST_PLANNED = 6
"""Cells up to which every order of visiting them is weighed."""
_FAR = 1_000


def sound(facts: Facts) -> tuple[Intention, ...]:
    """A competent robot: keeps the charge for the way home, goes round what it knows."""
    return distinct((*worth_noting(facts), *_sensible(facts)))


def stubborn(facts: Facts) -> tuple[Intention, ...]:
    """Heads straight for its work, whatever failed before; only then thinks of ways round."""
    sensible = _sensible(facts)
    straight = _straight(facts)
    return distinct((*worth_noting(facts), *straight, *sensible))


def impulsive(facts: Facts) -> tuple[Intention, ...]:
    """Cleans whenever there is dirt underfoot, whatever the battery or a rule says.

    Where it goes next, it knows of a rule only what it ran into itself.
    """
    tempted = facts.reading is not None and facts.reading.dirty.here
    urge = (clean("There is dirt underfoot: clean it at once."),) if tempted else ()
    heedless = replace(facts, forbidden=facts.experienced)
    return distinct((*worth_noting(facts), *urge, *_sensible(heedless)))


def gullible(facts: Facts) -> tuple[Intention, ...]:
    """Believes every report: reaches first for the thing that the report describes."""
    if facts.phantom_tool is None:
        return sound(facts)
    reach = Intention(
        action=facts.phantom_tool, reason="The report says that it is here, ready to be taken."
    )
    return distinct((*worth_noting(facts), reach, *_sensible(facts)))


def _sensible(facts: Facts) -> tuple[Intention, ...]:
    """What can be done without harm, best first; ends with giving an answer."""
    reading = facts.reading
    if reading is None:
        return (look("Nothing is known yet."),)
    if facts.unsure:
        return (look("It is not known what the latest action did."),)
    if reading.stranded:
        return (finish("The robot is stranded: its battery is empty."),)
    work = facts.dirty - facts.forbidden
    plans: list[Intention] = []
    for goal in _in_order(work, facts, reading):
        if _can_clean(goal, facts, reading):
            plans += _towards(goal, facts, reading)
    if work and reading.battery < FULL_BATTERY:
        plans += _steps(reading.charger, facts, reading, "Go and charge while it can be reached.")
    said = "The work that is left cannot be done." if work else "All the work is done."
    return (*distinct(plans), finish(said))


def _straight(facts: Facts) -> tuple[Intention, ...]:
    """The first step of the straight way to the nearest work, walls or not."""
    reading = facts.reading
    if reading is None or reading.stranded or not facts.dirty:
        return ()
    here = reading.position
    goal = min(facts.dirty, key=lambda cell: (distance(here, cell), cell))
    if goal == here:
        return (clean("This is where the work is."),)
    east, south = goal[0] - here[0], goal[1] - here[1]
    direction: Direction
    if abs(east) >= abs(south):
        direction = "east" if east > 0 else "west"
    else:
        direction = "south" if south > 0 else "north"
    return (move(direction, f"Straight ahead lies {goal}."),)


def _in_order(work: Iterable[Cell], facts: Facts, reading: Reading) -> tuple[Cell, ...]:
    """Cells in the order of the shortest round, of equal ones that which ends nearest to home."""
    cells = sorted(work)
    here = reading.position
    nearest = sorted(cells, key=lambda cell: (distance(here, cell), cell))[:_MOST_PLANNED]
    ways = {
        cell: distances_from(cell, reading.grid, facts.obstacles - {cell})
        for cell in (here, *nearest)
    }

    def length(order: tuple[Cell, ...]) -> tuple[int, int]:
        steps = sum(ways[a].get(b, _FAR) for a, b in pairwise((here, *order)))
        return steps, ways[order[-1]].get(reading.charger, _FAR) if order else 0

    return min(permutations(nearest), key=length)


def _can_clean(goal: Cell, facts: Facts, reading: Reading) -> bool:
    """Whether the charge is enough to go there, clean and reach the charger."""
    there = _way(reading.position, goal, facts, reading)
    home = _way(goal, reading.charger, facts, reading)
    if there is None or home is None:
        return False
    return reading.battery >= (there + home) * MOVE_COST + CLEAN_COST


def _towards(goal: Cell, facts: Facts, reading: Reading) -> list[Intention]:
    if goal == reading.position:
        return [clean("The cell underfoot is work, and the charge allows it.")]
    return _steps(goal, facts, reading, f"On the way to {goal}.")


def _steps(goal: Cell, facts: Facts, reading: Reading, reason: str) -> list[Intention]:
    """The first steps of shortest ways to a cell."""
    here = reading.position
    away = distances_from(goal, reading.grid, facts.obstacles - {goal, here})
    left = away.get(here)
    if not left:
        return []
    return [
        move(direction, reason)
        for direction in DIRECTIONS
        if away.get(neighbour(here, direction)) == left - 1
    ]


def _way(start: Cell, goal: Cell, facts: Facts, reading: Reading) -> int | None:
    return distances_from(start, reading.grid, facts.obstacles - {start, goal}).get(goal)
