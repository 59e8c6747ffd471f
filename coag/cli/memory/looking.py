"""`coag memory ls`, `search` and `show`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from coag.schema import MemoryKind, Provenance, RecalledRecord, Record, Trust, escaped_json
from coag.store import short_id

from .place import (
    DIM,
    Chosen,
    NothingFoundError,
    Place,
    cell,
    day,
    line,
    minute,
    no_scope,
    opened,
    run,
    screen,
    the_record,
    visible,
)

_TYPE_WIDTH, _SCOPE_WIDTH = 10, 12
_FOR_KIND, _FOR_TYPE = 75, 60
"""Columns of a terminal from which there is room for these."""
_MARKS = {"!": "untrusted", "-": "superseded", "x": "contradicted"}


def list_records(place: Place, chosen: Chosen, *, as_json: bool) -> None:
    """Prints the newest records that pass.

    Raises:
        CoagError: The memory cannot be read.
    """

    async def listed() -> tuple[list[Record], int]:
        async with opened(place) as store:
            hits = await chosen.found(store, None, k=chosen.limit + 1)
            counts = [await store.count(kind) for kind in MemoryKind]
            if hits:
                return [hit.record for hit in hits], sum(counts)
            what = "No record passes." if any(counts) else "It holds no records."
            if any(counts) and chosen.scopes is not None:
                what = await no_scope(store, chosen.scopes[0]) or what
            raise NothingFoundError(f"{what} (memory {place.shown})")

    records, count = run(listed())
    shown = records[: chosen.limit]
    if as_json:
        write_json(record.model_dump_json() for record in shown)
        return
    console = screen()
    console.print(table_of(shown, console.width))
    marks = {mark for record in shown for mark in marks_of(record)}
    told = [f"{mark} {meaning}" for mark, meaning in _MARKS.items() if mark in marks]
    if len(records) > len(shown):
        told.append(f"{len(shown)} are shown of {count:,} in all; --limit N shows more")
    if told:
        console.print(Text("   ".join(told), style=DIM), soft_wrap=True)


def search_records(
    place: Place, query: str, chosen: Chosen, *, min_score: float | None, as_json: bool
) -> None:
    """Prints the records that answer a query, with the parts of their scores.

    Raises:
        CoagError: The memory cannot be searched.
    """

    async def searched() -> list[RecalledRecord]:
        async with opened(place) as store:
            hits = await chosen.found(store, query, k=chosen.limit, min_score=min_score)
        if not hits:
            raise NothingFoundError(f"Nothing was found for {query!r}.")
        return hits

    hits = run(searched())
    if as_json:
        write_json(hit.model_dump_json() for hit in hits)
        return
    console = screen()
    several = len({hit.record.scope for hit in hits}) > 1
    for hit in hits:
        for text in _hit(hit, with_scope=several):
            console.print(text, soft_wrap=True)


def show_records(place: Place, ids: Sequence[str], *, scope: str | None, as_json: bool) -> None:
    """Prints everything that records say.

    Raises:
        CoagError: The memory cannot be read, or an id is not one record's.
    """

    async def found() -> list[Record]:
        async with opened(place) as store:
            return [await the_record(store, name, scope) for name in ids]

    records = run(found())
    if as_json:
        write_json(record.model_dump_json() for record in records)
        return
    console = screen()
    for place_in_list, record in enumerate(records):
        if place_in_list:
            console.print()
        for name, value in details(record):
            text = Text(f"{name:<12} ", style=DIM)
            console.print(text.append(visible(value), style="default"), soft_wrap=True)


def details(record: Record) -> Iterator[tuple[str, str]]:
    """Names and values of all that a record says; what it does not say is left out."""
    yield "id", record.id
    yield "text", record.text.replace("\n", f"\n{'':<13}")
    yield "kind", record.kind.value
    yield "scope", record.scope
    yield "type", record.type
    yield "made", minute(record.created_at)
    yield "origin", origin_line(record.provenance)
    for origin in record.lineage.also_from:
        yield "also from", origin_line(origin)
    if record.metadata:
        yield "metadata", json.dumps(record.metadata, ensure_ascii=False)
    for name in ("event", "fact"):
        part = getattr(record, name)
        if part is not None:
            told = part.model_dump(mode="json", exclude_defaults=True)
            yield name, json.dumps(told, ensure_ascii=False)
    yield "importance", f"{record.dynamics.importance:g}"
    if record.dynamics.accesses:
        yield "recalled", f"{record.dynamics.accesses} times"
    links = {
        "supersedes": (record.supersedes,),
        "superseded by": (record.superseded_by,),
        "derived from": record.lineage.derived_from,
        "contradicts": record.lineage.contradicts,
    }
    for name, ids in links.items():
        named = [one for one in ids if one]
        if named:
            yield name, ", ".join(named)


def origin_line(origin: Provenance) -> str:
    """Where something came from, in a few words."""
    run_of = f", cycle {origin.cycle} of run {origin.run}" if origin.run else ""
    return f"{origin.source} ({origin.source_kind}, {origin.trust.value}){run_of}"


def table_of(records: Iterable[Record], width: int) -> Table:
    """Records one a row, within the width of the terminal; scopes only where there are several.

    Narrow terminals leave out kind and type; records of one day have the time, too.
    """
    rows = list(records)
    several = len({record.scope for record in rows}) > 1
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style=DIM, expand=True)
    with_kind, with_type = width >= _FOR_KIND, width >= _FOR_TYPE
    one_day = len(rows) > 1 and len({day(record.created_at) for record in rows}) == 1
    made = minute if one_day and with_kind else day
    table.add_column("id", no_wrap=True, min_width=8)
    if with_kind:
        table.add_column("kind", no_wrap=True, min_width=8)
    table.add_column("made", no_wrap=True, min_width=10)
    if several:
        table.add_column("scope", no_wrap=True, max_width=_SCOPE_WIDTH, overflow="ellipsis")
    if with_type:
        table.add_column("type", no_wrap=True, max_width=_TYPE_WIDTH, overflow="ellipsis")
    table.add_column("", no_wrap=True)
    table.add_column("text", no_wrap=True, ratio=1, overflow="ellipsis")
    for record in rows:
        style = DIM if record.superseded_by else ""
        scope = [cell(record.scope, style)] if several else []
        table.add_row(
            cell(short_id(record.id), style),
            *([cell(record.kind.value, style)] if with_kind else []),
            cell(made(record.created_at), style),
            *scope,
            *([cell(record.type, style)] if with_type else []),
            cell(marks_of(record), "yellow"),
            cell(record.text, style),
        )
    return table


def marks_of(record: Record) -> str:
    """One sign for each thing that a reader should know of a record."""
    found = {
        "!": record.provenance.trust is Trust.UNTRUSTED,
        "-": record.superseded_by is not None,
        "x": bool(record.lineage.contradicts),
    }
    return "".join(mark for mark, holds in found.items() if holds)


def write_json(lines: Iterable[str]) -> None:
    """Prints objects of JSON, in which no character can steer a terminal."""
    for one in lines:
        sys.stdout.write(escaped_json(one) + "\n")


def _hit(hit: RecalledRecord, *, with_scope: bool) -> Iterator[Text]:
    record = hit.record
    about = [short_id(record.id), record.kind.value, day(record.created_at)]
    if with_scope:
        about.append(line(record.scope, _SCOPE_WIDTH))
    head = Text(f"{hit.score:.2f} ", style="bold")
    head.append(" ".join(about), style="cyan")
    head.append(f" {marks_of(record)}" if marks_of(record) else "", style="yellow")
    yield head
    yield Text(f"     {line(record.text)}")
    if hit.why is not None:
        yield Text(f"     {hit.why.told()}", style=DIM)
