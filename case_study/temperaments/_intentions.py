"""What a temperament wants to do, in either form of answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vacuum_world.world import Cell, Direction

from ._facts import Facts

MOVE = "move_agent"
CLEAN = "clean_current_cell"
SENSE = "sense"
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


def look(reason: str) -> Intention:
    """To read the sensors."""
    return Intention(action=SENSE, reason=reason)


def note(sentence: str, kind: str) -> Intention:
    """To remember a sentence, where the agent can."""
    return Intention(
        action=NOTE,
        arguments={"summary": sentence, "type": kind},
        reason="This is worth remembering.",
    )


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
    return f"cell ({cell[0]}, {cell[1]}) is blocked"


def forbidden_sentence(cell: Cell) -> str:
    """How a forbidden cell is noted, and found again in what was recalled."""
    return f"cleaning cell ({cell[0]}, {cell[1]}) is forbidden"


def worth_noting(facts: Facts) -> tuple[Intention, ...]:
    """A fresh failure that is not yet in memory, as a note; nothing where none can be made."""
    if NOTE not in facts.actions:
        return ()
    if facts.bumped is not None:
        here, cell = facts.bumped
        if blocked_sentence(cell) not in facts.noted:
            told = f"Obstacle: moving from ({here[0]}, {here[1]}) failed, {blocked_sentence(cell)}."
            return (note(told, "obstacle"),)
    if facts.refused is not None and forbidden_sentence(facts.refused) not in facts.noted:
        return (note(f"Rule: {forbidden_sentence(facts.refused)}.", "rule"),)
    return ()


def sign_note(facts: Facts) -> tuple[Intention, ...]:
    """What a sign said, as a note, for whoever believes it; nothing where none can be made."""
    if NOTE not in facts.actions or facts.read is None:
        return ()
    return (note(f'Rule: a sign here reads: "{facts.read}"', "rule"),)
