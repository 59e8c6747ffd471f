"""The commands of `coag memory` and their options.

As in the app above it, modules of our own are imported inside functions: help must be quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer

from . import app_looking as looking
from . import options as given

_Command = TypeVar("_Command", bound=Callable[..., Any])

app = typer.Typer(
    name="memory",
    help="Reads and corrects what an agent remembers.\n\n"
    "Example: coag memory search 'where is the charger' --memory ~/robbie",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _command(name: str) -> Callable[[_Command], _Command]:
    """Registers a command under a name."""

    def registered(command: _Command) -> _Command:
        return app.command(name=name, help=looking.paragraphs(command))(command)

    return registered


for command in looking.COMMANDS:
    app.command(help=looking.paragraphs(command))(command)


@_command("edit")
def edit(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    name: given.Id,
    text: given.NewText = None,
    type_: given.NewType = None,
    metadata: given.SetMetadata = None,
    unset: given.Unset = None,
    importance: given.Importance = None,
    value: given.Value = None,
    until: given.Until = None,
    no_fact: given.NoFact = False,
    memory: given.Memory = None,
    scope: given.Scope = None,
    embedder: given.Embedder = None,
    by: given.By = "person",
    yes: given.Yes = False,
) -> None:
    """Corrects a record; without options, opens its text in $EDITOR.

    A text never changes: another one becomes a new record, said by you, that takes the place of
    the old one. The rest is written over.

    Example: coag memory edit 1f0c22aa --text "The charger is at (3,0)." -m ~/robbie
    """
    from .changing import edit_record, wanted_of
    from .place import place_of

    wanted = wanted_of(
        text=text,
        type_=type_,
        metadata=metadata or (),
        unset=unset or (),
        importance=importance,
        value=value,
        until=until,
        no_fact=no_fact,
    )
    edit_record(place_of(memory, embedder), name, wanted, scope=scope, by=by, yes=yes)


@_command("forget")
def forget(
    ids: given.SomeIds = None,
    everything: given.Everything = False,
    memory: given.Memory = None,
    scope: given.Scope = None,
    embedder: given.Embedder = None,
    by: given.By = "person",
    yes: given.Yes = False,
) -> None:
    """Removes records for good, and nothing that was concluded from them.

    What they had superseded holds again. `revoke` takes what was concluded, too.

    Example: coag memory forget 1f0c22aa -m ~/robbie
    """
    from .changing import forget_everything, forget_records
    from .place import place_of

    place = place_of(memory, embedder)
    if everything:
        forget_everything(place, ids or (), scope=scope, by=by, yes=yes)
    else:
        forget_records(place, ids or (), scope=scope, by=by, yes=yes)


@_command("revoke")
def revoke(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    name: given.PerhapsId = None,
    source: given.WordOf = None,
    reason: given.Reason = "",
    dry_run: given.DryRun = False,
    memory: given.Memory = None,
    scope: given.Scope = None,
    embedder: given.Embedder = None,
    by: given.By = "person",
    yes: given.Yes = False,
    as_json: given.AsJson = False,
) -> None:
    """Takes back a record and everything concluded from it, rules of procedures included.

    With --source, what that one said, of the record or altogether: what others said too stays, and
    is trusted as they are. What was superseded holds again. Without --scope it reaches every scope.

    Example: coag memory revoke 1f0c22aa --reason "It was a lie." -m ~/robbie

    Example: coag memory revoke --source web --reason "It lies." --dry-run -m ~/robbie
    """
    from .changing import Revoking, revoke_records
    from .place import place_of

    asked = Revoking(
        name=name,
        source=source,
        reason=reason,
        scope=scope,
        by=by,
        yes=yes,
        dry_run=dry_run,
        as_json=as_json,
    )
    revoke_records(place_of(memory, embedder), asked)


@_command("export")
def export(
    file: given.OutFile,
    memory: given.Memory = None,
    scope: given.Scope = None,
    kind: given.OfKind = None,
    embedder: given.Embedder = None,
    yes: given.Yes = False,
) -> None:
    """Writes every record with every field into a file, one JSON object a line.

    Vectors are not part of it.

    Example: coag memory export robbie.jsonl -m ~/robbie
    """
    from .files import export_memory
    from .place import place_of

    export_memory(place_of(memory, embedder), file, scope=scope, kind=kind, yes=yes)


@_command("import")
def import_(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    file: given.InFile,
    memory: given.Memory = None,
    scope: given.IntoScope = None,
    trust: given.LowerTrust = None,
    take: given.Take = False,
    skip_bad: given.SkipBad = False,
    embedder: given.Embedder = None,
    by: given.By = "person",
    as_json: given.AsJson = False,
) -> None:
    """Brings the records of an exported file into a memory, which is made if there is none.

    Can be repeated: what is there already stays as it is.

    Example: coag memory import robbie.jsonl -m ~/robbie2 --trust untrusted

    Exit code 0: all is there; 1: lines were bad or are missing; 2: wrongly called.
    """
    from .files import ImportOptions, import_memory
    from .place import place_of

    options = ImportOptions(
        file=file, scope=scope, trust=trust, take=take, skip_bad=skip_bad, by=by, as_json=as_json
    )
    raise typer.Exit(import_memory(place_of(memory, embedder, make=True), options))


@_command("reembed")
def reembed(
    to: given.To = None,
    memory: given.Memory = None,
    abandon: given.Abandon = False,
    by: given.By = "person",
    yes: given.Yes = False,
) -> None:
    """Makes the vectors of all records anew with another embedder; the texts stay.

    Broken off, the same command goes on where it stopped; until it is done, the memory works as
    before. From then on, open it with that embedder.

    Example: coag memory reembed -m ~/robbie
    """
    from .files import abandon_it, reembed_memory
    from .place import place_of

    place = place_of(memory, None)
    if abandon:
        abandon_it(place, yes=yes)
    else:
        reembed_memory(place, to, by=by, yes=yes)
