"""Whose dynamics are in a file, and how each was last set: so that others can open it rightly."""

from __future__ import annotations

from pydantic import ValidationError

from coag.errors import ConfigurationError

from .file import DynamicsFile
from .settings import MemoryDynamicsSettings

_SCHEMA = """
CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, settings TEXT NOT NULL) WITHOUT ROWID
"""


def note_owner(file: DynamicsFile, owner: str, settings: MemoryDynamicsSettings) -> None:
    """Notes how the dynamics of an owner are set; writes only what is new."""
    file.create(_SCHEMA)
    content = settings.model_dump_json()
    rows = file.rows("SELECT settings FROM owners WHERE owner = ?", owner)
    if not rows or rows[0]["settings"] != content:
        file.write("INSERT OR REPLACE INTO owners VALUES (?, ?)", [(owner, content)])


def owners_of(file: DynamicsFile) -> dict[str, MemoryDynamicsSettings]:
    """The owners of a file with the settings that they had last, by name.

    Raises:
        ConfigurationError: Settings cannot be read, as those of a newer version.
    """
    file.create(_SCHEMA)
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
