"""Routing at work in the vacuum world's scenarios A to J: regret and success of an agent.

The agent has the robot's tools, working memory and rules; no model is asked. Capabilities are what
it can do, found in the tools as they are offered: each direction of a move, and each tool without
arguments. Before each action it consults with the task's text, among the calls that the rules let
pass, and draws from the advice; afterwards it reports. What was learned stays from episode to
episode. Two agents follow the advice:

- `follows`: the advice alone decides among what the rules allow.
- `asks when undecided`: the domain's value of predicted states decides; the advice only between
  calls of the same value, and of those of which the domain foresees nothing.

A call is paid where it is a step of a shortest round that does the work, charging included, by all
that is true of the world. Regret is the share of actions that were not paid while another was. The
router gets the same as its reward, which is more than an agent at work would know.
All routers meet the same episodes and the same luck.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from statistics import fmean
from typing import Any, Literal

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool

from case_study.rounds import Ground, best_round
from case_study.runner import CaseRequest
from case_study.runner.building import changes_of, first_reading, vacuum_parts
from case_study.runner.worlds import ROBOT, LocalWorld
from coag.evals.statistics import paired_bootstrap
from coag.judgment import (
    START,
    Advice,
    Advising,
    Capability,
    CapabilityGraph,
    advise,
    choose,
    context_energy,
    places_by_index,
    places_by_meaning,
    reinforce,
)
from coag.schema import Candidate, Constraint, Percept, PerceptKind, Trust
from vacuum_world.scenarios import SCENARIOS, ScenarioSetup, build_scenario, measure
from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    WorldState,
    distances_from,
    neighbour,
    obstacle_cells,
)

from .world import Router, likeness, vectors_of

PLAYED = tuple(SCENARIOS)[:10]
"""A to J; the open worlds have no end at which the work is done."""
Follower = Literal["follows", "asks when undecided"]
FOLLOWERS: tuple[Follower, ...] = ("follows", "asks when undecided")
NONE = Router(name="none", learns=False)
ROUTERS = (
    NONE,
    Router(name="edges"),
    Router(name="edges + words", context="words"),
    Router(name="edges + toroidal field", context="index field"),
    Router(name="edges + semantic coordinates", context="meaning field"),
    Router(name="edges + meaning, no field", context="meaning"),
)
_MOVE, _NOW = "move_agent", datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Call:
    """Something that can be done."""

    action: str
    direction: str = ""

    @property
    def name(self) -> str:
        """The capability."""
        return f"{self.action} {self.direction}".strip()

    @property
    def arguments(self) -> dict[str, Any]:
        """Of the tool."""
        return {"direction": self.direction} if self.direction else {}


def calls_of(tools: Sequence[BaseTool[Any, Any]]) -> dict[Call, str]:
    """What can be done with some tools, with a description."""
    found: dict[Call, str] = {}
    for tool in tools:
        if tool.name == _MOVE:
            found |= {Call(_MOVE, way): f"Move one cell {way}." for way in DIRECTIONS}
        else:
            found[Call(tool.name)] = tool.description
    return found


class Routing:
    """What a router knows, kept from episode to episode."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.graph = CapabilityGraph(())
        self._read: dict[str, Mapping[str, float]] = {}

    def discover(self, calls: Mapping[Call, str]) -> None:
        """Takes in capabilities that were not known."""
        for call, text in calls.items():
            if call.name not in self.graph.capabilities:
                self.graph.add(Capability(name=call.name, summary=text))
                self._read.clear()

    def advice(self, task: str, current: str, among: Sequence[str]) -> list[Advice]:
        """Advice on what is possible now; without a router all are alike."""
        if self.router is NONE:
            share = 1 / len(among)
            return [Advice(capability=n, score=0, probability=share, why="") for n in among]
        now = Advising(context=self._context(task), settings=self.router.settings)
        return advise(self.graph, current, now, among=among)

    def report(self, current: str, used: str, reward: float) -> None:
        """Learns from what was done."""
        if self.router.learns:
            reinforce(self.graph, current, used, reward, settings=self.router.settings)

    def _context(self, task: str) -> Mapping[str, float]:
        if task not in self._read:
            self._read[task] = self._reading(task)
        return self._read[task]

    def _reading(self, task: str) -> Mapping[str, float]:
        kind, known = self.router.context, self.graph.capabilities
        if not kind:
            return {}
        if kind == "words":
            return self.graph.relevance(task)
        if kind == "index field":
            return context_energy(self.graph.relevance(task), places_by_index(list(known)))
        vectors = vectors_of({name: f"{name}: {one.summary}" for name, one in known.items()})
        if kind == "meaning":
            return likeness(vectors, task)
        return context_energy(self.graph.relevance(task), places_by_meaning(vectors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What came of an episode."""

    scenario: str
    success: bool
    regret: float
    """Share of its actions that were not paid while another would have been."""
    actions: int


async def play_episode(
    setup: ScenarioSetup, routing: Routing, follower: Follower, luck: random.Random
) -> Episode:
    """Plays an episode until the work is done, nothing is allowed, or its bound."""
    async with AsyncExitStack() as guests:
        world = LocalWorld(setup.world, guests)
        client = await world.join()
        request = CaseRequest(scenario=setup.name, agent="coag-compact", model="scripted:sound")
        parts = vacuum_parts(request, setup, client, first_reading(setup))
        calls, context = calls_of(parts.tools), parts.context()
        tools = {tool.name: tool for tool in parts.tools}
        routing.discover(calls)
        current, rules, regrets = START, list(parts.constraints), list[float]()
        for number in range(setup.max_actions):
            work = work_of(setup, world.now)
            if not work:
                break
            changed = setup.facts.forbidden_after
            if changed is not None and world.now.counters.actions == changed:
                rules += [change.constraint for change in changes_of(setup)]
            gains = _allowed(calls, context, rules)
            if not gains:
                break
            among = _undecided(gains) if follower == "asks when undecided" else list(gains)
            names = {call.name: call for call in among}
            advised = routing.advice(parts.task, current, list(names))
            used = names[choose(advised, luck).capability]
            paid = {call: pays(call, world.now, work) for call in gains}
            regrets.append(max(paid.values()) - paid[used])
            text = await tools[used.action].run_json(used.arguments, CancellationToken())
            context.perceive(_returned(number, used, str(text)))
            routing.report(current, used.name, float(paid[used]))
            current = used.name
        truth = measure(setup, world.now)
    return Episode(
        scenario=setup.name,
        success=truth.success,
        regret=fmean(regrets) if regrets else 0.0,
        actions=len(regrets),
    )


def _allowed(
    calls: Mapping[Call, str], context: Any, rules: Sequence[Constraint]
) -> dict[Call, float | None]:
    """The calls that every rule lets pass, with the gain that the domain expects of each."""
    found: dict[Call, float | None] = {}
    for call in calls:
        candidate = Candidate(id=call.name, action=call.action, arguments=call.arguments)
        after = context.project(candidate)
        if all(rule(candidate, context.state, after).allowed for rule in rules):
            found[call] = None if after is None else context.gain(after)
    return found


def _undecided(gains: Mapping[Call, float | None]) -> list[Call]:
    """Those with the highest gain, and those of which the domain expects nothing known."""
    known = [gain for gain in gains.values() if gain is not None]
    return [call for call, gain in gains.items() if gain is None or gain == max(known)]


def _returned(number: int, call: Call, text: str) -> Percept:
    return Percept(
        id=f"p{number}",
        at=_NOW,
        kind=PerceptKind.TOOL_RETURN,
        source=call.action,
        trust=Trust.UNTRUSTED,
        content=text,
        data=json.loads(text.splitlines()[0]) if text.startswith("{") else None,
        arguments=call.arguments,
    )


def work_of(setup: ScenarioSetup, world: WorldState) -> frozenset[Cell]:
    """The cells that are still to be cleaned, and may be."""
    facts, begun = setup.facts, {each.cell for each in world.under_way}
    never = {*facts.off_limits, *world.forbidden, facts.forbidden}
    return frozenset(c for c in facts.dirty if c in world.dirty and c not in never | begun)


def pays(call: Call, world: WorldState, work: frozenset[Cell]) -> bool:
    """Whether a call is a step of the round that does the work in the fewest actions."""
    robot = next(each for each in world.robots if each.name == ROBOT)
    blocked = frozenset(obstacle_cells(world))
    goal, away = _round(world.grid, world.charger, blocked, robot.position, robot.battery, work)
    if goal is None:
        return False
    if call.action != _MOVE:
        return call.action == "clean_current_cell" and goal == robot.position
    there = neighbour(robot.position, next(way for way in DIRECTIONS if way == call.direction))
    return there in away and there not in blocked and away[there] < away.get(robot.position, 0)


@cache
def _round(
    grid: Cell,
    charger: Cell,
    blocked: frozenset[Cell],
    here: Cell,
    battery: int,
    work: frozenset[Cell],
) -> tuple[Cell | None, dict[Cell, int]]:
    ground = Ground(grid=grid, charger=charger, blocked=blocked)
    goal = best_round(ground, here, battery, sorted(work))
    return goal, {} if goal is None else distances_from(goal, grid, blocked - {here, goal})


def play(seed: int, router: Router, follower: Follower, rounds: int) -> list[Episode]:
    """All scenarios, so many times, in an order of the seed's; what was learned stays."""
    order = [(name, number) for name in PLAYED for number in range(rounds)]
    random.Random(f"order {seed}").shuffle(order)
    routing = Routing(router)

    async def all_of_them() -> list[Episode]:
        return [
            await play_episode(
                build_scenario(name, 1000 * (seed + 1) + number, episode=1),
                routing,
                follower,
                random.Random(f"luck {seed} {name} {number}"),
            )
            for name, number in order
        ]

    return asyncio.run(all_of_them())


def compare(
    seeds: Sequence[int], rounds: int, routers: Sequence[Router] = ROUTERS
) -> dict[str, list[dict[str, Any]]]:
    """By follower a row a router: means over seeds, and paired differences from three others."""
    found: dict[str, list[dict[str, Any]]] = {}
    for follower in FOLLOWERS:
        played = {r.name: [play(seed, r, follower, rounds) for seed in seeds] for r in routers}
        means = {
            name: {what: [_mean(run, what) for run in runs] for what in ("regret", "success")}
            for name, runs in played.items()
        }
        found[follower] = [_row(name, means) for name in played]
    return found


def _mean(episodes: Sequence[Episode], what: str) -> float:
    return fmean(float(getattr(one, what)) for one in episodes)


def _row(name: str, means: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    row: dict[str, Any] = {"router": name}
    row |= {what: fmean(values) for what, values in means[name].items()}
    for base in ("none", "edges", "edges + words"):
        if base == name or base not in means:
            continue
        for what, values in means[name].items():
            gaps = [a - b for a, b in zip(values, means[base][what], strict=True)]
            interval = paired_bootstrap(gaps)
            row[f"{what} against {base}"] = [fmean(gaps), interval.low, interval.high]
    return row
