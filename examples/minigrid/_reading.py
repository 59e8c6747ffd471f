"""What the agent's own view shows, as a value, as a line of JSON and in words."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ._chart import NOTHING, Cell, Chart, Facing, bearing, beside, turned
from ._physics import UNSEEN, notable

Over = Literal["", "success", "death", "time is up"]
_MOST_THINGS = 8


class Reading(BaseModel):
    """Everything that the agent knows of itself and of what it sees."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    at: Cell = (0, 0)
    """Its cell, counted from where it started."""
    facing: Facing = "east"
    """Where it looks, by MiniGrid's compass."""
    carrying: str = NOTHING
    """What it has in hand, such as `yellow key`."""
    chart: Chart = Chart()
    """What it sees, or what it has seen so far."""
    over: Over = ""
    """How the episode ended; empty until then."""

    def as_json(self) -> dict[str, Any]:
        """The reading as JSON, without what is empty."""
        fields = self.model_dump(mode="json")
        return {name: value for name, value in fields.items() if value != ""}

    def line(self) -> str:
        """The reading as one line of JSON."""
        return json.dumps(self.as_json(), separators=(",", ":"))

    def with_chart(self, chart: Chart) -> Reading:
        """The reading of one who has seen so much."""
        return self.model_copy(update={"chart": chart})

    def words(self) -> str:
        """The same in plain words: what is next to it, what it carries, what lies where."""
        cells = self.chart.cells()

        def next_door(quarters: int) -> str:
            cell = beside(self.at, turned(self.facing, quarters))
            return f"{cells.get(cell, UNSEEN)} {_pair(cell)}"

        lines = [
            f"You are at {_pair(self.at)}, facing {self.facing}. You carry {self.carrying}.",
            f"Ahead: {next_door(0)}. Left: {next_door(-1)}. Right: {next_door(1)}. "
            f"Behind: {next_door(2)}.",
        ]
        things = sorted(
            (abs(cell[0] - self.at[0]) + abs(cell[1] - self.at[1]), cell, what)
            for cell, what in cells.items()
            if notable(what) and cell != self.at
        )
        lines += [
            f"{what} at {_pair(cell)}: {bearing(self.at, self.facing, cell)}."
            for _, cell, what in things[:_MOST_THINGS]
        ]
        ended = [f"The episode is over: {self.over}."] if self.over else []
        return "\n".join([*lines, *ended])


def _pair(cell: Cell) -> str:
    return f"({cell[0]}, {cell[1]})"
