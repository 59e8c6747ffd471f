"""Memories that sleep: over a store in RAM, with a clock that a test moves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kits.brains import brain, respond
from kits.remembered import START, remembered

from coag import CoagAgent
from coag.errors import RecordStoreError
from coag.memory import LongTermMemory, Scopes, said_by_person
from coag.memory.consolidation import SleepReport
from coag.memory.consolidation.sleep import StepReport
from coag.memory.dynamics import (
    Appraise,
    MemoryDynamics,
    MemoryDynamicsSettings,
    Preset,
    RecordState,
)
from coag.schema import MemoryKind, Record
from coag.store import HashEmbedder, InMemoryStore, RecordStore, WrappedStore
from coag.tracing import Recipe

LONG = (
    "On Monday Ann promised to bring the red ladder back by 5 May. "
    + "Then they talked for a while about this and that and about the weather too. " * 5
    + "The ladder belongs to Bob."
)
"""More words than a gist may have."""


class Calendar:
    """A clock that only moves when a test lets days pass."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at
        self.seconds = 0.0

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.seconds

    def passes(self, days: float) -> None:
        self.at += timedelta(days=days)


class FragileStore(WrappedStore):
    """A store that loses no record while it is `broken`, and keeps the sizes of what it reads."""

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self.broken = False
        self.largest = 0

    async def delete(self, ids: Sequence[str]) -> list[str]:
        if self.broken:
            raise RecordStoreError("The disk is full.")
        return await super().delete(ids)

    async def get(self, ids: Sequence[str]) -> list[Record]:
        self.largest = max(self.largest, len(ids))
        return await super().get(ids)


def sleeper(
    store: RecordStore | None = None,
    *,
    settings: MemoryDynamicsSettings | Preset = "assistant",
    scope: str | Scopes = "alice",
    owner: str = "alice",
    path: Path | None = None,
    clock: Calendar | None = None,
    appraise: Appraise | None = None,
) -> LongTermMemory:
    """A memory with dynamics."""
    now = clock or Calendar()
    own = InMemoryStore(HashEmbedder()) if store is None else store
    dynamics = MemoryDynamics(settings, path=path, owner=owner, clock=now, appraise=appraise)
    return LongTermMemory(own, scope=scope, clock=now, dynamics=dynamics)


def dynamics_of(memory: LongTermMemory) -> MemoryDynamics:
    assert memory.dynamics is not None
    return memory.dynamics


def state_in(memory: LongTermMemory, record: Record) -> RecordState:
    """What the dynamics of a memory know of a record."""
    return dynamics_of(memory).states.get([record.id])[record.id]


def step_of(report: SleepReport, name: str) -> StepReport:
    return next(one for one in report.steps if one.step == name)


async def note(memory: LongTermMemory, text: str, **more: Any) -> Record:
    """Remembers what Ann said happened."""
    said: dict[str, Any] = {"provenance": said_by_person("ann"), **more}
    return (await memory.remember(MemoryKind.EPISODIC, text, **said)).record


async def fill(
    memory: LongTermMemory, count: int, text: str = "event number {}", **fields: Any
) -> list[Record]:
    """Records that no dynamics know yet, as those of an older version."""
    records = [remembered(text.format(number), **fields) for number in range(count)]
    await memory.store.add(records)
    return records


async def everything(memory: LongTermMemory) -> dict[str, Any]:
    """All that a memory and its dynamics hold, to be compared."""
    dynamics = dynamics_of(memory)
    tables = [row["name"] for row in dynamics.file.rows(_TABLES)]
    held: dict[str, Any] = {
        name: [tuple(row) for row in dynamics.file.rows(f"SELECT * FROM {name}")] for name in tables
    }
    held["records"] = [one async for batch in memory.store.scan() for one in batch]
    held["states"] = [one for batch in dynamics.states.scan() for one in batch]
    return held


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"


async def in_store(memory: LongTermMemory) -> set[str]:
    """Ids of the records that recall could find."""
    return {one.id async for batch in memory.store.scan() for one in batch}


def rehydrating(folder: str, name: str) -> CoagAgent:
    """An agent with memory and runs in a folder that asks for a record word for word."""
    wish = ("rehydrate_memory", json.dumps({"id": name}))
    return CoagAgent(
        "scout",
        brain(wish, respond()),
        memory=Path(folder) / "memory",
        memory_dynamics="assistant",
        proposal="json",
        logs=Path(folder) / "runs",
        recipe=Recipe(
            factory="kits.sleepers:rehydrating", arguments={"folder": folder, "name": name}
        ),
    )


async def counted(memory: LongTermMemory) -> int:
    return sum([await memory.store.count(kind) for kind in MemoryKind])
