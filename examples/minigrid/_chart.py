"""What is seen of a grid: cells by where they lie from the start, drawn as rows of signs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

Cell = tuple[int, int]
"""(x, y) from where the agent started, which is (0, 0): east is x+1, south is y+1."""
Facing = Literal["east", "south", "west", "north"]
"""Where the agent looks; in MiniGrid's own order, in which the next one is a turn to the right."""
FACINGS: tuple[Facing, ...] = get_args(Facing)

NOTHING = "nothing"
FLOOR, WALL, LAVA, GOAL = "floor", "wall", "lava", "goal"
_UNSEEN = "?"
_SIGNS: Mapping[str, str] = {FLOOR: ".", WALL: "#", LAVA: "~", GOAL: "G"}
_NAMES = {sign: name for name, sign in _SIGNS.items()}
_VECTORS: Mapping[Facing, Cell] = {
    "east": (1, 0),
    "south": (0, 1),
    "west": (-1, 0),
    "north": (0, -1),
}


class Chart(BaseModel):
    """Seen cells as a picture with north at the top."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    corner: Cell = (0, 0)
    """The cell of the first sign of the first row."""
    rows: tuple[str, ...] = ()
    """One sign a cell: `.` floor, `#` wall, `~` lava, `G` goal, `?` never seen, or a letter."""
    legend: dict[str, str] = {}
    """What the letters mean, such as `{"a": "yellow key"}`."""

    @classmethod
    def of(cls, cells: Mapping[Cell, str]) -> Chart:
        """The picture of these cells, as small as it can be."""
        if not cells:
            return cls()
        left, right = min(x for x, _ in cells), max(x for x, _ in cells)
        top, bottom = min(y for _, y in cells), max(y for _, y in cells)
        signs = _signs(sorted(set(cells.values())))
        drawn = [
            "".join(signs.get(cells.get((x, y), ""), _UNSEEN) for x in range(left, right + 1))
            for y in range(top, bottom + 1)
        ]
        legend = {sign: name for name, sign in signs.items() if name not in _SIGNS}
        return cls(corner=(left, top), rows=tuple(drawn), legend=legend)

    def cells(self) -> dict[Cell, str]:
        """What is where; cells that were never seen are left out."""
        x, y = self.corner
        names = {**_NAMES, **self.legend}
        return {
            (x + dx, y + dy): names[sign]
            for dy, row in enumerate(self.rows)
            for dx, sign in enumerate(row)
            if sign != _UNSEEN
        }

    def with_seen(self, newer: Chart) -> Chart:
        """This picture, and in it what was seen since."""
        return Chart.of({**self.cells(), **newer.cells()})


def _signs(names: list[str]) -> dict[str, str]:
    """A sign for each name: the fixed one, or else the next letter."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    return {name: _SIGNS.get(name) or next(letters) for name in names}


def beside(cell: Cell, facing: Facing, steps: int = 1) -> Cell:
    """The cell so many steps away in this direction."""
    dx, dy = _VECTORS[facing]
    return cell[0] + steps * dx, cell[1] + steps * dy


def turned(facing: Facing, quarters: int) -> Facing:
    """Where one looks after so many quarter turns to the right."""
    return FACINGS[(FACINGS.index(facing) + quarters) % len(FACINGS)]


def bearing(at: Cell, facing: Facing, cell: Cell) -> str:
    """Where a cell lies as the agent sees it: `2 ahead, 1 to the left`."""
    dx, dy = cell[0] - at[0], cell[1] - at[1]
    fx, fy = _VECTORS[facing]
    ahead, right = dx * fx + dy * fy, dy * fx - dx * fy
    parts = [
        f"{abs(ahead)} {'ahead' if ahead > 0 else 'behind'}" if ahead else "",
        f"{abs(right)} to the {'right' if right > 0 else 'left'}" if right else "",
    ]
    return ", ".join(part for part in parts if part) or "where you are"
