"""Several plots in one SVG file that stands alone, for a report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ._plots import Picture

_COLOURS = {
    "currentColor": "#1b1e22",
    "var(--quiet)": "#565c64",
    "var(--line)": "#dfe1dd",
    "var(--good)": "#17693a",
    "var(--bad)": "#a8231b",
    "var(--open)": "#6b6154",
    **{
        f"var(--c{place})": colour
        for place, colour in enumerate(
            ("#27508f", "#b35c00", "#17693a", "#7b3fa0", "#a8231b", "#0f6e75")
        )
    },
}
"""The page's colours in light, for a file that has no page around it."""
_SIDES = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
_FONT = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"


def sheet(pictures: Sequence[Picture], columns: int) -> str:
    """Plots of one size side by side, on white.

    Args:
        pictures: At least one.
        columns: How many stand in a row.
    """
    sides = _SIDES.search(pictures[0].svg)
    assert sides is not None
    wide, high = float(sides[1]), float(sides[2])
    rows = -(-len(pictures) // columns)
    whole = f"{wide * columns:g}", f"{high * rows:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole[0]}" height="{whole[1]}" '
        f'viewBox="0 0 {whole[0]} {whole[1]}" font-family="{_FONT}">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for place, picture in enumerate(pictures):
        x, y = wide * (place % columns), high * (place // columns)
        parts.append(picture.svg.replace("<svg ", f'<svg x="{x:g}" y="{y:g}" ', 1))
    text = "\n".join([*parts, "</svg>\n"])
    for name, colour in _COLOURS.items():
        text = text.replace(f'"{name}"', f'"{colour}"')
    return text
