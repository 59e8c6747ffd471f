"""`coag memory forget`."""

from __future__ import annotations

from collections.abc import Sequence, Set

import typer

from coag.errors import ConfigurationError
from coag.memory import LongTermMemory
from coag.memory.transfer import resting_on
from coag.schema import Record
from coag.store import RecordStore, short_id

from ._asking import ask, check_can_ask, tell
from ._filters import the_record
from ._log import note
from ._place import NothingFoundError, Place, opened, run
from ._text import line

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
