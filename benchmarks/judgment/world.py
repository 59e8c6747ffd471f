"""A seeded world of capabilities in which ways of routing are compared: regret and success.

A task is a text of one field. It asks for four choices along the graph; each is paid or not by a
chance that hangs on the edge, on whether the capability serves the task, or on both:

- `edges`: only the edge counts; the task says nothing of what pays.
- `tasks`: the edge counts, and much more whether the capability serves the task.
- `changing`: as `tasks`; at half time every second edge and one capability in five change.

What serves a task is drawn: four of five capabilities of its field do, and one stranger in ten.
No router sees any of that; it gets the text, and afterwards what was paid. All routers meet the
same tasks and the same luck. The order of the manifest is shuffled by the seed, so that places by
index say nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import fmean
from typing import Any

from coag.evals.statistics import paired_bootstrap
from coag.judgment import (
    START,
    Advising,
    CapabilityGraph,
    LoggedChoice,
    RouteStep,
    RoutingSettings,
    ValueEstimate,
    advise,
    biases_of,
    choose,
    context_energy,
    doubly_robust,
    harvest,
    ips,
    places_by_index,
    places_by_meaning,
    reinforce,
    snips,
)

from .manifest import FIELDS, TASKS, field_of, manifest, texts_of

WORLDS = ("edges", "tasks", "changing")
STEPS, ENOUGH = 4, 3
"""Choices of a task, and how many must be paid for it to succeed."""
DEFAULTS = RoutingSettings()
PAPER = RoutingSettings(evidence=0.0, unlearning=1.0)
EVEN = RoutingSettings(temperature=0.5)
Read = Callable[[str], Mapping[str, float]]
"""How much a task speaks for each capability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """A way of choosing."""

    name: str
    learns: bool = True
    context: str = ""
    """`words`, `meaning`, `index field`, `meaning field`, or nothing."""
    settings: RoutingSettings = DEFAULTS
    patterns: bool = False
    """Whether route patterns add to scores."""


ROUTERS = (
    Router(name="no learning", learns=False),
    Router(name="edges, as in the paper", settings=PAPER),
    Router(name="edges, temperature 0.5", settings=EVEN),
    Router(name="edges"),
    Router(name="edges and patterns", patterns=True),
    Router(name="words, no learning", learns=False, context="words"),
    Router(name="edges + words", context="words"),
    Router(name="edges + field by index", context="index field"),
    Router(name="edges + field by meaning", context="meaning field"),
    Router(name="edges + meaning, no field", context="meaning"),
)


class World:
    """What pays, by a seed."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind, self.listed = kind, manifest(seed)
        self._draw = random.Random(f"world {kind} {seed}")
        self.names = [one["name"] for one in self.listed["capabilities"]]
        pairs = [(e["source"], e["target"]) for e in self.listed["edges"]]
        pairs += [(START, name) for name in self.names]
        self.quality = {pair: self._draw.random() for pair in pairs}
        self.serves = {(f, name): self._serving(f, name) for f in FIELDS for name in self.names}

    def change(self) -> None:
        """Every second edge and one capability in five are drawn again."""
        for pair in list(self.quality)[::2]:
            self.quality[pair] = self._draw.random()
        for name in self._draw.sample(self.names, len(self.names) // 5):
            for f in FIELDS:
                self.serves[f, name] = self._serving(f, name)

    def pays(self, source: str, target: str, task_field: str) -> float:
        """The chance that a choice is paid."""
        quality = self.quality[source, target]
        if self.kind == "edges":
            return 0.05 + 0.9 * quality
        return 0.05 + 0.3 * quality + 0.55 * self.serves[task_field, target]

    def _serving(self, task_field: str, name: str) -> bool:
        return self._draw.random() < (0.8 if field_of(name) == task_field else 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a router earned in one world."""

    regret: float
    """How much less than the best choice a choice is paid, on average."""
    success: float
    """Share of tasks with enough paid choices."""
    by_change: tuple[float, float]
    """Regret of the first half and of the second."""


def play(kind: str, seed: int, router: Router, tasks: int = 300) -> Played:
    """One router in one world."""
    world, draw = World(kind, seed), random.Random(f"tasks {seed}")
    graph = CapabilityGraph.from_manifest(world.listed)
    read, trace = reader(router.context, graph, seed), list[RouteStep]()
    biases: Mapping[tuple[str, str], float] = {}
    regrets, successes = list[float](), list[bool]()
    for number in range(tasks):
        if kind == "changing" and number == tasks // 2:
            world.change()
        task_field = draw.choice(sorted(FIELDS))
        now = Advising(
            context=read(draw.choice(TASKS[task_field])), biases=biases, settings=router.settings
        )
        here, paid = START, 0
        for _ in range(STEPS):
            luck, pick = draw.random(), random.Random(draw.random())
            there = choose(advise(graph, here, now), pick).capability
            chance = world.pays(here, there, task_field)
            best = max(world.pays(here, e.target, task_field) for e in graph.leaving(here))
            regrets.append(best - chance)
            paid += luck < chance
            if router.learns:
                reward = float(luck < chance)
                reinforce(graph, here, there, reward, settings=router.settings)
                trace.append(RouteStep(source=here, target=there, reward=reward))
            here = there
        successes.append(paid >= ENOUGH)
        if router.patterns and number % 25 == 24:
            biases = biases_of(harvest(trace[-1000:]))
    half = len(regrets) // 2
    return Played(
        regret=fmean(regrets),
        success=fmean(successes),
        by_change=(fmean(regrets[:half]), fmean(regrets[half:])),
    )


