"""`coag why` at the terminal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.foragers import BITTER, foraged

from coag.schema import Note, SteppingClock
from coag.tracing import RunFolder

Say = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return asyncio.run(foraged(tmp_path))


def test_a_decision_is_explained_with_all_that_it_used(run: RunFolder, say: Say) -> None:
    result = say("why", "latest", "3")
    assert result.code == 0
    for part in (
        f'{run.path.name}, cycle 3: respond {{"text": "I have 2."}}, decided by only_survivor',
        "percepts since the last action",
        "tool_return from pick (untrusted)",
        f"{BITTER} (friend, user, cycle 0 of )",
        "proposal@1",
        "two_are_enough, nothing_green",
        'rejected pick {"colour": "blue"}: two_are_enough: it holds 2',
        "done: I have 2.",
    ):
        assert part in result.out
    assert "\x1b" not in result.out


def test_counterfactuals_say_which_record_the_choice_hung_on(run: RunFolder, say: Say) -> None:
    result = say("why", run.path.name, "1", "--counterfactual", "--repeats", "2")
    lines = result.out.splitlines()
    assert "  with everything as it was: the same choice (0 of 2 times another one)" in lines
    assert f'{BITTER}: pick {{"colour": "red"}} (2 of 2 times another one)' in lines[-1]
    alone = say("why", run.path.name, "1", "--repeats", "2")
    assert (alone.code, "--counterfactual" in alone.err) == (2, True)


def test_json_holds_explanation_and_counterfactuals(run: RunFolder, say: Say) -> None:
    answer = json.loads(say("why", run.path.name, "1", "--json").out)
    assert answer["explanation"]["recalled"][0]["record"]["text"] == BITTER
    assert answer["counterfactuals"] == []
    answer = json.loads(say("why", run.path.name, "1", "--json", "--counterfactual").out)
    assert [one["changed"] for one in answer["counterfactuals"]] == [0, 1]


@pytest.mark.broken_trace("its records are made up")
def test_a_cycle_and_a_plain_run_are_explained(
    coag_run: RunFolder, plain_run: RunFolder, say: Say
) -> None:
    result = say("why", coag_run.path.name, "1")
    assert "rejected fly {}: tool_exists: There is no such tool." in result.out
    assert "fallback: No usable candidates." in say("why", coag_run.path.name, "2").out
    plain = say("why", plain_run.path.name, "1")
    assert "chosen move" in plain.out
    assert "neither what was remembered nor what else was considered" in plain.out


def test_a_hostile_log_does_no_harm(hostile_run: RunFolder, say: Say) -> None:
    result = say("why", hostile_run.path.name, "1")
    assert result.code == 2
    assert "\x1b" not in result.out + result.err


@pytest.mark.broken_trace("its records are made up")
def test_without_a_cycle_they_are_listed(
    coag_run: RunFolder, plain_run: RunFolder, say: Say
) -> None:
    result = say("why", coag_run.path.name)
    assert result.out.splitlines()[:3] == [
        "run-1: which cycle?",
        '  1 move {"direction": "east"}',
        "  2 an impasse",
    ]
    assert say("why", plain_run.path.name).out.splitlines()[1] == "  1 move"
    assert say("why", plain_run.path.name, "--json").code == 2


@pytest.mark.broken_trace("its records are made up")
@pytest.mark.parametrize(("cycle", "error"), [("9", "cycles up to"), ("0", "Invalid value")])
def test_a_missing_cycle_is_an_error(cycle: str, error: str, coag_run: RunFolder, say: Say) -> None:
    result = say("why", coag_run.path.name, cycle)
    assert (result.code, error in result.err) == (2, True)


def test_a_single_repetition_is_not_counted(run: RunFolder, say: Say) -> None:
    lines = say("why", run.path.name, "1", "--counterfactual").out.splitlines()
    assert "  with everything as it was: the same choice" in lines
    assert lines[-1].endswith(f'{BITTER}: pick {{"colour": "red"}}')


@pytest.mark.broken_trace("its records are made up")
def test_a_turn_in_which_the_model_said_nothing_has_no_words_of_it(
    plain_run: RunFolder, say: Say
) -> None:
    assert "what the model said" in say("why", plain_run.path.name, "1").out
    text = plain_run.trace_path.read_text().replace("I shall move.", "")
    plain_run.trace_path.write_text(text)
    out = say("why", plain_run.path.name, "1").out
    assert "what the model said" not in out
    assert "chosen move" in out


@pytest.mark.broken_trace("its records are made up")
def test_what_belongs_to_no_turn_is_in_no_line_of_the_list(
    leave_run: Callable[..., RunFolder], say: Say
) -> None:
    at = SteppingClock().now()
    leave_run([Note(at=at, cycle=0, about="a", text="b")], "plain", "plain")
    assert say("why", "plain").out.splitlines()[1:] == ["  There is no turn in it yet."]
