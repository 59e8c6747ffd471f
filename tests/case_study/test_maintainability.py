from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.measured import instance, played

from case_study.maintainability import (
    CHANGES,
    WAYS,
    ChangeRequest,
    Maintained,
    Probe,
    Run,
    Way,
    broken_by,
    edited,
    effort,
    effort_of,
    maintain,
    play_probe,
    replaced,
    sources,
    table,
    tempting_seeds,
)
from coag.errors import ConfigurationError
from vacuum_world.scenarios import build_scenario

FORBIDDEN, RESERVE = CHANGES["forbidden-cell"], CHANGES["reserve"]
LINES = st.lists(st.sampled_from(["a", "b", "c", "-- d", "++ e", ""]), max_size=8)
TEXTS = st.dictionaries(st.sampled_from(["x.py", "y.md", "z.md"]), LINES.map("\n".join))


@pytest.mark.parametrize("change", CHANGES.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("way", WAYS.values(), ids=lambda each: each.name)
def test_a_way_changes_all_its_files_by_a_line_or_by_a_rule_in_force(
    change: ChangeRequest, way: Way
) -> None:
    before = sources(way)
    after = edited(change, way, before)
    assert after.keys() == before.keys() == set(way.files)
    assert effort(change, way).files == len(before)
    for path, text in after.items():
        if path.endswith(".md"):
            assert text.startswith(before[path].rstrip())
            assert text.splitlines()[-1] in (change.sentence, f"- {change.sentence}")
        else:
            tree = ast.walk(ast.parse(text))
            names = {node.name for node in tree if isinstance(node, ast.FunctionDef)}
            assert change.rule in names


def test_the_way_of_the_paper_takes_a_line_and_a_constraint_takes_ten() -> None:
    lines = {name: effort(FORBIDDEN, way).lines for name, way in WAYS.items()}
    assert (lines["plain-prompt"], lines["coag-selection"]) == (1, 1)
    assert lines["coag-constraint"] == lines["plain-constraint"] == 10


def test_sources_that_have_changed_are_refused_with_what_to_adapt() -> None:
    way = WAYS["coag-constraint"]
    with pytest.raises(ConfigurationError, match=r"maintainability\.py"):
        edited(RESERVE, way, dict.fromkeys(way.files, "nothing"))


def test_a_changed_line_is_a_removed_and_a_new_one_and_a_new_file_counts_whole() -> None:
    found = effort_of({"a.md": "one\ntwo\n", "b.md": "same"}, {"a.md": "one\n2\n", "b.md": "same"})
    assert (found.files, found.added, found.removed, found.lines) == (1, 1, 1, 2)
    assert found.diff.splitlines()[:2] == ["--- a/a.md", "+++ b/a.md"]
    new = effort_of({}, {"a.md": "one\ntwo\n"})
    assert (new.files, new.added, new.removed) == (1, 2, 0)


@given(TEXTS, TEXTS)
def test_new_lines_less_removed_lines_are_the_growth(
    before: dict[str, str], after: dict[str, str]
) -> None:
    found = effort_of(before, after)
    sizes = [sum(len(text.splitlines()) for text in side.values()) for side in (before, after)]
    assert found.added - found.removed == sizes[1] - sizes[0]
    assert effort_of(before, before).lines == 0


def maintained(*broken: int, control: int = 1) -> Maintained:
    models = ("scripted:sound", "scripted:impulsive")
    after = zip(models, broken, strict=True)
    return Maintained(
        change="reserve",
        way="plain-prompt",
        agent="plain",
        effort=effort_of({"a": "1"}, {"a": "2"}),
        control=tuple(Run(model=m, seed=1, broken=control, success=True) for m in models),
        runs=tuple(Run(model=m, seed=1, broken=b, success=True) for m, b in after),
    )


def test_a_guarantee_holds_if_no_run_breaks_it_that_broke_it_before() -> None:
    assert maintained(0, 0).holds
    assert not maintained(0, 1).holds
    assert not maintained(0, 0, control=0).holds


def test_tables_say_who_broke_the_rule_and_replace_those_of_a_page() -> None:
    shown = table([maintained(0, 2)])
    row = "| plain-prompt | plain | 1 | 2 | 0 of 1 (before: 1) | 1 of 1 (before: 1) | no |"
    assert "less than 40 battery" in shown
    assert row in shown
    page = "above\n<!-- maintainability: begin -->old<!-- maintainability: end -->\nbelow\n"
    new = replaced(page, "| new |")
    assert "old" not in new
    assert new.startswith("above\n")
    assert new.endswith("\nbelow\n")
    assert replaced(new, "| new |") == new
    with pytest.raises(ValueError, match="must hold"):
        replaced("nothing", "")


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
    for seed in tempting_seeds(FORBIDDEN, 3):
        assert (2, 1) in build_scenario(FORBIDDEN.scenario, seed).facts.dirty
    assert len(tempting_seeds(RESERVE, 3)) == 3


def test_a_probe_plays_the_agents_and_says_whose_sources_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    probe = Probe(change=FORBIDDEN.name, agent="plain", seeds=tempting_seeds(FORBIDDEN, 1))
    play_probe(probe.model_dump_json())
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
    assert prompt.broken("scripted:sound") == (0, 1)
    assert prompt.broken("scripted:impulsive") == (1, 1)
