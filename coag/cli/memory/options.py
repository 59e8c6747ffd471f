"""Options and arguments that several commands of `coag memory` have."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

_MOST = 1_000_000
"""Records that may be asked for at once."""


class Kind(StrEnum):
    """Which memory."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"


class TrustName(StrEnum):
    """How far a record may be trusted."""

    DEVELOPER = "developer"
    USER = "user"
    UNTRUSTED = "untrusted"


def one_of(known: type[StrEnum]) -> Callable[[str], Any]:
    """Reads a name, and says which there are where it is none."""

    def read(given: str) -> Any:
        try:
            return known(given)
        except ValueError as error:
            names = ", ".join(repr(one.value) for one in known)
            raise typer.BadParameter(f"{given!r} is not one of {names}.") from error

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


_PLACE, FILTER_PANEL = "Where", "Which records"

Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        "-m",
        envvar="COAG_MEMORY",
        metavar="FOLDER|URL",
        help="What the agent was given as `memory=`: a folder, or a Chroma server's URL.",
        rich_help_panel=_PLACE,
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        envvar="COAG_EMBEDDER",
        metavar="NAME",
        help="The embedder the memory was made with, e.g. `hash-256`; else found out.",
        rich_help_panel=_PLACE,
    ),
]
Scope = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Only this scope; else all there are.", rich_help_panel=_PLACE
    ),
]
LinesOfJson = Annotated[
    bool, typer.Option("--json", help="One JSON object a line for each record, for programs.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
By = Annotated[str, typer.Option(metavar="NAME", help="Who does it, for the memory's log.")]

OfKind = Annotated[
    Kind | None,
    typer.Option(
        "--kind",
        parser=one_of(Kind),
        metavar="|".join(Kind),
        help="Only this memory.",
        rich_help_panel=FILTER_PANEL,
    ),
]
OfType = Annotated[
    str | None,
    typer.Option("--type", help="Only this type, e.g. `note`.", rich_help_panel=FILTER_PANEL),
]
OfSource = Annotated[
    str | None,
    typer.Option("--source", help="Only what came from this source.", rich_help_panel=FILTER_PANEL),
]
OfTrust = Annotated[
    TrustName | None,
    typer.Option(
        "--trust",
        parser=one_of(TrustName),
        metavar="|".join(TrustName),
        help="Only this trust.",
        rich_help_panel=FILTER_PANEL,
    ),
]
Superseded = Annotated[
    bool,
    typer.Option(
        "--superseded",
        help="Also what another record took the place of.",
        rich_help_panel=FILTER_PANEL,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='A filter over fields and metadata, e.g. `{"x": {"$gte": 1}}`.',
        rich_help_panel=FILTER_PANEL,
    ),
]
Limit = Annotated[
    int,
    typer.Option(parser=_limit, metavar="N", help="At most so many.", rich_help_panel=FILTER_PANEL),
]

Id = Annotated[str, typer.Argument(metavar="ID", help="A record's id, or its first 8 characters.")]