def reader(kind: str, graph: CapabilityGraph, seed: int) -> Read:
    """How a router reads a task."""
    if not kind:
        return lambda _: {}
    if kind == "words":
        return cache(graph.relevance)
    vectors = _vectors(seed)
    if kind == "meaning":
        return cache(partial(likeness, vectors))
    places = places_by_index(list(graph.capabilities))
    if kind == "meaning field":
        places = places_by_meaning(vectors)

    def spread(task: str) -> Mapping[str, float]:
        return context_energy(graph.relevance(task), places)

    return cache(spread)


def compare(
    kind: str, seeds: Sequence[int], tasks: int, routers: Sequence[Router] = ROUTERS
) -> list[dict[str, Any]]:
    """All routers in a world: means, and paired differences from edges alone and with words."""
    played = {r.name: [play(kind, seed, r, tasks) for seed in seeds] for r in routers}
    rows: list[dict[str, Any]] = []
    for name, runs in played.items():
        row: dict[str, Any] = {"router": name}
        row |= {what: fmean(getattr(one, what) for one in runs) for what in ("regret", "success")}
        row["halves"] = [fmean(one.by_change[half] for one in runs) for half in (0, 1)]
        for base in ("edges", "edges + words"):
            row[f"against {base}"] = _difference(runs, played[base]) if base != name else None
        rows.append(row)
    return rows


def _difference(runs: Sequence[Played], base: Sequence[Played]) -> dict[str, list[float]]:
    """Mean of paired differences, and both ends of its interval, by what is measured."""
    found: dict[str, list[float]] = {}
    for what in ("regret", "success"):
        gaps = [getattr(a, what) - getattr(b, what) for a, b in zip(runs, base, strict=True)]
        interval = paired_bootstrap(gaps)
        found[what] = [fmean(gaps), interval.low, interval.high]
    return found


def judged(seeds: Sequence[int], tasks: int = 300) -> dict[str, dict[str, float]]:
    """First choices of a router that does not learn, and what they say of one that has learned.

    The new policy has learned in the same world from other tasks, and is then kept as it is. Its
    true value is known: the chances of the world under the policy's own. A row an estimator: mean
    error, how often the interval holds the truth, and the mean effective sample size.
    """
    found: dict[str, list[tuple[float, bool, float]]] = {}
    for seed in seeds:
        for name, (estimate, truth) in _judged_once(seed, tasks).items():
            holds = estimate.low <= truth <= estimate.high
            found.setdefault(name, []).append((estimate.value - truth, holds, estimate.effective))
    return {
        name: {
            "mean error": fmean(error for error, _, _ in rows),
            "mean absolute error": fmean(abs(error) for error, _, _ in rows),
            "holds": fmean(holds for _, holds, _ in rows),
            "effective": fmean(effective for _, _, effective in rows),
        }
        for name, rows in found.items()
    }


def _judged_once(seed: int, tasks: int) -> dict[str, tuple[ValueEstimate, float]]:
    world, draw = World("tasks", seed), random.Random(f"logged {seed}")
    graph = CapabilityGraph.from_manifest(world.listed)
    choices, truths, means = list[LoggedChoice](), list[float](), dict[str, list[float]]()
    learned = CapabilityGraph.from_manifest(world.listed)
    for number in range(2 * tasks):
        task_field = draw.choice(sorted(FIELDS))
        context = graph.relevance(draw.choice(TASKS[task_field]))
        advice = advise(graph, START, Advising(context=context, settings=EVEN))
        chosen = choose(advice, draw)
        reward = float(draw.random() < world.pays(START, chosen.capability, task_field))
        if number < tasks:
            reinforce(learned, START, chosen.capability, reward)
            means.setdefault(chosen.capability, []).append(reward)
            continue
        choices.append(
            LoggedChoice(
                chosen=chosen.capability,
                probability=chosen.probability,
                reward=reward,
                context=context,
            )
        )
        shares = _policy(learned, choices[-1])
        truths.append(sum(p * world.pays(START, n, task_field) for n, p in shares.items()))
    overall = fmean(reward for rewards in means.values() for reward in rewards)
    expected = {n: (sum(r) + 2 * overall) / (len(r) + 2) for n, r in means.items()}
    policy = partial(_policy, learned)
    return {
        "ips": (ips(choices, policy), fmean(truths)),
        "snips": (snips(choices, policy), fmean(truths)),
        "doubly robust": (
            doubly_robust(choices, policy, lambda _, name: expected.get(name, overall)),
            fmean(truths),
        ),
    }


def _policy(graph: CapabilityGraph, choice: LoggedChoice) -> dict[str, float]:
    now = Advising(context=choice.context, settings=RoutingSettings(temperature=0.2))
    return {one.capability: one.probability for one in advise(graph, START, now)}


@cache
def _embedder() -> Any:
    from coag.store import WordLlamaEmbedder

    return WordLlamaEmbedder()


@cache
def _vectors(seed: int) -> dict[str, Any]:
    listed = manifest(seed)["capabilities"]
    return vectors_of(
        {one["name"]: text for one, text in zip(listed, texts_of(listed), strict=True)}
    )


def vectors_of(texts: Mapping[str, str]) -> dict[str, Any]:
    """The embedding of each capability's text."""
    return dict(zip(texts, _embedder().embed(list(texts.values())), strict=True))


def likeness(vectors: Mapping[str, Any], task: str) -> dict[str, float]:
    """Cosine of task and capability, the best at 1, those below 0 left out."""
    import numpy as np

    asked = _embedder().embed_query(task)[0]
    alike = {
        name: float(row @ asked / (np.linalg.norm(row) * np.linalg.norm(asked)))
        for name, row in vectors.items()
    }
    most = max(alike.values())
    return {name: each / most for name, each in alike.items() if each > 0 and most > 0}
