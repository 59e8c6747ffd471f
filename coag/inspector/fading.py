"""The memory of an agent as it is now: what faded and why, and how its personality changed.

A trace holds what a run recalled. What faded is not recalled, so this is read from the file of
the dynamics beside the records, which is never changed.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coag.errors import ConfigurationError
from coag.memory.dynamics import (
    DAY,
    DYNAMICS_FILE,
    ArchiveEntry,
    DynamicsFile,
    MemoryArchive,
    MemoryDynamicsSettings,
    Persona,
    PersonaVersion,
    RecordState,
    RecordStates,
    Traits,
    moment_of,
    owners_of,
    strength_now,
    why_kept,
)
from coag.schema import Record

NO_DYNAMICS = (
    "No memory is inspected. Name the folder that the agent was given as memory=, and whose "
    "memory has dynamics: coag inspect --memory FOLDER."
)
_MOST = 100
"""Faded records of one owner that are shown, the latest first."""
_POINTS = 48
"""Of a curve."""
_REASONS = {
    "perspective": "archived: what several witnesses tell of it took its place",
    "by_hand": "archived by hand",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FadedRow:
    """A record that one owner no longer recalls."""

    id: str
    record: Record | None
    """As it is in the archive; None where others still recall it, so that the store has it."""
    why: str
    at: datetime
    """When it left recall."""
    strength: float | None
    """At that time; None where nothing is known of it."""
    floor: float
    """The strength below which records fade."""
    curve: tuple[tuple[float, float], ...] = ()
    """Days since the last use, and the strength then, up to the day on which it left recall."""
    gist: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerView:
    """What became of the memory and the personality of one owner."""

    owner: str
    states: int
    """Records that have a state."""
    faded: tuple[FadedRow, ...]
    persona: tuple[tuple[PersonaVersion, datetime | None], ...] = ()
    """The versions and when each came, the oldest first; version 0 is that of the settings.
    Empty where these have no personality."""
    holds: int = 0
    """The version of it that holds now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryView:
    """The memory in one folder."""

    folder: str
    owners: tuple[OwnerView, ...]


class MemoryReader:
    """Reads the file of the dynamics in a memory's folder.

    Args:
        folder: What the agent was given as `memory=`; None for none.

    Raises:
        ConfigurationError: There are no dynamics in the folder.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder.expanduser() / DYNAMICS_FILE
        if self._path is not None and not self._path.is_file():
            raise ConfigurationError(
                f"The memory at {str(folder)!r} has no dynamics: there is no {DYNAMICS_FILE}. An "
                "agent makes it that was given memory_dynamics=, e.g. 'assistant'."
            )

    @property
    def there(self) -> bool:
        """Whether there is a memory to show."""
        return self._path is not None

    def view(self) -> MemoryView:
        """The memory as it is now.

        Raises:
            ConfigurationError: No memory was named, or its settings cannot be read.
            RecordStoreError: The file cannot be read, or an archived record is damaged.
        """
        if self._path is None:
            raise ConfigurationError(NO_DYNAMICS)
        with closing(DynamicsFile(self._path, read_only=True)) as file:
            owners = tuple(_owner(file, name, how) for name, how in owners_of(file).items())
        return MemoryView(folder=str(self._path.parent), owners=owners)


def _owner(file: DynamicsFile, name: str, settings: MemoryDynamicsSettings) -> OwnerView:
    states = RecordStates(file, name)
    persona = Persona(file, name, settings.traits or Traits())
    later = [(one, moment_of(one.at)) for one in persona.versions()]
    first = PersonaVersion(version=0, at=0.0, traits=persona.initial, state="applied")
    applied = [one.version for one, _ in later if one.state == "applied"]
    return OwnerView(
        owner=name,
        states=states.count(),
        faded=_faded(states, MemoryArchive(file), settings),
        persona=((first, None), *later) if later or settings.traits is not None else (),
        holds=applied[-1] if applied else 0,
    )


def _faded(
    states: RecordStates, archive: MemoryArchive, settings: MemoryDynamicsSettings
) -> tuple[FadedRow, ...]:
    hidden = states.find("faded_at IS NOT NULL ORDER BY faded_at DESC, record LIMIT ?", _MOST)
    entries = {one.record: one for one in archive.entries(most=_MOST) if one.owner == states.owner}
    records = archive.peek({*entries, *(one.record for one in hidden)})
    known = {one.record: one for one in hidden} | states.get(list(entries))
    rows = [
        _row(name, known.get(name), entries.get(name), records.get(name), settings)
        for name in dict.fromkeys([*known, *entries])
    ]
    return tuple(sorted(rows, key=lambda row: row.at, reverse=True)[:_MOST])


def _row(
    name: str,
    state: RecordState | None,
    entry: ArchiveEntry | None,
    record: Record | None,
    settings: MemoryDynamicsSettings,
) -> FadedRow:
    times = (state.faded_at if state else None, entry.archived_at if entry else None)
    at = next(one for one in times if one is not None)
    reason = _REASONS.get(entry.reason) if entry else None
    if reason is None:
        reason = "faded" if state is None else why_kept(state, at, settings)
    return FadedRow(
        id=name,
        record=record,
        why=reason,
        at=moment_of(at),
        strength=None if state is None else strength_now(state, at, settings),
        floor=settings.forgetting.floor if settings.forgetting else 0.0,
        curve=() if state is None else _curve(state, at, settings),
        gist=None if state is None else state.gist,
    )


def _curve(
    state: RecordState, end: float, settings: MemoryDynamicsSettings
) -> tuple[tuple[float, float], ...]:
    step = max(end - state.used_at, DAY) / (_POINTS - 1)
    return tuple(
        (n * step / DAY, strength_now(state, state.used_at + n * step, settings))
        for n in range(_POINTS)
    )
