"""`coag activities`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kits.held_steps import a_signal, a_wait, an_activity

from coag.situated import ActivityEnd, ActivityState, ActivityStore, Delivery
from coag.tracing import RunFolder, RunInfo

from .conftest import Result

Run = Callable[..., Result]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def keeper(tmp_path: Path) -> Path:
    """An agent's folder with a blocked, a ready and an ended activity."""
    store = ActivityStore(tmp_path / "activities.sqlite")
    wait = a_wait(since=NOW, seconds=60)
    store.add(an_activity("pump", state=ActivityState.BLOCKED, wait=wait, run="run-1"))
    store.add(an_activity("tea", steps=1200))
    over = {"state": ActivityState.TERMINATED, "end": ActivityEnd.FAILED, "result": "No water."}
    store.add(an_activity("old", **over))
    store.deliver("pump", "e1:1", [Delivery("pump", a_signal(1, "pump.other"))])
    store.close()
    return tmp_path


def test_ls_lists_states_waits_and_deadlines(keeper: Path, say: Run) -> None:
    shown = say("activities", "ls", str(keeper))
    assert shown.code == 0
    for text in ("blocked", "2026-01-01", "00:01:00", "1,200", "failed", "goal of tea"):
        assert text in shown.out
    assert "old" not in say("activities", "ls", str(keeper), "--open").out
    lines = say("activities", "ls", str(keeper), "--json").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["pump", "tea", "old"]


def test_show_says_what_is_waited_for_and_what_is_in_the_inbox(keeper: Path, say: Run) -> None:
    shown = say("activities", "show", str(keeper), "pump").out
    for text in (
        "goal of pump",
        "signal 'pump.ready' of 'pump'",
        "run-1",
        "pump/e1/1",
    ):
        assert text in shown
    activity, percept = say("activities", "show", str(keeper), "pump", "--json").out.splitlines()
    assert json.loads(activity)["state"] == "blocked"
    assert json.loads(percept)["id"] == "pump/e1/1"


def test_cancel_and_wake_leave_requests_for_the_agent_also_while_it_runs(
    keeper: Path, say: Run
) -> None:
    store = ActivityStore(keeper / "activities.sqlite")  # the agent's
    assert say("activities", "wake", str(keeper), "pump").code == 0
    assert say("activities", "cancel", str(keeper), "tea", "--reason", "No cups.").code == 0
    assert [(one.activity, one.what, one.reason) for one in store.requests()] == [
        ("pump", "wake", ""),
        ("tea", "cancel", "No cups."),
    ]
    store.close()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("show", "no-such"), "no-such"),
        (("cancel", "old"), "has ended: failed"),
        (("wake", "tea"), "waits for nothing: ready"),
    ],
)
def test_what_cannot_be_asked_for_is_an_error(
    keeper: Path, say: Run, words: tuple[str, str], problem: str
) -> None:
    result = say("activities", words[0], str(keeper), words[1])
    assert result.code != 0
    assert problem in result.err


def test_a_folder_without_activities_is_an_error_and_stays_empty(tmp_path: Path, say: Run) -> None:
    result = say("activities", "ls", str(tmp_path))
    assert result.code != 0
    assert "no activities" in result.err
    assert not list(tmp_path.iterdir())


def test_an_activity_names_its_run_for_the_commands_on_runs(keeper: Path, say: Run) -> None:
    about = RunInfo(id="run-1", kind="coag", agent="a", model="m", started_at=NOW)
    RunFolder.create(keeper / "runs", about).trace_path.touch()
    assert say("log", "pump", "--logs", str(keeper), "--json").code == 0
    assert say("log", "tea", "--logs", str(keeper)).code != 0, "it has no run yet"
    assert say("log", "nobody", "--logs", str(keeper)).code != 0
