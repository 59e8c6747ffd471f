"""Work on software: errors with their life, growing scope, and the parts of a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from coag.awareness import AwarenessEngine, AwarenessState, CodingAdapter
from coag.errors import ObservationError
from coag.schema import SteppingClock

A: dict[str, Any] = {"errors": ["A"]}
FIXED: dict[str, Any] = {"fixed": ["A"]}
B = {"errors": ["B"]}
AGAIN = {"errors": ["a"]}
BOTH = {"errors": ["A", "B"]}
OTHER = {"files": ["a.py"]}
LOGIN = {"goals": ["Write the login"]}


def after(*turns: Mapping[str, object]) -> AwarenessState:
    engine = AwarenessEngine(CodingAdapter(), clock=SteppingClock())
    for turn in turns:
        engine.step(turn)
    return engine.state


@pytest.mark.parametrize(
    ("turns", "event", "threat", "urgency", "statuses"),
    [
        ([A], "failure: Failed: A", "Error: A", 0.8, "u"),
        ([A, A], "failure: Still failing: A", "Error: A", 0.8, "u"),
        ([A, FIXED], "progress: Resolved: A", "Error: A", 0.1, "r"),
        ([A, FIXED | B], "discovery: New issue after fix of A: B", "Regression: B", 0.9, "ru"),
        ([A, FIXED, B], "discovery: New issue after fix of A: B", "Regression: B", 0.9, "ru"),
        ([A, FIXED, OTHER, B], "failure: Failed: B", "Error: B", 0.8, "ru"),
        ([A, FIXED, OTHER, AGAIN], "reversal: Back again: a", "Error came back: a", 0.9, "u"),
        ([A, FIXED | A], "failure: Still failing: A", "Error: A", 0.8, "u"),
        ([BOTH, AGAIN], "failure: Still failing: a", "Error: B", 0.8, "uu"),
        ([A, LOGIN], "branch: Scope expansion: Write the login", "Error: A", 0.8, "u"),
    ],
)
def test_errors_are_raised_fixed_and_back_and_new_goals_meanwhile_widen_the_scope(
    turns: list[dict[str, Any]], event: str, threat: str, urgency: float, statuses: str
) -> None:
    state = after(*turns)
    last = state.trajectory.transitions[-1]
    assert f"{last.type.value}: {last.description}" == event
    first = state.attention.visible[0]
    after_fix = " right after the fix of A" if threat.startswith("Regression") else ""
    assert (first.type.value, first.description) == ("threat", threat + after_fix)
    assert first.urgency == urgency
    kinds = {"u": "unresolved", "r": "resolved"}
    found = [one.state["error_status"] for one in state.world.of_type("error")]
    assert found == [kinds[one] for one in statuses]
    assert len(state.attention.items) <= len(turns) + 1


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([A, LOGIN], ("Scope expansion: Write the login while unresolved: A", 0.6)),
        (
            [{"conflicts": ["numpy 2 and pandas 1"]}],
            ("Dependency conflict: numpy 2 and pandas 1", 0.7),
        ),
    ],
)
def test_new_scope_and_conflicts_are_anomalies(
    turns: list[dict[str, Any]], expected: tuple[str, float]
) -> None:
    last = after(*turns).attention.items[-1]
    assert (last.type.value, last.description, last.urgency) == ("anomaly", *expected)


@pytest.mark.parametrize(
    "second",
    [
        {"goals": ["Fix a in the parser"]},
        {"goals": [{"description": "Read the log", "parent": "Make it run"}]},
        {"goals": ["Make it run"]},
        LOGIN | FIXED,
        {"questions": ["Why?"]},
    ],
)
def test_what_serves_the_work_at_hand_widens_no_scope(second: dict[str, object]) -> None:
    state = after(A | {"goals": ["Make it run"]}, second)
    assert state.trajectory.transitions[-1].type == "progress"


def test_an_error_may_have_the_name_of_something_else_and_a_failure_has_a_lesson() -> None:
    engine = AwarenessEngine(CodingAdapter(), clock=SteppingClock())
    engine.step({"concepts": ["Timeout"]})
    text = engine.step({"errors": [{"name": "timeout", "message": "after 30 s"}]})
    assert "[unresolved] Timeout: after 30 s" in text
    failure = {"action": "pinned numpy", "lesson": "pin pandas too"}
    text = engine.step({"fixed": ["Timeout"], "failure": failure})
    assert "[resolved] Timeout: after 30 s" in text
    assert "LESSONS:\n  - pinned numpy: pin pandas too\n" in text


def test_a_projects_parts_are_shown_by_kind_with_the_latest_first() -> None:
    files = [f"part{n}.py" for n in range(10)]
    state = after({"files": files}, {"files": ["last.py"], "libraries": ["numpy"]})
    text = CodingAdapter().format_for_injection(state, 500)
    assert "PROJECT:\n  files: last.py, part9.py, part8.py" in text
    assert "part4.py, part3.py and 3 more\n  libraries: numpy\n" in text


def test_the_domain_has_the_types_and_patterns_of_the_paper() -> None:
    adapter = CodingAdapter()
    assert len(adapter.define_entity_types()) == len(adapter.define_relationship_types()) == 8
    patterns = "error recurrence, scope creep, dependency conflict, solution regression"
    assert ", ".join(one.name for one in adapter.define_scan_patterns()) == patterns
    assert after({}).trajectory.transitions == ()
    with pytest.raises(ObservationError) as caught:
        after({"errors": ["A", {"message": "no name"}]})
    assert caught.value.path == "errors[1].name"
