"""What a change request costs in each agent, and whether it holds."""

from __future__ import annotations

import ast

import pytest
from kits.measured import instance, played

from case_study.maintainability import (
    CHANGES,
    SCENARIO,
    WAYS,
    broken_by,
    edited,
    effort,
    play_changed,
    play_copy,
    row_of,
    tempting_seeds,
)
from vacuum_world.scenarios import ScenarioSetup, build_scenario
from vacuum_world.world import WorldState

FORBIDDEN, RESERVE = CHANGES["forbidden-cell"], CHANGES["reserve"]


def world_after(setup: ScenarioSetup, *steps: str) -> WorldState:
    world = played(setup, *steps).world
    assert world is not None
    return world


@pytest.mark.parametrize("name", WAYS)
def test_a_way_changes_its_files_by_a_line_each_or_by_a_rule_of_ten_lines(name: str) -> None:
    way = WAYS[name]
    for change in CHANGES.values():
        found, after = effort(change, way), edited(change, way)
        assert found.files == len(after)
        if way.prompts:
            assert after.keys() == set(way.prompts)
            assert found.lines == len(after)
            last = {text.splitlines()[-1].removeprefix("- ") for text in after.values()}
            assert last == {change.sentence}
        else:
            assert found.lines == 10
            (text,) = after.values()
            tree = ast.walk(ast.parse(text))
            assert change.rule in {n.name for n in tree if isinstance(n, ast.FunctionDef)}


def test_a_guarantee_holds_if_no_run_breaks_it_that_broke_it_before() -> None:
    def holds(before: bool, *after: bool) -> str:
        models = ("scripted:sound", "scripted:impulsive")
        broken = {model: [each] for model, each in zip(models, after, strict=True)}
        row = row_of("plain-prompt", RESERVE, {model: [before] for model in models}, broken)
        assert row[:4] == ["plain-prompt", "plain", "1", "1"]
        assert row[5] == f"{after[1]:d} of 1 (before: {before:d})"
        return row[-1]

    assert holds(True, False, False) == "yes"
    assert holds(True, False, True) == "no"
    assert holds(False, False, False) == "no"


@pytest.mark.parametrize(
    ("steps", "broken"),
    [
        (("clean",), 0),
        (("east", "clean", "clean", "west", "clean"), 2),
        (("east", "west", "clean"), 0),
    ],
)
def test_cleaning_the_forbidden_cell_breaks_the_rule_each_time(
    steps: tuple[str, ...], broken: int
) -> None:
    assert broken_by(FORBIDDEN, world_after(instance((1, 1), [(1, 1), (2, 1)]), *steps)) == broken


def test_a_cleaning_that_leaves_less_than_the_reserve_breaks_the_rule_and_a_move_does_not() -> None:
    setup = instance((1, 1), [(1, 1), (2, 1)], battery=55)
    assert broken_by(RESERVE, world_after(setup, "clean", "east")) == 0
    assert broken_by(RESERVE, world_after(setup, "clean", "east", "clean")) == 1
    for seed in tempting_seeds(FORBIDDEN, 3):
        assert (2, 1) in build_scenario(SCENARIO, seed).facts.dirty
    assert len(tempting_seeds(RESERVE, 3)) == 3


async def test_an_agent_that_knows_no_rule_breaks_it() -> None:
    assert await play_changed(FORBIDDEN, "plain", 1) == {
        "scripted:sound": [True],
        "scripted:impulsive": [True],
    }


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_rule_in_a_prompt_is_a_wish_and_one_in_code_a_guarantee() -> None:
    def broken(name: str) -> list[list[bool]]:
        way = WAYS[name]
        return list(play_copy(FORBIDDEN, way.agent, 1, edited(FORBIDDEN, way)).values())

    assert broken("plain-prompt") == [[False], [True]]
    assert broken("plain-constraint") == [[False], [False]]
    assert broken("coag-constraint") == [[False], [False]]
