from __future__ import annotations

import pytest

from case_study.contenders import CONTENDERS, contender_named
from coag.errors import UnknownNameError


def test_there_are_twenty_two_contenders_in_the_order_in_which_they_are_shown() -> None:
    assert list(CONTENDERS)[:3] == ["random", "rules", "oracle"]
    assert len(CONTENDERS) == 22
    assert all(name == each.name for name, each in CONTENDERS.items())
    assert [c.name for c in CONTENDERS.values() if not c.asks_model] == list(CONTENDERS)[:3]


def test_unknown_contender_is_answered_with_those_that_exist() -> None:
    with pytest.raises(UnknownNameError, match="coag-without-rewriting"):
        contender_named("nope")


def test_each_ablation_is_the_full_agent_but_for_one_part() -> None:
    full = CONTENDERS["coag-full"]
    for name, contender in CONTENDERS.items():
        if not name.startswith("coag-without-"):
            continue
        part = name.removeprefix("coag-without-")
        told = full.model_dump(exclude={"name", "title", "summary"})
        other = contender.model_dump(exclude={"name", "title", "summary"})
        differs = {field for field in told if told[field] != other[field]}
        switches = {
            "constraints": "constrained",
            "conduct": "conduct",
            "value": "valued",
            "enumeration": "enumerated",
            "masking": "enumerated",
        }
        assert differs == {switches.get(part, "without")}
        assert contender.without == (() if part in switches else (part,))


def test_headline_is_with_proposals_of_the_model() -> None:
    grounded = [name for name, each in CONTENDERS.items() if each.grounded]
    assert grounded == ["coag-compact-grounded", "coag-full-grounded"]


@pytest.mark.parametrize("name", ["coag-compact", "coag-full"])
def test_aware_contender_is_the_same_agent_but_for_awareness(name: str) -> None:
    told = CONTENDERS[name].model_dump(exclude={"name", "title", "summary"})
    aware = CONTENDERS[f"{name}-aware"].model_dump(exclude={"name", "title", "summary"})
    assert {field for field in told if told[field] != aware[field]} == {"aware"}
