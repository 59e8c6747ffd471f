"""Commands that move a memory: export, import, another embedder."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from coag.errors import ConfigurationError, RecordStoreError
from coag.memory.transfer import (
    ExportResult,
    Header,
    ImportResult,
    OnConflict,
    TransferError,
    check_import,
    export_lines,
    export_records,
    import_records,
)
from coag.schema import MemoryKind, Trust, escaped_json, one_line
from coag.store import (
    Embedder,
    ReembedPlan,
    WordLlamaEmbedder,
    abandon_reembedding,
    embedder_of,
    plan_reembedding,
    reembed,
)

from .log import note
from .looking import write_json
from .place import Place, ask, check_can_ask, line, opened, run, shown_progress, tell

# ---- `coag memory export` and `import` ----


_ALL, _NOT_ALL = 0, 1
_STANDARD_OUTPUT = Path("-")
_TOLD = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What `coag memory import` was given; see there."""

    file: Path
    scope: str | None
    trust: str | None
    take: bool
    skip_bad: bool
    by: str
    as_json: bool


def export_memory(
    place: Place, file: Path, *, scope: str | None, kind: str | None, yes: bool
) -> None:
    """Writes the records of a memory into a file, or onto standard output.

    Raises:
        CoagError: The memory cannot be read, the file cannot be written, or is there already and
            nobody can be asked.
    """
    scopes = None if scope is None else [scope]
    kinds = None if kind is None else [MemoryKind(kind)]
    if file == _STANDARD_OUTPUT:
        run(_printed(place, scopes, kinds))
        return
    if file.exists():
        if not yes and not sys.stdin.isatty():
            raise ConfigurationError(
                f"{str(file)!r} exists and would be overwritten; nothing was written. Add --yes to "
                "write over it, or name another file."
            )
        ask(f"{line(str(file))!r} is there already. Write over it?", yes=yes)

    async def written() -> ExportResult:
        async with opened(place) as store:
            total = sum([await store.count(one) for one in kinds or MemoryKind])
            with shown_progress("exporting", total) as progress:
                return await export_records(
                    store, file, scopes=scopes, kinds=kinds, progress=progress
                )

    told = run(written())
    size = f"{told.size / 1_000_000:,.1f} MB"
    typer.echo(f"{told.records:,} record(s) are in {line(str(file))} ({size}).")


def import_memory(place: Place, options: ImportOptions) -> int:
    """Brings the records of a file into a memory; gives the exit code.

    Raises:
        CoagError: The file is no export, or the memory cannot be written.
    """

    async def brought() -> ImportResult:
        async with opened(place) as store:
            with shown_progress("importing", None) as progress:
                return await import_records(
                    store,
                    options.file,
                    scope=options.scope,
                    trust=None if options.trust is None else Trust(options.trust),
                    on_conflict=OnConflict.TAKE if options.take else OnConflict.KEEP,
                    skip_bad=options.skip_bad,
                    progress=progress,
                )

    check_import(options.file, options.scope)
    try:
        told = run(brought())
    except TransferError as error:
        if error.line <= 1:
            raise
        told = error.done
        _note(place, options, told)
        tell(line(str(error), 1_000), "red")
        return _NOT_ALL
    _note(place, options, told)
    if options.as_json:
        write_json([json.dumps(asdict(told), ensure_ascii=False)])
    else:
        for text in _outcome(told, take=options.take):
            typer.echo(text)
    return _NOT_ALL if told.refused or told.missing else _ALL


async def _printed(place: Place, scopes: list[str] | None, kinds: list[MemoryKind] | None) -> None:
    async with opened(place) as store:
        sys.stdout.write(Header.of(store).model_dump_json() + "\n")
        async for lines in export_lines(store, scopes=scopes, kinds=kinds):
            sys.stdout.writelines(escaped_json(one.removesuffix("\n")) + "\n" for one in lines)


def _note(place: Place, options: ImportOptions, told: ImportResult) -> None:
    """Writes into the memory's log what came, if it changed anything."""
    taken = told.differing if options.take else 0
    if told.new or taken:
        counts = {k: v for k, v in asdict(told).items() if k != "reasons"}
        details = {"file": options.file.name, "scope": options.scope, "trust": options.trust}
        note(place, "imported", by=options.by, details={**details, **counts})


def _outcome(told: ImportResult, *, take: bool) -> Iterator[str]:
    became = "were changed" if take else "stay as they were (--take takes the file's)"
    yield f"{told.new:,} new, {told.known:,} known"
    if told.differing:
        yield f"{told.differing:,} were there with other fields and {became}"
    if told.refused:
        yield f"{told.refused:,} line(s) were left out:"
        for one in told.reasons[:_TOLD]:
            yield f"  line {one.line}: {line(one.why)}"
        if told.refused > _TOLD:
            yield f"  … and {told.refused - _TOLD:,} more"
    if told.missing:
        yield f"{told.missing:,} record(s) of which the file's header tells are not in it: cut off?"


# ---- `coag memory reembed` ----


def reembed_memory(place: Place, to: str | None, *, by: str, yes: bool) -> None:
    """Gives all records vectors of another embedder, after it has told how long that takes.

    Raises:
        CoagError: There is no such embedder, it failed, or nobody can be asked.
    """
    embedder = embedder_of(to or WordLlamaEmbedder.name)
    check_can_ask(yes=yes)
    plan = run(plan_reembedding(place.store, embedder))
    if plan.state == "done":
        typer.echo(f"All {plan.records:,} record(s) have vectors of {embedder.name} already.")
        return
    _tell(plan)
    ask("Do it?", yes=yes)
    count = run(_reembedded(place, embedder, plan))
    details = {"made_with": list(plan.made_with), "embedder": embedder.name, "records": count}
    note(place, "reembedded", by=by, details=details)
    typer.echo(
        f"{count:,} record(s) have vectors of {embedder.name}. Open the memory with that embedder "
        "from now on."
    )


def abandon_it(place: Place, *, yes: bool) -> None:
    """Drops what an unfinished re-embedding has done; the memory stays as it is in use.

    Raises:
        CoagError: It failed, its switch has begun, or nobody can be asked.
    """
    ask("Drop what the unfinished re-embedding has done?", yes=yes)
    dropped = run(abandon_reembedding(place.store))
    typer.echo("It is dropped." if dropped else "There was none to drop.")


async def _reembedded(place: Place, embedder: Embedder, plan: ReembedPlan) -> int:
    with shown_progress("re-embedding", plan.records) as progress:
        try:
            return await reembed(place.store, embedder, progress=lambda now: progress(now.done))
        except RecordStoreError:
            tell("It is not done; the same command goes on where it stopped.", "yellow")
            raise


def _tell(plan: ReembedPlan) -> None:
    made_with = one_line(", ".join(plan.made_with) or "nothing", 200)
    begun = " It was begun before and goes on." if plan.state == "half_way" else ""
    tell(
        f"{plan.records:,} record(s) have vectors of {made_with}; {plan.left:,} of them will get "
        f"those of {plan.embedder}, which takes about {plan.seconds:,.0f} s.{begun}"
    )
