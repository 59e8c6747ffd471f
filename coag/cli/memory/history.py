"""`coag memory history` and `stats`: the changes of a record, and the state of a memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from coag.cli.options import AsJson
from coag.cli.output import DIM, head, part, say, screen, show, write_json
from coag.memory import held_when
from coag.memory.correction import RelatedRecords, related_to
from coag.memory.dynamics import MemoryArchive
from coag.memory.health import MemoryHealth, examine_memory, repair_chains
from coag.schema import MemoryKind, Record
from coag.store import (
    DEFAULT_RANKING,
    ReembedPlan,
    Search,
    short_id,
    throw_away,
    unfinished_reembedding,
)

from .log import LoggedChange, changes_of, lowered_by, note
from .options import Embedder, Id, Memory, Scope
from .place import (
    MemoryPlace,
    day,
    leave,
    line,
    minute,
    no_record,
    opened,
    place_of,
    record_if_any,
)
from .search import marks_of, origin_line
from .whole import dynamics_of, opened_whole

# ---- `coag memory history` ----


_VERBS = {
    "edited": "edited",
    "forgot": "forgotten",
    "revoked": "revoked",
    "imported": "imported",
    "forgot_scope": "forgotten with its scope",
    "reembedded": "re-embedded",
    "mended": "mended",
}


async def history(
    name: Id,
    memory: Memory = None,
    scope: Scope = None,
    embedder: Embedder = None,
    as_json: AsJson = False,
) -> None:
    """Shows the records before and after one in its chain, and those it is linked to.

    What it was concluded from and what from it, what contradicts it, where it came from, and what
    people did to it.

    Example: coag memory history 1f0c22aa -m ~/robbie
    """
    place = place_of(memory, embedder)
    async with opened_whole(place) as store:
        record = await record_if_any(store, name, scope)
        if record is None:
            done = (f"  {_described(one, name)}" for one in changes_of(place, name))
            leave("\n".join((no_record(name, scope), *done)))
        related = await related_to(store, record)
    changes = changes_of(place, related.record.id)
    if as_json:
        write_json(_as_json(related, changes))
    else:
        show(_lines(related, changes))


def _lines(related: RelatedRecords, done: list[LoggedChange]) -> Iterator[Text]:
    own = related.record.id
    yield head("in its place, oldest first")
    for held in held_when(related.chain):
        times = (held.since, held.until)
        yield _row(held.record, times, current=held.record.id == own)
    yield from part("concluded from", map(_row, related.sources))
    for name in related.lost:
        yield Text(f"  {short_id(name)} (it is gone)", style="yellow")
    yield from part("concluded from it", map(_row, related.derived))
    yield from part("says otherwise", map(_row, related.contradicts))
    yield from part(
        "where it comes from", (Text(f"  {line(origin_line(one))}") for one in related.origins)
    )
    yield from part("changed by hand", (Text(f"  {line(_described(one, own))}") for one in done))


def _row(
    record: Record,
    times: tuple[datetime | None, datetime | None] | None = None,
    *,
    current: bool = False,
) -> Text:
    """A record in a line, with when it held, if that is known."""
    mark = marks_of(record)
    text = Text(">" if current else " ", style="bold").append(" ")
    text.append(f"{short_id(record.id)} {day(record.created_at)} ", style="cyan")
    text.append(f"{mark} " if mark else "", style="yellow")
    text.append(line(record.text))
    fact = record.fact
    if times is None and fact is not None:
        times = (fact.valid_from, fact.valid_until)
    if times is not None and any(times):
        since = minute(times[0]) if times[0] else "…"
        until = minute(times[1]) if times[1] else "now"
        text.append(f" ({since} to {until})", style=DIM)
    return text


def _described(done: LoggedChange, name: str) -> str:
    reason = f": {done.reason}" if done.reason else ""
    gone = any(one.startswith(name) for one in done.records)
    verb = _VERBS[done.action]
    if done.action == "mended":
        verb = "made to hold again"
    elif any(one.startswith(name) for one in lowered_by(done)):
        verb = f"what {done.details.get('source')} said of it was taken back"
    elif not gone:
        verb = "restored by a revocation"
    return line(f"{verb} {minute(done.at)} by {done.by}{reason}".rstrip("."))


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _as_json(related: RelatedRecords, done: list[LoggedChange]) -> dict[str, object]:
    def dumped(records: Iterable[Record]) -> list[object]:
        return [record.model_dump(mode="json") for record in records]

    return {
        "record": related.record.model_dump(mode="json"),
        "chain": dumped(related.chain),
        "held": [
            {"id": one.record.id, "since": _moment(one.since), "until": _moment(one.until)}
            for one in held_when(related.chain)
        ],
        "derived_from": dumped(related.sources),
        "gone": list(related.lost),
        "derived": dumped(related.derived),
        "contradicts": dumped(related.contradicts),
        "origins": [origin.model_dump(mode="json") for origin in related.origins],
        "done": [one.model_dump(mode="json") for one in done],
    }


# ---- `coag memory stats`: how a memory is ----


_SOUND, _UNSOUND = 0, 1
_MOST_ROWS = 10


async def stats(
    memory: Memory = None,
    mend: Annotated[
        bool,
        typer.Option(
            "--mend",
            help="Make the index of words again if it does not agree, and make hold what is "
            "superseded by something that is gone.",
        ),
    ] = False,
    embedder: Embedder = None,
    as_json: AsJson = False,
) -> None:
    """Shows the state of a memory: what it holds, and whether its parts agree.

    Example: coag memory stats -m ~/robbie

    Exit code 0: healthy; 1: something is to be repaired; 2: wrongly called.
    """
    place = place_of(memory, embedder)
    health = await _examined(place)
    if mend and health.index is not None and not health.index.sound:
        throw_away(Path(health.index.file))
        await _recalled_once(place)
        say("The index of words was made again.", DIM)
        health = await _examined(place)
    if mend and not health.healthy:
        restored = await _repaired(place)
        if restored:
            note(place, "mended", by="person", records=restored)
            say(f"{len(restored)} record(s) hold again.", DIM)
            health = await _examined(place)
    begun = await unfinished_reembedding(place.store)
    if as_json:
        reembedding = begun and {
            "embedder": begun.embedder,
            "done": begun.done,
            "records": begun.records,
            "notice": _notice(begun),
        }
        own = {"healthy": health.healthy, "verdict": health.verdict, "reembedding": reembedding}
        write_json({**health.model_dump(mode="json"), **own})
    else:
        _print(health)
        if begun is not None:
            say(_notice(begun), "yellow")
    raise typer.Exit(_SOUND if health.healthy else _UNSOUND)


async def _examined(place: MemoryPlace) -> MemoryHealth:
    async with opened(place) as store:
        with dynamics_of(place) as file:
            return await examine_memory(store, archive=file and MemoryArchive(file))


def _notice(begun: ReembedPlan) -> str:
    name = line(begun.embedder, 100)
    return (
        f"A re-embedding is half way: {begun.done:,} of {begun.records:,} record(s) have vectors "
        f"of {name}. `coag memory reembed --to {name}` continues, `coag memory reembed --abandon` "
        "gives it up."
    )


async def _repaired(place: MemoryPlace) -> tuple[str, ...]:
    async with opened_whole(place) as store:
        return await repair_chains(store)


async def _recalled_once(place: MemoryPlace) -> None:
    """The first recall makes an index that is missing."""
    async with opened(place) as store:
        search = Search(text="anything", kind=MemoryKind.EPISODIC, ranking=DEFAULT_RANKING)
        await store.search(search)


def _print(health: MemoryHealth) -> None:
    console = screen()
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style=DIM, no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(health):
        table.add_row(name, Text(value))
    console.print(table)
    for finding in health.findings:
        mark, style = ("BAD  ", "bold red") if finding.level == "bad" else ("look ", "yellow")
        text = Text(mark, style=style).append(line(finding.text, 600), "default")
        console.print(text, soft_wrap=True)
    console.print(Text(health.verdict, style="green" if health.healthy else "bold red"))


def _rows(health: MemoryHealth) -> Iterator[tuple[str, str]]:
    yield "records", f"{health.episodic + health.semantic:,}"
    yield "  episodic", f"{health.episodic:,}"
    yield "  semantic", f"{health.semantic:,}"
    yield "superseded", f"{health.superseded:,}"
    for title, counts in (
        ("scopes", {name: sum(kinds.values()) for name, kinds in health.scopes.items()}),
        ("types", health.types),
        ("trust", health.trust),
    ):
        yield title, _counted(counts)
    yield "contradictions", f"{health.contradictions:,} open"
    yield "duplicates", f"{health.duplicates:,}"
    if health.oldest is not None and health.newest is not None:
        yield "oldest, newest", f"{minute(health.oldest)}, {minute(health.newest)}"
    if health.embedder is not None:
        yield "embedder", f"{health.embedder}, {health.dimension} numbers"
    if health.size is not None:
        yield "on disk", f"{health.size / 1_000_000:,.1f} MB"
    index = health.index
    if index is not None:
        state = "in line" if index.sound else "NOT in line"
        yield "index of words", f"{state}: {index.records:,} records, {index.pending} pending"


def _counted(counts: dict[str, int]) -> str:
    counted = [(name, count) for name, count in counts.items() if count]
    rows = [f"{line(name, 40)} {count:,}" for name, count in counted[:_MOST_ROWS]]
    if len(counted) > _MOST_ROWS:
        rows.append(f"… and {len(counted) - _MOST_ROWS} more")
    return ", ".join(rows) or "none"
