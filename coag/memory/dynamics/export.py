"""What an export says of dynamics: typed lines that follow the records, and their way back.

They hold owners with their settings, the versions of each personality, what has faded, the states
of records, what ties them, and what yields to what. Clusters are made of vectors, which no export
holds: a sleep finds them again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import ConfigDict, Field, PlainSerializer, TypeAdapter, model_validator

from coag.errors import UnknownNameError
from coag.schema import MemoryKind, Record, Value

from .archive import ArchiveReason, MemoryArchive
from .file import DynamicsFile
from .links import RecordLinks
from .matters import MatterNote, Matters
from .persona import Persona, PersonaVersion, note_owner, owners_of
from .settings import MemoryDynamicsSettings, Traits
from .states import RecordState, RecordStates

_KeyT = TypeVar("_KeyT")
_LineT = TypeVar("_LineT")
_NAMES_KIND = re.compile(rb'\s*\{\s*"line"\s*:\s*"([a-z_]{1,40})"')
_UNIT = ("strength", "importance", "arousal", "confidence")
_AXES = ("valence", "dominance")


class OwnerLine(Value):
    """Whose dynamics they are, and how these were last set."""

    line: Literal["owner"] = "owner"
    owner: str
    settings: MemoryDynamicsSettings


class ArchivedLine(Value):
    """A record that has faded."""

    line: Literal["archived"] = "archived"
    owner: str
    """Whose dynamics put it into the archive."""
    at: float
    """When, in POSIX seconds."""
    reason: ArchiveReason
    record: Record


class StateLine(Value):
    """What the dynamics of an owner know of a record, but for its cluster."""

    model_config = ConfigDict(use_attribute_docstrings=True)  # those of the state, no value

    line: Literal["state"] = "state"
    owner: str
    state: Annotated[RecordState, PlainSerializer(RecordState._asdict)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        state = self.state
        numbers = {name: getattr(state, name) for name in RecordState._fields}
        for name, value in numbers.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, not {value!r}")
            low = -1.0 if name in _AXES else 0.0
            if name in (*_UNIT, *_AXES) and not low <= value <= 1.0:
                raise ValueError(f"{name} must be between {low:g} and 1, not {value!r}")
        if not state.stability > 0 or state.uses < 0 or state.drift < 0:
            raise ValueError(
                f"stability must be above 0, uses and drift at least 0, not "
                f"{(state.stability, state.uses, state.drift)!r}"
            )
        return self


class PersonaLine(Value):
    """A version of an owner's personality."""

    line: Literal["persona"] = "persona"
    owner: str
    version: PersonaVersion


