"""Films of runs, for readers who would rather look: the grid as it is beside the one believed.

A trace is told as chapters, one a cycle; a chapter is a few scenes, one a phase; a scene is a
frozen value with both grids and a caption, and is drawn as one picture. Nothing but the trace and
`run.json` is read, and a run of any length once, in bounded memory. Whatever a run's texts hold
is drawn as one line of plain text.
"""

from ._film import ENDINGS, FilmOptions, FilmReport, OnProgress, make_film
from ._runs import filmed_run
from ._theme import SizeName, ThemeName

__all__ = [
    "make_film",
    "filmed_run",
    "FilmOptions",
    "FilmReport",
    "OnProgress",
    "ENDINGS",
    "SizeName",
    "ThemeName",
]
