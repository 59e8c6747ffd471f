from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from case_study.contenders import Act, Observation
from case_study.contenders.vacuum import Oracle, RuleRobot, random_action, told_of
from case_study.robot import change_sentence
from vacuum_world.scenarios import (
    ADVERSARIAL,
    ScenarioSetup,
    ScenarioTruth,
    build_scenario,
    measure,
)
from vacuum_world.world import (
    WorldState,
    clean,
    join,
    move,
    sense,
    state_line,
)

Begin = Callable[[str, int], Any]
TOOLS = ["move_agent", "clean_current_cell", "sense", "quick_charge"]


@dataclass
class Stage:
    """A world that is played in."""

    world: WorldState

    async def look(self) -> WorldState:
        """The whole of it."""
        return self.world


def done(world: WorldState, act: Act) -> tuple[WorldState, str]:
    """The world after an action, and what the robot is told, as its tools tell it."""
    if act.action == "move_agent":
        step = move(world, "r1", act.arguments["direction"])
    elif act.action == "clean_current_cell":
        step = clean(world, "r1")
    else:
        return world, state_line(sense(world, "r1"))
    told = step.result.result.model_dump_json()
    return step.state, f"{told}\n{state_line(sense(step.state, 'r1'))}"


def test_every_legal_call_is_as_likely_as_the_others() -> None:
    dice = random.Random(1)
    acts = Counter(repr(random_action(dice, TOOLS)) for _ in range(7_000))
    assert len(acts) == 7
    assert all(800 < count < 1200 for count in acts.values())


async def ended(setup: ScenarioSetup, policy: str) -> ScenarioTruth:
    """What comes of an episode that rules or an oracle play."""
    stage = Stage(join(setup.world, "robot").state)
    robot = RuleRobot(told_of(setup.facts), sense(stage.world, "r1"))
    oracle = Oracle(setup, stage.look, "robot")
    results: list[str] = []
    for taken in range(setup.max_actions):
        seen = Observation(task="", changes=changes_by(setup, taken), results=tuple(results))
        act = robot.act(seen) if policy == "rules" else await oracle.act()
        if act is None:
            break
        stage.world, told = done(stage.world, act)
        results.append(told)
    return measure(setup, stage.world)


def changes_by(setup: ScenarioSetup, taken: int) -> tuple[str, ...]:
    """The changes of requirements that are told after so many actions."""
    cell, after = setup.facts.forbidden, setup.facts.forbidden_after
    if cell is None or after is None or taken < after:
        return ()
    return (change_sentence(cell),)


@pytest.mark.parametrize("scenario", ADVERSARIAL)
@pytest.mark.parametrize("policy", ["rules", "oracle"])
async def test_rules_and_oracle_succeed_where_it_can_be_done(scenario: str, policy: str) -> None:
    for seed in range(4):
        truth = await ended(build_scenario(scenario, seed), policy)
        assert truth.success, seed


async def test_where_the_world_changes_the_oracle_knows_what_will_come() -> None:
    setup = build_scenario("open-world-easy", 1)
    rules, oracle = await ended(setup, "rules"), await ended(setup, "oracle")
    assert not rules.stranded
    assert rules.score is not None
    assert oracle.score is not None
    assert oracle.score > rules.score


def test_rules_look_again_where_an_outcome_is_unknown(start: Begin) -> None:
    setup, world, reading = start("phantom-object", 1)
    robot = RuleRobot(told_of(setup.facts), reading)
    first = robot.act(Observation(task=""))
    assert first is not None
    unknown = "it may or may not have happened: sense before you repeat it"
    again = robot.act(Observation(task="", results=(unknown,)))
    assert again == Act(action="sense")
    assert world.counters.actions == 0
