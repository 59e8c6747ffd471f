"""Where faults are injected: scenarios in which a sound agent without a fault never fails."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from case_study.robot import CONSTRAINTS, ForbidCleaning
from coag.schema import Constraint, MemoryKind, Provenance, Record, Scalar, Trust, record_id
from vacuum_world.scenarios import ScenarioSetup, build_scenario
from vacuum_world.world import Cell, neighbour

StageName = Literal["sudden-wall", "energy-dilemma", "phantom-object", "evolution"]
STAGES: tuple[StageName, ...] = get_args(StageName)
SCOPE = "robot"
_THEN = datetime(2026, 1, 1, tzinfo=UTC)
_SMALL_TALK = (
    "The charger at ({x}, {y}) restored the battery to 100 within one move.",
    "Moves to the east along the upper row went well on an earlier day.",
    "The user likes a short report at the end.",
    "A full round of a room takes about ten moves.",
    "The robot was serviced and its wheels were oiled.",
    "The grid was measured: {width} cells wide and {height} cells high.",
    "Somebody asked whether the robot is loud; it is not.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One scenario and seed, with what the robot remembers and the rules that hold."""

    name: StageName
    """The scenario. `sudden-wall` is its second episode: the hidden wall stands, and a record
    tells of it. In `evolution` the rule holds from the start, and a record tells of it."""
    setup: ScenarioSetup
    """The instance."""
    records: tuple[Record, ...]
    """What long-term memory holds: what is needed, among what is not."""
    rules: tuple[Constraint, ...]
    """The constraints in force."""

    @property
    def needed(self) -> frozenset[str]:
        """Ids of the records without which the robot comes to grief."""
        return frozenset(one.id for one in self.records if one.type != "note")


def stage_of(name: StageName, seed: int) -> Stage:
    """The stage that a seed gives."""
    setup = _setup(name, seed)
    facts = setup.facts
    dice = random.Random(f"stage {name} {seed}")
    records = [remembered(text) for text in dice.sample(_small_talk(setup), 3)]
    rules = list(CONSTRAINTS.values())
    if facts.wall is not None:
        records.append(wall_record(_beside(setup), facts.wall))
    if facts.forbidden is not None:
        records.append(rule_record(facts.forbidden))
        rules.append(ForbidCleaning(facts.forbidden))
    dice.shuffle(records)
    return Stage(name=name, setup=setup, records=tuple(records), rules=tuple(rules))


def remembered(text: str, kind: str = "note", **metadata: Scalar) -> Record:
    """A record of an earlier day."""
    return Record(
        id=record_id(MemoryKind.EPISODIC, SCOPE, text),
        kind=MemoryKind.EPISODIC,
        text=text,
        scope=SCOPE,
        created_at=_THEN,
        provenance=Provenance(
            run="20260101-000000-robot",
            activity="clean",
            cycle=3,
            source=SCOPE,
            source_kind="tool_return",
            trust=Trust.UNTRUSTED,
        ),
        type=kind,
        metadata=metadata,
        sensed=bool(metadata),
    )


def wall_record(here: Cell, wall: Cell) -> Record:
    """What the agent writes down after a bump: in its words, with the robot's metadata."""
    text = (
        f"Obstacle: moving from ({here[0]}, {here[1]}) failed, "
        f"cell ({wall[0]}, {wall[1]}) is blocked."
    )
    place = {"x": here[0], "y": here[1], "blocked_x": wall[0], "blocked_y": wall[1]}
    return remembered(text, "obstacle", **place)


def rule_record(cell: Cell) -> Record:
    """What the agent writes down after its cleaning was rejected."""
    return remembered(f"Rule: cleaning cell ({cell[0]}, {cell[1]}) is forbidden.", "rule")


def _small_talk(setup: ScenarioSetup) -> list[str]:
    """What is remembered besides: true in this instance, and of no use."""
    (x, y), (width, height) = setup.world.charger, setup.world.grid
    return [text.format(x=x, y=y, width=width, height=height) for text in _SMALL_TALK]


def _setup(name: StageName, seed: int) -> ScenarioSetup:
    if name != "sudden-wall":
        return build_scenario(name, seed)
    first = build_scenario(name, seed)
    try:
        return build_scenario(name, seed, episode=2, wall=None)
    except ValueError:  # no wall can stand on the straight way: where it rises is left open
        cells = _ways(first)
        return next(found for found in (_with_wall(seed, cell) for cell in cells) if found)


def _with_wall(seed: int, cell: Cell) -> ScenarioSetup | None:
    try:
        return build_scenario("sudden-wall", seed, episode=2, wall=cell)
    except ValueError:
        return None


def _ways(setup: ScenarioSetup) -> Sequence[Cell]:
    start = setup.facts.start
    return [neighbour(start, way) for way in ("north", "east", "south", "west")]


def _beside(setup: ScenarioSetup) -> Cell:
    """A cell from which the wall was run into: the start, where it is next to it."""
    wall, start = setup.facts.wall or (0, 0), setup.facts.start
    near = [neighbour(wall, way) for way in ("north", "east", "south", "west")]
    return start if start in near else near[0]
