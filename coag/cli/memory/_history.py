"""`coag memory history`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from rich.text import Text

from coag.memory import held_when
from coag.memory.transfer import Family, family_of
from coag.schema import Record
from coag.store import short_id

from ._filters import the_record
from ._log import Done, done_to, lowered_by
from ._looking import marks_of, origin_line, write_json
from ._place import NothingFoundError, Place, opened, run
from ._text import DIM, day, line, minute, screen

_VERBS = {
    "edited": "edited",
    "forgot": "forgotten",
    "revoked": "revoked",
    "imported": "imported",
    "forgot_scope": "forgotten with its scope",
    "reembedded": "re-embedded",
    "mended": "mended",
}


def show_history(place: Place, name: str, *, scope: str | None, as_json: bool) -> None:
    """Prints what a record has to do with others, and what people did to it.

    Raises:
        CoagError: The memory cannot be read, or the name is not one record's.
    """

    async def found() -> Family:
        async with opened(place) as store:
            try:
                record = await the_record(store, name, scope)
            except NothingFoundError as error:
                done = done_to(place, name)
                if not done:
                    raise
                told = [str(error), *(f"  {_deed(one, name)}" for one in done)]
                raise NothingFoundError("\n".join(told)) from error
            return await family_of(store, record)

    family = run(found())
    done = done_to(place, family.record.id)
    if as_json:
        write_json([json.dumps(_as_json(family, done), ensure_ascii=False)])
        return
    console = screen()
    for text in _lines(family, done):
        console.print(text, soft_wrap=True)


def _lines(family: Family, done: list[Done]) -> Iterator[Text]:
    own = family.record.id
    yield _head("in its place, oldest first")
    for held in held_when(family.chain):
        times = (held.since, held.until)
        yield _row(held.record, times, current=held.record.id == own)
    yield from _part("concluded from", map(_row, family.sources))
    for name in family.lost:
        yield Text(f"  {short_id(name)} (it is gone)", style="yellow")
    yield from _part("concluded from it", map(_row, family.derived))
    yield from _part("says otherwise", map(_row, family.contradicts))
    yield from _part("where it comes from", (_item(origin_line(one)) for one in family.origins))
    yield from _part("changed by hand", (_item(_deed(one, own)) for one in done))


def _row(
    record: Record,
    times: tuple[datetime | None, datetime | None] | None = None,
    *,
    current: bool = False,
) -> Text:
    """A record in a line, with when it held, if that is told."""
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


def _deed(done: Done, name: str) -> str:
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


def _part(title: str, lines: Iterable[Text]) -> Iterator[Text]:
    """A part with its lines, if it has any."""
    rows = list(lines)
    if rows:
        yield _head(title)
        yield from rows


def _head(title: str) -> Text:
    return Text(title, style="bold")


def _item(text: str) -> Text:
    return Text(f"  {line(text)}")


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _as_json(family: Family, done: list[Done]) -> dict[str, object]:
    def dumped(records: Iterable[Record]) -> list[object]:
        return [record.model_dump(mode="json") for record in records]

    return {
        "record": family.record.model_dump(mode="json"),
        "chain": dumped(family.chain),
        "held": [
            {"id": one.record.id, "since": _moment(one.since), "until": _moment(one.until)}
            for one in held_when(family.chain)
        ],
        "derived_from": dumped(family.sources),
        "gone": list(family.lost),
        "derived": dumped(family.derived),
        "contradicts": dumped(family.contradicts),
        "origins": [origin.model_dump(mode="json") for origin in family.origins],
        "done": [one.model_dump(mode="json") for one in done],
    }
