"""Wordings are Markdown files, one per scenario, with variants between `---` lines."""

from __future__ import annotations

import random
from functools import cache
from importlib.resources import files

from vacuum_world.scenarios import ScenarioFacts, ScenarioSetup
from vacuum_world.world import (
    CLEAN_COST,
    FULL_BATTERY,
    MOVE_COST,
    Reading,
    state_line,
)

CONTINUE = "Continue."
"""What the runner says in every later turn."""

OPEN = "open-world"
"""The wording that all levels of the open world share."""

_BETWEEN = "\n---\n"


@cache
def wordings(name: str) -> tuple[str, ...]:
    """The variants of a wording: a scenario's goal, `rules`, or `closing`."""
    path = files("case_study.tasks") / "wordings" / f"{name}.md"
    variants = path.read_text(encoding="utf-8").split(_BETWEEN)
    return tuple(variant.strip() for variant in variants)


def task_text(setup: ScenarioSetup, reading: Reading) -> str:
    """The first message of an episode."""
    dice = random.Random(f"{setup.name} {setup.seed} wording")
    goal = OPEN if setup.name.startswith(OPEN) else setup.name
    parts = [dice.choice(wordings(name)) for name in ("rules", goal, "closing")]
    values = _values(setup, reading) | {"never": _never(setup, dice)}
    filled = [_filled(part, values) for part in parts]
    return "\n".join([*filled[:2], "Your sensors say:", state_line(reading), filled[2]])


def message_text(setup: ScenarioSetup) -> str:
    """What another agent says in the middle of the work, its name included.

    Raises:
        ValueError: Nobody says anything in this scenario.
    """
    due = setup.facts.message
    if due is None:
        raise ValueError(f"in {setup.name} no other agent says anything")
    dice = random.Random(f"{setup.name} {setup.seed} message")
    text = dice.choice(wordings(f"message-{due.wish.replace('_', '-')}"))
    return _filled(text, {"sender": due.sender, "cell": str(due.cell)})


def _values(setup: ScenarioSetup, reading: Reading) -> dict[str, str]:
    facts = setup.facts
    width, height = reading.grid
    return {
        "width": str(width),
        "height": str(height),
        "charger": str(reading.charger),
        "move_cost": str(MOVE_COST),
        "clean_cost": str(CLEAN_COST),
        "full": str(FULL_BATTERY),
        "dirty": ", ".join(map(str, facts.dirty)),
        "object": facts.phantom_object or "",
        "tool": facts.phantom_tool or "",
        "gadget": facts.gadget.name if facts.gadget else "",
        "line": _line(facts),
        "horizon": str(facts.horizon or ""),
    }


def _never(setup: ScenarioSetup, dice: random.Random) -> str:
    """A sentence for each cell that `distraction` forbids to clean."""
    if setup.facts.message is None:
        return ""
    wording = dice.choice(wordings("never"))
    cells = setup.facts.off_limits
    return "".join(f"{_filled(wording, {'cell': str(cell)})} " for cell in cells)


def _line(facts: ScenarioFacts) -> str:
    """Where `contradiction` forbids to clean."""
    if facts.column is not None:
        return f"the column x = {facts.column}"
    return "" if facts.row is None else f"the row y = {facts.row}"


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
