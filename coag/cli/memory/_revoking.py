"""`coag memory revoke`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import typer

from coag.errors import ConfigurationError
from coag.memory import (
    LongTermMemory,
    ProceduralMemory,
    Revocation,
    Scopes,
    revoke_origin,
    scopes_in,
    would_revoke,
)
from coag.schema import Record
from coag.store import RecordStore, short_id

from ._asking import ask, check_can_ask, tell
from ._filters import the_record
from ._log import note
from ._looking import write_json
from ._place import NothingFoundError, Place, opened, run
from ._procedures import procedures_of
from ._removing import SHOWN, tell_records
from ._text import line

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
            return await revoke_origin(memory, name, asked.source, reason, procedures=procedures)
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
