"""`coag memory forget` and `revoke`."""

from __future__ import annotations

from collections.abc import Sequence, Set

import typer

from coag.errors import ConfigurationError
from coag.memory import LongTermMemory, ProceduralMemory, Revocation, Scopes
from coag.memory.transfer import resting_on
from coag.schema import Record
from coag.store import RecordStore, short_id

from ._asking import ask, check_can_ask, tell
from ._filters import the_record
from ._log import note
from ._looking import write_json
from ._place import NothingFoundError, Place, opened, run
from ._procedures import procedures_of
from ._text import line

_SHOWN = 20
_ID_LENGTH = 32


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
            _tell_records(records)
            for record in records:
                await _tell_restored(store, record, {one.id for one in records})
                resting = await resting_on(store, record.id)
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
                first += records[: _SHOWN - len(first)]
            if not count:
                raise NothingFoundError(f"There are no records of scope {scope!r}.")
            tell(f"{count:,} record(s) will be removed for good:", "bold")
            _tell_records(first)
            if count > len(first):
                tell(f"  … and {count - len(first):,} more")
            ask(f"Remove all {count:,} record(s) of scope {line(scope)!r} for good?", yes=yes)
            return await LongTermMemory(store, scope=scope).forget(scope)

    count = run(forgotten())
    note(place, "forgot_scope", by=by, details={"scope": scope, "records": count})
    typer.echo(f"{count} record(s) of scope {line(scope)!r} are forgotten.")


def revoke_record(
    place: Place,
    name: str,
    reason: str,
    *,
    scope: str | None,
    by: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Takes a record back with all that rests on it, after it has shown that and asked.

    Raises:
        CoagError: It cannot be found or revoked, or nobody can be asked.
    """
    if not reason.strip():
        raise ConfigurationError("--reason is empty; say why the record is revoked.")
    check_can_ask(yes=yes)
    told = run(_revoked(place, name, reason.strip(), scope=scope, yes=yes))
    line_of_trace = told.written()[0].content
    note(
        place,
        "revoked",
        by=by,
        records=tuple(dict.fromkeys((told.record_id, *told.records))),
        reason=told.reason,
        details={k: v for k, v in line_of_trace.items() if k not in ("reason", "records")},
    )
    if as_json:
        write_json([told.written()[0].model_dump_json()])
        return
    for text in _outcome(told):
        typer.echo(text)


async def _revoked(
    place: Place, name: str, reason: str, *, scope: str | None, yes: bool
) -> Revocation:
    async with opened(place) as store:
        scopes = None if scope is None else (scope,)
        record = await _perhaps(store, name, scope)
        full = name if record is None else record.id
        resting = await resting_on(store, full, scopes=scopes)
        procedures = procedures_of(place)
        gone = {full, *(one.id for one in resting)}
        rules = [] if procedures is None else _rules_on(procedures, gone)
        first = record or next(iter(resting), None)
        if first is None and not rules:
            raise NothingFoundError(f"There is no record {name!r}, and nothing rests on it.")
        tell(f"{len(resting) + (record is not None)} record(s) will be taken back:", "bold")
        _tell_records([*([record] if record is not None else []), *resting])
        if rules:
            tell(f"  and what came of them in procedures: {', '.join(map(line, rules))}")
        ask("Take them back?", yes=yes)
        own = scope or ("" if first is None else first.scope)
        others = sorted({one.scope for one in resting} - {own})
        memory = LongTermMemory(store, scope=Scopes(own=own, writes=tuple(others)))
        return await memory.revoke(full, reason, procedures=procedures)


async def _perhaps(store: RecordStore, name: str, scope: str | None) -> Record | None:
    """The record; None for the whole id of one that is gone, its revocation broken off."""
    try:
        return await the_record(store, name, scope)
    except NothingFoundError:
        if len(name) == _ID_LENGTH:
            return None
        raise


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


def _outcome(told: Revocation) -> list[str]:
    procedures = [f"{name}@{version.version}" for name, version in told.procedures]
    parts = (
        ("taken back", told.records),
        ("hold again", told.restored),
        ("no longer name them", told.cleared),
        ("procedures rolled back", procedures),
        ("waiting rewrites dropped", told.dropped),
    )
    lines = [f"{what}: {', '.join(map(line, ids))}" for what, ids in parts if ids]
    return lines or ["Nothing was left to take back."]


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


def _tell_records(records: Sequence[Record]) -> None:
    several = len({one.scope for one in records}) > 1
    for record in records[:_SHOWN]:
        of = f" [{line(record.scope, 20)}]" if several else ""
        tell(f"  {short_id(record.id)} {record.kind.value}{of} {line(record.text, 100)}")
    if len(records) > _SHOWN:
        tell(f"  … and {len(records) - _SHOWN} more")
