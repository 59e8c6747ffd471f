from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coag.cycle import ProgressDetector
from coag.schema import Candidate, Failure

CALL = ("move", {"to": "north"})
CANDIDATE = Candidate(id="c1", action="move", arguments={"to": "north"})


def test_a_deterministic_failure_is_not_tried_again_in_the_same_state() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall")
    verdict = detector.verdict(CANDIDATE, "here")
    assert not verdict.allowed
    assert verdict.constraint == "progress"
    assert "a wall" in verdict.reason


def test_a_transient_failure_may_be_tried_three_times() -> None:
    detector = ProgressDetector()
    for _ in range(2):
        detector.note_result(CALL, "here", Failure.TRANSIENT, "slipped")
        assert detector.verdict(CANDIDATE, "here").allowed
    detector.note_result(CALL, "here", Failure.TRANSIENT, "slipped")
    assert not detector.verdict(CANDIDATE, "here").allowed


def test_a_changed_state_gives_a_new_chance() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall")
    assert detector.verdict(CANDIDATE, "there").allowed


def test_other_arguments_are_another_call() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall")
    other = Candidate(id="c2", action="move", arguments={"to": "south"})
    assert detector.verdict(other, "here").allowed


def test_success_clears_the_call() -> None:
    detector = ProgressDetector()
    detector.note_result(CALL, "here", Failure.DETERMINISTIC, "a wall")
    detector.note_result(CALL, "here", None, "")
    assert detector.verdict(CANDIDATE, "here").allowed


def test_what_it_remembers_is_bounded() -> None:
    detector = ProgressDetector()
    for number in range(500):
        detector.note_result(("move", {"to": number}), "here", Failure.DETERMINISTIC, "x")
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
        detector.note_result(("do", {"n": number}), key, failure, "text")
    other.load_state(detector.save_state())
    assert other.save_state() == detector.save_state()
