"""Commands that change a memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
import typer

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
from .looking import write_json
from .place import (
    NothingFoundError,
    Place,
    ask,
    check_can_ask,
    line,
    opened,
    run,
    tell,
    the_record,
    visible,
)

# ---- `coag memory edit` ----


_NEVER = "never"
_STANDARD_INPUT = "-"
_FIELDS = ("type", "metadata", "fact")


@dataclass(frozen=True, slots=True)
class _Change:
    """One thing that will be other than it was."""

    what: str
    """Which thing, in one word; the memory's log keeps this alone."""
    before: str
    now: str

    @property
    def shown(self) -> str:
        return f"{self.what}: {line(self.before)} -> {line(self.now)}"


def wanted_of(
    *,
    text: str | None,
    type_: str | None,
    metadata: Sequence[str],
    unset: Sequence[str],
    importance: float | None,
    value: str | None,
    until: str | None,
    no_fact: bool = False,
) -> Correction:
    """What options want to be changed.

    Raises:
        ConfigurationError: If one of them cannot be understood.
    """
    if no_fact and (value is not None or until is not None):
        raise ConfigurationError("--no-fact drops the fact; --value and --until are of one.")
    never = until is not None and until.strip().casefold() == _NEVER
    return Correction(
        text=sys.stdin.read().strip() if text == _STANDARD_INPUT else text,
        type=type_,
        metadata=dict(map(_pair, metadata)),
        without=tuple(unset),
        importance=importance,
        value=value,
        until=None if until is None or never else _moment(until),
        holds=never,
        no_fact=no_fact,
    )


def edit_record(
    place: Place, name: str, wanted: Correction, *, scope: str | None, by: str, yes: bool
) -> None:
    """Changes a record, after it has shown what will be and asked.

    Raises:
        CoagError: The record cannot be found or changed so, or nobody can be asked.
    """
    if not wanted.is_empty:
        check_can_ask(yes=yes)
    run(_edited(place, name, wanted, scope=scope, by=by, yes=yes))


async def _edited(
    place: Place, name: str, wanted: Correction, *, scope: str | None, by: str, yes: bool
) -> None:
    async with opened(place) as store:
        record = await the_record(store, name, scope)
        if wanted.is_empty:
            wanted = _as_typed(record)
        _check(record, wanted)
        try:
            changes = list(_changes(record, wanted))
            if not changes:
                tell("Nothing is to be changed: it says so already.")
                return
            tell(f"{short_id(record.id)} {line(record.text, 100)}", "bold")
            for one in changes:
                tell(f"  {one.shown}")
                if one.what == "text":
                    tell("    (a new record of yours, in the place of this one)")
            ask("Change it?", yes=yes)
            memory = LongTermMemory(store, scope=record.scope)
            now = await corrected(memory, record, wanted, by=said_by_person(by))
        except ConfigurationError:
            raise
        except ValueError as error:
            raise ConfigurationError(f"{error} Nothing was changed.") from error
    details = {"changed": [one.what for one in changes]}
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


def _changes(record: Record, wanted: Correction) -> Iterator[_Change]:
    """What will be, each thing."""
    after = amended(record, wanted)
    if wanted.text is not None and wanted.text != record.text:
        yield _Change("text", record.text, wanted.text)
    for name in _FIELDS:
        before, now = _plain(record, name), _plain(after, name)
        if before != now:
            yield _Change(name, before, now)
    before, now = record.dynamics.importance, after.dynamics.importance
    if before != now:
        yield _Change("importance", f"{before:g}", f"{now:g}")


def _plain(record: Record, name: str) -> str:
    dumped = record.model_dump(mode="json", include={name}, exclude_defaults=name == "fact")
    return json.dumps(dumped.get(name), ensure_ascii=False)


def _as_typed(record: Record) -> Correction:
    """The text, and what the fact says with it, as a person says them at a terminal."""
    text, fact = _typed(record), record.fact
    if fact is None or text in ("", record.text):
        return Correction(text=text)
    of = line(f"{fact.subject} {fact.attribute}", 100)
    value: str = typer.prompt(f"Its fact says {of} =", default=visible(fact.value), err=True)
    return Correction(text=text, value=fact.value if value == visible(fact.value) else value)


def _typed(record: Record) -> str:
    """The text as a person leaves it in their editor."""
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "What is to be changed? There is no terminal for an editor: give --text, --type, "
            "--set, --unset, --importance, --value or --until."
        )
    if visible(record.text) != record.text:
        tell(f"It has characters that do not show: {line(record.text)}", "yellow")
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


SHOWN = 20
"""Records that are told of many."""


