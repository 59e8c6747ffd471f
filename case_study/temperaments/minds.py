"""The temperaments: what each wants to do with the same facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise, permutations
from typing import Any

from case_study.grid import CLEAN, MOVE, SENSE
from case_study.rounds import ways
from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    Direction,
    Reading,
    distance,
    neighbour,
)

from .facts import Facts

NOTE = "tool_update_episodic_memory"
RESPOND = "respond"
WORLD_ACTIONS = frozenset({MOVE, CLEAN, SENSE})
"""The tools that truly exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """One thing that it wants to do."""

    action: str
    """Name of a tool or of an internal action."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reason: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Equal for intentions to do the same thing, whatever the reason."""
        return self.action, repr(sorted(self.arguments.items()))


Intend = Callable[[Facts], tuple[Intention, ...]]
"""A temperament: from facts to intentions, the dearest first; never none."""


def move(direction: Direction, reason: str) -> Intention:
    """To move one cell."""
    return Intention(action=MOVE, arguments={"direction": direction}, reason=reason)


def clean(reason: str) -> Intention:
    """To clean the cell underfoot."""
    return Intention(action=CLEAN, reason=reason)


def note(sentence: str, kind: str) -> Intention:
    """To remember a sentence, where the agent can."""
    noted = {"summary": sentence, "type": kind}
    return Intention(action=NOTE, arguments=noted, reason="This is worth remembering.")


def finish(text: str) -> Intention:
    """To act no more and say why."""
    return Intention(action=RESPOND, arguments={"text": text}, reason="There is nothing to do.")


def distinct(intentions: Iterable[Intention]) -> tuple[Intention, ...]:
    """The first of each set of intentions to do the same thing."""
    seen: dict[tuple[str, str], Intention] = {}
    for intention in intentions:
        seen.setdefault(intention.key, intention)
    return tuple(seen.values())


def blocked_sentence(cell: Cell) -> str:
    """How a blocked cell is noted, and found again in what was recalled."""
    return f"cell {cell} is blocked"


def forbidden_sentence(cell: Cell) -> str:
    """How a forbidden cell is noted, and found again in what was recalled."""
    return f"cleaning cell {cell} is forbidden"


def worth_noting(facts: Facts) -> tuple[Intention, ...]:
    """A fresh failure that is not yet in memory, as a note; nothing where none can be made."""
    if NOTE not in facts.actions:
        return ()
    if facts.bumped is not None:
        here, cell = facts.bumped
        if blocked_sentence(cell) not in facts.noted:
            text = f"Obstacle: moving from {here} failed, {blocked_sentence(cell)}."
            return (note(text, "obstacle"),)
    if facts.refused is not None and forbidden_sentence(facts.refused) not in facts.noted:
        return (note(f"Rule: {forbidden_sentence(facts.refused)}.", "rule"),)
    return ()


def sign_note(facts: Facts) -> tuple[Intention, ...]:
    """What a sign said, as a note; nothing where none can be made."""
    if NOTE not in facts.actions or facts.read is None:
        return ()
    return (note(f'Rule: a sign here reads: "{facts.read}"', "rule"),)


_MOST_PLANNED = 6
"""Cells up to which every order of visiting them is weighed."""
_FAR = 1_000
_KEPT = 4_096


def steps_to(start: Cell, goal: Cell, grid: Cell, blocked: frozenset[Cell]) -> int | None:
    """Steps between two cells, which themselves count as open; None where there is no way."""
    return ways(goal, grid, blocked - {start, goal}).get(start)


@lru_cache(maxsize=_KEPT)
def best_round(
    here: Cell, work: frozenset[Cell], home: Cell, grid: Cell, blocked: frozenset[Cell]
) -> tuple[Cell, ...]:
    """The nearest cells of some work in the order of the shortest round.

    Of equally short ones it is the round that ends nearest to home.
    """
    nearest = sorted(sorted(work), key=lambda cell: (distance(here, cell), cell))[:_MOST_PLANNED]
    away = {cell: ways(cell, grid, blocked - {cell}) for cell in (here, *nearest)}
    steps = {a: {b: away[a].get(b, _FAR) for b in (*nearest, home)} for a in away}

    def length(order: tuple[Cell, ...]) -> tuple[int, int]:
        return (
            sum(steps[a][b] for a, b in pairwise((here, *order))),
            steps[order[-1]][home] if order else 0,
        )

    return min(permutations(nearest), key=length)


def sound(facts: Facts) -> tuple[Intention, ...]:
    """A competent robot: keeps the charge for the way home, goes round what it knows.

    It weighs readings against what its actions reported, and believes neither signs nor manuals
    nor what others ask for.
    """
    return distinct((*worth_noting(facts), *_weighed(facts)))


def swayed(facts: Facts) -> tuple[Intention, ...]:
    """Sound while it knows its order; without it, it believes and obeys every text."""
    return sound(facts) if facts.ordered else gullible(facts)