class LinkLine(Value, allow_inf_nan=False):
    """Two records that are tied, the lesser id first."""

    line: Literal["link"] = "link"
    owner: str
    record: str
    other: str
    weight: float = Field(ge=0.0, le=1.0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.record == self.other:
            raise ValueError(f"record and other must be two, not both {self.record!r}")
        return self


class MatterLine(Value, allow_inf_nan=False):
    """What a record is about, and to which one it yields; see `Matters`."""

    line: Literal["matter"] = "matter"
    owner: str
    record: str
    matter: str
    said_at: float
    """POSIX seconds."""
    yields_to: str = ""
    """Empty where it yields to none."""


DynamicsLine = OwnerLine | ArchivedLine | StateLine | PersonaLine | LinkLine | MatterLine
_LINE: TypeAdapter[DynamicsLine] = TypeAdapter(Annotated[DynamicsLine, Field(discriminator="line")])
_KINDS = {one.model_fields["line"].default for one in get_args(DynamicsLine)}


def is_typed_line(line: bytes) -> bool:
    """Whether a line of an export is a typed one; else it is to be a record."""
    return _NAMES_KIND.match(line) is not None


def parse_dynamics_line(line: bytes) -> DynamicsLine:
    """What a typed line says.

    Raises:
        UnknownNameError: It is of a kind that this version does not know.
        ValidationError: It does not say what its kind does.
        UnicodeDecodeError: It is no text.
    """
    kind = _NAMES_KIND.match(line)
    if kind is not None and (name := kind[1].decode()) not in _KINDS:
        raise UnknownNameError("kind of line", name, _KINDS)
    return _LINE.validate_json(line.decode("utf-8"))


# ---- Export ----


def dynamics_lines(
    file: DynamicsFile,
    records: Collection[str],
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[MemoryKind] | None = None,
) -> Iterator[list[str]]:
    """The lines that follow exported records, some at a time; it only reads.

    What names a record that is not exported is left out.

    Args:
        file: Where the dynamics are.
        records: Ids of the records that are exported.
        scopes: Whose; an owner is exported where it is one of them. None for everyone's.
        kinds: Of which memories the archived records are; None for both.

    Raises:
        RecordStoreError: The file cannot be read, or what is archived is damaged.
        ConfigurationError: The settings of an owner cannot be read.
    """
    owners, with_them = owners_of(file), set(records)
    for owner, settings in owners.items():
        if scopes is None or owner in scopes:
            yield _written([OwnerLine(owner=owner, settings=settings)])
            versions = Persona(file, owner, settings.traits or Traits()).versions()
            yield _written(PersonaLine(owner=owner, version=one) for one in versions)
    archive = MemoryArchive(file)
    for kind in MemoryKind if kinds is None else kinds:
        for some in archive.scan(kind=kind, scopes=scopes):
            away = {one.id: one for one in some if one.id not in with_them}
            with_them |= away.keys()
            yield _written(
                ArchivedLine(
                    owner=one.owner, at=one.archived_at, reason=one.reason, record=away[one.record]
                )
                for one in archive.entries_of(away)
            )
    for owner in owners:
        for states in RecordStates(file, owner).scan():
            yield _written(
                StateLine(owner=owner, state=one._replace(schema=""))
                for one in states
                if one.record in with_them
            )
        if file.has("links"):
            for pairs in RecordLinks(file, owner).scan():
                yield _written(
                    LinkLine(owner=owner, record=one, other=two, weight=weight)
                    for one, two, weight in pairs
                    if one in with_them and two in with_them
                )
        if file.has("matters"):
            yield from _matter_lines(Matters(file, owner), with_them)


def _matter_lines(matters: Matters, exported: Collection[str]) -> Iterator[list[str]]:
    """What yields to what is not exported yields to the next that is, as if that was removed."""
    for notes in matters.scan():
        here = [one for one in notes if one.record in exported]
        away = [one.record for one in here if one.yields_to and one.yields_to not in exported]
        chain = matters.yielding(away)
        yield _written(
            MatterLine(
                owner=matters.owner,
                record=one.record,
                matter=one.matter,
                said_at=one.said_at,
                yields_to=_next_exported(one.yields_to, chain, exported),
            )
            for one in here
        )


def _next_exported(name: str, chain: Mapping[str, str], exported: Collection[str]) -> str:
    left = dict(chain)  # each is passed once, or a circle would have no end
    while name and name not in exported:
        name = left.pop(name, "")
    return name


def _written(lines: Iterable[DynamicsLine]) -> list[str]:
    return [one.model_dump_json() + "\n" for one in lines]


# ---- Import ----


class DynamicsImport:
    """The way of typed lines into a file of dynamics, but for what is archived."""

    def __init__(self, file: DynamicsFile, *, take: bool = False) -> None:
        self._file = file
        self._take = take
        self._diverged: set[str] = set()

    def put(
        self, lines: Sequence[OwnerLine | StateLine | PersonaLine | LinkLine | MatterLine]
    ) -> int:
        """Writes what lines say, together; says how many stay as they were, with other content."""
        kept = 0
        ways: dict[str, Callable[[str, Sequence[Any]], int]] = {
            "owner": lambda _, lines: sum(map(self._owner, lines)),
            "persona": lambda _, lines: sum(map(self._persona, lines)),
            "state": self._states,
            "link": self._links,
            "matter": self._matters,
        }
        with self._file.transaction():
            for (kind, owner), some in groupby(lines, key=attrgetter("line", "owner")):
                kept += ways[kind](owner, list(some))
        return kept

    def _owner(self, line: OwnerLine) -> bool:
        new, kept = self._settled(owners_of(self._file), [(line.owner, line.settings)])
        for settings in new.values():
            note_owner(self._file, line.owner, settings)
        return bool(kept)

    def _persona(self, line: PersonaLine) -> bool:
        """Writes a version; none behind one that is another here, which would change what holds."""
        persona = Persona(self._file, line.owner, Traits())
        there = {one.version: one for one in persona.versions()}
        if line.owner in self._diverged:
            return True
        new, kept = self._settled(there, [(line.version.version, line.version)])
        for version in new.values():
            persona.put(version)
        if kept:
            self._diverged.add(line.owner)
        return bool(kept)

    def _states(self, owner: str, lines: Sequence[StateLine]) -> int:
        table = RecordStates(self._file, owner)
        there = table.get([one.state.record for one in lines])
        schemas = {name: one.schema for name, one in there.items()}
        states = [one.state._replace(schema=schemas.get(one.state.record, "")) for one in lines]
        new, kept = self._settled(there, [(one.record, one) for one in states])
        table.put(new.values())
        return kept

    def _links(self, owner: str, lines: Sequence[LinkLine]) -> int:
        table = RecordLinks(self._file, owner)
        tied = table.neighbours({one.record for one in lines})
        there = {(one, two): weight for one, ends in tied.items() for two, weight in ends.items()}
        new, kept = self._settled(there, [((one.record, one.other), one.weight) for one in lines])
        table.put((one, two, weight) for (one, two), weight in new.items())
        return kept

    def _matters(self, owner: str, lines: Sequence[MatterLine]) -> int:
        table = Matters(self._file, owner)
        there = table.get([one.record for one in lines])
        notes = [MatterNote(one.record, one.matter, one.said_at, one.yields_to) for one in lines]
        new, kept = self._settled(there, [(one.record, one) for one in notes])
        table.put(new.values())
        return kept

    def _settled(
        self, there: Mapping[_KeyT, _LineT], lines: Iterable[tuple[_KeyT, _LineT]]
    ) -> tuple[dict[_KeyT, _LineT], int]:
        """What is new or to replace what is there, and how often the latter stays instead."""
        new, kept = dict[_KeyT, _LineT](), 0
        for key, now in lines:
            before = new.get(key, there.get(key))
            if before is None or (self._take and before != now):
                new[key] = now
            else:
                kept += before != now
        return new, kept
