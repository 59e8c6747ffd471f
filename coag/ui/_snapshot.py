"""The view as plain text, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from coag.schema import one_line

from ._board import Board
from ._detail import detail, head
from ._rows import columns
from ._watch import RunView
from ._words import count


def snapshot(board: Board, place: Path, *, width: int) -> Iterator[str]:
    """The table of runs as lines and, of an only run, its details.

    Args:
        board: The runs; read up to their ends.
        place: Where they lie, as the user named it.
        width: Characters a line of the table.
    """
    while board.advance(1.0):
        pass
    views = board.views()
    yield f"{place_of(place)}: {summary(views, board.older)}"
    if not views:
        yield from nothing_yet(place)
        return
    shown = columns(width)
    yield _line([column.head() for column in shown])
    for view in views:
        yield _line([column.text(view) for column in shown])
    for view in views:
        if len(views) == 1:
            yield ""
            yield head(view).plain
            yield from (row.plain for row in detail(view))
        elif view.problem:
            yield f"{view.name}: {view.problem}"


def summary(views: list[RunView], older: int) -> str:
    """How many runs there are, and how many of them go on."""
    over = sum(view.over for view in views)
    told = f"{count(len(views), 'run')}, {len(views) - over} going on"
    return f"{told}, {older:,} older ones not shown" if older else told


def nothing_yet(place: Path) -> Iterator[str]:
    """What to do where there is no run."""
    yield f"There are no runs in {place_of(place)} yet. A run is made by an agent with logs, e.g.:"
    yield f"  coag chat --model SPEC --logs {place_of(place)}"
    yield f'  CoagAgent("assistant", model_client=client, logs="{place_of(place)}")'
    yield "It is shown here as soon as it begins."


def place_of(place: Path) -> str:
    """Where the runs lie, harmless to a terminal."""
    return one_line(str(place))


def _line(cells: list[Text]) -> str:
    return "".join(cell.plain for cell in cells).rstrip()
