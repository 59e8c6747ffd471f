"""What a sleep takes on disk: its rate and its memory, for a tenth of the records and for all.

Filling and sleeping are done by processes of their own, so that the memory of one is not that of
the other. The first sleep meets records that have no state; the second comes half a year later,
when most of them fade into the archive.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random

import psutil

from benchmarks._machine import apart
from coag.memory import LongTermMemory
from coag.memory.consolidation import sleep
from coag.memory.dynamics import DYNAMICS_FILE, MemoryDynamics, MemoryDynamicsSettings
from coag.schema import Record
from coag.store import open_store

from ._contender import Looped, SetClock, record_of
from ._phrases import record_text
from ._printing import machine, print_table, progress
from ._scale import BATCH

_SCOPE = "sleep"
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_AGES = {"records without states": 1.0, "half a year later": 200.0}
"""Days after the first record at which it sleeps."""
_EVERY = 0.02
"""Seconds between two looks at the memory of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slept:
    """What one sleep took."""

    records: int
    sleep: str
    preset: str
    archived: int
    seconds: float
    before_mb: float
    """Memory of the process that opened the folder, before it sleeps."""
    more_mb: float
    """Its largest growth while it slept."""


def measure_sleep(records: int, seed: int, preset: str, *, as_json: bool) -> None:
    """Measures and prints."""
    found = [one for many in (records // 10, records) for one in _slept(many, seed, preset)]
    if as_json:
        print(json.dumps({"machine": machine(), "sleeps": [asdict(one) for one in found]}))
        return
    print(f"{preset}, a Chroma folder; {machine()}\n")
    heads = ("records", "sleep", "archived", "s", "records/s", "MB before", "more at its peak MB")
    rows = [
        (
            f"{one.records:,}",
            one.sleep,
            f"{one.archived:,}",
            f"{one.seconds:.1f}",
            f"{one.records / one.seconds:,.0f}",
            f"{one.before_mb:.0f}",
            f"{one.more_mb:.0f}",
        )
        for one in found
    ]
    print_table(heads, rows)


def _slept(records: int, seed: int, preset: str) -> Iterator[Slept]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        apart(_fill, folder, records, seed)
        for name in _AGES:
            slept = apart(_sleep, folder, records, preset, name)
            progress(f"{records:,} {name}: {slept.seconds:.1f} s")
            yield slept


def _fill(folder: str, records: int, seed: int) -> None:
    loop, store = Looped(), open_store(Path(folder) / "records")
    made = (_record(at, seed) for at in range(records))
    while some := list(islice(made, BATCH)):
        loop.run(store.add(some))
    loop.run(store.close())
    loop.end()


def _record(at: int, seed: int) -> Record:
    text = f"{record_text(at, Random(f'{seed} {at}'))} ({at})"
    return record_of(_SCOPE, text, _BEGIN + timedelta(seconds=at % 60))


def _sleep(folder: str, records: int, preset: str, name: str) -> Slept:
    loop, place = Looped(), Path(folder)
    clock = SetClock(_BEGIN + timedelta(days=_AGES[name]))
    dynamics = MemoryDynamics(
        MemoryDynamicsSettings.preset(preset), path=place / DYNAMICS_FILE, owner=_SCOPE, clock=clock
    )
    store = open_store(place / "records")
    memory = LongTermMemory(store, scope=_SCOPE, clock=clock, dynamics=dynamics)
    loop.run(memory.recall("Is this open?"))  # so that the indexes are in memory before
    with _watched() as sizes:
        began = time.perf_counter()
        loop.run(sleep(memory))
        seconds = time.perf_counter() - began
    archived = dynamics.archive.count()
    loop.run(memory.close())
    loop.end()
    return Slept(
        records=records,
        sleep=name,
        preset=preset,
        archived=archived,
        seconds=seconds,
        before_mb=sizes[0],
        more_mb=max(sizes) - sizes[0],
    )


@contextmanager
def _watched() -> Generator[list[float]]:
    """The memory of this process in MB, again and again."""
    process, done = psutil.Process(), threading.Event()
    sizes = [process.memory_info().rss / 1e6]

    def look() -> None:
        while not done.wait(_EVERY):
            sizes.append(process.memory_info().rss / 1e6)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield sizes
    finally:
        done.set()
        looking.join()
