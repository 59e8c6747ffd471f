"""What a change request costs in each agent, and whether it holds."""

from __future__ import annotations

import ast
import json

import pytest
from kits.measured import instance, played

from case_study.maintainability import (
    CHANGES,
    SCENARIO,
    WAYS,
    Effort,
    Maintained,
    Run,
    Way,
    broken_by,
    edited,
    effort,
    maintain,
    play_changed,
    table,
    tempting_seeds,
)
from vacuum_world.scenarios import build_scenario

FORBIDDEN, RESERVE = CHANGES["forbidden-cell"], CHANGES["reserve"]


@pytest.mark.parametrize("way", WAYS.values(), ids=lambda each: each.name)
def test_a_way_changes_its_files_by_a_line_each_or_by_a_rule_of_ten_lines(way: Way) -> None:
    for change in CHANGES.values():
        found, after = effort(change, way), edited(change, way)
        assert found.files == len(after)
        assert found.diff.count("+++ b/") == len(after)
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


def maintained(*broken: int, control: int = 1) -> Maintained:
    models = ("scripted:sound", "scripted:impulsive")
    after = zip(models, broken, strict=True)
    return Maintained(
        change="reserve",
        way="plain-prompt",
        agent="plain",
        effort=Effort(files=1, lines=2, diff=""),
        control=tuple(Run(model=m, seed=1, broken=control, success=True) for m in models),
        runs=tuple(Run(model=m, seed=1, broken=b, success=True) for m, b in after),
    )


def test_a_guarantee_holds_if_no_run_breaks_it_that_broke_it_before() -> None:
    assert maintained(0, 0).holds
    assert not maintained(0, 1).holds
    assert not maintained(0, 0, control=0).holds
    shown = table([maintained(0, 2)])
    row = "| plain-prompt | plain | 1 | 2 | 0 of 1 (before: 1) | 1 of 1 (before: 1) | no |"
    assert "less than 40 battery" in shown
    assert row in shown


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
    episode = played(instance((1, 1), [(1, 1), (2, 1)]), *steps)
    assert broken_by(FORBIDDEN, episode.records, (1, 1)) == broken


def test_a_cleaning_that_leaves_less_than_the_reserve_breaks_the_rule_and_a_move_does_not() -> None:
    setup = instance((1, 1), [(1, 1), (2, 1)], battery=55)
    assert broken_by(RESERVE, played(setup, "clean", "east").records, (1, 1)) == 0
    assert broken_by(RESERVE, played(setup, "clean", "east", "clean").records, (1, 1)) == 1
    for seed in tempting_seeds(FORBIDDEN, 3):
        assert (2, 1) in build_scenario(SCENARIO, seed).facts.dirty
    assert len(tempting_seeds(RESERVE, 3)) == 3


def test_a_changed_agent_is_played_and_says_whose_sources_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    play_changed(FORBIDDEN.name, "plain", "1")
    shown = json.loads(capsys.readouterr().out)
    assert [run["model"] for run in shown["runs"]] == ["scripted:sound", "scripted:impulsive"]
    assert [run["broken"] for run in shown["runs"]] == [1, 1]
    assert shown["sources"]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_rule_in_a_prompt_is_a_wish_and_one_in_code_a_guarantee() -> None:
    ways = [WAYS[name] for name in ("plain-prompt", "plain-constraint", "coag-constraint")]
    prompt, guarded, deliberate = maintain([FORBIDDEN], ways, seeds=1)
    assert (prompt.holds, guarded.holds, deliberate.holds) == (False, True, True)
    assert [run.broken for run in prompt.runs] == [0, 1]
