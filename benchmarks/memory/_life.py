"""A simulated year of one agent's life: what its memory says day by day, and what is left of it.

Every memory lives the same lives: it gets the notes of a day, is asked the questions of the day,
and ours with dynamics sleeps every night. Differences are paired over lives.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from coag.evals import PairedComparison, compare, with_holm
from coag.memory import LongTermMemory, ToRemember
from coag.memory.consolidation import sleep
from coag.memory.dynamics import MemoryDynamics, MemoryDynamicsSettings
from coag.schema import MemoryKind, Mood, Record, estimate_tokens
from coag.store import InMemoryStore, open_store

from ._contender import Contender, Findable, Item, Looped, SetClock, said_by
from ._contenders import chosen, finders
from ._metrics import mean
from ._printing import machine, print_absent, print_table, progress
from ._year import BEGIN, DailyQuestion, Day, Note, Sort, Year

K = 5
"""How many notes a question brings."""
_SCOPE = "life"
_MECHANISMS = (
    "forgetting",
    "reconsolidation",
    "retrieval_induced_forgetting",
    "involuntary_recall",
    "feeling_of_knowing",
    "gist",
    "schema_encoding",
    "source_confidence",
    "interference",
    "emotion_regulation",
    "persona_drift",
    "links",
    "graduation",
)
PLAIN, WHOLE = "plain", "companion"
WITHOUT = f"{WHOLE} without "


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A note as it is recalled."""

    name: str
    text: str | None = None
    """What is shown where that is not the whole text, as of a gist."""


class Living(Protocol):
    """A memory through a life."""

    def take_in(self, notes: Sequence[Note]) -> None:
        """Takes in the notes of a day."""
        ...

    def asked(self, at: datetime, question: str) -> list[Shown]:
        """What comes for a question: the best `K`, and what comes unasked."""
        ...

    def night(self) -> None:
        """What is done between two days."""
        ...

    def left(self, folder: Path) -> tuple[int, int]:
        """Notes that can still be recalled, and bytes of everything when it is put on disk."""
        ...

    def close(self) -> None:
        """Releases it."""
        ...


class OurLife(Looped):
    """Our memory in RAM, with dynamics or without."""

    def __init__(self, settings: MemoryDynamicsSettings | None) -> None:
        super().__init__()
        self._clock = SetClock(BEGIN)
        self._store = InMemoryStore()
        made = None if settings is None else MemoryDynamics(settings, owner=_SCOPE)
        self._dynamics = made
        self._memory = LongTermMemory(self._store, scope=_SCOPE, clock=self._clock, dynamics=made)

    def take_in(self, notes: Sequence[Note]) -> None:
        """All of a day at once; what stirs moves the mood, where there is one."""
        self._clock.at = notes[0].at
        self.run(self._remember([_wish(note) for note in notes]))
        if self._dynamics is not None and self._dynamics.settings.mood:
            for note in notes:
                if note.feeling:
                    self._dynamics.feel(Mood(valence=note.feeling, arousal=0.8), 0.5)

    async def _remember(self, wishes: Sequence[ToRemember]) -> None:
        async for _ in self._memory.remember_all(wishes):
            pass

    def asked(self, at: datetime, question: str) -> list[Shown]:
        """See `Living`."""
        self._clock.at = at
        recall = self.run(self._memory.recall(question, k=K))
        return [
            Shown(
                name=str(hit.record.metadata["turn"]),
                text=hit.state.gist if hit.state and hit.state.gist else hit.record.text,
            )
            for hit in (*recall.records, *recall.unasked)
        ]

    def night(self) -> None:
        """Sleeps."""
        if self._dynamics is not None:
            self.run(sleep(self._memory))

    def left(self, folder: Path) -> tuple[int, int]:
        """As a Chroma folder with the file of the dynamics beside it."""
        records = self.run(self._records())
        store = open_store(folder / "records")
        self.run(store.add(records))
        self.run(store.close())
        if self._dynamics is not None:
            self._dynamics.file.rows("VACUUM INTO ?", str(folder / "dynamics.sqlite3"))
        return len(records), _bytes_in(folder)

    async def _records(self) -> list[Record]:
        return [one async for batch in self._store.scan(scopes=(_SCOPE,)) for one in batch]

    def close(self) -> None:
        """Releases the store."""
        self.run(self._memory.close())
        self.end()


class OthersLife:
    """Another memory through a life."""

    def __init__(self, memory: Findable, folder: Path) -> None:
        self._memory = memory
        self._folder = folder
        self._count = 0

    def take_in(self, notes: Sequence[Note]) -> None:
        """One by one, or as it takes them."""
        self._memory.add([_item(note) for note in notes])
        self._count += len(notes)

    def asked(self, at: datetime, question: str) -> list[Shown]:
        """It has no clock."""
        return [Shown(name=name) for name in self._memory.query(question, K)]

    def night(self) -> None:
        """It does nothing by night."""

    def left(self, folder: Path) -> tuple[int, int]:
        """Every note that it was given; 0 bytes for one that is in RAM alone."""
        return self._count, _bytes_in(self._folder)

    def close(self) -> None:
        """Releases it."""
        self._memory.close()


