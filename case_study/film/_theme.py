"""Colours and sizes; what a colour says is always said by a shape or a word as well."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

ThemeName = Literal["light", "dark"]
SizeName = Literal["small", "medium", "large"]

WIDTH, HEIGHT = 860, 762
"""Of a picture of medium size, in the units that everything is laid out in."""
SCALES: dict[SizeName, float] = {"small": 0.75, "medium": 1.0, "large": 1.5}
"""Pixels a unit."""
_STEPS = 5
"""Shades between two colours, for smooth edges."""

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of a film."""

    ground: Colour
    panel: Colour
    """Cells and the caption."""
    unseen: Colour
    """Cells that were never seen."""
    line: Colour
    ink: Colour
    quiet: Colour
    """Text of second rank."""
    dirt: Colour
    tint: Colour
    """Behind dirt."""
    obstacle: Colour
    charger: Colour
    robot: Colour
    path: Colour
    good: Colour
    alarm: Colour

    def palette(self) -> list[int]:
        """At most 256 colours, as numbers in a row: these, and the shades where two meet."""
        backs = (self.ground, self.panel, self.unseen, self.tint, self.charger, self.robot)
        inks = [getattr(self, field.name) for field in fields(self)]
        found: dict[Colour, None] = dict.fromkeys(inks)
        for back in backs[:2]:
            for ink in inks:
                found |= dict.fromkeys(_between(back, ink, _STEPS))
        for back in backs[2:]:
            for ink in (self.ink, self.dirt, self.robot, self.path, self.good, self.line):
                found |= dict.fromkeys(_between(back, ink, 2))
        return [number for colour in list(found)[:250] for number in colour]


def _between(one: Colour, other: Colour, steps: int) -> list[Colour]:
    shares = [step / (steps + 1) for step in range(1, steps + 1)]
    return [mixed(one, other, share) for share in shares]


def mixed(one: Colour, other: Colour, share: float) -> Colour:
    """A colour between two; `share` is how much of the other."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


THEMES: dict[ThemeName, Theme] = {
    "light": Theme(
        ground=(251, 250, 247),
        panel=(255, 255, 255),
        unseen=(236, 235, 229),
        line=(205, 202, 193),
        ink=(29, 31, 36),
        quiet=(93, 98, 109),
        dirt=(150, 98, 38),
        tint=(245, 230, 206),
        obstacle=(77, 85, 97),
        charger=(207, 235, 213),
        robot=(31, 95, 191),
        path=(134, 169, 224),
        good=(24, 112, 52),
        alarm=(179, 38, 30),
    ),
    "dark": Theme(
        ground=(23, 25, 30),
        panel=(34, 37, 44),
        unseen=(26, 28, 34),
        line=(74, 79, 90),
        ink=(232, 232, 227),
        quiet=(166, 171, 183),
        dirt=(222, 178, 112),
        tint=(74, 58, 34),
        obstacle=(150, 158, 174),
        charger=(36, 80, 47),
        robot=(138, 180, 248),
        path=(78, 110, 166),
        good=(129, 201, 149),
        alarm=(242, 139, 130),
    ),
}
