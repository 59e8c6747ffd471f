"""The dynamics of one memory: what `LongTermMemory` asks at each write, recall and removal."""

from __future__ import annotations

import random
from pathlib import Path

from coag.schema import Clock, SystemClock

from .archive import MemoryArchive
from .file import DynamicsFile
from .links import RecordLinks
from .schemas import SchemaClusters
from .settings import MemoryDynamicsSettings, Preset
from .states import RecordStates


class MemoryDynamics:
    """How the memory of one owner changes with time, mood and use.

    Args:
        settings: The mechanisms, or the name of a preset: `assistant`, `companion`, `npc`, `plain`.
        path: The file in which it rests; None for RAM. Several owners may share one.
        owner: Whose dynamics these are, e.g. the agent's name.
        clock: Tells the time of everything that ages.

    Raises:
        ConfigurationError: There is no such preset.
        RecordStoreError: The file cannot be opened.
    """

    def __init__(
        self,
        settings: MemoryDynamicsSettings | Preset = "assistant",
        *,
        path: Path | str | None = None,
        owner: str = "agent",
        clock: Clock | None = None,
    ) -> None:
        preset = isinstance(settings, str)
        self.settings = MemoryDynamicsSettings.preset(settings) if preset else settings
        self.owner = owner
        self.clock: Clock = clock or SystemClock()
        self.file = DynamicsFile(None if path is None else Path(path))
        self.states = RecordStates(self.file, owner)
        self.archive = MemoryArchive(self.file)
        linked = self.settings.links
        self.links = None if linked is None else RecordLinks(self.file, owner, linked)
        """What ties records that were recalled together; None where that is off."""
        self.schemas = SchemaClusters(self.file, owner)
        self.random = random.Random(self.settings.seed)

    def close(self) -> None:
        """Lets go of the file; closing twice does no harm."""
        self.file.close()
