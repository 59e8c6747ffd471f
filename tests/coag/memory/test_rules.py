from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coag.memory import RuleChange, rules_of
from coag.memory.procedures import one_line, with_rules

LINES = st.lists(st.sampled_from(["Think.", "", "## More", "- point", "{goal}"]), max_size=5)
RULES = st.lists(st.text("ab c.#-1", min_size=1).map(one_line).filter(bool), max_size=4)

TEXT = (
    "Think.\n\n## Standing rules\n1. First rule.\n2) second\n   goes on\n- third\n\n## More\nEnd."
)


def test_rules_are_read_however_they_are_marked() -> None:
    assert rules_of(TEXT) == ("First rule.", "second goes on", "third")
    assert rules_of("No rules here.") == ()
    assert rules_of("# STANDING RULES\n\nunmarked\n") == ("unmarked",)


def test_rule_is_added_at_the_end_of_the_list() -> None:
    added = RuleChange(operation="add", rule=" 4. Look\nfirst. ").apply(TEXT)

    assert added == (
        "Think.\n\n## Standing rules\n1. First rule.\n2. second goes on\n3. third\n"
        "4. Look first.\n\n## More\nEnd."
    )


def test_first_rule_makes_the_section() -> None:
    assert RuleChange(operation="add", rule="Look.").apply("Think.\n") == (
        "Think.\n\n## Standing rules\n1. Look."
    )


def test_rule_is_replaced_and_removed_by_its_number() -> None:
    replaced = RuleChange(operation="replace", rule="Better.", number=2).apply(TEXT)
    assert rules_of(replaced) == ("First rule.", "Better.", "third")
    removed = RuleChange(operation="remove", number=1).apply(TEXT)
    assert rules_of(removed) == ("second goes on", "third")


def test_removing_the_last_rule_removes_the_section() -> None:
    text = RuleChange(operation="add", rule="Look.").apply("Think.")

    assert RuleChange(operation="remove", number=1).apply(text) == "Think."


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


def test_unknown_operation_is_refused() -> None:
    with pytest.raises(ValidationError):
        RuleChange.model_validate({"operation": "append"})


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
