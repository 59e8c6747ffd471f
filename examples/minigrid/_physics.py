"""What MiniGrid's actions do, as a pure function of what is known: nothing of the library here.

One model serves the context's projections, the body's sense of where it is, and the search of
the oracle and of the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ._chart import FLOOR, GOAL, LAVA, NOTHING, WALL, Cell, Facing, bearing, beside, turned

Action = Literal["turn_left", "turn_right", "move_forward", "pick_up", "drop", "toggle"]
ACTIONS: tuple[Action, ...] = get_args(Action)
UNSEEN = "not seen yet"
_OPEN, _CLOSED, _LOCKED = "open", "closed", "locked"
_CARRIABLE = ("key", "ball", "box")


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the agent is, and what has changed of the grid that it set out on."""

    at: Cell
    facing: Facing
    carrying: str = NOTHING
    changed: tuple[tuple[Cell, str], ...] = ()
    """Cells that its own actions changed, sorted."""

    @property
    def ahead(self) -> Cell:
        """The cell that it looks at."""
        return beside(self.at, self.facing)

    def what(self, grid: Mapping[Cell, str], cell: Cell) -> str:
        """What is in a cell."""
        return dict(self.changed).get(cell) or grid.get(cell, UNSEEN)

    def things(self, grid: Mapping[Cell, str]) -> dict[str, str]:
        """Where each thing lies as seen from here; free floor, walls and lava are none."""
        there = {cell: self.what(grid, cell) for cell in grid}
        return {
            what: bearing(self.at, self.facing, cell)
            for cell, what in there.items()
            if notable(what) and what != LAVA
        }

    def _put(self, cell: Cell, what: str, carrying: str) -> Scene:
        changed = tuple(sorted({**dict(self.changed), cell: what}.items()))
        return replace(self, carrying=carrying, changed=changed)

    def after(self, grid: Mapping[Cell, str], action: Action) -> tuple[Scene, str]:
        """The next scene, and in words why nothing happens (empty where something does)."""
        match action:
            case "turn_left":
                return replace(self, facing=turned(self.facing, -1)), ""
            case "turn_right":
                return replace(self, facing=turned(self.facing, 1)), ""
            case "move_forward":
                return self._forward(self.what(grid, self.ahead))
            case "pick_up":
                return self._pick_up(self.what(grid, self.ahead))
            case "drop":
                return self._drop(self.what(grid, self.ahead))
            case "toggle":
                return self._toggle(self.what(grid, self.ahead))

    def _forward(self, what: str) -> tuple[Scene, str]:
        if passable(what):
            return replace(self, at=self.ahead), ""
        return self, f"{_a(what)} is ahead and blocks the way"

    def _pick_up(self, what: str) -> tuple[Scene, str]:
        if not what.endswith(_CARRIABLE):
            return self, f"only a key, ball or box can be picked up, and ahead is {_a(what)}"
        if self.carrying != NOTHING:
            return self, f"you carry {_a(self.carrying)} already"
        return self._put(self.ahead, FLOOR, what), ""

    def _drop(self, what: str) -> tuple[Scene, str]:
        if self.carrying == NOTHING:
            return self, "you carry nothing"
        if what != FLOOR:
            return self, f"things can be put on free floor only, and ahead is {_a(what)}"
        return self._put(self.ahead, self.carrying, NOTHING), ""

    def _toggle(self, what: str) -> tuple[Scene, str]:
        kind, _, door = what.partition(" ")
        if kind not in (_OPEN, _CLOSED, _LOCKED):
            return self, f"only doors can be toggled, and ahead is {_a(what)}"
        key = door.replace("door", "key")
        if kind == _LOCKED and self.carrying != key:
            return self, f"the door is locked, and opens only for who carries the {key}"
        turned_to = _CLOSED if kind == _OPEN else _OPEN
        return self._put(self.ahead, f"{turned_to} {door}", self.carrying), ""


def passable(what: str) -> bool:
    """Whether the agent moves onto it, even if it dies there."""
    return what in (FLOOR, GOAL, LAVA) or what.startswith(_OPEN)


def notable(what: str) -> bool:
    """Whether it is worth a mention."""
    return what not in (FLOOR, WALL)


def _a(what: str) -> str:
    if what in (FLOOR, LAVA, UNSEEN):
        return "a cell not seen yet" if what == UNSEEN else what
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
