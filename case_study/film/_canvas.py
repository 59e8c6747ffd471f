"""Drawing: all of it several times as large as it is shown, and text on top of the shapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import hypot
from typing import Literal

from PIL import Image, ImageDraw, ImageFont

from ._theme import HEIGHT, WIDTH, Colour, Theme

_FINER = 3
"""How many times as large all is drawn, so that edges are smooth and letters evenly spaced."""

Point = tuple[float, float]
Anchor = Literal["la", "ma", "ra", "lm", "mm", "rm"]
"""Where a text's point is: left, middle or right, at its top or its middle."""


@cache
def font(pixels: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font, which no system has to have; it lays out no direction of writing."""
    found = ImageFont.load_default(pixels)
    if not isinstance(found, ImageFont.FreeTypeFont):
        raise RuntimeError("This Pillow was built without FreeType, so it has no font to scale.")
    return found.font_variant(layout_engine=ImageFont.Layout.BASIC)


class Canvas:
    """One picture; all measures are in units of the layout.

    Args:
        theme: Its colours.
        scale: Pixels a unit.
    """

    def __init__(self, theme: Theme, scale: float) -> None:
        self.theme = theme
        self._scale = scale
        self._size = round(WIDTH * scale), round(HEIGHT * scale)
        large = self._size[0] * _FINER, self._size[1] * _FINER
        self._image = Image.new("RGB", large, theme.ground)
        self._draw = ImageDraw.Draw(self._image)
        self._texts: list[tuple[Point, str, int, Colour, Anchor]] = []

    def box(
        self,
        corners: tuple[float, float, float, float],
        *,
        fill: Colour | None = None,
        edge: Colour | None = None,
        width: float = 1,
        radius: float = 0,
    ) -> None:
        """A rectangle, given by its left, top, right and bottom."""
        left, top, right, bottom = map(self._large, corners)
        self._draw.rounded_rectangle(
            (left, top, right - 1, bottom - 1),
            radius=self._large(radius),
            fill=fill,
            outline=edge,
            width=self._stroke(width) if edge else 1,
        )

    def line(self, points: Sequence[Point], colour: Colour, width: float = 1) -> None:
        """A line through points, round where it bends and ends."""
        stroke = self._stroke(width)
        large = [(self._large(x), self._large(y)) for x, y in points]
        self._draw.line(large, fill=colour, width=stroke, joint="curve")
        if width > 1:
            for x, y in (large[0], large[-1]):
                reach = stroke / 2 - 1
                self._draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=colour)

    def dashes(self, start: Point, end: Point, colour: Colour, width: float = 1) -> None:
        """A broken line."""
        length = hypot(end[0] - start[0], end[1] - start[1])
        dash = 5.0
        count = max(1, int(length / dash))
        for index in range(0, count, 2):
            near, far = index / count, min(1.0, (index + 1) / count)
            self.line((_on(start, end, near), _on(start, end, far)), colour, width)

    def shape(self, points: Sequence[Point], fill: Colour) -> None:
        """A filled polygon."""
        self._draw.polygon([(self._large(x), self._large(y)) for x, y in points], fill=fill)

    def disc(
        self,
        middle: Point,
        reach: float,
        *,
        fill: Colour | None = None,
        edge: Colour | None = None,
        width: float = 1,
    ) -> None:
        """A circle."""
        x, y, far = self._large(middle[0]), self._large(middle[1]), self._large(reach)
        corners = (x - far, y - far, x + far, y + far)
        self._draw.ellipse(corners, fill=fill, outline=edge, width=self._stroke(width))

    def text(
        self, at: Point, text: str, size: float, colour: Colour, anchor: Anchor = "la"
    ) -> None:
        """One line of text; it is drawn above all shapes."""
        self._texts.append((at, text, self._pixels(size), colour, anchor))

    def width_of(self, text: str, size: float) -> float:
        """How wide a line of text is."""
        return font(self._pixels(size)).getlength(text) / self._scale / _FINER

    def fitted(self, text: str, size: float, width: float) -> str:
        """The beginning of a text that is no wider than `width`; an ellipsis says it is cut."""
        if self.width_of(text, size) <= width:
            return text
        few, many = 0, len(text)
        while few < many:
            half = (few + many + 1) // 2
            if self.width_of(f"{text[:half].rstrip()}…", size) <= width:
                few = half
            else:
                many = half - 1
        return f"{text[:few].rstrip()}…"

    def wrapped(self, text: str, size: float, width: float, lines: int) -> list[str]:
        """A text in at most so many lines of at most this width."""
        found: list[str] = []
        rest = text.split()
        while rest and len(found) < lines - 1:
            count = 1
            while count < len(rest) and self._fits(rest[: count + 1], size, width):
                count += 1
            found.append(self.fitted(" ".join(rest[:count]), size, width))
            rest = rest[count:]
        return [*found, self.fitted(" ".join(rest), size, width)] if rest else found

    def _fits(self, words: Sequence[str], size: float, width: float) -> bool:
        return self.width_of(" ".join(words), size) <= width

    def picture(self, palette: Image.Image) -> Image.Image:
        """The finished picture, in the colours of a palette."""
        for at, text, pixels, colour, anchor in self._texts:
            place = self._large(at[0]), self._large(at[1])
            self._draw.text(place, text, fill=colour, font=font(pixels), anchor=anchor)
        image = self._image.reduce(_FINER)
        return image.quantize(palette=palette, dither=Image.Dither.NONE)

    def _large(self, units: float) -> int:
        return round(units * self._scale * _FINER)

    def _stroke(self, units: float) -> int:
        return max(1, self._large(units))

    def _pixels(self, size: float) -> int:
        return round(max(9, size * self._scale) * _FINER)


def _on(start: Point, end: Point, share: float) -> Point:
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
