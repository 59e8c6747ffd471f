"""What can be told of the failures of a plain agent."""

from __future__ import annotations

import pytest

from coag.compat import Recorder
from coag.proof import Cause, Diagnosis, diagnose
from coag.schema import Failure, ModelCall, OutputMode, ReceiptStatus, TokenUsage


def _plain(
    content: str,
    failure: Failure | None = None,
    status: ReceiptStatus = ReceiptStatus.FAILED,
    **arguments: object,
) -> list[Diagnosis]:
    recorder = Recorder(None, agent="plain")
    recorder.begin_turn()
    attempt = recorder.begin("look", arguments)
    recorder.end(attempt, status, content, failure)
    recorder.end_turn("respond", "Done.")
    return diagnose(recorder.records)


def test_a_call_that_worked_is_no_failure() -> None:
    assert _plain("nothing new", status=ReceiptStatus.DONE) == []


def test_a_tool_that_does_not_exist_is_an_invalid_proposal() -> None:
    (found,) = _plain("Error: The tool 'look' is not found in any workbench.")
    assert found.cause is Cause.INVALID_PROPOSAL
    assert found.cycle == 1


def test_arguments_that_are_no_object_are_an_invalid_proposal() -> None:
    (found,) = _plain("wrong", unparsed="{")
    assert found.cause is Cause.INVALID_PROPOSAL


@pytest.mark.parametrize("status", [ReceiptStatus.UNKNOWN, ReceiptStatus.CANCELLED])
def test_of_a_call_that_gave_no_answer_it_is_said_that_it_is_not_known(
    status: ReceiptStatus,
) -> None:
    (found,) = _plain("late", status=status)
    assert found.cause is Cause.FAILED_EXECUTION
    assert "It is not known whether" in found.failure


def test_a_failure_that_lies_in_the_world_cannot_be_attributed() -> None:
    (found,) = _plain("blocked", Failure.DETERMINISTIC)
    assert found.cause is None
    assert "was not recorded" in found.reason
    assert "not attributable" in str(found)


def test_repeating_what_failed_is_an_invalid_proposal() -> None:
    recorder = Recorder(None, agent="plain")
    for content in ("blocked, battery 50", "blocked, battery 45", "drained"):
        recorder.begin_turn()
        attempt = recorder.begin("move", {"to": "north"})
        recorder.end(attempt, ReceiptStatus.FAILED, content, Failure.DETERMINISTIC)
    causes = [found.cause for found in diagnose(recorder.records)]
    assert causes == [None, Cause.INVALID_PROPOSAL, None]


def test_an_empty_answer_is_the_models() -> None:
    recorder = Recorder(None, agent="plain")
    recorder.begin_turn()
    recorder.model_call(
        ModelCall(
            id="call-000001",
            at=recorder.clock.now(),
            cycle=1,
            model="m",
            rung=OutputMode.TEXT,
            attempt=1,
            messages=(),
            raw=" ",
            usage=TokenUsage(),
        )
    )
    (found,) = diagnose(recorder.records)
    assert found.cause is Cause.UNUSABLE_ANSWER