def forget_records(
    place: Place, ids: Sequence[str], *, scope: str | None, by: str, yes: bool
) -> None:
    """Removes records, after it has shown them and asked.

    Raises:
        CoagError: None is named, one cannot be found or removed, or nobody can be asked.
    """
    if not ids:
        raise ConfigurationError("Which records? Give their ids, or --everything with --scope.")
    check_can_ask(yes=yes)

    async def forgotten() -> list[Record]:
        async with opened(place) as store:
            found = [await the_record(store, name, scope) for name in ids]
            records = list({one.id: one for one in found}.values())
            tell(f"{len(records)} record(s) will be removed for good:", "bold")
            tell_records(records)
            for record in records:
                await _tell_restored(store, record, {one.id for one in records})
                resting = await dependents_of(store, record.id)
                if resting:
                    tell(
                        f"  {len(resting)} record(s) were concluded from {short_id(record.id)} and "
                        "stay; `coag memory revoke` takes them, too.",
                        "yellow",
                    )
            ask("Remove for good?", yes=yes)
            return [
                one
                for one in records
                if await LongTermMemory(store, scope=one.scope).forget_record(one.id)
            ]

    gone = run(forgotten())
    note(place, "forgot", by=by, records=tuple(one.id for one in gone))
    for record in gone:
        typer.echo(f"{record.id} is forgotten.")


def forget_everything(
    place: Place, ids: Sequence[str], *, scope: str | None, by: str, yes: bool
) -> None:
    """Removes every record of a scope, after it has asked.

    Raises:
        CoagError: The scope is not named, or nobody can be asked.
    """
    if scope is None or ids:
        raise ConfigurationError("--everything forgets one scope: name it by --scope, and no ids.")
    check_can_ask(yes=yes)

    async def forgotten() -> int:
        async with opened(place) as store:
            count, first = 0, list[Record]()
            async for records in store.scan(scopes=[scope]):
                count += len(records)
                first += records[: SHOWN - len(first)]
            if not count:
                raise NothingFoundError(f"There are no records of scope {scope!r}.")
            tell(f"{count:,} record(s) will be removed for good:", "bold")
            tell_records(first, count)
            ask(f"Remove all {count:,} record(s) of scope {line(scope)!r} for good?", yes=yes)
            return await LongTermMemory(store, scope=scope).forget(scope)

    count = run(forgotten())
    note(place, "forgot_scope", by=by, details={"scope": scope, "records": count})
    typer.echo(f"{count} record(s) of scope {line(scope)!r} are forgotten.")


async def _tell_restored(store: RecordStore, record: Record, gone: Set[str]) -> None:
    """Says what holds again without a record."""
    seen, last = {record.id}, record
    while (by := last.superseded_by) is not None and by in gone and by not in seen:
        seen.add(by)
        last = (await store.get([by]))[0]
    if last.superseded_by is not None or record.supersedes is None or record.supersedes in gone:
        return
    for old in await store.get([record.supersedes]):
        if old.superseded_by == record.id:
            tell(f"  {short_id(old.id)} {line(old.text, 100)} (holds again)", "green")


def tell_records(records: Sequence[Record], count: int | None = None) -> None:
    """Tells the first of some records, each in a line, and how many more there are.

    Args:
        records: The first of them at least.
        count: How many they are; None if these are all.
    """
    several = len({one.scope for one in records}) > 1
    for record in records[:SHOWN]:
        of = f" [{line(record.scope, 20)}]" if several else ""
        tell(f"  {short_id(record.id)} {record.kind.value}{of} {line(record.text, 100)}")
    more = (len(records) if count is None else count) - SHOWN
    if more > 0:
        tell(f"  … and {more:,} more")


# ---- The procedures that stand beside a memory's records ----


def procedures_of(place: Place) -> ProceduralMemory | None:
    """The procedures beside the records, as they stand in their file; None without one.

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

    Of the placeholders that coag's own one has, those count that stand in the text that holds.
    """
    seeds = [version["text"] for version in versions if version["author"] == "seed"]
    text = seeds[-1] if seeds else versions[0]["text"]
    ours = seed_procedures().get(name)
    used = (one for one in (ours.placeholders if ours is not None else ()))
    placeholders = (
        one for one in used if all(f"{{{one}}}" in t for t in (text, versions[-1]["text"]))
    )
    return Procedure(name=name, text=text, placeholders=tuple(placeholders))


# ---- `coag memory revoke` ----


_ID_LENGTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoking:
    """What `coag memory revoke` was given; see there."""

    name: str | None
    source: str | None
    reason: str
    scope: str | None
    by: str
    yes: bool
    dry_run: bool
    as_json: bool


