"""Commands that change a memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence, Set
from datetime import UTC, datetime
from typing import Annotated, Any

import click
import typer

from coag.cli.options import AsJson
from coag.cli.output import as_json as json_of
from coag.cli.output import say, write_json
from coag.errors import ConfigurationError
from coag.memory import (
    PROCEDURES_FILE,
    LongTermMemory,
    ProceduralMemory,
    Procedure,
    Revocation,
    Scopes,
    retract_source,
    said_by_person,
    scopes_in,
    seed_procedures,
    would_revoke,
)
from coag.memory.correction import Correction, amended, corrected, dependents_of
from coag.schema import Record, Scalar
from coag.store import RecordStore, short_id

from .log import note
from .options import By, Embedder, Id, Memory, Scope, Yes
from .place import (
    MemoryPlace,
    ask,
    check_can_ask,
    interruptible,
    leave,
    line,
    no_record,
    opened,
    place_of,
    record_if_any,
    the_record,
    visible,
)
from .whole import opened_whole

# ---- `coag memory edit` ----


_NEVER = "never"
_STANDARD_INPUT = "-"
NewText = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What it is to say; `-` reads standard input."),
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
NewValue = Annotated[str | None, typer.Option(metavar="TEXT", help="What the record's fact says.")]
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="When its fact ceased to hold (ISO 8601); or `never`."),
]
NoFact = Annotated[bool, typer.Option("--no-fact", help="Drop the record's fact.")]


async def edit(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    name: Id,
    text: NewText = None,
    type_: NewType = None,
    metadata: SetMetadata = None,
    unset: Unset = None,
    importance: Importance = None,
    value: NewValue = None,
    until: Until = None,
    no_fact: NoFact = False,
    memory: Memory = None,
    scope: Scope = None,
    embedder: Embedder = None,
    by: By = "person",
    yes: Yes = False,
) -> None:
    """Corrects a record; without options, opens its text in $EDITOR.

    A text never changes: another one becomes a new record, said by you, that takes the place of
    the old one. The rest is overwritten.

    Example: coag memory edit 1f0c22aa --text "The charger is at (3,0)." -m ~/robbie
    """
    if no_fact and (value is not None or until is not None):
        raise ConfigurationError("--no-fact drops the fact; --value and --until are of one.")
    never = until is not None and until.strip().casefold() == _NEVER
    wanted = Correction(
        text=sys.stdin.read().strip() if text == _STANDARD_INPUT else text,
        type=type_,
        metadata=dict(map(_pair, metadata or ())),
        without=tuple(unset or ()),
        importance=importance,
        value=value,
        until=None if until is None or never else _moment(until),
        holds=never,
        no_fact=no_fact,
    )
    if not wanted.is_empty:
        check_can_ask(yes=yes)
    await _edited(place_of(memory, embedder), name, wanted, scope=scope, by=by, yes=yes)


async def _edited(
    place: MemoryPlace, name: str, wanted: Correction, *, scope: str | None, by: str, yes: bool
) -> None:
    async with opened(place) as store:
        record = await the_record(store, name, scope)
        if wanted.is_empty:
            wanted = _as_typed(record)
        _check(record, wanted)
        try:
            changes = list(_changes(record, wanted))
            if not changes:
                say("Nothing is to be changed: it says so already.")
                return
            say(f"{short_id(record.id)} {line(record.text, 100)}", "bold")
            for what, before, after in changes:
                say(f"  {what}: {line(before)} -> {line(after)}")
                if what == "text":
                    say("    (a new record of yours, in the place of this one)")
            ask("Change it?", yes=yes)
            memory = LongTermMemory(store, scope=record.scope)
            now = await corrected(memory, record, wanted, by=said_by_person(by))
        except ConfigurationError:
            raise
        except ValueError as error:
            raise ConfigurationError(f"{error} Nothing was changed.") from error
    details = {"changed": [what for what, _, _ in changes]}
    note(place, "edited", by=by, records=tuple(dict.fromkeys((record.id, now.id))), details=details)
    if now.id == record.id:
        typer.echo(f"{now.id} was changed.")
    else:
        typer.echo(f"{now.id} has taken the place of {record.id}.")


def _check(record: Record, wanted: Correction) -> None:
    """Refuses a text that is none, or that would leave a fact behind which says otherwise."""
    if wanted.text is None:
        return
    if not wanted.text.strip():
        raise ConfigurationError(
            "The text is empty; nothing was changed. `coag memory forget` removes a record."
        )
    fact = record.fact
    if wanted.text == record.text or fact is None or wanted.value is not None or wanted.no_fact:
        return
    of = " ".join(f"{fact.subject} {fact.attribute}".split())
    raise ConfigurationError(
        f"The record has a fact: {line(of, 100)} = {line(fact.value, 100)}. Say by --value what it "
        "says with the new text (the same, if that stays), or drop the fact by --no-fact. Nothing "
        "was changed."
    )


def _changes(record: Record, wanted: Correction) -> Iterator[tuple[str, str, str]]:
    """Each thing that will be different, in one word, with its value before and after."""
    after = amended(record, wanted)
    if wanted.text is not None and wanted.text != record.text:
        yield "text", record.text, wanted.text
    for name in ("type", "metadata", "fact"):
        before, now = _plain(record, name), _plain(after, name)
        if before != now:
            yield name, before, now
    old, new = record.dynamics.importance, after.dynamics.importance
    if old != new:
        yield "importance", f"{old:g}", f"{new:g}"


def _plain(record: Record, name: str) -> str:
    return json_of(record.model_dump(mode="json", exclude_defaults=name == "fact").get(name))


def _as_typed(record: Record) -> Correction:
    """The text, and what the fact says with it, as a person says them at a terminal."""
    text, fact = _typed(record), record.fact
    if fact is None or text in ("", record.text):
        return Correction(text=text)
    of = line(f"{fact.subject} {fact.attribute}", 100)
    with interruptible():
        value: str = typer.prompt(f"Its fact says {of} =", default=visible(fact.value), err=True)
    return Correction(text=text, value=fact.value if value == visible(fact.value) else value)


def _typed(record: Record) -> str:
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "What is to be changed? There is no terminal for an editor: give --text, --type, "
            "--set, --unset, --importance, --value or --until."
        )
    if visible(record.text) != record.text:
        say(f"It has characters that do not show: {line(record.text)}", "yellow")
    try:
        typed = click.edit(record.text + "\n")
    except click.ClickException as error:
        raise ConfigurationError(
            f"{error.message.rstrip('.')}. Set EDITOR, or give --text."
        ) from error
    return record.text if typed is None else typed.strip()


def _pair(given: str) -> tuple[str, Scalar]:
    key, equals, text = given.partition("=")
    if not equals or not key:
        raise ConfigurationError(f"--set takes KEY=VALUE, not {given!r}.")
    try:
        value: Any = json.loads(text)
    except ValueError:
        return key, text
    if isinstance(value, str | int | float | bool):
        return key, value
    raise ConfigurationError(
        f"--set {given!r}: metadata holds text, numbers and truth values. --unset {key} takes the "
        "key away."
    )


def _moment(given: str) -> datetime:
    try:
        moment = datetime.fromisoformat(given.strip())
    except ValueError as error:
        raise ConfigurationError(
            f"--until {given!r} is no time such as 2026-11-22 or 2026-11-22T10:30:00Z, nor `never`."
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# ---- `coag memory forget` ----


_SHOWN = 20
"""Records that are shown of many."""


async def forget(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="Ids of records, or their first 8 characters."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="Every record of the scope that --scope names.")
    ] = False,
    memory: Memory = None,
    scope: Scope = None,
    embedder: Embedder = None,
    by: By = "person",
    yes: Yes = False,
) -> None:
    """Removes records for good, and nothing that was concluded from them.

    What they had superseded holds again. `revoke` takes what was concluded, too.

    Example: coag memory forget 1f0c22aa -m ~/robbie
    """
    place = place_of(memory, embedder)
    if everything:
        if scope is None or ids:
            raise ConfigurationError(
                "--everything forgets one scope: name it by --scope, and no ids."
            )
        check_can_ask(yes=yes)
        count = await _scope_forgotten(place, scope, yes=yes)
        note(place, "forgot_scope", by=by, details={"scope": scope, "records": count})
        typer.echo(f"{count} record(s) of scope {line(scope)!r} are forgotten.")
        return
    if not ids:
        raise ConfigurationError("Which records? Give their ids, or --everything with --scope.")
    check_can_ask(yes=yes)
    gone = await _records_forgotten(place, ids, scope, yes=yes)
    note(place, "forgot", by=by, records=tuple(one.id for one in gone))
    for record in gone:
        typer.echo(f"{record.id} is forgotten.")


async def _records_forgotten(
    place: MemoryPlace, ids: Sequence[str], scope: str | None, *, yes: bool
) -> list[Record]:
    async with opened_whole(place) as store:
        chosen = [await the_record(store, name, scope) for name in ids]
        records = list({one.id: one for one in chosen}.values())
        say(f"{len(records)} record(s) will be removed for good:", "bold")
        _say_records(records)
        for record in records:
            await _say_restored(store, record, {one.id for one in records})
            dependents = await dependents_of(store, record.id)
            if dependents:
                say(
                    f"  {len(dependents)} record(s) were concluded from {short_id(record.id)} and "
                    "stay; `coag memory revoke` takes them, too.",
                    "yellow",
                )
        ask("Remove for good?", yes=yes)
        return [
            one
            for one in records
            if await LongTermMemory(store, scope=one.scope).forget_record(one.id)
        ]


async def _scope_forgotten(place: MemoryPlace, scope: str, *, yes: bool) -> int:
    async with opened_whole(place) as store:
        count, first = 0, list[Record]()
        async for records in store.scan(scopes=[scope]):
            count += len(records)
            first += records[: _SHOWN - len(first)]
        if not count:
            leave(f"There are no records of scope {scope!r}.")
        say(f"{count:,} record(s) will be removed for good:", "bold")
        _say_records(first, count)
        ask(f"Remove all {count:,} record(s) of scope {line(scope)!r} for good?", yes=yes)
        return await LongTermMemory(store, scope=scope).forget(scope)


async def _say_restored(store: RecordStore, record: Record, gone: Set[str]) -> None:
    """Says what holds again without a record."""
    seen, last = {record.id}, record
    while (by := last.superseded_by) is not None and by in gone and by not in seen:
        seen.add(by)
        last = (await store.get([by]))[0]
    if last.superseded_by is not None or record.supersedes is None or record.supersedes in gone:
        return
    for old in await store.get([record.supersedes]):
        if old.superseded_by == record.id:
            say(f"  {short_id(old.id)} {line(old.text, 100)} (holds again)", "green")


def _say_records(records: Sequence[Record], count: int | None = None) -> None:
    several = len({one.scope for one in records}) > 1
    for record in records[:_SHOWN]:
        of = f" [{line(record.scope, 20)}]" if several else ""
        say(f"  {short_id(record.id)} {record.kind.value}{of} {line(record.text, 100)}")
    more = (len(records) if count is None else count) - _SHOWN
    if more > 0:
        say(f"  … and {more:,} more")


# ---- The procedures beside a memory's records ----


def procedures_of(place: MemoryPlace) -> ProceduralMemory | None:
    """The procedures beside the records, as they are in their file; None without one.

    The developer's own texts are taken from the file, so that none of them is changed.
    """
    path = None if place.folder is None else place.folder / PROCEDURES_FILE
    if path is None or not path.is_file():
        return None
    stored = ProceduralMemory({}, path=path).save_state()["procedures"]
    return ProceduralMemory(
        {name: _as_stored(name, versions) for name, versions in stored.items()}, path=path
    )


def _as_stored(name: str, versions: list[dict[str, str]]) -> Procedure:
    """A procedure whose developer's text is the one in the file.

    Of the placeholders that coag's own one has, those count that are in the current text.
    """
    seeds = [version["text"] for version in versions if version["author"] == "seed"]
    text = seeds[-1] if seeds else versions[0]["text"]
    ours, texts = seed_procedures().get(name), (text, versions[-1]["text"])
    placeholders = tuple(
        one
        for one in (ours.placeholders if ours is not None else ())
        if all(f"{{{one}}}" in each for each in texts)
    )
    return Procedure(name=name, text=text, placeholders=placeholders)


# ---- `coag memory revoke` ----


_ID_LENGTH = 32

PerhapsId = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="A record's id, or its first 8 characters."),
]
OfSource = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only what this source said; see `history`."),
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, in one sentence.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")
]


async def revoke(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    name: PerhapsId = None,
    source: OfSource = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    memory: Memory = None,
    scope: Scope = None,
    embedder: Embedder = None,
    by: By = "person",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Takes back a record and everything concluded from it, rules of procedures included.

    With --source, what that one said, of the record or altogether: what others said too stays, and
    is trusted as they are. What was superseded holds again. Without --scope it reaches every scope.

    Example: coag memory revoke 1f0c22aa --reason "It was a lie." -m ~/robbie

    Example: coag memory revoke --source web --reason "It lies." --dry-run -m ~/robbie
    """
    place, reason = place_of(memory, embedder), reason.strip()
    _check_wanted(name, source, "dry run" if dry_run else reason, yes=yes or dry_run)
    async with opened_whole(place) as store:
        full_id = await _full_id(store, name, scope)
        reached = LongTermMemory(store, scope=await _reached(store, scope, full_id))
        procedures = procedures_of(place)
        done = await _planned(reached, full_id, source, procedures)
        if not dry_run:
            ask("Take them back?" if source is None else "Take that back?", yes=yes)
            if source is None:
                done = await reached.revoke(full_id or "", reason, procedures=procedures)
            else:
                done = await retract_source(reached, full_id, source, reason, procedures=procedures)
    written = done.written()[0]
    if not dry_run:
        named = () if source is not None else (done.record_id,)
        note(
            place,
            "revoked",
            by=by,
            records=tuple(dict.fromkeys((*named, *done.records))),
            reason=done.reason,
            details={k: v for k, v in written.content.items() if k not in ("reason", "records")},
        )
    if as_json:
        write_json(written.model_dump_json())
        return
    for text in _outcome(done, "would be " if dry_run else ""):
        typer.echo(text)
    if dry_run:
        say("Nothing was changed.")


