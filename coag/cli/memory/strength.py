"""`coag memory strength` and `persona`: how memory changes, and what became of a personality."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from coag.cli.options import AsJson
from coag.cli.output import write_json
from coag.errors import ConfigurationError
from coag.memory.dynamics import (
    DAY,
    MemoryArchive,
    MemoryDynamicsSettings,
    Persona,
    PersonaVersion,
    RecordState,
    RecordStates,
    Traits,
    day_of,
    fades_at,
    seconds,
    strength_now,
    why_kept,
)
from coag.schema import Record, SystemClock
from coag.store import short_id

from .log import note
from .options import By, Embedder, Limit, Memory
from .place import (
    leave,
    line,
    place_of,
    the_record,
)
from .sleep import Folder, Owner, chosen, file_of
from .whole import opened_whole

_COLUMNS = 50
"""Of a chart."""
_BARS = " ▁▂▃▄▅▆▇█"


async def strength(
    folder: Folder = None,
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A record's id; else the weakest ones.")
    ] = None,
    owner: Owner = None,
    limit: Limit = 20,
    memory: Memory = None,
    embedder: Embedder = None,
    as_json: AsJson = False,
) -> None:
    """Shows how well records are kept, and when they fade; of one its gist and drift too.

    Example: coag memory strength 1f0c22aa -m ~/robbie
    """
    if folder is not None and name is None and not _is_place(folder):
        folder, name = None, folder  # only the record is given
    place = place_of(folder or memory, embedder)
    now = seconds(SystemClock().now())
    with file_of(place) as file:
        for whose, settings in chosen(file, owner).items():
            states = RecordStates(file, whose)
            if name is None:
                found = _weakest(states, settings, now, limit)
                async with opened_whole(place) as store:
                    held = await store.get([one.record for one in found])
                records = {one.id: one for one in held}
            else:
                async with opened_whole(place) as store:
                    record = await the_record(store, name, None)
                records, found = {record.id: record}, list(states.get([record.id]).values())
            kept = [_KeptRecord(one, records.get(one.record), settings, now) for one in found]
            if as_json:
                write_json(*(_as_json(one, whose) for one in kept))
                continue
            typer.echo(line(f"{whose}: {states.count():,} record(s) with a state"))
            archive = MemoryArchive(file)
            for one in kept:
                for text in [_row(one)] if name is None else _whole(one, archive):
                    typer.echo(f"  {text}")


def _is_place(folder: str) -> bool:
    return "://" in folder or Path(folder).expanduser().exists()


def _weakest(
    states: RecordStates, settings: MemoryDynamicsSettings, now: float, limit: int
) -> list[RecordState]:
    every = (one for batch in states.scan() for one in batch)
    return heapq.nsmallest(limit, every, key=lambda one: strength_now(one, now, settings))


@dataclass(frozen=True, slots=True)
class _KeptRecord:
    """How a record is kept by one owner."""

    state: RecordState
    record: Record | None
    settings: MemoryDynamicsSettings
    now: float

    @property
    def text(self) -> str:
        return "" if self.record is None else self.record.text

    @property
    def why(self) -> str:
        return why_kept(self.state, self.now, self.settings)

    def strength(self, at: float | None = None) -> float:
        """What is left of its strength, now or at a time."""
        return strength_now(self.state, self.now if at is None else at, self.settings)


def _row(one: _KeptRecord) -> str:
    name, uses = short_id(one.state.record), one.state.uses
    return line(f"{name} {one.strength():.2f} {one.why}, {uses} use(s): {one.text}", 120)


def _whole(one: _KeptRecord, archive: MemoryArchive) -> Iterator[str]:
    state = one.state
    yield line(f"{short_id(state.record)} {one.why}", 200)
    yield from _chart(one)
    where = "archived, word for word" if archive.has([state.record]) else "in the store"
    yield (
        f"strength {one.strength():.2f} of {state.strength:.2f}, stability "
        f"{state.stability:.0f} days, {state.uses} use(s), the last {day_of(state.used_at)}; "
        f"{where}"
    )
    how = one.settings.reconsolidation
    cap = how.cap if how else 0.0
    yield (
        f"feeling: valence {state.valence:+.2f}, arousal {state.arousal:.2f}, dominance "
        f"{state.dominance:+.2f}; drift by recall {state.drift:.2f}"
        + (f" of {cap:.2f} at most" if cap else "")
    )
    yield line(f"text: {one.text}", 2_000)
    if state.gist is not None:
        made = "" if state.gist_at is None else f", made {day_of(state.gist_at)}"
        yield line(f"gist{made}: {state.gist}", 2_000)


def _chart(one: _KeptRecord) -> Iterator[str]:
    """The strength from the last use on, until it fades or until now; `|` is now."""
    used, now = one.state.used_at, one.now
    end = max(fades_at(one.state, one.settings) or now, now, used + DAY)
    step = (end - used) / (_COLUMNS - 1)
    here = round((max(now, used) - used) / step)
    left = (one.strength(used + column * step) for column in range(_COLUMNS))
    yield f"1 {''.join(_BARS[round(share * (len(_BARS) - 1))] for share in left)}"
    yield f"0 {' ' * here}|{' ' * (_COLUMNS - 1 - here)}"
    yield f"  {day_of(used)}{day_of(end):>{_COLUMNS - 10}}"


def _as_json(one: _KeptRecord, owner: str) -> Mapping[str, object]:
    return {
        "owner": owner,
        **one.state._asdict(),
        "strength_now": one.strength(),
        "fades_at": fades_at(one.state, one.settings),
        "why": one.why,
        "text": None if one.record is None else one.text,
    }


# ---- `coag memory persona` ----


Version = Annotated[
    int | None, typer.Option(metavar="VERSION", help="Let a proposal take effect.", min=1)
]


def persona(
    folder: Folder = None,
    apply: Version = None,
    refuse: Annotated[
        int | None, typer.Option(metavar="VERSION", help="Turn a proposal down.", min=1)
    ] = None,
    back_to: Annotated[
        int | None,
        typer.Option(metavar="VERSION", help="Make an earlier version hold again; 0 is the first."),
    ] = None,
    owner: Owner = None,
    memory: Memory = None,
    by: By = "person",
    as_json: AsJson = False,
) -> None:
    """Shows the versions of a personality; applies, refuses or takes back one.

    Example: coag memory persona -m ~/robbie --back-to 0
    """
    wanted = {"apply": apply, "refuse": refuse, "back-to": back_to}
    given = {name: number for name, number in wanted.items() if number is not None}
    place = place_of(folder or memory, None)
    with file_of(place) as file:
        owners = chosen(file, owner)
        if len(given) > 1 or (given and len(owners) != 1):
            raise ConfigurationError(
                "One change of one owner at a time: give one of --apply, --refuse and --back-to, "
                f"and --owner, one of {', '.join(map(repr, owners))}."
            )
        for whose, settings in owners.items():
            versions = Persona(file, whose, settings.traits or Traits())
            for what, number in given.items():
                try:
                    _change(versions, what, number)
                except LookupError as error:
                    leave(str(error))
                note(place, "persona", by=by, details={"owner": whose, what: number})
            if as_json:
                write_json(*(one.model_dump(mode="json") for one in versions.versions()))
                continue
            typer.echo(line(f"{whose}: {_traits(versions.traits)}", 300))
            for one in versions.versions():
                typer.echo(f"  {line(_version(one), 400)}")


def _change(versions: Persona, what: str, number: int) -> None:
    if what == "apply":
        versions.apply(number)
    elif what == "refuse":
        versions.refuse(number)
    else:
        versions.roll_back(number, at=seconds(SystemClock().now()))


def _version(one: PersonaVersion) -> str:
    changes = ", ".join(f"{c.trait} {c.before:.2f} to {c.after:.2f}" for c in one.changes)
    return (
        f"{one.version} {day_of(one.at)} {one.state} {changes or _traits(one.traits)}: {one.reason}"
    )


def _traits(traits: Traits) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in traits)
