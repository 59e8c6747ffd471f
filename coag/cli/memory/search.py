"""`coag memory ls`, `search` and `show`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from coag.cli.output import DIM, screen, write_json
from coag.cli.output import show as show_lines
from coag.schema import MemoryKind, Provenance, RecalledRecord, Record, Trust
from coag.store import ranked, short_id

from .options import (
    FILTER_PANEL,
    Embedder,
    Limit,
    LinesOfJson,
    Memory,
    OfKind,
    OfSource,
    OfTrust,
    OfType,
    Scope,
    Superseded,
    Where,
)
from .place import (
    cell,
    day,
    leave,
    line,
    minute,
    no_scope,
    opened,
    place_of,
    searches,
    the_record,
    visible,
)

_TYPE_WIDTH, _SCOPE_WIDTH = 10, 12
_FOR_KIND, _FOR_TYPE = 75, 60
"""Columns of a terminal from which there is room for these."""
_MARKS = {"!": "untrusted", "-": "superseded", "x": "contradicted"}


async def ls(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    memory: Memory = None,
    scope: Scope = None,
    kind: OfKind = None,
    type_: OfType = None,
    source: OfSource = None,
    trust: OfTrust = None,
    superseded: Superseded = False,
    where: Where = None,
    limit: Limit = 20,
    embedder: Embedder = None,
    as_json: LinesOfJson = False,
) -> None:
    """Lists records, the newest first.

    Example: coag memory ls -m ~/robbie --kind semantic --trust untrusted

    Exit code 0: some; 1: none; 2: wrongly called.
    """
    place = place_of(memory, embedder)
    of = {"type": type_, "source": source, "trust": trust}
    wanted = searches(None, limit + 1, scope, kind, where, of, superseded=superseded)
    async with opened(place) as store:
        hits = ranked([hit for one in wanted for hit in await store.search(one)], limit + 1)
        total = sum([await store.count(one) for one in MemoryKind])
        if not hits:
            what = "No record passes." if total else "It holds no records."
            if total and scope is not None:
                what = await no_scope(store, scope) or what
            leave(f"{what} (memory {place.shown})")
    shown = [hit.record for hit in hits[:limit]]
    if as_json:
        write_json(*(record.model_dump_json() for record in shown))
        return
    console = screen()
    console.print(_table(shown, console.width))
    marks = {mark for record in shown for mark in marks_of(record)}
    legend = [f"{mark} {meaning}" for mark, meaning in _MARKS.items() if mark in marks]
    if len(hits) > len(shown):
        legend.append(f"{len(shown)} are shown of {total:,} in all; --limit N shows more")
    if legend:
        console.print(Text("   ".join(legend), style=DIM), soft_wrap=True)


async def search(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    query: Annotated[str, typer.Argument(help="What to look for, in any words.")],
    memory: Memory = None,
    scope: Scope = None,
    kind: OfKind = None,
    type_: OfType = None,
    source: OfSource = None,
    trust: OfTrust = None,
    superseded: Superseded = False,
    where: Where = None,
    limit: Limit = 5,
    min_score: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="S",
            help="Leave out what scores less.",
            **FILTER_PANEL,
        ),
    ] = None,
    embedder: Embedder = None,
    as_json: LinesOfJson = False,
) -> None:
    """Finds records as the agent would, with the parts of their scores.

    Example: coag memory search "where is the charger" -m ~/robbie

    Exit code 0: found; 1: nothing found; 2: wrongly called.
    """
    of = {"type": type_, "source": source, "trust": trust}
    wanted = searches(
        query, limit, scope, kind, where, of, superseded=superseded, min_score=min_score
    )
    async with opened(place_of(memory, embedder)) as store:
        hits = ranked([hit for one in wanted for hit in await store.search(one)], limit)
    if not hits:
        leave(f"Nothing was found for {query!r}.")
    if as_json:
        write_json(*(hit.model_dump_json() for hit in hits))
        return
    several = len({hit.record.scope for hit in hits}) > 1
    show_lines(text for hit in hits for text in _hit(hit, with_scope=several))


async def show(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Ids of records, or their first 8 characters."),
    ],
    memory: Memory = None,
    scope: Scope = None,
    embedder: Embedder = None,
    as_json: LinesOfJson = False,
) -> None:
    """Shows everything that records say.

    Example: coag memory show 1f0c22aa -m ~/robbie
    """
    async with opened(place_of(memory, embedder)) as store:
        records = [await the_record(store, name, scope) for name in ids]
    if as_json:
        write_json(*(record.model_dump_json() for record in records))
        return
    for number, record in enumerate(records):
        show_lines([""] if number else [])
        show_lines(
            Text(f"{name:<12} ", style=DIM).append(visible(value), style="default")
            for name, value in _details(record)
        )


def _details(record: Record) -> Iterator[tuple[str, str]]:
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
            dumped = part.model_dump(mode="json", exclude_defaults=True)
            yield name, json.dumps(dumped, ensure_ascii=False)
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


def _table(records: Iterable[Record], width: int) -> Table:
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
    marks = {
        "!": record.provenance.trust is Trust.UNTRUSTED,
        "-": record.superseded_by is not None,
        "x": bool(record.lineage.contradicts),
    }
    return "".join(mark for mark, holds in marks.items() if holds)


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
        yield Text(f"     {hit.why.describe()}", style=DIM)
