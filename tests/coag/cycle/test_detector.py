from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.cycle import ProgressDetector
from coag.schema import Candidate, Failure, Percept, PerceptKind, Trust

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALL = ("move", {"to": "north"})
CANDIDATE = Candidate(id="c1", action="move", arguments={"to": "north"})


def test_a_deterministic_failure_is_not_tried_again_in_the_same_state() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall", NOW)
    verdict = detector.verdict(CANDIDATE, "here", NOW)
    assert not verdict.allowed
    assert verdict.constraint == "progress"
    assert "a wall" in verdict.reason


def test_a_transient_failure_may_be_tried_three_times() -> None:
    detector = ProgressDetector()
    for _ in range(2):
        detector.note_result(CALL, "here", Failure.TRANSIENT, "slipped", NOW)
        assert detector.verdict(CANDIDATE, "here", NOW).allowed
    detector.note_result(CALL, "here", Failure.TRANSIENT, "slipped", NOW)
    assert not detector.verdict(CANDIDATE, "here", NOW).allowed


def failing(times: int) -> ProgressDetector:
    detector = ProgressDetector()
    for _ in range(times):
        detector.note_result(CALL, "here", Failure.TRANSIENT, "503", NOW)
    return detector


@pytest.mark.parametrize(("times", "seconds"), [(3, 30), (4, 60), (5, 120), (30, 900)])
def test_a_transient_veto_ends_with_time_and_each_further_failure_doubles_it(
    times: int, seconds: int
) -> None:
    detector = failing(times)
    before = detector.verdict(CANDIDATE, "here", NOW + timedelta(seconds=seconds - 1))
    assert not before.allowed
    assert "it may be tried again in 1 s" in before.reason
    assert detector.verdict(CANDIDATE, "here", NOW + timedelta(seconds=seconds)).allowed


def test_a_users_message_ends_a_transient_veto_and_nobody_elses_does() -> None:
    message = Percept(
        id="percept-1",
        at=NOW,
        kind=PerceptKind.MESSAGE,
        source="mail",
        trust=Trust.UNTRUSTED,
        content="The server is back.",
    )
    detector = failing(3)
    detector.perceive(message)
    assert not detector.verdict(CANDIDATE, "here", NOW).allowed
    detector.perceive(message.model_copy(update={"trust": Trust.USER}))
    assert detector.verdict(CANDIDATE, "here", NOW).allowed


def test_a_users_message_does_not_open_a_wall() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall", NOW)
    detector.perceive(
        Percept(
            id="percept-1",
            at=NOW,
            kind=PerceptKind.MESSAGE,
            source="user",
            trust=Trust.USER,
            content="Try again.",
        )
    )
    assert not detector.verdict(CANDIDATE, "here", NOW).allowed


def test_a_changed_state_gives_a_new_chance() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall", NOW)
    assert detector.verdict(CANDIDATE, "there", NOW).allowed


def test_other_arguments_are_another_call() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall", NOW)
    other = Candidate(id="c2", action="move", arguments={"to": "south"})
    assert detector.verdict(other, "here", NOW).allowed


def test_success_clears_the_call() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall", NOW)
    detector.note_result(CALL, "here", None, "", NOW)
    assert detector.verdict(CANDIDATE, "here", NOW).allowed


def test_what_it_remembers_is_bounded() -> None:
    detector = ProgressDetector()
    for number in range(500):
        detector.note_result(("move", {"to": number}), "here", Failure.DETERMINISTIC, "x", NOW)
    assert len(detector.save_state()) == 100


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["a", "b"]), st.sampled_from([*Failure, None]))
    )
)
def test_its_state_is_saved_and_loaded_whole(
    results: list[tuple[int, str, Failure | None]],
) -> None:
    detector, other = ProgressDetector(), ProgressDetector()
    for number, key, failure in results:
        detector.note_result(("do", {"n": number}), key, failure, "text", NOW)
    other.load_state(detector.save_state())
    assert other.save_state() == detector.save_state()
