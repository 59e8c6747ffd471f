"""Options and arguments of `coag memory`, declared once."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
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


class Ceiling(StrEnum):
    """How far what is imported may be trusted at most."""

    USER = "user"
    UNTRUSTED = "untrusted"


def _one_of(known: type[Kind | TrustName | Ceiling]) -> Callable[[str], Any]:
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


_PLACE, _FILTER = "Where", "Which records"

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
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]
LinesOfJson = Annotated[
    bool, typer.Option("--json", help="One JSON object a line for each record, for programs.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
By = Annotated[str, typer.Option(metavar="NAME", help="Who does it, for the memory's log.")]

OfKind = Annotated[
    Kind | None,
    typer.Option(
        "--kind",
        parser=_one_of(Kind),
        metavar="|".join(Kind),
        help="Only this memory.",
        rich_help_panel=_FILTER,
    ),
]
OfType = Annotated[
    str | None,
    typer.Option("--type", help="Only this type, e.g. `note`.", rich_help_panel=_FILTER),
]
OfSource = Annotated[
    str | None,
    typer.Option("--source", help="Only what came from this source.", rich_help_panel=_FILTER),
]
OfTrust = Annotated[
    TrustName | None,
    typer.Option(
        "--trust",
        parser=_one_of(TrustName),
        metavar="|".join(TrustName),
        help="Only this trust.",
        rich_help_panel=_FILTER,
    ),
]
Superseded = Annotated[
    bool,
    typer.Option(
        "--superseded",
        help="Also what another record took the place of.",
        rich_help_panel=_FILTER,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='A filter over fields and metadata, e.g. `{"x": {"$gte": 1}}`.',
        rich_help_panel=_FILTER,
    ),
]
Limit = Annotated[
    int,
    typer.Option(parser=_limit, metavar="N", help="At most so many.", rich_help_panel=_FILTER),
]

Query = Annotated[str, typer.Argument(help="What to look for, in any words.")]
MinScore = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, metavar="S", help="Leave out what scores less.", rich_help_panel=_FILTER
    ),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="A record's id, or its first 8 characters.")]
Ids = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Ids of records, or their first 8 characters.")
]
PerhapsId = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="A record's id, or its first 8 characters."),
]
SomeIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="Ids of records, or their first 8 characters."),
]

NewText = Annotated[
    str | None,
    typer.Option("--text", metavar="TEXT", help="What it is to say; `-` reads standard input."),
]
NewType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Another type.")]
SetMetadata = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A value of metadata, JSON or text."),
]
Unset = Annotated[
    list[str] | None, typer.Option(metavar="KEY", help="Take a key of metadata away.")
]
Importance = Annotated[
    float | None, typer.Option(min=0.0, max=1.0, metavar="X", help="From 0 to 1; 0.5 is usual.")
]
Value = Annotated[str | None, typer.Option(metavar="TEXT", help="What the record's fact says.")]
NoFact = Annotated[bool, typer.Option("--no-fact", help="Drop the record's fact.")]
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="When its fact ceased to hold (ISO 8601); or `never`."),
]
Everything = Annotated[
    bool, typer.Option("--everything", help="Every record of the scope that --scope names.")
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, in one sentence.")]
WordOf = Annotated[
    str | None,
    typer.Option("--source", metavar="NAME", help="Only what this source said; see `history`."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would be, and change nothing.")]
Mend = Annotated[
    bool,
    typer.Option(
        "--mend",
        help="Make the index of words anew if it does not agree, and "
        "make hold what is superseded by something that is gone.",
    ),
]
OutFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The file to write; `-` is standard output.")
]
InFile = Annotated[Path, typer.Argument(metavar="FILE", help="What `coag memory export` wrote.")]
IntoScope = Annotated[
    str | None,
    typer.Option("--scope", metavar="NAME", help="Make all of it this scope's memory."),
]
LowerTrust = Annotated[
    Ceiling | None,
    typer.Option(
        "--trust",
        parser=_one_of(Ceiling),
        metavar="|".join(Ceiling),
        help="Trust nothing of it more than so; for files from elsewhere.",
    ),
]
Take = Annotated[
    bool,
    typer.Option("--take", help="Where a record is there with other fields, take the file's."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Go on behind lines that hold no record.")
]
To = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The embedder to make the vectors with; else the default."),
]
Abandon = Annotated[
    bool, typer.Option("--abandon", help="Drop what an unfinished re-embedding has done.")
]
