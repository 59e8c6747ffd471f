"""Procedures: how they are read and filled, and their standing rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import ConfigurationError
from coag.memory import (
    Procedure,
    RuleChange,
    load_procedures,
    parse_procedure,
    rules_of,
)
from coag.memory.procedures import fill, rule_line, with_rules

SOURCE = """+++
description = "How to greet."
placeholders = ["name"]
+++

Greet {name}. Write {"json": {}} and {other} as they are.
"""


def test_front_matter_and_text_are_read() -> None:
    procedure = parse_procedure("greeting", SOURCE)
    assert procedure == Procedure(
        name="greeting",
        text='Greet {name}. Write {"json": {}} and {other} as they are.',
        placeholders=("name",),
        description="How to greet.",
    )


def test_file_without_front_matter_is_all_text() -> None:
    assert parse_procedure("plain", "\ufeff+ just text\n").text == "\ufeff+ just text"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("+++\nplaceholders = []", "no closing"),
        ("+++\nplaceholders = [\n+++\ntext", "cannot be read"),
        ("+++\nplaceholder = []\n+++\ntext", "cannot be read"),
        ("+++\n+++\n \n", "cannot be read"),
        ('+++\nplaceholders = ["goal"]\n+++\ntext', "lists placeholders .* goal"),
    ],
)
def test_malformed_file_is_refused(source: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'broken'.*{problem}"):
        parse_procedure("broken", source)


def test_only_listed_placeholders_are_filled() -> None:
    procedure = parse_procedure("greeting", SOURCE)
    filled = fill(procedure, procedure.text, {"name": "{other} {name}", "other": "x"})
    assert filled == 'Greet {other} {name}. Write {"json": {}} and {other} as they are.'
    with pytest.raises(ConfigurationError, match="'greeting' needs a value for: name"):
        fill(procedure, procedure.text, {})


def test_folder_of_a_domain_is_loaded_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no procedures"):
        load_procedures(tmp_path)
    (tmp_path / "greeting.md").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a procedure")
    assert list(load_procedures(tmp_path)) == ["greeting"]


LINES = st.lists(st.sampled_from(["Think.", "", "## More", "- point", "{goal}"]), max_size=5)
RULES = st.lists(st.text("ab c.#-1", min_size=1).map(rule_line).filter(bool), max_size=4)

TEXT = (
    "Think.\n\n## Standing rules\n1. First rule.\n2) second\n   goes on\n- third\n\n## More\nEnd."
)


def test_rules_are_read_however_they_are_marked() -> None:
    assert rules_of(TEXT) == ("First rule.", "second goes on", "third")
    assert rules_of("No rules here.") == ()
    assert rules_of("# STANDING RULES\n\nunmarked\n") == ("unmarked",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (RuleChange(operation="remove", number=4), "no standing rule 4; there are 3"),
        (RuleChange(operation="replace", rule="x", number=0), "no standing rule 0"),
        (RuleChange(operation="add", rule=" - "), "rule is empty"),
        (RuleChange(operation="replace", rule="", number=1), "rule is empty"),
    ],
)
def test_impossible_change_is_refused(change: RuleChange, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        change.apply(TEXT)


@given(lines=LINES, rules=RULES)
def test_rules_that_were_put_in_are_read_back_and_the_rest_stays(
    lines: list[str], rules: list[str]
) -> None:
    text = "\n".join(lines)
    changed = with_rules(text, rules)
    assert rules_of(changed) == tuple(rules)
    kept = [line for line in changed.splitlines() if line]
    assert kept[: len([line for line in lines if line])] == [line for line in lines if line]
    assert with_rules(changed, rules) == changed
