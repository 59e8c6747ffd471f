from __future__ import annotations

import ast

import pytest

from case_study.maintainability import (
    CHANGES,
    WAYS,
    ChangeRequest,
    Way,
    change_named,
    edited,
    effort,
    files_of,
    sources,
)
from coag.errors import ConfigurationError, UnknownNameError

EVERY_CHANGE = pytest.mark.parametrize("change", CHANGES.values(), ids=lambda each: each.name)
EVERY_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=lambda each: each.name)


@EVERY_CHANGE
@EVERY_WAY
def test_a_way_changes_all_files_that_it_names_and_no_others(
    change: ChangeRequest, way: Way
) -> None:
    before = sources(way)
    after = edited(change, way, before)
    assert after.keys() == before.keys() == set(files_of(way))
    assert all(after[path] != before[path] for path in before)
    assert effort(change, way).files == len(before)


@EVERY_CHANGE
def test_a_constraint_is_python_that_defines_its_rule_and_puts_it_in_force(
    change: ChangeRequest,
) -> None:
    way = WAYS["coag-constraint"]
    (text,) = edited(change, way, sources(way)).values()
    defined = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    assert change.rule in defined
    assert f'"{change.rule}": {change.rule},' in text


@EVERY_CHANGE
def test_a_prompt_gets_one_more_line_and_keeps_the_rest(change: ChangeRequest) -> None:
    way = WAYS["coag-procedures"]
    before = sources(way)
    for path, text in edited(change, way, before).items():
        assert text.startswith(before[path].rstrip())
        assert text.splitlines()[-1] in (change.sentence, f"- {change.sentence}")


def test_the_paper_s_way_takes_a_line_and_a_constraint_takes_ten() -> None:
    change = change_named("forbidden-cell")
    lines = {name: effort(change, way).lines for name, way in WAYS.items()}
    assert (lines["plain-prompt"], lines["coag-selection"]) == (1, 1)
    assert lines["coag-constraint"] == lines["plain-constraint"] == 10


def test_sources_that_have_moved_on_are_refused_with_what_to_mend() -> None:
    way = WAYS["coag-constraint"]
    with pytest.raises(ConfigurationError, match=r"_change\.py"):
        edited(change_named("reserve"), way, dict.fromkeys(files_of(way), "nothing"))


def test_an_unknown_change_request_is_told_which_there_are() -> None:
    with pytest.raises(UnknownNameError, match="forbidden-cell"):
        change_named("nonsense")
