"""Runs that people look at: reports go to the page, and change nothing of the run."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from case_study.measures import CaseResult
from case_study.runner import CONTROL_TOKEN, CaseFolder, CaseRequest, Showing, checked, run_case
from vacuum_world.client import WorldClient, WorldRefusedError
from vacuum_world.server import WorldServer
from vacuum_world.showing import Report

TOKEN = "a-token-for-tests"


def _reports(server: WorldServer) -> list[dict[str, Any]]:
    url = f"{server.url}/api/events"
    with httpx.stream("GET", url, trust_env=False) as response:
        line = next(line for line in response.iter_lines() if line.startswith("data:"))
    return json.loads(line.removeprefix("data:"))["reports"]


async def _played(
    folder: Path, showing: Showing | None, world: str | None = None, seed: int = 2
) -> CaseResult:
    request = CaseRequest(
        scenario="energy-dilemma",
        agent="coag",
        model="scripted:impulsive",
        seed=seed,
        max_actions=3,
        world=world,
    )
    return await run_case(CaseFolder.create(folder, checked(request)), showing=showing)


async def test_a_shown_run_tells_what_its_agent_thinks_and_believes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONTROL_TOKEN, TOKEN)
    with WorldServer(control_token=TOKEN) as server:
        await _played(tmp_path, Showing(), server.url)
        (told,) = _reports(server)
        (robot,) = server.world.robots
    report = Report.model_validate_json(json.dumps(told["report"]))
    assert (told["robot"], report.phase) == ("r1", "Execution")
    assert report.phases[0] == "Retrieval"
    assert report.belief is not None
    assert (report.belief.position, report.belief.battery) == (robot.position, robot.battery)
    assert [option.state for option in report.options].count("chosen") == 1
    assert report.options[0].text.startswith(("move_agent ", "clean_current_cell"))
    assert not any("{" in option.text for option in report.options)


async def test_a_run_that_nobody_looks_at_reports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONTROL_TOKEN, TOKEN)
    with WorldServer(control_token=TOKEN) as server:
        await _played(tmp_path, None, server.url)
        assert _reports(server) == []


async def test_being_looked_at_changes_nothing_of_a_run(tmp_path: Path) -> None:
    unseen = await _played(tmp_path, None)
    shown = await _played(tmp_path, Showing(control_token=TOKEN))
    drop: dict[str, Any] = {"run": "", "measures": {}}
    assert shown.model_copy(update=drop) == unseen.model_copy(update=drop)
    for name in ("actions", "model_calls", "prompt_tokens", "decided_by"):
        assert shown.measures[name] == unseen.measures[name]


async def test_reports_that_fail_are_noted_once_and_break_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(client: WorldClient, report: Report) -> None:
        raise WorldRefusedError("PUT report", 422, "invalid", "no", {})

    monkeypatch.setattr(WorldClient, "report", refuse)
    with caplog.at_level(logging.WARNING, logger="case_study"):
        result = await _played(tmp_path, Showing())
    assert result.measures["actions"] == 3
    noted = [each.message for each in caplog.records if each.name == "case_study"]
    assert len(noted) == 1
    assert "is not told what the agent thinks" in noted[0]
