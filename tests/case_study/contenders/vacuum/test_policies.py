from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from case_study.contenders import Act, Observation
from case_study.contenders.vacuum import Oracle, RuleRobot, random_action, told_of
from vacuum_world.scenarios import ADVERSARIAL, build_scenario, measure
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


@pytest.mark.parametrize("scenario", ADVERSARIAL)
@pytest.mark.parametrize("seed", range(4))
async def test_rules_and_oracle_succeed_where_it_can_be_done(scenario: str, seed: int) -> None:
    setup = build_scenario(scenario, seed)
    for policy in ("rules", "oracle"):
        world = join(setup.world, "robot").state
        robot = RuleRobot(told_of(setup.facts), sense(world, "r1"))

        async def look(name: str = "robot") -> WorldState:
            del name
            return world  # noqa: B023 - the world as it is when it is looked at

        oracle = Oracle(setup, look, "robot")
        changes: tuple[str, ...] = ()
        results: list[str] = []
        for taken in range(setup.max_actions):
            if setup.facts.forbidden_after is not None and taken >= setup.facts.forbidden_after:
                x, y = setup.facts.forbidden or (0, 0)
                changes = (f"From now on, cleaning cell ({x}, {y}) is forbidden.",)
            seen = Observation(task="", changes=changes, results=tuple(results))
            act = robot.act(seen) if policy == "rules" else await oracle.act()
            if act is None:
                break
            world, told = done(world, act)
            results.append(told)
        assert measure(setup, world).success, policy


def test_rules_look_again_where_an_outcome_is_unknown(start: Begin) -> None:
    setup, world, reading = start("phantom-object", 1)
    robot = RuleRobot(told_of(setup.facts), reading)
    first = robot.act(Observation(task=""))
    assert first is not None
    unknown = "it may or may not have happened: sense before you repeat it"
    again = robot.act(Observation(task="", results=(unknown,)))
    assert again == Act(action="sense")
    assert world.counters.actions == 0
