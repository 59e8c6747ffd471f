from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from case_study.assess import NO_MODEL, Plan, Trial


def _plan(**fields: object) -> Plan:
    return Plan.model_validate(
        {
            "contenders": ["random", "plain", "coag-full"],
            "scenarios": ["sudden-wall", "evolution"],
            "models": ["scripted:sound", "scripted:stubborn"],
            "seeds": [0, 1],
            "without_model": ["random"],
            "started_at": datetime(2027, 1, 1, tzinfo=UTC),
            **fields,
        }
    )


def test_all_contenders_of_a_seed_come_before_the_next_seed() -> None:
    seeds = [job.seed for job in _plan().jobs()]
    assert seeds == sorted(seeds)
    first = [job.contender for job in _plan().jobs()][:3]
    assert first == ["random", "plain", "coag-full"]


def test_a_contender_that_asks_no_model_is_played_once_for_all_models() -> None:
    jobs = [job for job in _plan().jobs() if (job.scenario, job.seed) == ("evolution", 1)]
    assert [job.model for job in jobs if job.contender == "random"] == [NO_MODEL]
    assert [job.model for job in jobs if job.contender == "plain"] == [
        "scripted:sound",
        "scripted:stubborn",
    ]


def test_a_contender_that_takes_long_may_play_the_first_seeds_only() -> None:
    jobs = _plan(fewer_seeds={"coag-full": 1}).jobs()
    assert {job.seed for job in jobs if job.contender == "coag-full"} == {0}


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="stands twice"):
        _plan(seeds=[1, 1])


def test_each_job_of_a_plan_has_a_key_of_its_own() -> None:
    keys = [job.key for job in _plan().jobs()]
    assert len(set(keys)) == len(keys)
    assert "evolution, coag-full, scripted:stubborn, seed 1" in keys


def test_a_seed_below_zero_is_refused() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        _plan(seeds=[-1])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e308"])
def test_a_measure_that_is_no_number_to_reckon_with_is_refused(value: str) -> None:
    job = next(_plan().jobs())
    text = Trial(job=job, outcome="success", measures={"tokens": 0.5}).model_dump_json()
    assert Trial.model_validate_json(text).measures == {"tokens": 0.5}
    with pytest.raises(ValidationError, match="tokens"):
        Trial.model_validate_json(text.replace("0.5", value))
