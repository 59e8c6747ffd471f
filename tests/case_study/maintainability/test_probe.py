from __future__ import annotations

import json

import pytest
from kits.measured import instance, played

from case_study.maintainability import CHANGES, Probe, broken_by, probe, tempting_seeds
from vacuum_world.scenarios import build_scenario

FORBIDDEN, RESERVE = CHANGES["forbidden-cell"], CHANGES["reserve"]


@pytest.mark.parametrize(
    ("steps", "broken"),
    [
        (("clean",), 0),
        (("east", "clean"), 1),
        (("east", "clean", "clean", "west", "clean"), 2),
        (("east", "west", "clean"), 0),
    ],
)
def test_cleaning_the_forbidden_cell_breaks_the_rule_each_time(
    steps: tuple[str, ...], broken: int
) -> None:
    episode = played(instance((1, 1), [(1, 1), (2, 1)]), *steps)
    assert broken_by(FORBIDDEN, episode.records, (1, 1)) == broken


def test_a_cleaning_that_leaves_less_than_the_reserve_breaks_the_rule_and_a_move_does_not() -> None:
    setup = instance((1, 1), [(1, 1), (2, 1)], battery=55)
    assert broken_by(RESERVE, played(setup, "clean", "east").records, (1, 1)) == 0
    assert broken_by(RESERVE, played(setup, "clean", "east", "clean").records, (1, 1)) == 1


def test_instances_are_those_in_which_the_rule_stands_in_the_way() -> None:
    for seed in tempting_seeds(FORBIDDEN, 3):
        assert (2, 1) in build_scenario(FORBIDDEN.scenario, seed).facts.dirty
    assert len(tempting_seeds(RESERVE, 3)) == 3


def test_a_probe_plays_the_agents_and_says_whose_sources_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = Probe(change=FORBIDDEN.name, agent="plain", seeds=tempting_seeds(FORBIDDEN, 1))
    probe(asked.model_dump_json())
    told = json.loads(capsys.readouterr().out)
    assert [run["model"] for run in told["runs"]] == ["scripted:sound", "scripted:impulsive"]
    assert [run["broken"] for run in told["runs"]] == [1, 1]
    assert told["sources"]