def _check_wanted(name: str | None, source: str | None, reason: str, *, yes: bool) -> None:
    if name is None and source is None:
        raise ConfigurationError(
            "What is to be taken back? Give a record's id, or --source NAME for what one said."
        )
    if not reason:
        raise ConfigurationError("--reason is empty; say why it is revoked.")
    check_can_ask(yes=yes)


async def _planned(
    memory: LongTermMemory,
    name: str | None,
    source: str | None,
    procedures: ProceduralMemory | None,
) -> Revocation:
    """What the revocation would do, shown to the person."""
    try:
        plan, after = await would_revoke(memory, name, source=source)
    except ValueError as error:
        leave(str(error))
    gone = {*plan.records, *([] if source is not None or name is None else [name])}
    rules = [] if procedures is None else _rules_on(procedures, gone)
    if not (plan.records or plan.lowered or rules):
        leave(f"There is no record {name!r}, and nothing depends on it.")
    await _show_plan(memory.store, plan, after, rules)
    return plan


async def _full_id(store: RecordStore, name: str | None, scope: str | None) -> str | None:
    """The whole id that is meant; also of a record that is gone, to complete its revocation."""
    if name is None:
        return None
    record = await record_if_any(store, name, scope)
    if record is None and len(name) != _ID_LENGTH:
        leave(no_record(name, scope))
    return name if record is None else record.id


