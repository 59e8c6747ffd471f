"""Questions that need two facts: whether both are found, with a semantic network and without."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from coag.memory import LongTermMemory
from coag.memory.network import AssociativeStore
from coag.schema import Fact, MemoryKind, Record
from coag.store import Embedder, RecordStore, open_store

from ._contender import record_of
from ._metrics import interval, mean, percentile
from ._phrases import FIRST_NAMES, LAST_NAMES
from ._printing import machine, percent, print_table, progress

FIRST = 10
"""How many records are looked at."""
_SCOPE = "two hops"
_BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
_PETS = [
    "cat",
    "dog",
    "parrot",
    "rabbit",
    "tortoise",
    "hamster",
    "goldfish",
    "pony",
    "canary",
    "ferret",
]
_PLACES = [
    "harbour",
    "mill",
    "orchard",
    "quarry",
    "chapel",
    "lighthouse",
    "bakery",
    "brewery",
    "observatory",
    "forge",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact:
    """A fact and how it is said."""

    subject: str
    attribute: str
    value: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and the facts that answer it together."""

    text: str
    needs: tuple[StatedFact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """How one way of recall did."""

    name: str
    both: float
    """Share of the questions that need two facts of which both were found."""
    both_range: tuple[float, float]
    second: float
    """Share of those of which the second fact was found; the question does not name its subject."""
    single: float
    """Share of the questions that need one fact of which that one came first."""
    p50: float
    """Seconds a question."""
    p95: float


_OF_PERSONS = {
    "manager": ("{s}'s manager is {v}.", "Who is the manager of {s}?"),
    "sister": ("{v} is the sister of {s}.", "Who is the sister of {s}?"),
    "dentist": ("{s} goes to the dentist {v}.", "Who is the dentist of {s}?"),
    "pet": ("{s} keeps a {v}.", "Which pet does {s} keep?"),
    "works at": ("{s} works at the {v}.", "Where does {s} work?"),
}
_TO_PERSONS = {
    "owner": ("{s} belongs to {v}.", "the person who owns {s}"),
    "captain": ("{v} is the captain of {s}.", "the captain of {s}"),
    "builder": ("{s} was built by {v}.", "the one who built {s}"),
}


def world(persons: int, seed: int) -> tuple[list[StatedFact], list[Asked], list[Asked]]:
    """Facts of so many persons and as many boats, and questions that need two facts or one.

    Every person has a manager, a sister, a dentist, a pet and a place of work; every boat an
    owner, a captain and a builder. The questions that need two facts name the boat.
    """
    rng = random.Random(seed)
    names = _names(rng, persons)
    places = [f"{a} {b}" for a in LAST_NAMES for b in _PLACES]
    facts: dict[tuple[str, str], StatedFact] = {}

    def state(subject: str, attribute: str, value: str, form: str) -> None:
        text = form.format(s=subject, v=value)
        facts[subject, attribute] = StatedFact(
            subject=subject, attribute=attribute, value=value, text=text
        )

    for name in names:
        for attribute, (form, _) in _OF_PERSONS.items():
            values = {"pet": _PETS, "works at": places}.get(attribute, names)
            state(name, attribute, rng.choice([one for one in values if one != name]), form)
    boats = [f"Boat {number}" for number in rng.sample(range(100, 10_000), persons)]
    for boat in boats:
        for attribute, (form, _) in _TO_PERSONS.items():
            state(boat, attribute, rng.choice(names), form)
    two, one = _questions(rng, facts, boats)
    statements = list(facts.values())
    rng.shuffle(statements)
    return statements, two, one


def _questions(
    rng: random.Random, facts: dict[tuple[str, str], StatedFact], boats: Sequence[str]
) -> tuple[list[Asked], list[Asked]]:
    two: list[Asked] = []
    one: list[Asked] = []
    for boat in boats:
        to, of = rng.choice(list(_TO_PERSONS)), rng.choice(list(_OF_PERSONS))
        first = facts[boat, to]
        second = facts[first.value, of]
        who = _TO_PERSONS[to][1].format(s=boat)
        question = _OF_PERSONS[of][1]
        two.append(Asked(text=question.format(s=who), needs=(first, second)))
        one.append(Asked(text=question.format(s=first.value), needs=(second,)))
    return two, one


def _names(rng: random.Random, count: int) -> list[str]:
    every = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    if count > len(every):
        raise ValueError(f"There are names for {len(every)} persons, not for {count!r}.")
    return rng.sample(every, count)


def records(facts: Sequence[StatedFact], *, as_facts: bool) -> Iterator[Record]:
    """Facts as records, with what each is about or as bare text."""
    for number, one in enumerate(facts):
        fact = Fact(subject=one.subject, attribute=one.attribute, value=one.value)
        yield record_of(
            _SCOPE,
            one.text,
            _BEGIN + number * timedelta(minutes=1),
            kind=MemoryKind.SEMANTIC,
            fact=fact if as_facts else None,
        )


async def _joined(
    name: str,
    store: RecordStore,
    facts: Sequence[Record],
    two: Sequence[Asked],
    one: Sequence[Asked],
) -> Joined:
    memory = LongTermMemory(store, scope=_SCOPE)
    await store.add(facts)
    seconds: list[float] = []

    async def answers_to(asked: Asked) -> list[str]:
        begin = time.perf_counter()
        recall = await memory.recall(asked.text, kind=MemoryKind.SEMANTIC, k=FIRST)
        seconds.append(time.perf_counter() - begin)
        return [hit.record.text for hit in recall.records]

    await answers_to(two[0])  # what is made at the first recall is not timed
    seconds.clear()
    answers = [(asked.needs, await answers_to(asked)) for asked in two]
    both = [float(all(need.text in texts for need in needs)) for needs, texts in answers]
    single = [float((await answers_to(asked))[:1] == [asked.needs[0].text]) for asked in one]
    await memory.close()
    return Joined(
        name=name,
        both=mean(both),
        both_range=interval(both),
        second=mean([float(needs[1].text in texts) for needs, texts in answers]),
        single=mean(single),
        p50=percentile(seconds, 0.5),
        p95=percentile(seconds, 0.95),
    )


def measure_two_hops(
    persons: int, questions: int, seed: int, embedder: Embedder | None, as_json: bool
) -> None:
    """Measures and prints."""
    facts, two, one = world(persons, seed)
    two, one = two[:questions], one[:questions]
    results: list[Joined] = []
    for as_facts in (True, False):
        for networked in (False, True):
            way = "with the network" if networked else "hybrid alone"
            name = f"{way}, {'facts' if as_facts else 'bare texts'}"
            progress(name)
            store: RecordStore = open_store(embedder=embedder)
            store = AssociativeStore(store) if networked else store
            memories = list(records(facts, as_facts=as_facts))
            results.append(asyncio.run(_joined(name, store, memories, two, one)))
    if as_json:
        context = {"machine": machine(), "facts": len(facts), "seed": seed, "questions": len(two)}
        print(json.dumps(context | {"results": [asdict(each) for each in results]}, indent=2))
        return
    print(f"{len(facts):,} facts, seed {seed}, {len(two):,} questions of each sort; {machine()}\n")
    _print(results)


def _print(results: Sequence[Joined]) -> None:
    heads = ("recall", "both %", "95 %", "second %", "one fact first %", "p50 ms", "p95 ms")
    rows = [
        (
            one.name,
            percent(one.both),
            f"{percent(one.both_range[0])} to {percent(one.both_range[1])}",
            percent(one.second),
            percent(one.single),
            f"{one.p50 * 1e3:.1f}",
            f"{one.p95 * 1e3:.1f}",
        )
        for one in results
    ]
    print_table(heads, rows)
