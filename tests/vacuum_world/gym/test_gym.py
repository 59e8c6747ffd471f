from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from kits.vacuum_trials import planned

from vacuum_world.errors import UnknownScenarioError
from vacuum_world.gym import IDS, VacuumWorldEnv
from vacuum_world.scenarios import ADVERSARIAL, SCENARIOS, build_scenario
from vacuum_world.world import DIRECTIONS

WORDS = (*DIRECTIONS, "clean")


def made(scenario: str, **options: Any) -> VacuumWorldEnv:
    return VacuumWorldEnv(scenario, **options)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_checker_of_gymnasium_accepts_every_scenario(scenario: str) -> None:
    env = gymnasium.make("coag/VacuumWorld-v0", scenario=scenario)
    check_env(env.unwrapped)


def test_every_id_makes_its_scenario() -> None:
    assert set(IDS.values()) == set(SCENARIOS)
    assert "coag/SuddenWall-v0" in IDS
    for name, scenario in IDS.items():
        env = gymnasium.make(name).unwrapped
        assert isinstance(env, VacuumWorldEnv)
        assert env.scenario == scenario


@pytest.mark.parametrize("scenario", [name for name in ADVERSARIAL if name != "energy-dilemma"])
def test_a_plan_that_succeeds_by_the_rules_terminates_with_success(scenario: str) -> None:
    episode = SCENARIOS[scenario].episodes
    env = made(scenario, seed=5, episode=episode)
    env.reset()
    plan = planned(build_scenario(scenario, 5, episode=episode))
    ends = [env.step(WORDS.index(word))[2:] for word in plan]
    assert [(terminated, truncated) for terminated, truncated, _ in ends[:-1]] == [
        (False, False)
    ] * (len(plan) - 1)
    terminated, truncated, information = ends[-1]
    assert (terminated, truncated, information["success"]) == (True, False, True)


def test_the_suggested_number_of_actions_truncates_and_an_empty_battery_terminates() -> None:
    env = made("contradiction", seed=1)
    env.reset()
    bound = build_scenario("contradiction", 1).max_actions
    ends = [env.step(2 * (number % 2))[2:4] for number in range(bound)]
    assert ends == [(False, False)] * (bound - 1) + [(False, True)]
    env = made("delayed-effect", seed=1)
    env.reset()
    cleans = [env.step(4) for _ in range(10)]
    stranded = next(number for number, step in enumerate(cleans) if step[2])
    assert cleans[stranded][0]["battery"] == 0
    assert cleans[stranded][1] < -1
    assert not any(step[2] for step in cleans[:stranded])


def test_without_a_seed_instances_differ_and_with_one_they_are_the_same() -> None:
    env = made("contradiction")
    env.reset(seed=1)
    drawn = [env.reset()[0]["task"] for _ in range(5)]
    assert any((board != drawn[0]).any() for board in drawn)
    fixed = made("contradiction", seed=9)
    assert np.array_equal(fixed.reset()[0]["task"], fixed.reset(seed=9)[0]["task"])


def test_a_silent_sensor_reads_unknown() -> None:
    seed = next(
        seed
        for seed in range(50)
        if (fault := build_scenario("sensor-dropout", seed).facts.faults[0]).kind == "silent"
        and fault.since == 0
    )
    observation, _ = made("sensor-dropout", seed=seed).reset()
    assert set(observation["dirty"].tolist()) == {2}


def test_a_message_is_in_the_information_from_its_moment_on() -> None:
    setup = build_scenario("distraction", 2)
    assert setup.facts.message is not None
    env = made("distraction", seed=2)
    messages = [env.reset()[1]["message"]]
    messages += [env.step(WORDS.index(word))[4]["message"] for word in planned(setup)]
    after = setup.facts.message.after
    assert all(message is None for message in messages[:after])
    assert messages[after]["sender"] == setup.facts.message.sender


def test_text_is_rendered_where_it_was_asked_for() -> None:
    env = made("sudden-wall", seed=3, render_mode="ansi")
    env.reset()
    text = env.render()
    assert text is not None
    assert (text.count("R"), text.count("*")) == (1, 1)
    assert made("sudden-wall").render() is None


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(UnknownScenarioError, match="'maze'; there are: sudden-wall"):
        made("maze")
    with pytest.raises(ValueError, match="'evolution' has episodes 1 to 1, got 2"):
        made("evolution", episode=2)
    with pytest.raises(ValueError, match="'human'"):
        made("evolution", render_mode="human")
    with pytest.raises(ValueError, match="action 5 is not in Discrete"):
        made("evolution").step(5)


def test_the_world_itself_is_imported_without_gymnasium() -> None:
    code = "import sys, vacuum_world.scenarios, vacuum_world.tools, vacuum_world.server\n"
    code += "sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
