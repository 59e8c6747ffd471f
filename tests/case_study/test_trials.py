"""The vacuum world as a domain of an evaluation: single cases and sequences of episodes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from kits.fake_server import FakeServer, openai_body
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from case_study.trials import ARMS, GROUPS, SequenceTrials, VacuumTrials, arm_named, described
from coag.errors import UnknownNameError
from coag.evals import (
    Assessment,
    AssessmentError,
    EvaluationDomain,
    RunSettings,
    contenders_named,
    measure_again,
    plan_of,
    run_evaluation,
)

KEPT = RunSettings(keep="all", pause=0)
PLAYED = ("coag-compact:kept", "coag-compact:emptied")


@pytest.fixture
def strict() -> Generator[FakeServer]:
    """A server that answers once, and refuses further requests as too long."""
    with FakeServer(_once) as server:
        yield server


async def _once(body: dict[str, Any], request: Request) -> Response:
    if len(body["messages"]) > 2:
        return JSONResponse({"error": {"message": "the prompt is too long"}}, 400)
    function = {"name": "sense", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    return JSONResponse(openai_body({"content": None, "tool_calls": [call]}, "tool_calls"))


def played(
    domain: EvaluationDomain, folder: Path, model: str, *names: str, **more: Any
) -> Assessment:
    more.setdefault("seeds", [0])
    plan = plan_of(domain, contenders=names, models=(model,), **more)
    return run_evaluation(domain, folder, plan=plan, settings=KEPT)


def test_a_trial_that_the_contender_ended_has_its_costs_and_is_measured_again(
    strict: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    vacuum, model = VacuumTrials(), f"{strict.url}/v1#tiny"
    found = played(vacuum, tmp_path, model, "plain", scenarios=["energy-dilemma"])
    (trial,) = found.trials
    assert trial.outcome == "failure"
    assert "too long" in trial.problem
    assert (trial.measures["actions"], trial.measures["tokens"]) == (1, 110)
    assert trial.measures["energy"] is None
    assert sum(trial.causes.values()) == 1
    assert trial.case is not None
    assert (tmp_path / trial.case / "case.json").is_file()
    again = measure_again(tmp_path, vacuum)
    assert (again.measured, again.unchanged) == (1, 1)


def test_a_success_whose_runs_are_not_whole_any_more_is_not_measured_as_a_failure(
    tmp_path: Path,
) -> None:
    vacuum, scenarios = VacuumTrials(), ["energy-dilemma"]
    found = played(vacuum, tmp_path, "scripted:sound", "coag-compact", scenarios=scenarios)
    (trial,) = found.trials
    assert trial.success
    assert trial.case is not None
    (tmp_path / trial.case / "episode-1.json").unlink()
    with pytest.raises(AssessmentError, match="not played to its end"):
        measure_again(tmp_path, vacuum)


def test_both_arms_are_measured_episode_by_episode_and_again_from_their_runs(
    tmp_path: Path,
) -> None:
    domain = SequenceTrials()
    more: dict[str, Any] = {"seeds": [1], "conditions": {"episodes": 2}}
    found = played(domain, tmp_path, "scripted:sound", *PLAYED, scenarios=["sudden-wall"], **more)
    kept, emptied = found.trials

    def both(measure: str) -> list[tuple[float | None, ...]]:
        return [
            tuple(trial.measures[f"{measure}.{number}"] for number in (1, 2))
            for trial in (kept, emptied)
        ]

    assert both("success") == [(1, 1), (1, 1)]
    assert both("bumps") == both("noted") == [(1, 0), (1, 1)]
    recalled, none_recalled = both("recalled")
    assert recalled[0] == 0
    assert (recalled[1] or 0) > 0
    assert none_recalled == (0, 0)
    assert (both("beside")[0][1] or 0) > 0
    for measure in ("actions", "tokens", "model_calls", "energy"):
        (first, later), (same, control) = both(measure)
        assert first == same
        assert (later or 0) < (control or 0)
        assert kept.measures[measure] == (first or 0) + (later or 0)
    again = measure_again(tmp_path, domain)
    assert (again.measured, again.unchanged) == (2, 2)


def test_every_contender_with_a_long_term_memory_has_two_arms() -> None:
    domain = SequenceTrials()
    assert set(ARMS) >= {"coag-full", "coag-compact", "plain-memory"}
    assert not {"plain", "rules", "coag-without-retrieval"} & set(ARMS)
    assert all(domain.asks_model(name) for name in domain.contenders)
    assert arm_named("coag-full:emptied") == ("coag-full", "emptied")
    assert "emptied" in described("coag-full:emptied")
    with pytest.raises(UnknownNameError, match="coag-full:kept"):
        arm_named("coag-full")
    assert contenders_named("coag-compact", domain.contenders, GROUPS) == PLAYED
    assert set(contenders_named("headline", domain.contenders, GROUPS)) == {
        f"{name}:{how}"
        for name in ("plain-memory", "coag-compact", "coag-auto", "coag-full")
        for how in ("kept", "emptied")
    }
