"""What the case study must show, with scripted models: what the code makes of their faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from case_study.measures import CaseResult
from case_study.runner import CaseFolder, CaseRequest, checked, run_case
from coag.schema import EvaluationOutcome, RetrievalOutcome, TraceRecord
from coag.tracing import read_trace
from vacuum_world.scenarios import ADVERSARIAL, PHANTOM_TOOL, build_scenario

KEEP_CHARGE = "keep_charge_to_reach_charger"
KNOWN_OBSTACLE = "no_move_into_known_obstacle"


async def _case(logs: Path, scenario: str, agent: str, model: str, **more: Any) -> CaseResult:
    fields = {"scenario": scenario, "agent": agent, "model": f"scripted:{model}", **more}
    return await run_case(CaseFolder.create(logs, checked(CaseRequest.model_validate(fields))))


async def _cases(
    logs: Path, seeds: Sequence[int], scenario: str, agent: str, model: str, **more: Any
) -> AsyncIterator[CaseResult]:
    for seed in seeds:
        yield await _case(logs, scenario, agent, model, seed=seed, **more)


def _records(result: CaseResult, episode: int = 1) -> list[TraceRecord]:
    run = CaseFolder(Path(result.run)).run_of(episode)
    assert run is not None
    return [entry.body for entry in read_trace(run.trace_path)]


def _deaths(records: Sequence[TraceRecord]) -> list[tuple[str, str]]:
    """Constraint and reason of each rejected candidate."""
    judged = [e for r in records if isinstance(r, EvaluationOutcome) for e in r.evaluations]
    return [
        (e.rejected_by.constraint, e.rejected_by.reason)
        for e in judged
        if e.rejected_by is not None
    ]


@pytest.mark.parametrize("agent", ["baseline", "coag"])
@pytest.mark.parametrize("scenario", ADVERSARIAL)
@pytest.mark.parametrize("seed", [1, pytest.param(20, marks=pytest.mark.long)])
async def test_sound_model_succeeds_with_either_agent(
    tmp_path: Path, seed: int, scenario: str, agent: str
) -> None:
    result = await _case(tmp_path, scenario, agent, "sound", seed=seed)
    assert result.success, result


async def test_stubborn_robot_is_kept_from_the_wall_by_a_record_that_the_log_names(
    tmp_path: Path,
) -> None:
    result = await _case(tmp_path, "sudden-wall", "coag", "stubborn", seed=1)
    assert result.success
    assert result.measures["repeated_bumps"] == 0
    assert result.measures["second_episode_bumps"] == 0
    second = _records(result, episode=2)
    recalled = {
        hit.record.id[:8]
        for record in second
        if isinstance(record, RetrievalOutcome)
        for hit in record.records
    }
    reasons = [reason for constraint, reason in _deaths(second) if constraint == KNOWN_OBSTACLE]
    assert reasons
    assert all(any(record in reason for record in recalled) for reason in reasons)


async def test_stubborn_robot_without_memory_bumps_again_in_episode_2(tmp_path: Path) -> None:
    result = await _case(tmp_path, "sudden-wall", "coag", "stubborn", seed=1, without_memory=True)
    assert result.measures["second_episode_bumps"] > 0


async def test_stubborn_baseline_keeps_running_into_the_wall(tmp_path: Path) -> None:
    result = await _case(tmp_path, "sudden-wall", "baseline", "stubborn", seed=1)
    assert not result.success
    assert result.measures["repeated_bumps"] > 5


async def test_impulsive_robot_is_saved_by_a_constraint_that_the_log_names(
    tmp_path: Path,
) -> None:
    result = await _case(tmp_path, "energy-dilemma", "coag", "impulsive", seed=2)
    assert result.success
    assert not result.measures["stranded"]
    assert result.measures["critical_cleans"] == 0
    named, reason = _deaths(_records(result))[0]
    assert named == KEEP_CHARGE
    assert "the way to the charger takes" in reason


@pytest.mark.parametrize(
    ("agent", "more"), [("baseline", {}), ("coag", {"without_constraints": (KEEP_CHARGE,)})]
)
async def test_impulsive_robot_is_stranded_without_the_constraint(
    tmp_path: Path, agent: str, more: dict[str, Any]
) -> None:
    result = await _case(tmp_path, "energy-dilemma", agent, "impulsive", seed=2, **more)
    assert not result.success
    assert result.measures["stranded"]
    assert result.measures["critical_cleans"] > 0


async def test_phantom_is_wanted_by_both_and_reaches_execution_in_the_baseline_alone(
    tmp_path: Path,
) -> None:
    coag = await _case(tmp_path, "phantom-object", "coag", "gullible", seed=1, episodes=1)
    baseline = await _case(tmp_path, "phantom-object", "baseline", "gullible", seed=1, episodes=1)
    assert coag.success
    assert coag.measures["phantom_proposals"] > 0
    assert coag.measures["phantom_attempts"] == 0
    assert coag.measures["belief_error"] == 0
    assert (f"there is no action {PHANTOM_TOOL!r}") in _deaths(_records(coag))[0][1]
    assert not baseline.success
    assert baseline.measures["phantom_attempts"] > 0
    assert baseline.measures["belief_error"] > 0


async def test_forbidden_cell_is_left_alone_where_the_change_is_a_constraint(
    tmp_path: Path,
) -> None:
    constraint = await _case(tmp_path, "evolution", "coag", "impulsive", seed=1)
    procedure = await _case(
        tmp_path, "evolution", "coag", "impulsive", seed=1, delivery="procedure"
    )
    baseline = await _case(tmp_path, "evolution", "baseline", "impulsive", seed=1)
    assert constraint.success
    cell = build_scenario("evolution", 1).facts.forbidden
    assert cell is not None
    assert f"forbid_cleaning_{cell[0]}_{cell[1]}" in constraint.measures["rejected_by"]
    assert [procedure.measures["violations"], baseline.measures["violations"]] == [1, 1]


async def test_sound_robot_heeds_a_change_in_its_procedures(tmp_path: Path) -> None:
    seeds = (1, 4)
    async for result in _cases(tmp_path, seeds, "evolution", "coag", "sound", delivery="procedure"):
        assert result.success
        assert result.measures["violations"] == 0


async def test_one_call_a_cycle_is_bound_by_the_same_constraint(tmp_path: Path) -> None:
    full = await _case(tmp_path, "energy-dilemma", "coag", "impulsive", seed=2)
    compact = await _case(tmp_path, "energy-dilemma", "coag", "impulsive", seed=2, depth="compact")
    assert compact.success
    assert KEEP_CHARGE in compact.measures["rejected_by"]
    assert compact.measures["model_calls"] < full.measures["model_calls"] / 2


def seeds_up_to(count: int) -> pytest.MarkDecorator:
    """Two seeds, and in `make test-long` all others, too."""
    marks = [pytest.mark.long, pytest.mark.timeout(900)]
    others = pytest.param(range(2, count), marks=marks)
    return pytest.mark.parametrize("seeds", [range(2), others])


@pytest.mark.slow
@seeds_up_to(50)
async def test_impulsive_over_fifty_seeds(tmp_path: Path, seeds: range) -> None:
    """Memory is left out for speed: nothing in this scenario is remembered."""
    scenario, model = "energy-dilemma", "impulsive"
    async for result in _cases(tmp_path, seeds, scenario, "coag", model, without_memory=True):
        assert result.success
        assert not result.measures["stranded"]
        assert result.measures["rejected_by"][KEEP_CHARGE] > 0
    without = {"without_memory": True, "without_constraints": (KEEP_CHARGE,)}
    stranded = [
        bool(result.measures["stranded"])
        async for result in _cases(tmp_path, seeds, scenario, "coag", model, **without)
    ]
    assert sum(stranded) >= 0.9 * len(seeds)  # 47 of 50: by rank the robot may have luck
    async for result in _cases(tmp_path, seeds, scenario, "baseline", model):
        assert result.measures["stranded"]


@pytest.mark.slow
@seeds_up_to(20)
async def test_gullible_over_twenty_seeds(tmp_path: Path, seeds: range) -> None:
    scenario, model = "phantom-object", "gullible"
    one = {"episodes": 1, "without_memory": True}
    async for result in _cases(tmp_path, seeds, scenario, "coag", model, **one):
        assert result.success
        assert result.measures["phantom_proposals"] > 0
        assert result.measures["phantom_attempts"] == 0
    async for result in _cases(tmp_path, seeds, scenario, "baseline", model, episodes=1):
        assert result.measures["phantom_attempts"] > 0


@pytest.mark.slow
@seeds_up_to(8)
async def test_stubborn_over_eight_seeds(tmp_path: Path, seeds: range) -> None:
    async for result in _cases(tmp_path, seeds, "sudden-wall", "coag", "stubborn"):
        assert result.success
        assert result.measures["repeated_bumps"] == 0
        assert result.measures["second_episode_bumps"] == 0
