"""Where faults strike: four scenarios, with what the robot remembers and the rules that hold."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from case_study.robot import CONSTRAINTS, ForbidCleaning
from coag.schema import Constraint, MemoryKind, Provenance, Record, Scalar, Trust, record_id
from vacuum_world.scenarios import ScenarioSetup, build_scenario
from vacuum_world.world import DIRECTIONS, Cell, neighbour

StageName = Literal["sudden-wall", "energy-dilemma", "phantom-object", "evolution"]
STAGES: tuple[StageName, ...] = get_args(StageName)
SCOPE = "robot"
_SMALL_TALK = (
    "The user likes a short report at the end.",
    "A full round of a room takes about ten moves.",
    "The robot was serviced and its wheels were oiled.",
)
"""True, and of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One scenario and seed, with what the robot remembers and the rules that hold.

    `sudden-wall` is its second episode: the hidden wall is there, and in a record. In
    `evolution` the rule holds from the start, and is in a record.
    """

    name: StageName
    setup: ScenarioSetup
    records: tuple[Record, ...]
    """What is needed, among what is not."""
    rules: tuple[Constraint, ...]

    @property
    def needed(self) -> frozenset[str]:
        """Ids of the records without which the robot fails."""
        return frozenset(one.id for one in self.records if one.type != "note")


def stage_of(name: StageName, seed: int) -> Stage:
    """The stage that a seed gives."""
    setup = _setup(name, seed)
    facts = setup.facts
    records = [_remembered(text) for text in _SMALL_TALK]
    rules = list(CONSTRAINTS.values())
    if facts.wall is not None:
        near = [neighbour(facts.wall, way) for way in DIRECTIONS]
        records.append(wall_record(facts.start if facts.start in near else near[0], facts.wall))
    if facts.forbidden is not None:
        records.append(rule_record(facts.forbidden))
        rules.append(ForbidCleaning(facts.forbidden))
    random.Random(f"stage {name} {seed}").shuffle(records)
    return Stage(name=name, setup=setup, records=tuple(records), rules=tuple(rules))


def _setup(name: StageName, seed: int) -> ScenarioSetup:
    first = build_scenario(name, seed)
    if name != "sudden-wall":
        return first
    # Without room for a wall on the straight way, try each neighbour of the start.
    for wall in (None, *(neighbour(first.facts.start, way) for way in DIRECTIONS)):
        with suppress(ValueError):
            return build_scenario(name, seed, episode=2, wall=wall)
    raise ValueError(f"There is no place for a wall in {name!r}, seed {seed!r}.")


def _remembered(text: str, kind: str = "note", **metadata: Scalar) -> Record:
    provenance = Provenance(
        run="20260101-000000-robot",
        activity="clean",
        cycle=3,
        source=SCOPE,
        source_kind="tool_return",
        trust=Trust.UNTRUSTED,
    )
    return Record(
        id=record_id(MemoryKind.EPISODIC, SCOPE, text),
        kind=MemoryKind.EPISODIC,
        text=text,
        scope=SCOPE,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        provenance=provenance,
        type=kind,
        metadata=metadata,
        sensed=bool(metadata),
    )


def wall_record(here: Cell, wall: Cell) -> Record:
    """What the agent writes down after a bump: in its words, with the robot's metadata."""
    text = f"Obstacle: moving from {here} failed, cell {wall} is blocked."
    place = {"x": here[0], "y": here[1], "blocked_x": wall[0], "blocked_y": wall[1]}
    return _remembered(text, "obstacle", **place)


def rule_record(cell: Cell) -> Record:
    """What the agent writes down after its cleaning was rejected."""
    return _remembered(f"Rule: cleaning cell {cell} is forbidden.", "rule")
