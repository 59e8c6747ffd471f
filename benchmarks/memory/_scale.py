"""How fast memories take many records in, how fast they answer then, and what they need.

Every phase has a process of its own, so that memory and caches are its own too.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks._machine import apart, peak
from coag.memory import LongTermMemory
from coag.schema import Event, MemoryKind, Record
from coag.store import DEFAULT_RANKING, Embedder, Ranking, open_store

from ._contender import Item, Looped, record_of
from ._metrics import mean, percentile
from ._others import AutoGenMemory, BareChroma, Vectors, embedder_named
from ._phrases import SPEAKERS, record_question, record_text
from ._printing import machine, percent, print_table, progress

OURS, DENSE, BARE, AUTOGEN = "coag", "coag, dense alone", "Chroma", "ChromaDBVectorMemory"
BATCH = 2_000
"""Records in a call."""
NEAREST = 10
_ONE_BY_ONE = 200
"""Records that are written one at a time, after the others."""
_TOLERANCE = 1e-5
"""Cosines that differ by less are alike: near ties are nobody's mistake."""
_SCOPE = "scale"
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_PER_EPISODE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What is measured: so many records of a seed."""

    records: int
    queries: int
    seed: int
    embedder: str | None
    """As `package.module:callable`; None for the default."""

    def text(self, number: int) -> str:
        """The text of a record; always the same for its number."""
        return record_text(number, random.Random(f"{self.seed} {number}"))

    def questions(self) -> list[tuple[int, str]]:
        """Which records are asked for, and how."""
        rng = random.Random(self.seed)
        numbers = rng.sample(range(self.records), min(self.queries, self.records))
        return [(number, record_question(self.text(number), rng)) for number in numbers]

    def blocks(self) -> Iterator[range]:
        """The numbers of all records, batch by batch."""
        for begin in range(0, self.records, BATCH):
            yield range(begin, min(begin + BATCH, self.records))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What filling took."""

    a_second: float
    last_a_second: float
    """The same over the last batches, a tenth of all: what a full store still takes."""
    one_by_one: float
    """Records in a second, written one at a time after the others."""
    peak_mb: float
    """Largest memory of the process."""
    disk_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What asking took and gave."""

    opened: float
    """Seconds from opening to the first answer."""
    p50: float
    p95: float
    found: float
    """Share of the questions that brought the record they were made of among the first ten."""
    nearest: float
    """Share of the answers that are as near to the question as the ten nearest are."""
    rss_mb: float
    """Memory of the process after the last question."""


class OurScale(Looped):
    """Records in a Chroma folder of ours."""

    def __init__(self, folder: Path, embedder: Embedder | None, ranking: Ranking | None) -> None:
        super().__init__()
        self._store = open_store(folder, embedder=embedder)
        self._memory = LongTermMemory(self._store, scope=_SCOPE, ranking=ranking)

    def add(self, turns: Sequence[Item]) -> None:
        """All in one call."""
        self.run(self._store.add([_record(int(name), text) for name, text, _ in turns]))

    def query(self, text: str, k: int) -> list[str]:
        """What is recalled, best first."""
        found = self.run(self._memory.recall(text, kind=MemoryKind.EPISODIC, k=k))
        return [str(hit.record.metadata["turn"]) for hit in found.records]

    def close(self) -> None:
        """Releases the store."""
        self.run(self._memory.close())
        self.end()


def opened(name: str, folder: Path, size: Size) -> OurScale | BareChroma | AutoGenMemory:
    """A contender on its folder."""
    embedder = embedder_named(size.embedder)
    if name in (OURS, DENSE):
        return OurScale(folder, embedder, DEFAULT_RANKING if name == OURS else None)
    if name == BARE:
        return BareChroma(folder, Vectors(embedder))
    return AutoGenMemory(folder, Vectors(embedder), NEAREST)


def fill(name: str, folder: Path, size: Size) -> Filled:
    """Fills a folder, in a process of its own."""
    memory = opened(name, folder, size)
    memory.add(_items(size, range(size.records, size.records + 1)))  # what is loaded once
    taken: list[tuple[int, float]] = []
    shown = time.monotonic()
    for numbers in size.blocks():
        items = _items(size, numbers)
        began = time.perf_counter()
        memory.add(items)
        taken.append((len(items), time.perf_counter() - began))
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            progress(f"{name}: {numbers.stop:,} of {size.records:,} records")
    last = taken[-max(1, len(taken) // 10) :]
    begin = size.records + 1
    one_by_one = _written_singly(memory, size, range(begin, begin + _ONE_BY_ONE))
    most = peak()
    memory.close()
    return Filled(
        a_second=_rate(taken),
        last_a_second=_rate(last),
        one_by_one=one_by_one,
        peak_mb=most,
        disk_mb=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6,
    )


def write_singly(name: str, folder: Path, size: Size) -> float:
    """Records in a second, one at a time, in a process of its own."""
    memory = opened(name, folder, size)
    memory.query("Is this open?", NEAREST)
    begin = size.records + 1 + _ONE_BY_ONE
    return _written_singly(memory, size, range(begin, begin + _ONE_BY_ONE))


def ask(name: str, folder: Path, size: Size, nearest: Sequence[float]) -> Asked:
    """Opens a folder and asks, in a process of its own."""
    questions = size.questions()
    began = time.perf_counter()
    memory = opened(name, folder, size)
    memory.query("Is this open?", NEAREST)
    first = time.perf_counter() - began
    seconds: list[float] = []
    answers: list[list[str]] = []
    for _, question in questions:
        began = time.perf_counter()
        answers.append(memory.query(question, NEAREST))
        seconds.append(time.perf_counter() - began)
    rss = psutil.Process().memory_info().rss / 1e6
    memory.close()
    vectors = Vectors(embedder_named(size.embedder))
    near = [
        _as_near(vectors, question, [size.text(int(one)) for one in got], least)
        for (_, question), got, least in zip(questions, answers, nearest, strict=True)
    ]
    hits = [float(str(at) in got) for (at, _), got in zip(questions, answers, strict=True)]
    return Asked(
        opened=first,
        p50=percentile(seconds, 0.5),
        p95=percentile(seconds, 0.95),
        found=mean(hits),
        nearest=mean(near),
        rss_mb=rss,
    )


def tenth_nearest(size: Size) -> list[float]:
    """By question, the cosine of the tenth nearest record; block by block, nothing is kept."""
    vectors = Vectors(embedder_named(size.embedder))
    asked = vectors.of([question for _, question in size.questions()])
    best = np.full((len(asked), NEAREST), -1.0, dtype=np.float32)
    for numbers in size.blocks():
        rows = vectors.of([size.text(number) for number in numbers])
        every = np.concatenate([best, asked @ rows.T], axis=1)
        best = -np.sort(-every, axis=1)[:, :NEAREST]
    return [float(value) for value in best[:, -1]]


def _items(size: Size, numbers: range) -> list[Item]:
    return [(str(number), size.text(number), {}) for number in numbers]


def _record(number: int, text: str) -> Record:
    at = _BEGIN + timedelta(minutes=number)
    return record_of(
        _SCOPE,
        text,
        at,
        SPEAKERS[number % len(SPEAKERS)],
        event=Event(at=at, episode=str(number // _PER_EPISODE), order=number % _PER_EPISODE),
        metadata={"turn": str(number)},
    )


def _written_singly(
    memory: OurScale | BareChroma | AutoGenMemory, size: Size, numbers: range
) -> float:
    items = _items(size, numbers)
    began = time.perf_counter()
    for item in items:
        memory.add([item])
    return len(items) / (time.perf_counter() - began)


def _as_near(vectors: Vectors, question: str, texts: Sequence[str], least: float) -> float:
    if not texts:
        return 0.0
    near = vectors.of(texts) @ vectors.of([question])[0]
    return float(np.count_nonzero(near >= least - _TOLERANCE)) / NEAREST


def _rate(taken: Sequence[tuple[int, float]]) -> float:
    return sum(count for count, _ in taken) / sum(seconds for _, seconds in taken)


CONTENDERS = (OURS, DENSE, BARE, AUTOGEN)


def measure_scale(
    names: Sequence[str],
    records: int,
    queries: int,
    seed: int,
    embedder: str | None,
    as_json: bool,
) -> None:
    """Measures and prints."""
    size = Size(records=records, queries=queries, seed=seed, embedder=embedder)
    progress("exact search ...")
    nearest = apart(tenth_nearest, size)
    filled: dict[str, Filled] = {}
    asked: dict[str, Asked] = {}
    singly: dict[str, float] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        for name in names:
            backend = OURS if name in (OURS, DENSE) else BARE
            folder = Path(place) / backend
            if backend not in filled:
                progress(f"{backend}: filling ...")
                folder.mkdir()
                filled[backend] = apart(fill, backend, folder, size)
            progress(f"{name}: asking ...")
            asked[name] = apart(ask, name, folder, size, nearest)
            if name == AUTOGEN:
                singly[name] = apart(write_singly, name, folder, size)
            elif name == backend:
                singly[name] = filled[backend].one_by_one
    if as_json:
        figures: dict[str, Any] = {"machine": machine(), "size": asdict(size), "singly": singly}
        figures |= {"filled": {name: asdict(one) for name, one in filled.items()}}
        figures |= {"asked": {name: asdict(one) for name, one in asked.items()}}
        print(json.dumps(figures, indent=2))
        return
    print(f"{records:,} records, {len(nearest):,} queries, batches of {BATCH:,}; {machine()}\n")
    _print(filled, asked, singly)


def _print(filled: dict[str, Filled], asked: dict[str, Asked], singly: dict[str, float]) -> None:
    heads = ("memory", "taken/s", "last tenth/s", "singly/s", "p50 ms", "p95 ms", "x Chroma")
    heads += ("found %", "nearest %", "opened s", "RSS MB", "peak filling MB", "disk MB")
    rows: list[tuple[str, ...]] = []
    for name, one in asked.items():
        wrote = filled.get(name)
        base = asked[BARE].p50 if BARE in asked else None
        rows.append(
            (
                name,
                f"{wrote.a_second:,.0f}" if wrote else "",
                f"{wrote.last_a_second:,.0f}" if wrote else "",
                f"{singly[name]:,.0f}" if name in singly else "",
                f"{one.p50 * 1e3:.2f}",
                f"{one.p95 * 1e3:.2f}",
                f"{one.p50 / base:.1f}" if base else "",
                percent(one.found),
                "" if name == OURS else percent(one.nearest),  # which ranks by more than that
                f"{one.opened:.1f}",
                f"{one.rss_mb:,.0f}",
                f"{wrote.peak_mb:,.0f}" if wrote else "",
                f"{wrote.disk_mb:,.0f}" if wrote else "",
            )
        )
    print_table(heads, rows)
