"""The vacuum world as a domain of an assessment, where a contender ends its own trial."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kits.fake_server import FakeServer, openai_body
from kits.ponds import Noted
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from case_study.assess import Alone, AssessmentError, How, Plan, begun, measure_again, sweep


@pytest.fixture
def strict() -> Generator[FakeServer]:
    """A server that answers once, and refuses what it is asked after that as too long."""
    server = FakeServer(_once)
    server.start()
    yield server
    server.stop()


async def _once(body: dict[str, Any], request: Request) -> Response:
    if len(body["messages"]) > 2:
        return JSONResponse({"error": {"message": "the prompt is too long"}}, 400)
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "sense", "arguments": "{}"},
    }
    return JSONResponse(openai_body({"content": None, "tool_calls": [call]}, "tool_calls"))


def _plan(model: str, contender: str = "plain") -> Plan:
    return Plan(
        contenders=(contender,),
        scenarios=("energy-dilemma",),
        models=(model,),
        seeds=(0,),
        started_at=datetime(2027, 1, 1, tzinfo=UTC),
    )


def test_a_trial_that_the_contender_ended_has_the_costs_until_then_and_is_measured_again(
    strict: FakeServer, tmp_path: Path, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    begun(tmp_path, _plan(f"{strict.url}/v1#tiny"))
    (trial,) = sweep(tmp_path, Alone(), How(keep="all", pause=0), noted).trials
    assert trial.outcome == "failure"
    assert "too long" in trial.problem
    assert (trial.measures["actions"], trial.measures["tokens"]) == (1, 110)
    assert trial.measures["energy"] is None
    assert sum(trial.causes.values()) == 1
    assert trial.case is not None
    assert (tmp_path / trial.case / "case.json").is_file()
    again = measure_again(tmp_path)
    assert (again.measured, again.unchanged) == (1, 1)


def test_a_success_whose_runs_are_not_whole_any_more_is_not_measured_as_a_failure(
    tmp_path: Path, noted: Noted
) -> None:
    begun(tmp_path, _plan("scripted:sound", "coag-compact"))
    (trial,) = sweep(tmp_path, Alone(), How(keep="all"), noted).trials
    assert trial.success
    assert trial.case is not None
    (tmp_path / trial.case / "episode-1.json").unlink()
    with pytest.raises(AssessmentError, match="not played to its end"):
        measure_again(tmp_path)
