"""`coag fork` at the terminal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from kits.foragers import foraged

from coag.tracing import RunFolder


class Said(Protocol):
    """What a command left behind."""

    code: int
    out: str
    err: str


Say = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return asyncio.run(foraged(tmp_path))


def test_both_runs_are_shown_side_by_side_with_what_was_changed(run: RunFolder, say: Say) -> None:
    said = say("fork", "latest", "--at", "3", "--without-constraint", "two_are_enough")
    assert said.code == 0
    head, *rows = said.out.splitlines()
    assert head == f"{run.path.name} forked at 3.retrieval"
    assert rows[0] == "  --without-constraint two_are_enough"
    assert "cycle  parent" in said.out
    assert "rejected pick" in said.out
    assert "fork, at its end: Picked: blue, blue, blue." in said.out
    assert "parent, before its last cycle: Picked: blue, blue." in said.out
    assert rows[-1].startswith("fork: ")
    assert Path(rows[-1].removeprefix("fork: ")).is_dir()
    assert "\x1b" not in said.out


def test_a_fork_can_be_shown_and_forked_and_lies_where_it_is_wanted(
    run: RunFolder, say: Say, tmp_path: Path
) -> None:
    said = say("fork", run.path.name, "--at", "2.evaluation", "--into", "forks", "--json")
    report = json.loads(said.out)
    forked = Path(report["run"]).name
    assert [path.name for path in (tmp_path / "forks").iterdir()] == [forked]
    assert say("log", forked, "--logs", "forks").code == 0
    assert say("verify", forked, "--logs", "forks").code == 0
    assert say("fork", forked, "--logs", "forks", "--at", "2.selection").code == 0


def test_what_repeats_itself_is_told_once(run: RunFolder, say: Say) -> None:
    said = say("fork", "latest", "--at", "3", "--set", "held=2")
    assert said.out.count("as in cycle 3") == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--at", "9"), "cycles up to 4"),
        (("--at", "3.thinking"), "Known: evaluation"),
        (("--at", "3", "--set", "held=many"), "needs quotes"),
        (("--at", "3", "--without-constraint", "\x1b[31mx"), "There is no constraint"),
        (("--at", "3", "--model", "x"), "openai:NAME"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    words: tuple[str, ...], told: str, run: RunFolder, say: Say
) -> None:
    said = say("fork", run.path.name, *words)
    assert said.code == 2
    assert told in said.err
    assert "\x1b[31mx" not in said.err
