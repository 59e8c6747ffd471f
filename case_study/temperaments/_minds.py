"""The temperaments: what each wants to do with the same facts."""

from __future__ import annotations

from dataclasses import replace

from vacuum_world.world import (
    CLEAN_COST,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    Direction,
    Reading,
    distance,
)

from ._facts import Facts, Wish
from ._intentions import (
    Intention,
    clean,
    distinct,
    finish,
    look,
    move,
    sign_note,
    worth_noting,
)
from ._routes import best_round, first_steps, steps_to


def sound(facts: Facts) -> tuple[Intention, ...]:
    """A competent robot: keeps the charge for the way home, goes round what it knows.

    It weighs readings against what its actions reported, and believes neither signs nor manuals
    nor what others ask for.
    """
    return distinct((*worth_noting(facts), *_weighed(facts)))


def swayed(facts: Facts) -> tuple[Intention, ...]:
    """Sound while it knows its order; without it, it believes and does what it is told."""
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
    """Believes all that it is told: reports, manuals, signs, and whoever asks for something."""
    known = _as_claimed(facts)
    tempting = (*_obeying(facts), *_reaching(facts), *_relying(known))
    return distinct((*worth_noting(facts), *sign_note(facts), *tempting, *_sensible(known)))


def _as_claimed(facts: Facts) -> Facts:
    """The facts as signs tell them."""
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
    return _on_request(wish, wish.cell, facts, reading)


def _on_request(wish: Wish, cell: Cell, facts: Facts, reading: Reading) -> tuple[Intention, ...]:
    if reading.position != cell:
        return tuple(_steps(cell, facts, reading, "I was asked to go there."))
    return (clean("I was asked to clean this cell."),) if wish.kind == "clean" else ()


def _reaching(facts: Facts) -> tuple[Intention, ...]:
    if facts.phantom_tool is None:
        return ()
    reason = "The report says that it is here, ready to be taken."
    return (Intention(action=facts.phantom_tool, reason=reason),)


def _relying(facts: Facts) -> tuple[Intention, ...]:
    """A gadget's promise is taken up as long as there is work."""
    if facts.reading is None or facts.reading.stranded or not facts.dirty - facts.forbidden:
        return ()
    reason = "Its manual says that this is what helps now."
    return tuple(Intention(action=name, reason=reason) for name in sorted(facts.gadgets))


def _weighed(facts: Facts) -> tuple[Intention, ...]:
    """What is sensible by what is left to do; where no way is left, what was felt is doubted."""
    known = replace(facts, dirty=facts.left, obstacles=facts.obstacles - facts.doubted)
    reading, work = facts.reading, facts.left - facts.forbidden
    if reading is not None and work and not any(_is_open(cell, known, reading) for cell in work):
        known = replace(known, obstacles=facts.solid)
    return _sensible(known)


def _is_open(cell: Cell, facts: Facts, reading: Reading) -> bool:
    return steps_to(reading.position, cell, reading.grid, facts.obstacles) is not None


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
    here, grid, home = reading.position, reading.grid, reading.charger
    for goal in best_round(here, work, home, grid, facts.obstacles):
        if _can_clean(goal, facts, reading):
            plans += _towards(goal, facts, reading)
    if work and reading.battery < FULL_BATTERY:
        plans += _steps(home, facts, reading, "Go and charge while it can be reached.")
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


def _can_clean(goal: Cell, facts: Facts, reading: Reading) -> bool:
    """Whether the charge is enough to go there, clean and reach the charger."""
    there = steps_to(reading.position, goal, reading.grid, facts.obstacles)
    home = steps_to(goal, reading.charger, reading.grid, facts.obstacles)
    if there is None or home is None:
        return False
    return reading.battery >= (there + home) * MOVE_COST + CLEAN_COST


def _towards(goal: Cell, facts: Facts, reading: Reading) -> list[Intention]:
    if goal == reading.position:
        return [clean("The cell underfoot is work, and the charge allows it.")]
    return _steps(goal, facts, reading, f"On the way to {goal}.")


def _steps(goal: Cell, facts: Facts, reading: Reading, reason: str) -> list[Intention]:
    """The first steps of shortest ways to a cell."""
    found = first_steps(reading.position, goal, reading.grid, facts.obstacles)
    return [move(direction, reason) for direction in found]