def revoke_records(place: Place, asked: Revoking) -> None:
    """Takes back a record or a source's word, after it has shown what that means and asked.

    Raises:
        CoagError: Nothing is named, it cannot be revoked, or nobody can be asked.
    """
    if asked.name is None and asked.source is None:
        raise ConfigurationError(
            "What is to be taken back? Give a record's id, or --source NAME for what one said."
        )
    if not asked.dry_run:
        if not asked.reason.strip():
            raise ConfigurationError("--reason is empty; say why it is revoked.")
        check_can_ask(yes=asked.yes)
    told = run(_revoked(place, asked))
    content = told.written()[0].content
    if not asked.dry_run:
        named = () if asked.source is not None else (told.record_id,)
        note(
            place,
            "revoked",
            by=asked.by,
            records=tuple(dict.fromkeys((*named, *told.records))),
            reason=told.reason,
            details={k: v for k, v in content.items() if k not in ("reason", "records")},
        )
    if asked.as_json:
        write_json([told.written()[0].model_dump_json()])
        return
    for text in _outcome(told, "would be " if asked.dry_run else ""):
        typer.echo(text)
    if asked.dry_run:
        tell("Nothing was changed.")


async def _revoked(place: Place, asked: Revoking) -> Revocation:
    async with opened(place) as store:
        name = await _whole(store, asked.name, asked.scope)
        memory = LongTermMemory(store, scope=await _reached(store, asked, name))
        try:
            plan, after = await would_revoke(memory, name, source=asked.source)
        except ValueError as error:
            raise NothingFoundError(str(error)) from error
        procedures = procedures_of(place)
        gone = {*plan.records, *([] if asked.source is not None or name is None else [name])}
        rules = [] if procedures is None else _rules_on(procedures, gone)
        if not (plan.records or plan.lowered or rules):
            raise NothingFoundError(f"There is no record {asked.name!r}, and nothing rests on it.")
        await _tell_plan(store, plan, after, rules)
        if asked.dry_run:
            return plan
        ask("Take them back?" if asked.source is None else "Take that back?", yes=asked.yes)
        reason = asked.reason.strip()
        if asked.source is not None:
            return await retract_source(memory, name, asked.source, reason, procedures=procedures)
        return await memory.revoke(name or "", reason, procedures=procedures)


async def _whole(store: RecordStore, name: str | None, scope: str | None) -> str | None:
    """The whole id that is meant; also that of a record that is gone, its revocation broken off."""
    if name is None:
        return None
    try:
        return (await the_record(store, name, scope)).id
    except NothingFoundError:
        if len(name) == _ID_LENGTH:
            return name
        raise


async def _reached(store: RecordStore, asked: Revoking, name: str | None) -> Scopes:
    """The scopes that a revocation reaches: the one that was given, or all that there are."""
    if asked.scope is not None:
        return Scopes(own=asked.scope)
    found = await scopes_in(store)
    if not found:
        raise NothingFoundError(f"There is no record {name!r}; the memory holds none.")
    own, *others = found
    return Scopes(own=own, writes=tuple(others))


async def _tell_plan(
    store: RecordStore, plan: Revocation, after: Sequence[Record], rules: Sequence[str]
) -> None:
    """Tells what would go, what would only be trusted less, and what would hold again."""
    if plan.records or rules:
        tell(f"{len(plan.records)} record(s) will be taken back:", "bold")
        tell_records(await store.get(plan.records[:SHOWN]), len(plan.records))
    if rules:
        tell(f"  and what came of them in procedures: {', '.join(map(line, rules))}")
    if plan.lowered:
        tell(f"{len(plan.lowered)} record(s) stay without that word:", "bold")
    left = {one.id: one for one in after}
    for one in await store.get(plan.lowered[:SHOWN]):
        trust, now = one.provenance.trust, left[one.id].provenance.trust
        kept = f"stays {now}" if now is trust else f"{trust} to {now}"
        tell(f"  {short_id(one.id)} {one.kind.value} {line(one.text, 100)} ({kept})")
    if len(plan.lowered) > SHOWN:
        tell(f"  … and {len(plan.lowered) - SHOWN:,} more")
    for one in await store.get(plan.restored[:SHOWN]):
        tell(f"  {short_id(one.id)} {line(one.text, 100)} (holds again)", "green")


def _rules_on(procedures: ProceduralMemory, gone: set[str]) -> list[str]:
    """The changes of procedures that rest on what goes and are not undone yet."""
    found: list[str] = []
    for name in procedures.names():
        versions = procedures.versions(name)
        undone = {number for version in versions for number in version.undoes}
        found += [
            f"{name}@{version.version}"
            for version in versions
            if gone.intersection(version.origins) and version.version not in undone
        ]
    return found + [one.id for one in procedures.pending() if gone.intersection(one.origins)]


def _outcome(told: Revocation, would: str) -> list[str]:
    procedures = [f"{name}@{version.version}" for name, version in told.procedures]
    parts = (
        (f"{would}taken back", told.records),
        (f"{would}left without that word", told.lowered),
        ("would hold again" if would else "hold again", told.restored),
        ("would no longer name them" if would else "no longer name them", told.cleared),
        ("procedures rolled back", procedures),
        ("waiting rewrites dropped", told.dropped),
    )
    lines = [f"{what}: {', '.join(map(line, ids))}" for what, ids in parts if ids]
    return lines or ["Nothing was left to take back."]
