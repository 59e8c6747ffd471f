"""A changing world: what a memory says after thousands of statements, some of them outdated."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ._contender import Contender, Correctable, Item
from ._contenders import open_keeper
from ._metrics import interval, mean, percentile
from ._printing import machine, percent, print_absent, print_table, progress
from ._world import Saying, Statement, Topic, World

FIRST = 5
"""How many answers are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The measures of the first answers to one question; None where one does not apply."""

    first: bool | None
    """What is so is above everything else said of the topic; asked where something is so."""
    stale: bool | None
    """An outdated value is above what is so, or without it; asked where one is outdated."""
    misled: bool | None
    """A wrong claim is above what is so, or without it; asked where there is one."""
    junk: bool | None
    """A value that was taken back is there, and nothing says so; asked where there is one."""
    repeated: float
    """Share of the answers that say of a topic what a better one says already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How one memory did."""

    name: str
    stale: float
    stale_range: tuple[float, float]
    first: float
    misled: float
    junk: float
    repeated: float
    a_second: float
    """Statements taken in a second, retractions included."""
    p50: float
    """Seconds a question."""
    p95: float
    asked: Mapping[str, int]
    """How many questions each rate is over."""


def judged(topic: Topic, answers: Sequence[Statement]) -> Verdict:
    """The measures of the answers to the question on a topic."""
    about = [one for one in answers if one.topic == topic.name]
    values = [one.value for one in about if one.saying is not Saying.RETRACTION]
    corrected = {one.value for one in about if one.saying is Saying.RETRACTION}
    right = values.index(topic.current) if topic.current in values else len(answers)
    above, claimed = set(values[:right]), topic.claimed - set(topic.history)
    junk = topic.taken_back - corrected
    seen = [(one.topic, one.value, one.saying is Saying.RETRACTION) for one in answers]
    known = topic.current is not None
    return Verdict(
        first=bool(values) and values[0] == topic.current if known else None,
        stale=bool(above & topic.outdated) if known and topic.outdated else None,
        misled=bool(above & claimed) if known and claimed else None,
        junk=bool(set(values) & junk) if topic.taken_back else None,
        repeated=1.0 - len(set(seen)) / len(seen) if seen else 0.0,
    )


def item_of(statement: Statement) -> Item:
    """A statement as memories take it in."""
    known = {
        "subject": statement.subject,
        "attribute": statement.attribute,
        "value": statement.value,
        "source": statement.source,
        "trusted": statement.trusted,
        "at": statement.at,
    }
    return statement.name, statement.text, known


def tell(memory: Correctable, statements: Sequence[Statement]) -> float:
    """Adds everything in order; returns the seconds it took.

    A memory that cannot take something back gets the retraction as a text.
    """
    began = time.perf_counter()
    for statement in statements:
        if not (statement.takes_back and memory.retract(statement.takes_back)):
            memory.add([item_of(statement)])
    return time.perf_counter() - began


def asked(world: World, count: int, seed: int) -> list[Topic]:
    """The topics that are asked about, drawn by chance."""
    return random.Random(seed).sample(world.topics, min(count, len(world.topics)))


def keep(
    contender: Contender,
    statements: Sequence[Statement],
    topics: Sequence[Topic],
    folder: Path,
) -> Kept:
    """Fills a memory with everything and asks it about the topics."""
    memory = open_keeper(contender, folder)
    took = tell(memory, statements)
    known = {statement.name: statement for statement in statements}
    memory.query(topics[0].question, FIRST)
    verdicts: list[Verdict] = []
    seconds: list[float] = []
    for topic in topics:
        began = time.perf_counter()
        names = memory.query(topic.question, FIRST)
        seconds.append(time.perf_counter() - began)
        verdicts.append(judged(topic, [known[name] for name in names]))
    memory.close()
    rates = {
        name: [float(value) for one in verdicts if (value := getattr(one, name)) is not None]
        for name in ("stale", "first", "misled", "junk", "repeated")
    }
    return Kept(
        name=contender.name,
        **{name: mean(values) for name, values in rates.items()},
        stale_range=interval(rates["stale"]),
        a_second=len(statements) / took,
        p50=percentile(seconds, 0.5),
        p95=percentile(seconds, 0.95),
        asked={name: len(values) for name, values in rates.items()},
    )


def measure_stream(
    contenders: Sequence[Contender], facts: int, seed: int, questions: int, as_json: bool
) -> None:
    """Measures and prints."""
    world = World(seed)
    statements = list(world.statements(facts))
    topics = asked(world, questions, seed)
    results: list[Kept] = []
    for contender in contenders:
        if contender.make is not None:
            progress(f"{contender.name} ...")
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                results.append(keep(contender, statements, topics, Path(folder)))
    absent = [one.name for one in contenders if one.make is None]
    if as_json:
        context = {"machine": machine(), "facts": facts, "seed": seed, "absent": absent}
        print(json.dumps(context | {"results": [asdict(one) for one in results]}, indent=2))
        return
    print(f"{facts:,} statements, seed {seed}, {len(topics):,} questions; {machine()}\n")
    _print(results)
    print_absent(absent)


def _print(results: Sequence[Kept]) -> None:
    counts: Mapping[str, int] = results[0].asked if results else {}
    heads = (
        "memory",
        f"stale % (n={counts.get('stale', 0)})",
        "95 %",
        f"truth first % ({counts.get('first', 0)})",
        f"misled % ({counts.get('misled', 0)})",
        f"junk % ({counts.get('junk', 0)})",
        "repeated %",
        "adds/s",
        "p50 ms",
        "p95 ms",
    )
    rows = [
        (
            one.name,
            percent(one.stale),
            f"{percent(one.stale_range[0])} to {percent(one.stale_range[1])}",
            percent(one.first),
            percent(one.misled),
            percent(one.junk),
            percent(one.repeated),
            f"{one.a_second:,.0f}",
            f"{one.p50 * 1e3:.1f}",
            f"{one.p95 * 1e3:.1f}",
        )
        for one in results
    ]
    print_table(heads, rows)