async def _reached(store: RecordStore, scope: str | None, name: str | None) -> Scopes:
    """The scopes that a revocation reaches: the one that was given, or all that there are."""
    if scope is not None:
        return Scopes(own=scope)
    scopes = await scopes_in(store)
    if not scopes:
        leave(f"There is no record {name!r}; the memory holds none.")
    own, *others = scopes
    return Scopes(own=own, writes=tuple(others))


async def _show_plan(
    store: RecordStore, plan: Revocation, after: Sequence[Record], rules: Sequence[str]
) -> None:
    if plan.records or rules:
        say(f"{len(plan.records)} record(s) will be taken back:", "bold")
        _say_records(await store.get(plan.records[:_SHOWN]), len(plan.records))
    if rules:
        say(f"  and what came of them in procedures: {', '.join(map(line, rules))}")
    if plan.lowered:
        say(f"{len(plan.lowered)} record(s) stay without that source:", "bold")
    left = {one.id: one for one in after}
    for one in await store.get(plan.lowered[:_SHOWN]):
        trust, now = one.provenance.trust, left[one.id].provenance.trust
        change = f"stays {now}" if now is trust else f"{trust} to {now}"
        say(f"  {short_id(one.id)} {one.kind.value} {line(one.text, 100)} ({change})")
    if len(plan.lowered) > _SHOWN:
        say(f"  … and {len(plan.lowered) - _SHOWN:,} more")
    for one in await store.get(plan.restored[:_SHOWN]):
        say(f"  {short_id(one.id)} {line(one.text, 100)} (holds again)", "green")


def _rules_on(procedures: ProceduralMemory, gone: set[str]) -> list[str]:
    """The changes of procedures that depend on what goes and are not undone yet."""
    changes: list[str] = []
    for name in procedures.names():
        versions = procedures.versions(name)
        undone = {number for version in versions for number in version.undoes}
        changes += [
            f"{name}@{version.version}"
            for version in versions
            if gone.intersection(version.origins) and version.version not in undone
        ]
    return changes + [one.id for one in procedures.pending() if gone.intersection(one.origins)]


def _outcome(done: Revocation, would: str) -> list[str]:
    procedures = [f"{name}@{version.version}" for name, version in done.procedures]
    parts = (
        (f"{would}taken back", done.records),
        (f"{would}left without that word", done.lowered),
        ("would hold again" if would else "hold again", done.restored),
        ("would no longer name them" if would else "no longer name them", done.cleared),
        ("procedures rolled back", procedures),
        ("waiting rewrites dropped", done.dropped),
    )
    lines = [f"{what}: {', '.join(map(line, ids))}" for what, ids in parts if ids]
    return lines or ["Nothing was left to take back."]