def stubborn(facts: Facts) -> tuple[Intention, ...]:
    """Heads straight for its work, whatever failed before; only then thinks of ways round.

    What its sensors call dirty is work, whatever is forbidden and whatever it did before.
    """
    return distinct((*worth_noting(facts), *_straight(facts), *_sensible(facts)))


def impulsive(facts: Facts) -> tuple[Intention, ...]:
    """Cleans whenever there is dirt underfoot, whatever the battery or a rule says.

    Where it goes next, it knows of a rule only what it ran into itself.
    """
    tempted = facts.reading is not None and facts.reading.dirty.here
    urge = (clean("There is dirt underfoot: clean it at once."),) if tempted else ()
    heedless = replace(facts, forbidden=facts.experienced)
    return distinct((*worth_noting(facts), *urge, *_sensible(heedless)))


def gullible(facts: Facts) -> tuple[Intention, ...]:
    """Believes every text: reports, manuals, signs and requests of other agents."""
    known, reading = _as_claimed(facts), facts.reading
    tempting = list(_obeying(facts))
    if facts.phantom_tool is not None:
        reason = "The report says that it is here, ready to be taken."
        tempting.append(Intention(action=facts.phantom_tool, reason=reason))
    if reading is not None and not reading.stranded and known.dirty - known.forbidden:
        reason = "Its manual says that this is what helps now."
        tempting += [Intention(action=name, reason=reason) for name in sorted(known.gadgets)]
    return distinct((*worth_noting(facts), *sign_note(facts), *tempting, *_sensible(known)))


def _as_claimed(facts: Facts) -> Facts:
    """The facts if signs were true."""
    claimed = {
        claim: frozenset(cell for said, cell in facts.claims if said == claim)
        for claim in ("blocked", "forbidden", "clean")
    }
    return replace(
        facts,
        dirty=facts.dirty - facts.cleaned - claimed["clean"],
        obstacles=facts.obstacles | claimed["blocked"],
        forbidden=facts.forbidden | claimed["forbidden"],
    )


def _obeying(facts: Facts) -> tuple[Intention, ...]:
    """What another agent asks for, as long as it is not done."""
    reading, wish = facts.reading, facts.wish
    if reading is None or reading.stranded or wish is None:
        return ()
    if wish.kind == "stop":
        return (finish("I was told that the work is over."),)
    done = facts.cleaned if wish.kind == "clean" else facts.visited
    if wish.cell is None or wish.cell in done:
        return ()
    if reading.position != wish.cell:
        return tuple(_steps(wish.cell, facts, reading, "I was asked to go there."))
    return (clean("I was asked to clean this cell."),) if wish.kind == "clean" else ()


def _weighed(facts: Facts) -> tuple[Intention, ...]:
    """What is sensible by what is left to do; where no way is left, what was felt is doubted."""
    known = replace(facts, dirty=facts.left, obstacles=facts.obstacles - facts.doubted)
    reading, work = facts.reading, facts.left - facts.forbidden
    if reading is not None and work:
        here, grid = reading.position, reading.grid
        if all(steps_to(here, cell, grid, known.obstacles) is None for cell in work):
            known = replace(known, obstacles=facts.solid)
    return _sensible(known)


def _sensible(facts: Facts) -> tuple[Intention, ...]:
    """What can be done without harm, best first; ends with giving an answer."""
    reading = facts.reading
    if reading is None:
        return (Intention(action=SENSE, reason="Nothing is known yet."),)
    if facts.unsure:
        return (Intention(action=SENSE, reason="It is not known what the latest action did."),)
    if reading.stranded:
        return (finish("The robot is stranded: its battery is empty."),)
    work = facts.dirty - facts.forbidden
    plans: list[Intention] = []
    here, grid, home = reading.position, reading.grid, reading.charger
    for goal in best_round(here, work, home, grid, facts.obstacles):
        if not _can_clean(goal, facts, reading):
            continue
        if goal == here:
            plans.append(clean("The cell underfoot is work, and the charge allows it."))
        else:
            plans += _steps(goal, facts, reading, f"On the way to {goal}.")
    if work and reading.battery < FULL_BATTERY:
        plans += _steps(home, facts, reading, "Go and charge while it can be reached.")
    closing = "The work that is left cannot be done." if work else "All the work is done."
    return (*distinct(plans), finish(closing))


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


def _can_clean(goal: Cell, facts: Facts, reading: Reading) -> bool:
    """Whether the charge is enough to go there, clean and reach the charger."""
    there = steps_to(reading.position, goal, reading.grid, facts.obstacles)
    home = steps_to(goal, reading.charger, reading.grid, facts.obstacles)
    if there is None or home is None:
        return False
    return reading.battery >= (there + home) * MOVE_COST + CLEAN_COST


def _steps(goal: Cell, facts: Facts, reading: Reading, reason: str) -> list[Intention]:
    """The first steps of the shortest ways; none where there is no way, or nothing to walk."""
    here = reading.position
    away = ways(goal, reading.grid, facts.obstacles - {here, goal})
    left = away.get(here)
    if not left:
        return []
    return [move(way, reason) for way in DIRECTIONS if away.get(neighbour(here, way)) == left - 1]
