"""Runs that people look at: what the page gets, and the command's options."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from case_study.measures import CaseResult
from case_study.runner import (
    CONTROL_TOKEN,
    CaseFolder,
    CaseRequest,
    Showing,
    checked,
    report_of,
    run_case,
)
from coag.context import CognitiveState, WorkingMemory
from coag.schema import (
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    SelectionOutcome,
    Verdict,
)
from vacuum_world.client import WorldClient, WorldRefusedError
from vacuum_world.server import WorldServer
from vacuum_world.showing import Belief, Report

NOW: dict[str, Any] = {"cycle": 4, "at": datetime(2026, 1, 1, tzinfo=UTC)}
CANDIDATES = (
    Candidate(id="a", action="move_agent", raw_arguments='{"direction": "east"}', reason="dirt"),
    Candidate(id="b", action="clean_current_cell", reason="dirty here"),
    Candidate(id="c", action="move_agent", raw_arguments="to the east"),
)
EVALUATIONS = (
    Evaluation(candidate_id="a", verdicts=(Verdict.allow(),), score=0.8),
    Evaluation(
        candidate_id="b",
        verdicts=(Verdict(allowed=False, reason="8 left", constraint="keep_charge"),),
    ),
)
SEEN: dict[str, Any] = {
    "position": [1, 0],
    "battery": 8,
    "grid": [5, 5],
    "dirty": [[1, 1]],
    "clean": [[1, 0]],
}


def reported(phase: Phase | None, mind: CognitiveState, **state: Any) -> Report:
    memory = WorkingMemory(
        activity="main", cycle=4, phase=phase, perceptual_state=state, cognitive_state=mind
    )
    report = report_of(memory)
    assert report is not None
    return report


def test_nothing_is_reported_before_the_first_phase() -> None:
    assert report_of(WorkingMemory(activity="main", perceptual_state=SEEN)) is None


def test_candidates_are_reported_with_the_reason_of_their_rejection() -> None:
    mind = CognitiveState(
        proposal=ProposalOutcome(**NOW, candidates=CANDIDATES),
        evaluation=EvaluationOutcome(**NOW, evaluations=EVALUATIONS),
        selection=SelectionOutcome(
            **NOW, candidate_id="a", decided_by=DecidedBy.RANK, reason="best"
        ),
    )
    report = reported(Phase.SELECTION, mind, **SEEN)
    assert (report.phase, report.cycle, report.about) == ("Selection", 4, "best")
    assert [(one.text, one.state, one.note) for one in report.options] == [
        ("move_agent east", "chosen", "0.80, dirt"),
        ("clean_current_cell", "rejected", "keep_charge: 8 left"),
        ("move_agent to the east", "open", ""),
    ]
    assert reported(Phase.EVALUATION, mind, **SEEN).about == "1 of 2 candidates survive"


def test_belief_is_the_perceptual_state_and_nothing_where_nothing_was_sensed() -> None:
    mind = CognitiveState(reasoning=ReasoningOutcome(**NOW, situation="x" * 700))
    report = reported(Phase.REASONING, mind, **SEEN)
    assert report.belief == Belief(position=(1, 0), battery=8, dirty=((1, 1),), clean=((1, 0),))
    assert len(report.about) == 600
    assert reported(Phase.REASONING, mind).belief == Belief()


RAN: dict[str, Any] = {
    "status": ExecutionStatus.DONE,
    "action": "clean_current_cell",
    "result": '{"ok": true}\nSTATE {}',
}


@pytest.mark.parametrize(
    ("phase", "mind", "about"),
    [
        (
            Phase.SELECTION,
            CognitiveState(selection=SelectionOutcome(**NOW)),
            "An impasse: no candidate survived.",
        ),
        (
            Phase.EXECUTION,
            CognitiveState(execution=ExecutionOutcome(**NOW, **RAN)),
            'clean_current_cell: done. {"ok": true}',
        ),
        (
            Phase.EXECUTION,
            CognitiveState(execution=ExecutionOutcome(**NOW, status=ExecutionStatus.NONE)),
            "Nothing was run.",
        ),
    ],
)
def test_an_impasse_and_what_was_run_are_reported_in_a_sentence(
    phase: Phase, mind: CognitiveState, about: str
) -> None:
    assert reported(phase, mind).about == about


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


async def test_a_shown_run_reports_what_its_agent_thinks_and_believes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONTROL_TOKEN, TOKEN)
    with WorldServer(control_token=TOKEN) as server:
        await _played(tmp_path, Showing(), server.url)
        (sent,) = _reports(server)
        (robot,) = server.world.robots
    report = Report.model_validate_json(json.dumps(sent["report"]))
    assert (sent["robot"], report.phase) == ("r1", "Execution")
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
    assert "does not show what the agent thinks" in noted[0]


SHORT = ("energy-dilemma", "--max-actions", "1")


def test_a_shown_run_says_where_to_look_and_keeps_stdout_for_results(
    command: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv(CONTROL_TOKEN, raising=False)
    words = ("--show", "--pace", "0", "--json", "--logs", str(tmp_path))
    assert command("run", *SHORT, *words) == 0
    printed = capsys.readouterr()
    page = re.search(r"^live page: (\S+):\d+/$", printed.err, re.MULTILINE)
    assert page is not None
    assert page[1] == "http://127.0.0.1"
    token = re.search(r"^control token: (\S{20,})$", printed.err, re.MULTILINE)
    assert token is not None
    assert printed.out.startswith("{")
    kept = [path.read_text() for path in tmp_path.rglob("*.json*") if path.is_file()]
    assert not any(token[1] in text for text in kept)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pace", "1"), "--pace: only with --show"),
        (("--port", "0"), "--port: only with --show"),
        (("--show", "--port", "1", "--world", "http://127.0.0.1:9"), "served elsewhere"),
    ],
)
def test_an_option_without_effect_is_refused(
    command: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    assert command("run", *SHORT, *words, "--logs", str(tmp_path)) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
