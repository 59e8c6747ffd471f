"""A world on disk: the whole of it, replaced at once after every change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from vacuum_world.errors import StateFileError
from vacuum_world.world import Value, WorldState

from ._tokens import Tokens


class KeptWorld(Value):
    """Everything a server needs to come back as it was."""

    version: Literal[1] = 1
    """Version of this format."""
    world: WorldState
    """The world, its log included."""
    tokens: Tokens
    """Hashes of the tokens in force."""


class StateFile:
    """Where a world is kept.

    The file is replaced, never rewritten in place: whoever is killed at any moment leaves either
    the old world or the new one. It is as safe as a process kill demands, not a power loss.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> KeptWorld | None:
        """The kept world, or None where nothing is kept yet.

        Raises:
            StateFileError: The file holds something else.
            OSError: It cannot be read.
        """
        try:
            return KeptWorld.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]["msg"]
            raise StateFileError(str(self._path), first) from error

    def save(self, kept: KeptWorld) -> None:
        """Replace what is kept.

        Raises:
            OSError: It cannot be written; the old content stands.
        """
        beside = self._path.with_name(f".{self._path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(kept.model_dump_json())
        beside.replace(self._path)
