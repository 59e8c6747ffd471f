"""`coag memory sleep`, and what it put into the archive: `archived` and `restore`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from coag.cli.options import AsJson
from coag.cli.output import write_json
from coag.errors import ConfigurationError
from coag.memory import LongTermMemory, Scopes, scopes_in
from coag.memory import restore as taken_back
from coag.memory.consolidation import SleepReport
from coag.memory.consolidation import sleep as consolidate
from coag.memory.dynamics import (
    DYNAMICS_FILE,
    DynamicsFile,
    MemoryArchive,
    MemoryDynamics,
    MemoryDynamicsSettings,
    owners_of,
)
from coag.models import ModelSpec, StructuredModel
from coag.schema import Record
from coag.store import RecordStore, short_id

from .log import note
from .options import By, Embedder, Limit, LinesOfJson, Memory, Scope
from .place import (
    MemoryPlace,
    leave,
    line,
    minute,
    opened,
    place_of,
    shown_progress,
)
from .whole import dynamics_of

_ALL, _NOT_ALL = 0, 1

Owner = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only this owner's dynamics, e.g. an agent's name."),
]
Folder = Annotated[
    str | None,
    typer.Argument(metavar="[FOLDER]", help="Another way to give --memory."),
]


async def sleep(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    folder: Folder = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
    allow_clock_jump: Annotated[
        bool,
        typer.Option(
            "--allow-clock-jump", help="Sleep even if the clock is years from the last use."
        ),
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.0, help="Stop after so long; the next continues."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Who writes gists and reflects on notes: `URL#NAME`, `ollama:NAME` or another "
            "that `coag chat` takes; without one rules do.",
        ),
    ] = None,
    owner: Owner = None,
    memory: Memory = None,
    embedder: Embedder = None,
    by: By = "person",
    as_json: AsJson = False,
) -> None:
    """Consolidates a memory: fading, archive, gists, feelings, clusters, links.

    It may be interrupted at any time; the next sleep continues where it stopped, and asks a model
    nothing that was answered before.

    Example: coag memory sleep -m ~/robbie --model http://127.0.0.1:8080/v1#qwen

    Exit code 0: done, or out of time; 1: a step failed; 2: wrongly called.
    """
    place = place_of(folder or memory, embedder)
    spec = None if model is None else ModelSpec.parse(model)
    asleep = partial(
        consolidate, dry_run=dry_run, allow_clock_jump=allow_clock_jump, most_seconds=seconds
    )
    failed = False
    with file_of(place) as file:
        for name, settings in chosen(file, owner).items():
            asked = None if dry_run else spec
            report = await _slept(place, name, settings, file, asked, asleep)
            if not dry_run and report.changed:
                details = {one.step: one.changed for one in report.steps if one.changed}
                note(place, "slept", by=by, details={"owner": report.owner, **details})
            _show(report, as_json=as_json)
            failed |= any(one.ended == "failed" for one in report.steps)
    raise typer.Exit(_NOT_ALL if failed else _ALL)


def _show(report: SleepReport, *, as_json: bool) -> None:
    if as_json:
        write_json(report.model_dump_json())
        return
    typer.echo(f"{line(report.owner)}:")
    for text in report.lines():
        typer.echo(f"  {line(text, 600)}")


async def _slept(
    place: MemoryPlace,
    owner: str,
    settings: MemoryDynamicsSettings,
    file: DynamicsFile,
    spec: ModelSpec | None,
    asleep: Callable[..., Awaitable[SleepReport]],
) -> SleepReport:
    dynamics = MemoryDynamics(settings, path=file.path, owner=owner)
    client = None if spec is None else spec.open()
    what = f"sleep of {line(owner, 40)}"
    try:
        async with opened(place) as store:
            memory = LongTermMemory(
                store, scope=await _scopes(store, owner, file), dynamics=dynamics
            )
            with shown_progress(what, None) as progress:

                def examined(step: str, count: int) -> None:
                    progress(count, f"{what}, {step}")

                model = None if client is None else StructuredModel(client)
                return await asleep(memory, model=model, on_progress=examined)
    finally:
        dynamics.close()
        if client is not None:
            await client.close()


async def _scopes(store: RecordStore, owner: str, file: DynamicsFile) -> Scopes:
    """The scopes of an owner: its own, and all that are no other owner's."""
    others = owners_of(file).keys() - {owner}
    return Scopes(
        own=owner, writes=tuple(one for one in await scopes_in(store) if one not in others)
    )


# ---- The archive ----


def archived(
    memory: Memory = None,
    scope: Scope = None,
    limit: Limit = 20,
    as_json: LinesOfJson = False,
) -> None:
    """Lists the faded records in the archive, the last first.

    Example: coag memory archived -m ~/robbie
    """
    place = place_of(memory, None)
    with file_of(place) as file:
        archive = MemoryArchive(file)
        entries = archive.entries(scopes=None if scope is None else [scope], most=limit)
        records = archive.peek(one.record for one in entries)
        if not entries:
            leave("The archive is empty.")
        for one in entries:
            record = records[one.record]
            if as_json:
                write_json(record.model_dump_json())
                continue
            day = minute(datetime.fromtimestamp(one.archived_at, UTC))
            read = "" if not one.reads else f", read {one.reads} time(s)"
            text = f"{short_id(one.record)} {day} {one.reason}{read} {record.text}"
            typer.echo(line(text, 160))


async def restore(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of archived records.")],
    memory: Memory = None,
    embedder: Embedder = None,
    by: By = "person",
) -> None:
    """Puts archived records back, word for word, so that they are recalled again.

    Example: coag memory restore 1f0c22aa -m ~/robbie
    """
    place = place_of(memory, embedder)
    with file_of(place) as file:
        async with opened(place) as store:
            back = [one for name in ids for one in await _restored(store, file, name)]
    note(place, "restored", by=by, records=tuple(record.id for record in back))
    for record in back:
        typer.echo(f"{record.id} is recalled again: {line(record.text, 100)}")


async def _restored(store: RecordStore, file: DynamicsFile, name: str) -> Sequence[Record]:
    owner = MemoryArchive(file).owner_of(name)
    if owner is None:
        leave(f"There is no record {name!r} in the archive.")
    settings = owners_of(file).get(owner, MemoryDynamicsSettings())
    scopes = Scopes(own=owner, writes=await scopes_in(store))
    with closing(MemoryDynamics(settings, path=file.path, owner=owner)) as dynamics:
        return await taken_back(LongTermMemory(store, scope=scopes, dynamics=dynamics), name)


# ---- The file of the dynamics ----


@contextmanager
def file_of(place: MemoryPlace) -> Generator[DynamicsFile]:
    """The file of the dynamics beside a memory's records.

    Raises:
        ConfigurationError: There is none.
    """
    with dynamics_of(place) as file:
        if file is None:
            raise ConfigurationError(
                f"The memory at {place.shown!r} has no dynamics here: there is no {DYNAMICS_FILE}. "
                "An agent makes it that was given memory_dynamics=, e.g. 'assistant'."
            )
        yield file


def chosen(file: DynamicsFile, owner: str | None) -> dict[str, MemoryDynamicsSettings]:
    """The owners that are meant, with their settings.

    Raises:
        ConfigurationError: There is no such owner.
    """
    owners = owners_of(file)
    if owner is None:
        return owners
    if owner not in owners:
        known = ", ".join(map(repr, owners)) or "none"
        raise ConfigurationError(f"There are no dynamics of {owner!r} here; known: {known}.")
    return {owner: owners[owner]}
