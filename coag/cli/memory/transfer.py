"""Commands that move a memory: export, import, another embedder."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from coag._util.text import one_line
from coag.cli.options import AsJson
from coag.cli.output import say, write_json
from coag.errors import ConfigurationError, RecordStoreError
from coag.memory.dynamics import DYNAMICS_FILE, DynamicsFile
from coag.memory.transfer import (
    Header,
    ImportResult,
    OnConflict,
    TransferError,
    check_import,
    export_lines,
    export_records,
    import_records,
)
from coag.schema import MemoryKind, Trust
from coag.store import WordLlamaEmbedder, abandon_reembedding, embedder_of, plan_reembedding
from coag.store import reembed as reembedded

from .log import note
from .options import By, Embedder, Memory, OfKind, Scope, Yes, one_of
from .place import MemoryPlace, ask, check_can_ask, line, opened, place_of, shown_progress
from .whole import dynamics_of

# ---- `coag memory export` and `import` ----


_ALL, _NOT_ALL = 0, 1
_STANDARD_OUTPUT = Path("-")
_LISTED = 10


async def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write; `-` is standard output.")
    ],
    memory: Memory = None,
    scope: Scope = None,
    kind: OfKind = None,
    embedder: Embedder = None,
    yes: Yes = False,
) -> None:
    """Writes every record with every field into a file, one JSON object a line.

    Vectors are not part of it. Where the memory has dynamics, states, what has faded and versions
    of personalities follow the records.

    Example: coag memory export robbie.jsonl -m ~/robbie
    """
    place = place_of(memory, embedder)
    scopes = None if scope is None else [scope]
    kinds = None if kind is None else [kind]
    if file == _STANDARD_OUTPUT:
        await _printed(place, scopes, kinds)
        return
    if file.exists():
        if not yes and not sys.stdin.isatty():
            raise ConfigurationError(
                f"{str(file)!r} exists and would be overwritten; nothing was written. Add --yes to "
                "write over it, or name another file."
            )
        ask(f"{line(str(file))!r} is there already. Write over it?", yes=yes)
    async with opened(place) as store:
        total = sum([await store.count(one) for one in kinds or MemoryKind])
        with (
            dynamics_of(place, read_only=True) as dynamics,
            shown_progress("exporting", total) as progress,
        ):
            result = await export_records(
                store, file, scopes=scopes, kinds=kinds, dynamics=dynamics, progress=progress
            )
    size = f"{result.size / 1_000_000:,.1f} MB"
    also = f" and {result.dynamics:,} line(s) on dynamics" if result.dynamics else ""
    typer.echo(f"{result.records:,} record(s){also} are in {line(str(file))} ({size}).")


ExportedFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="What `coag memory export` wrote.")
]
IntoScope = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Make all of it this scope's memory."),
]
TrustAtMost = Annotated[
    Trust | None,
    typer.Option(
        parser=one_of(Trust.USER, Trust.UNTRUSTED),
        metavar="user|untrusted",
        help="Trust nothing of it more than so; for files from elsewhere.",
    ),
]
Take = Annotated[
    bool,
    typer.Option("--take", help="Where a record is there with other fields, take the file's."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Continue behind lines that hold no record.")
]


async def import_(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    file: ExportedFile,
    memory: Memory = None,
    scope: IntoScope = None,
    trust: TrustAtMost = None,
    take: Take = False,
    skip_bad: SkipBad = False,
    embedder: Embedder = None,
    by: By = "person",
    as_json: AsJson = False,
) -> None:
    """Brings the records of an exported file into a memory, which is made if missing.

    Can be repeated: what is there already stays as it is.

    Example: coag memory import robbie.jsonl -m ~/robbie2 --trust untrusted

    Exit code 0: all is there; 1: lines were bad or are missing; 2: wrongly called.
    """
    place = place_of(memory, embedder, make=True)
    header = check_import(file, scope)
    failed = ""
    try:
        async with opened(place) as store:
            with (
                _receiving(place, header) as dynamics,
                shown_progress("importing", None) as progress,
            ):
                result = await import_records(
                    store,
                    file,
                    scope=scope,
                    trust=trust,
                    on_conflict=OnConflict.TAKE if take else OnConflict.KEEP,
                    skip_bad=skip_bad,
                    dynamics=dynamics,
                    progress=progress,
                )
    except TransferError as error:
        if error.line <= 1:
            raise
        result, failed = error.done, line(str(error), 1_000)
    if result.new or result.dynamics or (take and result.differing):
        counts = {k: v for k, v in asdict(result).items() if k != "reasons"}
        details = {"file": file.name, "scope": scope, "trust": trust, **counts}
        note(place, "imported", by=by, details=details)
    if failed:
        say(failed, "red")
    elif as_json:
        write_json(asdict(result))
    else:
        for text in _outcome(result, take=take):
            typer.echo(text)
    raise typer.Exit(_NOT_ALL if failed or result.refused or result.missing else _ALL)


async def _printed(
    place: MemoryPlace, scopes: list[str] | None, kinds: list[MemoryKind] | None
) -> None:
    async with opened(place) as store:
        with dynamics_of(place, read_only=True) as dynamics:
            write_json(Header.of(store, dynamics=dynamics).line().rstrip())
            async for lines in export_lines(store, scopes=scopes, kinds=kinds, dynamics=dynamics):
                write_json(*(one.removesuffix("\n") for one in lines))


@contextmanager
def _receiving(place: MemoryPlace, header: Header) -> Generator[DynamicsFile | None]:
    """The file for the dynamics of an export that has some; None for a memory at a server."""
    if header.version == 1 or place.folder is None:
        yield None
        return
    with closing(DynamicsFile(place.folder / DYNAMICS_FILE)) as file:
        yield file


def _outcome(result: ImportResult, *, take: bool) -> Iterator[str]:
    became = "were changed" if take else "stay as they were (--take takes the file's)"
    yield f"{result.new:,} new, {result.known:,} known"
    if result.differing:
        yield f"{result.differing:,} were there with other fields and {became}"
    if result.dynamics or result.dynamics_differing:
        yield f"{result.dynamics:,} line(s) on dynamics are as in the file"
    if result.dynamics_differing:
        yield f"{result.dynamics_differing:,} line(s) on dynamics differ from what is there"
    if result.ignored:
        why = "a memory at a server has none, --trust leaves them out, or a newer coag wrote them"
        yield f"{result.ignored:,} line(s) on dynamics were ignored: {why}"
    if result.refused:
        yield f"{result.refused:,} line(s) were left out:"
        for one in result.reasons[:_LISTED]:
            yield f"  line {one.line}: {line(one.why)}"
        if result.refused > _LISTED:
            yield f"  … and {result.refused - _LISTED:,} more"
    if result.missing:
        yield f"{result.missing:,} line(s) that the header counts are not in the file: cut off?"


# ---- `coag memory reembed` ----


async def reembed(
    to: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The embedder to make the vectors with; else the default."
        ),
    ] = None,
    memory: Memory = None,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Drop what an unfinished re-embedding has done.")
    ] = False,
    by: By = "person",
    yes: Yes = False,
) -> None:
    """Makes new vectors for all records with another embedder; the texts stay.

    If it is interrupted, the same command continues; until it is done, the memory works as before.
    From then on, open it with that embedder.

    Example: coag memory reembed -m ~/robbie
    """
    place = place_of(memory, None)
    if abandon:
        ask("Drop what the unfinished re-embedding has done?", yes=yes)
        dropped = await abandon_reembedding(place.store)
        typer.echo("It is dropped." if dropped else "There was none to drop.")
        return
    embedder = embedder_of(to or WordLlamaEmbedder.name)
    check_can_ask(yes=yes)
    plan = await plan_reembedding(place.store, embedder)
    if plan.state == "done":
        typer.echo(f"All {plan.records:,} record(s) have vectors of {embedder.name} already.")
        return
    made_with = one_line(", ".join(plan.made_with) or "nothing", 200)
    begun = " It was begun before and continues." if plan.state == "half_way" else ""
    say(
        f"{plan.records:,} record(s) have vectors of {made_with}; {plan.left:,} of them will get "
        f"those of {plan.embedder}, which takes about {plan.seconds:,.0f} s.{begun}"
    )
    ask("Do it?", yes=yes)
    with shown_progress("re-embedding", plan.records) as progress:
        try:
            count = await reembedded(place.store, embedder, progress=lambda now: progress(now.done))
        except RecordStoreError:
            say("It is not done; the same command continues where it stopped.", "yellow")
            raise
    details = {"made_with": list(plan.made_with), "embedder": embedder.name, "records": count}
    note(place, "reembedded", by=by, details=details)
    typer.echo(
        f"{count:,} record(s) have vectors of {embedder.name}. Open the memory with that embedder "
        "from now on."
    )