@dataclass(slots=True)
class _Tally:
    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, measure: str, value: float | bool | None) -> None:
        if value is not None:
            self.values.setdefault(measure, []).append(float(value))

    def means(self) -> dict[str, float]:
        return {measure: mean(values) for measure, values in self.values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What one memory did in one life."""

    memory: str
    seed: int
    measures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeContender:
    """Who lives: our memory with settings, or another one."""

    name: str
    settings: MemoryDynamicsSettings | None = None
    other: Contender | None = None

    def open(self, folder: Path) -> Living:
        """It at the beginning of its life.

        Raises:
            ValueError: It is not installed.
        """
        if self.other is None:
            return OurLife(self.settings)
        if self.other.make is None:
            raise ValueError(f"{self.name!r} is not installed.")
        return OthersLife(self.other.make(folder), folder)


def our_lives() -> list[LifeContender]:
    """`plain`, two presets, and `companion` with each mechanism off."""
    whole = MemoryDynamicsSettings.preset(WHOLE)
    lives = [LifeContender(name=PLAIN)]
    for name in ("assistant", WHOLE):
        lives.append(LifeContender(name=name, settings=MemoryDynamicsSettings.preset(name)))
    for name in ("interference", "source_confidence"):
        off = MemoryDynamicsSettings.preset("assistant").model_copy(update={name: None})
        lives.append(LifeContender(name=f"assistant, no {name.replace('_', ' ')}", settings=off))
    for name in _MECHANISMS:
        off = whole.model_copy(update={name: None})
        lives.append(LifeContender(name=WITHOUT + name.replace("_", " "), settings=off))
    calm = whole.model_copy(update={"mood": False, "mood_weight": 0.0})
    lives.append(LifeContender(name=f"{WITHOUT}mood", settings=calm))
    return lives


def judged(
    question: DailyQuestion, answers: Sequence[Shown], by_name: Mapping[str, Note]
) -> dict[str, float | bool | None]:
    """The measures of the answers to one question; None where one does not apply.

    `hit`: the right value is there, and can be read in what is shown. `stale` and `planted`: an
    outdated or false value is above the right one, or without it. `junk`: the share of answers that
    nobody will ever ask for. `tokens`: of all that is shown.
    """
    notes = [by_name[one.name] for one in answers]
    about = [
        (one.value, shown.text is None or one.value in shown.text)
        for one, shown in zip(notes, answers, strict=True)
        if one.topic == question.topic
    ]
    right = next((at for at, one in enumerate(about) if one == (question.right, True)), None)
    above = {value for value, _ in about[:right]}
    hit = right is not None
    of_sort = "hit, rare events" if question.sort is Sort.EVENT else f"hit, {question.sort}s"
    old = "hit, older than 180 days" if question.age > 180 else "hit, up to 180 days old"
    return {
        "hit": hit,
        of_sort: hit,
        old: hit,
        "stale": bool(above & question.outdated) if question.outdated else None,
        "planted": bool(above & question.planted) if question.planted else None,
        "junk": mean([one.sort is Sort.JUNK for one in notes]) if notes else 0.0,
        "tokens": sum(
            estimate_tokens(note.text if shown.text is None else shown.text)
            for note, shown in zip(notes, answers, strict=True)
        ),
    }


def live(contender: LifeContender, seed: int, days: int, *, held_out: bool = False) -> Life:
    """One life of one memory; see `Year`."""
    tally, by_name = _Tally(), dict[str, Note]()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder, disk = Path(place) / "memory", Path(place) / "disk"
        folder.mkdir()
        disk.mkdir()
        memory = contender.open(folder)
        began = time.perf_counter()
        for day in Year(seed, days, held_out=held_out).days():
            _lived(day, memory, by_name, tally)
        took = time.perf_counter() - began
        count, size = memory.left(disk)
        memory.close()
    measures = tally.means() | {"notes": count, "disk MB": size / 1e6, "seconds": took}
    return Life(memory=contender.name, seed=seed, measures=measures)


def _lived(day: Day, memory: Living, by_name: dict[str, Note], tally: _Tally) -> None:
    by_name |= {note.name: note for note in day.notes}
    memory.take_in(day.notes)
    for question in day.questions:
        answers = memory.asked(day.evening, question.text)
        for measure, value in judged(question, answers, by_name).items():
            tally.add(measure, value)
    memory.night()


def all_lives(
    contenders: Sequence[LifeContender],
    seeds: Iterable[int],
    days: int,
    processes: int,
    *,
    held_out: bool = False,
) -> Iterator[Life]:
    """Every life of every memory; all memories live a life before the next one begins."""
    jobs = [(contender, seed) for seed in seeds for contender in contenders]
    pool: AbstractContextManager[Any] = nullcontext()
    if processes > 1:
        pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    with pool as workers:
        each = partial(_live, days=days, held_out=held_out)
        for life in map(each, jobs) if workers is None else workers.map(each, jobs):
            progress(f"{life.memory}, life {life.seed}: {life.measures['seconds']:.1f} s")
            yield life


def _live(job: tuple[LifeContender, int], days: int, held_out: bool) -> Life:
    return live(job[0], job[1], days, held_out=held_out)


def _wish(note: Note) -> ToRemember:
    kind = MemoryKind.EPISODIC if note.sort in (Sort.EVENT, Sort.JUNK) else MemoryKind.SEMANTIC
    origin = said_by(note.source, run="life", activity=note.name, trusted=note.trusted)
    return ToRemember(kind=kind, text=note.text, provenance=origin, metadata={"turn": note.name})


def _item(note: Note) -> Item:
    return note.name, note.text, {"source": note.source, "trusted": note.trusted, "at": note.at}


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


# ---- Lives side by side: means, and where two memories differ, paired over lives ----

_OTHERS = ("ChromaDBVectorMemory", "mem0 (infer=False)", "LangMem's store")
_RATES = ("hit", "stale", "planted", "junk")
_HITS = (
    f"hit, {Sort.FACT}s",
    f"hit, {Sort.READING}s",
    f"hit, {Sort.EVENT}s",
    "hit, up to 180 days old",
    "hit, older than 180 days",
)
_COMPARED = (*_RATES, "tokens", "notes", "disk MB")


def measure_lives(
    seeds: range,
    days: int,
    processes: int,
    only: Sequence[str],
    as_json: bool,
    *,
    held_out: bool = False,
) -> None:
    """Measures and prints."""
    wanted, absent = _contenders(only)
    lived = list(all_lives(wanted, seeds, days, processes, held_out=held_out))
    lives = len(seeds)
    names = [one.name for one in wanted]
    if as_json:
        context = {"machine": machine(), "lives": lives, "days": days, "absent": absent}
        print(json.dumps(context | {"results": [asdict(life) for life in lived]}, indent=2))
        return
    print(f"{lives} lives of {days} days; {machine()}\n")
    _print_means(lived, [one for one in names if WITHOUT not in one])
    for reference in (PLAIN, WHOLE):
        others = [
            one for one in names if one != reference and (WITHOUT in one) != (reference == PLAIN)
        ]
        if reference in names and others:
            _print_differences(lived, reference, others)
    print_absent(absent)


def _contenders(only: Sequence[str]) -> tuple[list[LifeContender], list[str]]:
    others = [one for one in finders() if one.name in _OTHERS]
    mine = [one for one in our_lives() if any(word in one.name for word in only)]
    taken = chosen(others, only)
    present = [LifeContender(name=one.name, other=one) for one in taken if one.make is not None]
    return [*mine, *present], [one.name for one in taken if one.make is None]


def _print_means(lived: Sequence[Life], names: Sequence[str]) -> None:
    heads = (
        "memory",
        *(f"{name} %" for name in _RATES),
        "tokens",
        "notes left",
        "disk MB",
        "s a life",
    )
    rows: list[tuple[str, ...]] = []
    for name in names:
        of = _measures(lived, name)
        numbers = [f"{of['tokens']:.0f}", f"{of['notes']:,.0f}", f"{of['disk MB']:.1f}"]
        rates = [_percent(of, one) for one in _RATES]
        rows.append((name, *rates, *numbers, f"{of['seconds']:.0f}"))
    print_table(heads, rows)
    print()
    hits = [(name, *(_percent(_measures(lived, name), one) for one in _HITS)) for name in names]
    print_table(("memory", *(f"{name} %" for name in _HITS)), hits)


def _percent(of: Mapping[str, float], name: str) -> str:
    return f"{100 * of[name]:.1f}" if name in of else "-"


def _measures(lived: Sequence[Life], name: str) -> dict[str, float]:
    mine = [life.measures for life in lived if life.memory == name]
    measures = {measure: None for one in mine for measure in one}
    return {name: mean([one[name] for one in mine if name in one]) for name in measures}


def _print_differences(lived: Sequence[Life], reference: str, others: Sequence[str]) -> None:
    print(
        f"\nLess {reference}, paired over lives; 95 % intervals, `no effect` where they hold 0.\n"
    )
    found = with_holm(
        {
            (other, measure): compare(
                _by_life(lived, reference, measure), _by_life(lived, other, measure)
            )
            for other in others
            for measure in _COMPARED
        }
    )
    rows = [(other, *(_shown(found[other, one], one) for one in _COMPARED)) for other in others]
    heads = [f"{name}, points" if name in _RATES else name for name in _COMPARED]
    print_table(("memory", *heads), rows)


def _by_life(lived: Sequence[Life], name: str, measure: str) -> dict[int, float | None]:
    return {life.seed: life.measures.get(measure) for life in lived if life.memory == name}


def _shown(found: PairedComparison, measure: str) -> str:
    """A difference with its interval; rates in points."""
    if found.difference is None:
        return "-"
    scale = 100.0 if measure in _RATES else 1.0
    difference = f"{scale * found.difference:+.1f}"
    if found.interval is None:
        return f"{difference} (too few lives)"
    if found.interval.includes_zero:
        return f"no effect ({difference})"
    low, high = scale * found.interval.low, scale * found.interval.high
    return f"{difference} ({low:+.1f} to {high:+.1f})"
