from collections.abc import Mapping

import pytest

from coag.awareness import (
    AttentionType,
    AwarenessEngine,
    AwarenessState,
    CodingAdapter,
    TransitionType,
)
from coag.errors import ObservationError
from coag.schema import SteppingClock


def _after(*turns: Mapping[str, object]) -> AwarenessState:
    engine = AwarenessEngine(CodingAdapter(), clock=SteppingClock())
    for turn in turns:
        engine.step(turn)
    return engine.state


def _last_event(state: AwarenessState) -> tuple[TransitionType, str]:
    last = state.trajectory.transitions[-1]
    return last.type, last.description


def _visible(state: AwarenessState) -> list[tuple[AttentionType, str, float]]:
    return [(item.type, item.description, item.urgency) for item in state.attention.visible]


def _status(state: AwarenessState) -> dict[str, object]:
    return {one.name: one.state["error_status"] for one in state.world.of_type("error")}


def test_a_new_error_is_a_failure_and_a_threat() -> None:
    state = _after({"errors": ["KeyError"]})
    assert _last_event(state) == (TransitionType.FAILURE, "Failed: KeyError")
    assert _visible(state) == [(AttentionType.THREAT, "Error: KeyError", 0.8)]
    assert _status(state) == {"KeyError": "unresolved"}


def test_an_error_that_lasts_is_no_second_threat() -> None:
    state = _after({"errors": ["KeyError"]}, {"errors": ["KeyError"]})
    assert _last_event(state) == (TransitionType.FAILURE, "Still failing: KeyError")
    assert len(state.attention.items) == 1


def test_a_fixed_error_is_resolved_and_its_threat_no_longer_urgent() -> None:
    state = _after({"errors": ["KeyError"]}, {"fixed": ["KeyError"]})
    assert _last_event(state) == (TransitionType.PROGRESS, "Resolved: KeyError")
    assert _status(state) == {"KeyError": "resolved"}
    assert _visible(state) == [(AttentionType.THREAT, "Error: KeyError", 0.1)]


@pytest.mark.parametrize(
    "turns",
    [
        [{"errors": ["A"]}, {"fixed": ["A"], "errors": ["B"]}],
        [{"errors": ["A"]}, {"fixed": ["A"]}, {"errors": ["B"]}],
    ],
)
def test_an_error_right_after_a_fix_is_a_discovery_and_more_urgent(
    turns: list[dict[str, object]],
) -> None:
    state = _after(*turns)
    assert _last_event(state) == (TransitionType.DISCOVERY, "New issue after fix of A: B")
    assert _visible(state)[0] == (
        AttentionType.THREAT,
        "Regression: B right after the fix of A",
        0.9,
    )


def test_an_error_long_after_a_fix_is_a_failure() -> None:
    state = _after({"errors": ["A"]}, {"fixed": ["A"]}, {"files": ["a.py"]}, {"errors": ["B"]})
    assert _last_event(state)[0] is TransitionType.FAILURE


def test_a_resolved_error_that_comes_back_is_a_reversal() -> None:
    state = _after({"errors": ["A"]}, {"fixed": ["A"]}, {"files": ["a.py"]}, {"errors": ["a"]})
    assert _last_event(state) == (TransitionType.REVERSAL, "Back again: a")
    assert _visible(state)[0] == (AttentionType.THREAT, "Error came back: a", 0.9)
    assert _status(state) == {"A": "unresolved"}


def test_an_error_that_is_said_to_be_fixed_and_shows_is_unresolved() -> None:
    state = _after({"errors": ["A"]}, {"fixed": ["A"], "errors": ["A"]})
    assert _status(state) == {"A": "unresolved"}


def test_new_goals_while_an_older_error_is_unresolved_widen_the_scope() -> None:
    state = _after({"errors": ["KeyError"]}, {"goals": ["Add a login"]})
    assert _last_event(state) == (TransitionType.BRANCH, "Scope expansion: Add a login")
    assert (
        AttentionType.ANOMALY,
        "Scope expansion: Add a login while unresolved: KeyError",
        0.6,
    ) in _visible(state)


@pytest.mark.parametrize(
    "second",
    [
        {"goals": ["Fix keyerror in the parser"]},
        {"goals": [{"description": "Read the log", "parent": "Make it run"}]},
        {"goals": ["Make it run"]},
        {"goals": ["Add a login"], "fixed": ["KeyError"]},
        {"questions": ["Why?"]},
    ],
)
def test_what_serves_the_work_at_hand_widens_no_scope(second: dict[str, object]) -> None:
    state = _after({"errors": ["KeyError"], "goals": ["Make it run"]}, second)
    assert _last_event(state)[0] is TransitionType.PROGRESS


def test_versions_that_do_not_go_together_are_an_anomaly() -> None:
    state = _after({"conflicts": ["numpy 2 and pandas 1.5"]})
    assert _visible(state) == [
        (AttentionType.ANOMALY, "Dependency conflict: numpy 2 and pandas 1.5", 0.7)
    ]


def test_errors_of_two_names_are_two_and_of_two_spellings_one() -> None:
    state = _after({"errors": ["KeyError", "TypeError"]}, {"errors": ["keyerror"]})
    assert _status(state) == {"KeyError": "unresolved", "TypeError": "unresolved"}


def test_an_error_may_have_the_name_of_something_else() -> None:
    engine = AwarenessEngine(CodingAdapter(), clock=SteppingClock())
    engine.step({"concepts": ["Timeout"]})
    text = engine.step({"errors": [{"name": "timeout", "message": "after 30 s"}]})
    assert "[unresolved] Timeout: after 30 s" in text
    assert "[resolved] Timeout: after 30 s" in engine.step({"fixed": ["Timeout"]})


def test_a_failure_teaches_a_lesson() -> None:
    engine = AwarenessEngine(CodingAdapter(), clock=SteppingClock())
    text = engine.step({"failure": {"action": "pinned numpy", "lesson": "pin pandas too"}})
    assert "LESSONS:\n  - pinned numpy: pin pandas too\n" in text


def test_nothing_said_is_no_event() -> None:
    assert _after({}).trajectory.transitions == ()


def test_a_projects_parts_stand_by_kind_with_the_latest_first() -> None:
    files = [f"part{n}.py" for n in range(10)]
    state = _after({"files": files}, {"files": ["last.py"], "libraries": ["numpy"]})
    text = CodingAdapter().format_for_injection(state, 500)
    assert "PROJECT:\n  files: last.py, part9.py, part8.py" in text
    assert "part4.py, part3.py and 3 more\n  libraries: numpy\n" in text


def test_a_wrong_analysis_is_refused_with_its_place() -> None:
    with pytest.raises(ObservationError) as caught:
        _after({"errors": ["A", {"message": "no name"}]})
    assert caught.value.path == "errors[1].name"


def test_the_domain_has_the_types_and_patterns_of_the_paper() -> None:
    adapter = CodingAdapter()
    assert len(adapter.define_entity_types()) == 8
    assert len(adapter.define_relationship_types()) == 8
    assert [pattern.name for pattern in adapter.define_scan_patterns()] == [
        "error recurrence",
        "scope creep",
        "dependency conflict",
        "solution regression",
    ]
