"""What the dynamics of memory cost: recall and writes beside a plain memory, and a sleep.

The memories take turns at every question and every write, so that other work of the machine affects
all alike; what counts are the ratios to the plain one.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks._machine import peak
from coag.memory import LongTermMemory, ToRemember
from coag.memory.consolidation import sleep
from coag.memory.dynamics import DYNAMICS_FILE, MemoryDynamics, MemoryDynamicsSettings
from coag.schema import MemoryKind
from coag.store import InMemoryStore, open_store

from ._contender import Looped, said_by
from ._metrics import percentile
from ._phrases import record_question, record_text
from ._printing import machine, print_table, progress
from ._scale import BATCH, NEAREST

MEMORIES = ("plain", "assistant", "companion")
_SCOPE = "cost"
_ORIGIN = said_by("the user", run="cost")
_SINGLY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one memory took."""

    name: str
    filled: float
    """Records in a second, in batches."""
    written: float
    """Seconds of one record written alone, in the middle of all (p50)."""
    p50: float
    """Seconds of a recall."""
    p95: float
    slept: float = 0.0
    """Seconds of a sleep over all records; 0 for a plain memory."""
    peak_mb: float = 0.0
    """What a sleep added to the largest memory of the process."""


class _Costed(Looped):
    """A memory over a store of its own, its dynamics where its records are: on disk or in RAM."""

    def __init__(self, name: str, folder: Path, on_disk: bool) -> None:
        super().__init__()
        folder.mkdir()
        store = open_store(folder / "records") if on_disk else InMemoryStore()
        file = folder / DYNAMICS_FILE if on_disk else None
        settings = MemoryDynamicsSettings.preset(name)
        plain = settings.is_plain
        dynamics = None if plain else MemoryDynamics(settings, path=file, owner=_SCOPE)
        self.name = name
        self.memory = LongTermMemory(store, scope=_SCOPE, dynamics=dynamics)

    async def _all(self, texts: Sequence[str]) -> None:
        wishes = [
            ToRemember(kind=MemoryKind.EPISODIC, text=text, provenance=_ORIGIN) for text in texts
        ]
        async for _ in self.memory.remember_all(wishes, batch=BATCH):
            pass

    def fill(self, texts: Sequence[str]) -> float:
        began = time.perf_counter()
        self.run(self._all(texts))
        return time.perf_counter() - began

    def write(self, text: str) -> float:
        began = time.perf_counter()
        self.run(self.memory.remember(MemoryKind.EPISODIC, text, provenance=_ORIGIN))
        return time.perf_counter() - began

    def recall(self, question: str) -> float:
        began = time.perf_counter()
        self.run(self.memory.recall(question, k=NEAREST))
        return time.perf_counter() - began

    def sleep(self) -> tuple[float, float]:
        """Sleeps; the seconds it takes, and what it adds to the peak of the process."""
        if self.memory.dynamics is None:
            return 0.0, 0.0
        before, began = peak(), time.perf_counter()
        self.run(sleep(self.memory))
        return time.perf_counter() - began, peak() - before

    def close(self) -> None:
        self.run(self.memory.close())
        self.end()


def measure_cost(
    records: int, queries: int, seed: int, only: Sequence[str], *, on_disk: bool, as_json: bool
) -> None:
    """Measures and prints."""
    names = [MEMORIES[0], *(one for one in MEMORIES[1:] if any(word in one for word in only))]
    texts = [record_text(at, random.Random(f"{seed} {at}")) for at in range(records + _SINGLY)]
    rng = random.Random(seed)
    asked = [record_question(rng.choice(texts[:records]), rng) for _ in range(queries)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        memories = [_Costed(name, Path(place) / name, on_disk) for name in names]
        costs = _measured(memories, texts[:records], texts[records:], asked)
    if as_json:
        print(json.dumps({"machine": machine(), "costs": [asdict(one) for one in costs]}, indent=2))
        return
    where = "a Chroma folder" if on_disk else "RAM"
    print(f"{records:,} records in {where}, {queries:,} questions; {machine()}\n")
    _print(costs, records)


def _measured(
    memories: Sequence[_Costed], texts: Sequence[str], further: Sequence[str], asked: Sequence[str]
) -> list[Cost]:
    filling = dict.fromkeys((one.name for one in memories), 0.0)
    for begin in range(0, len(texts), BATCH):
        for one in memories:
            filling[one.name] += one.fill(texts[begin : begin + BATCH])
    progress("filled")
    written = {one.name: list[float]() for one in memories}
    for text in further:
        for one in memories:
            written[one.name].append(one.write(text))
    for one in memories:
        one.recall("Is this open?")
    recalled = {one.name: list[float]() for one in memories}
    for question in asked:
        for one in memories:
            recalled[one.name].append(one.recall(question))
    progress("asked")
    slept = {one.name: one.sleep() for one in memories}
    for one in memories:
        one.close()
    return [
        Cost(
            name=name,
            filled=len(texts) / filling[name],
            written=percentile(written[name], 0.5),
            p50=percentile(seconds, 0.5),
            p95=percentile(seconds, 0.95),
            slept=slept[name][0],
            peak_mb=slept[name][1],
        )
        for name, seconds in recalled.items()
    ]


def _print(costs: Sequence[Cost], records: int) -> None:
    plain = costs[0]
    heads = ("memory", "recall p50 ms", "x plain", "p95 ms", "write p50 ms", "x plain")
    heads += ("filled/s", "x plain", "sleep, records/s", "more at its peak MB")
    rows = [
        (
            one.name,
            f"{1e3 * one.p50:.2f}",
            f"{one.p50 / plain.p50:.2f}",
            f"{1e3 * one.p95:.2f}",
            f"{1e3 * one.written:.2f}",
            f"{one.written / plain.written:.2f}",
            f"{one.filled:,.0f}",
            f"{plain.filled / one.filled:.2f}",
            f"{records / one.slept:,.0f}" if one.slept else "-",
            f"{one.peak_mb:.0f}" if one.slept else "-",
        )
        for one in costs
    ]
    print_table(heads, rows)
