"""Whose dynamics are in a file, how each was last set, and the versions of a personality.

A proposal (`aging.persona_proposals`) takes effect when it is applied. Nothing is overwritten: the
way back is a version, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import ValidationError

from coag.errors import ConfigurationError
from coag.schema import Value

from .aging import TraitChange
from .file import DynamicsFile
from .settings import MemoryDynamicsSettings, Traits

_SCHEMA = """
CREATE TABLE IF NOT EXISTS personas (
  owner TEXT NOT NULL, version INTEGER NOT NULL, content TEXT NOT NULL,
  PRIMARY KEY (owner, version)
) WITHOUT ROWID
"""


class PersonaVersion(Value):
    """One version of a personality."""

    version: int
    """From 1; the settings' traits are version 0."""
    at: float
    """POSIX seconds."""
    traits: Traits
    """The whole personality, as it is or would be."""
    changes: tuple[TraitChange, ...] = ()
    """What led to it; empty for one that a person set or went back to."""
    reason: str = ""
    state: Literal["proposed", "applied", "refused"] = "proposed"


class Persona:
    """The versions of one owner's personality."""

    def __init__(self, file: DynamicsFile, owner: str, initial: Traits) -> None:
        self.file = file
        self.owner = owner
        self.initial = initial
        file.create(_SCHEMA)

    @property
    def traits(self) -> Traits:
        """The personality that holds: that of the last version that was applied."""
        query = (
            "SELECT content FROM personas WHERE owner = ? "
            "AND json_extract(content, '$.state') = 'applied' ORDER BY version DESC LIMIT 1"
        )
        rows = self.file.rows(query, self.owner)
        return _version_of(rows[0]["content"]).traits if rows else self.initial

    def versions(self) -> tuple[PersonaVersion, ...]:
        """All versions, the oldest first."""
        query = "SELECT content FROM personas WHERE owner = ? ORDER BY version"
        return tuple(_version_of(row["content"]) for row in self.file.rows(query, self.owner))

    def propose(
        self, changes: Sequence[TraitChange], *, at: float, apply: bool = False
    ) -> PersonaVersion:
        """Notes a proposal; it takes effect where it is applied.

        Raises:
            ValueError: There is no change in it.
        """
        if not changes:
            raise ValueError("There is no change to propose; give at least one.")
        with self.file.transaction():
            traits = self._changed(changes)
            reason = "; ".join(f"{change.trait}: {change.reason}" for change in changes)
            return self._add(at, traits, "applied" if apply else "proposed", reason, changes)

    def apply(self, version: int) -> PersonaVersion:
        """Lets a proposal take effect.

        What it changes is changed of what holds now; further proposals stay as they are.

        Raises:
            LookupError: There is no such version, or it is no proposal.
        """
        with self.file.transaction():
            found = self._proposal(version)
            update = {"state": "applied", "traits": self._changed(found.changes)}
            return self.put(found.model_copy(update=update))

    def refuse(self, version: int) -> PersonaVersion:
        """Turns a proposal down; it is kept as refused.

        Raises:
            LookupError: There is no such version, or it is no proposal.
        """
        with self.file.transaction():
            return self.put(self._proposal(version).model_copy(update={"state": "refused"}))

    def roll_back(self, version: int, *, at: float, reason: str = "") -> PersonaVersion:
        """Makes an earlier version, 0 for the settings', hold again, as a new one; `at` in POSIX s.

        Raises:
            LookupError: There is no such version, or it never held.
        """
        with self.file.transaction():
            traits = self.initial if version == 0 else self._version(version).traits
            if version and self._version(version).state != "applied":
                raise LookupError(f"Version {version!r} of {self.owner!r} never held.")
            why = reason or f"Back to version {version}."
            return self._add(at, traits, "applied", why)

    def _add(
        self,
        at: float,
        traits: Traits,
        state: Literal["proposed", "applied"],
        reason: str,
        changes: Sequence[TraitChange] = (),
    ) -> PersonaVersion:
        query = "SELECT COALESCE(MAX(version), 0) + 1 AS n FROM personas WHERE owner = ?"
        number = int(self.file.rows(query, self.owner)[0]["n"])
        new = PersonaVersion(
            version=number,
            at=at,
            traits=traits,
            changes=tuple(changes),
            reason=reason,
            state=state,
        )
        return self.put(new)

    def put(self, version: PersonaVersion) -> PersonaVersion:
        """Writes a version as it is, in place of the one with its number."""
        row = (self.owner, version.version, version.model_dump_json())
        self.file.write("INSERT OR REPLACE INTO personas VALUES (?, ?, ?)", [row])
        return version

    def _changed(self, changes: Sequence[TraitChange]) -> Traits:
        """The personality that holds, with some traits as they are to be."""
        after = {change.trait: change.after for change in changes}
        return Traits.model_validate(self.traits.model_dump() | after)

    def _proposal(self, version: int) -> PersonaVersion:
        found = self._version(version)
        if found.state != "proposed":
            raise LookupError(f"Version {version!r} of {self.owner!r} is {found.state} already.")
        return found

    def _version(self, version: int) -> PersonaVersion:
        query = "SELECT content FROM personas WHERE owner = ? AND version = ?"
        rows = self.file.rows(query, self.owner, version)
        if not rows:
            raise LookupError(f"There is no version {version!r} of {self.owner!r}'s personality.")
        return _version_of(rows[0]["content"])


def _version_of(content: str) -> PersonaVersion:
    return PersonaVersion.model_validate_json(content)


# ---- The owners of a file: so that others can open it rightly ----

_OWNERS = """
CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, settings TEXT NOT NULL) WITHOUT ROWID
"""


def note_owner(file: DynamicsFile, owner: str, settings: MemoryDynamicsSettings) -> None:
    """Notes how the dynamics of an owner are set; writes only what is new."""
    file.create(_OWNERS)
    content = settings.model_dump_json()
    rows = file.rows("SELECT settings FROM owners WHERE owner = ?", owner)
    if not rows or rows[0]["settings"] != content:
        file.write("INSERT OR REPLACE INTO owners VALUES (?, ?)", [(owner, content)])


def owners_of(file: DynamicsFile) -> dict[str, MemoryDynamicsSettings]:
    """The owners of a file with the settings that they had last, by name.

    Raises:
        ConfigurationError: Settings cannot be read, as those of a newer version.
    """
    file.create(_OWNERS)
    found: dict[str, MemoryDynamicsSettings] = {}
    for row in file.rows("SELECT owner, settings FROM owners ORDER BY owner"):
        try:
            found[row["owner"]] = MemoryDynamicsSettings.model_validate_json(row["settings"])
        except ValidationError as error:
            raise ConfigurationError(
                f"The settings of the dynamics of {row['owner']!r} in {str(file.path)!r} cannot be "
                f"read: {error}. Open them with the version of coag that wrote them."
            ) from error
    return found
