from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.minds import NOW, arrived

from coag.cycle import ProgressDetector
from coag.schema import Candidate, Failure, Trust

CALL = ("move", {"to": "north"})
CANDIDATE = Candidate(id="c1", action="move", arguments={"to": "north"})
WALL = Failure.DETERMINISTIC


def failing(times: int = 1, failure: Failure = Failure.TRANSIENT) -> ProgressDetector:
    detector = ProgressDetector()
    for _ in range(times):
        detector.note_result(CALL, "here", failure, "a wall", NOW)
    return detector


def test_a_deterministic_failure_is_not_tried_again_before_something_changes() -> None:
    detector = failing(failure=WALL)
    verdict = detector.verdict(CANDIDATE, "here", NOW)
    assert (verdict.allowed, verdict.constraint) == (False, "progress")
    assert "a wall" in verdict.reason
    assert detector.verdict(CANDIDATE, "there", NOW).allowed
    other = CANDIDATE.model_copy(update={"arguments": {"to": "south"}})
    assert detector.verdict(other, "here", NOW).allowed
    detector.note_result(CALL, "here", None, "", NOW)
    assert detector.verdict(CANDIDATE, "here", NOW).allowed


@pytest.mark.parametrize(("times", "seconds"), [(3, 30), (4, 60), (5, 120), (30, 900)])
def test_a_transient_veto_comes_with_the_third_failure_and_each_further_one_doubles_it(
    times: int, seconds: int
) -> None:
    assert failing(2).verdict(CANDIDATE, "here", NOW).allowed
    detector = failing(times)
    before = detector.verdict(CANDIDATE, "here", NOW + timedelta(seconds=seconds - 1))
    assert not before.allowed
    assert "it may be tried again in 1 s" in before.reason
    assert detector.verdict(CANDIDATE, "here", NOW + timedelta(seconds=seconds)).allowed


@pytest.mark.parametrize(
    ("failure", "trust", "ended"),
    [
        (Failure.TRANSIENT, Trust.USER, True),
        (Failure.TRANSIENT, Trust.UNTRUSTED, False),
        (WALL, Trust.USER, False),
    ],
)
def test_a_users_message_ends_a_transient_veto_and_nothing_else_does(
    failure: Failure, trust: Trust, ended: bool
) -> None:
    detector = failing(3, failure)
    detector.perceive(arrived("The server is back.", trust=trust))
    assert detector.verdict(CANDIDATE, "here", NOW).allowed is ended


def test_what_it_remembers_is_bounded() -> None:
    detector = ProgressDetector()
    for number in range(500):
        detector.note_result(("move", {"to": number}), "here", WALL, "x", NOW)
    assert len(detector.save_state()) == 100


RESULTS = st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.sampled_from([*Failure, None]))


@given(st.lists(RESULTS))
def test_its_state_is_saved_and_loaded_whole(
    results: list[tuple[int, str, Failure | None]],
) -> None:
    detector, other = ProgressDetector(), ProgressDetector()
    for number, key, failure in results:
        detector.note_result(("do", {"n": number}), key, failure, "text", NOW)
    other.load_state(detector.save_state())
    assert other.save_state() == detector.save_state()
