from __future__ import annotations

import pytest

from case_study.maintainability import (
    CHANGES,
    WAYS,
    Maintained,
    Run,
    effort_of,
    maintain,
    replaced,
    table,
)


def _maintained(*broken: int, control: int = 1) -> Maintained:
    models = ("scripted:sound", "scripted:impulsive")
    return Maintained(
        change="reserve",
        way="plain-prompt",
        agent="plain",
        effort=effort_of({"a": "1"}, {"a": "2"}),
        control=tuple(Run(model=m, seed=1, broken=control, success=True) for m in models),
        runs=tuple(
            Run(model=m, seed=1, broken=b, success=True)
            for m, b in zip(models, broken, strict=True)
        ),
    )


def test_a_guarantee_holds_if_no_run_breaks_it_that_broke_it_before() -> None:
    assert _maintained(0, 0).holds
    assert not _maintained(0, 1).holds
    assert not _maintained(0, 0, control=0).holds


def test_the_table_says_who_broke_the_rule_before_and_after() -> None:
    shown = table([_maintained(0, 2)])
    assert "less than 40 battery" in shown
    assert (
        "| plain-prompt | plain | 1 | 2 | 0 of 1 (before: 1) | 1 of 1 (before: 1) | no |" in shown
    )


def test_tables_take_the_place_of_those_in_a_page() -> None:
    page = "above\n<!-- maintainability: begin -->old<!-- maintainability: end -->\nbelow\n"
    new = replaced(page, "| new |")
    assert "old" not in new
    assert new.startswith("above\n")
    assert new.endswith("\nbelow\n")
    assert replaced(new, "| new |") == new
    with pytest.raises(ValueError, match="must hold"):
        replaced("nothing", "")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_rule_in_a_prompt_is_a_wish_and_one_in_code_a_guarantee() -> None:
    ways = [WAYS[name] for name in ("plain-prompt", "plain-constraint", "coag-constraint")]
    prompt, guarded, deliberate = maintain([CHANGES["forbidden-cell"]], ways, seeds=1)
    assert (prompt.holds, guarded.holds, deliberate.holds) == (False, True, True)
    assert prompt.broken("scripted:sound") == (0, 1)
    assert prompt.broken("scripted:impulsive") == (1, 1)
