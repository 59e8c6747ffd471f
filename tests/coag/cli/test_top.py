"""`coag top`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coag.tracing import RunFolder

pytestmark = pytest.mark.broken_trace("its records are made up")
Say = Callable[..., Any]


def test_once_shows_the_state_of_a_run_and_ends(coag_run: RunFolder, say: Say) -> None:
    for words in (["run-1"], ["latest"], [str(coag_run.path)], []):
        result = say("top", "--once", *words)
        assert result.code == 0
        assert "ended" in result.out or "broke off" in result.out
        assert "vetoes      1 tool_exists" in result.out.splitlines()
        assert "impasses    1" in result.out.splitlines()
        assert "\x1b" not in result.out


def test_a_folder_of_runs_may_be_named(coag_run: RunFolder, plain_run: RunFolder, say: Say) -> None:
    result = say("top", "--once", "logs")
    assert result.out.startswith("logs: 2 runs, ")
    assert len(result.out.splitlines()) == 4


def test_without_any_run_it_says_how_one_is_made(say: Say) -> None:
    result = say("top", "--once")
    assert result.code == 0
    assert "coag chat --model SPEC --logs logs" in result.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nonsense"], "There is no run or folder named 'nonsense'"),
        (["x" * 5_000], "There is no run or folder named"),
        (["--logs", "nowhere"], "There is no folder of logs at 'nowhere'"),
        (["logs/run-1/trace.jsonl"], "is a file of a run"),
        (["\x1b[31mx"], "There is no run or folder named"),
    ],
)
def test_what_is_no_run_is_one_sentence(
    coag_run: RunFolder, say: Say, words: list[str], sentence: str
) -> None:
    result = say("top", "--once", *words)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert "\x1b" not in result.err


def test_without_a_terminal_it_points_to_once(coag_run: RunFolder, say: Say) -> None:
    result = say("top")
    assert result.code == 2
    assert "coag top --once" in result.err


def test_a_hostile_run_cannot_steer_the_terminal(hostile_run: RunFolder, say: Say) -> None:
    assert hostile_run.exists
    assert not set(say("top", "--once").out) & set("\x1b\x9b\x07\r\u202e")


def test_a_folder_that_holds_no_run_is_waited_for(say: Say, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert say("top", "--once", "empty").out.startswith("empty: 0 runs")
