"""The histories of procedures as one process holds them, and the file where they rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from coag.schema import Clock

from ._file import alone_with, read_histories, write_histories
from ._history import Histories, merged, seeded
from ._procedure import Procedure

_T = TypeVar("_T")


class KeptHistories:
    """All histories, and a file between sessions that other processes may write too.

    Args:
        procedures: The developer's procedures by name.
        path: The file; None keeps the histories in memory only.
        clock: Tells when the first versions were made.

    Raises:
        ConfigurationError: If the file holds something else.
        RecordStoreError: If the file cannot be read.
    """

    def __init__(
        self, procedures: Mapping[str, Procedure], path: Path | None, clock: Clock
    ) -> None:
        self._procedures = procedures
        self._path = path
        self._clock = clock
        self._held = seeded(self._stored() or Histories(), procedures, clock.now())

    @property
    def held(self) -> Histories:
        """The histories as they were last seen or kept."""
        return self._held

    def change(self, by: Callable[[Histories], tuple[Histories, _T]]) -> _T:
        """Changes what stands now, with no other process between the look and the keeping.

        Args:
            by: Gives the new histories and what to tell of them.

        Raises:
            RecordStoreError: If they cannot be saved; nothing is changed then.
        """
        with alone_with(self._path):
            stored = self._stored()
            if stored is not None:
                self._held = merged(self._held, stored, str(self._path))
            held, told = by(self._held)
            if self._path is not None and held is not self._held:
                write_histories(self._path, held)
            self._held = held
        return told

    def load(self, histories: Histories) -> None:
        """Goes on from these; versions that the file holds beyond them are kept.

        Raises:
            ConfigurationError: If the file tells another story.
        """
        stored = self._stored()
        if stored is not None:
            histories = merged(histories, stored, str(self._path))
        self._held = seeded(histories, self._procedures, self._clock.now())

    def _stored(self) -> Histories | None:
        return None if self._path is None else read_histories(self._path)
