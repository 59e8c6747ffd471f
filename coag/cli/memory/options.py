"""Options and arguments that several commands of `coag memory` have."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from coag.schema import MemoryKind, Trust

_MOST = 1_000_000
"""Records that may be asked for at once."""


def one_of(*known: StrEnum) -> Callable[[str], Any]:
    """Reads a name, and says which there are where it is none."""

    def read(given: str) -> Any:
        for one in known:
            if one == given:
                return one
        names = ", ".join(repr(one.value) for one in known)
        raise typer.BadParameter(f"{given!r} is not one of {names}.")

    return read


def _limit(given: str | int) -> int:
    """Reads how many records are wanted, and says how to give that where it is no such number."""
    try:
        count = int(given)
    except ValueError:
        count = 0
    if not 1 <= count <= _MOST:
        raise typer.BadParameter(
            f"{given!r} is no number of records. Give one from 1 to {_MOST:,}, e.g. --limit 20."
        )
    return count


_PLACE: dict[str, Any] = {"rich_help_panel": "Where"}
FILTER_PANEL: dict[str, Any] = {"rich_help_panel": "Which records"}

Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        "-m",
        envvar="COAG_MEMORY",
        metavar="FOLDER|URL",
        help="What the agent was given as `memory=`: a folder, or a Chroma server's URL.",
        **_PLACE,
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        envvar="COAG_EMBEDDER",
        metavar="NAME",
        help="The embedder the memory was made with, e.g. `hash-256`; else found out.",
        **_PLACE,
    ),
]
Scope = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this scope; else all there are.", **_PLACE)
]
LinesOfJson = Annotated[
    bool, typer.Option("--json", help="One JSON object a line for each record, for programs.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
By = Annotated[str, typer.Option(metavar="NAME", help="Who does it, for the memory's log.")]

OfKind = Annotated[
    MemoryKind | None,
    typer.Option(
        "--kind",
        parser=one_of(*MemoryKind),
        metavar="|".join(MemoryKind),
        help="Only this memory.",
        **FILTER_PANEL,
    ),
]
OfType = Annotated[
    str | None, typer.Option("--type", help="Only this type, e.g. `note`.", **FILTER_PANEL)
]
OfSource = Annotated[
    str | None,
    typer.Option("--source", help="Only what came from this source.", **FILTER_PANEL),
]
OfTrust = Annotated[
    Trust | None,
    typer.Option(
        "--trust",
        parser=one_of(*Trust),
        metavar="|".join(Trust),
        help="Only this trust.",
        **FILTER_PANEL,
    ),
]
Superseded = Annotated[
    bool,
    typer.Option(
        "--superseded", help="Also what another record took the place of.", **FILTER_PANEL
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='A filter over fields and metadata, e.g. `{"x": {"$gte": 1}}`.',
        **FILTER_PANEL,
    ),
]
Limit = Annotated[
    int, typer.Option(parser=_limit, metavar="N", help="At most so many.", **FILTER_PANEL)
]

Id = Annotated[str, typer.Argument(metavar="ID", help="A record's id, or its first 8 characters.")]
