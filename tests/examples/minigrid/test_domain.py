"""Every contender plays MiniGrid by the same way, and what comes of it is measured."""

from pathlib import Path

import pytest

from case_study.contenders import CONTENDERS
from coag.errors import ConfigurationError
from coag.evals import Job, JobResult, RunSettings
from coag.proof import replay, verify
from examples.minigrid import DOMAIN, build_again

_UNSCORED = "coag-compact-grounded"
"""In compact depth nobody scores the domain's candidates, so the first of them is taken."""


async def _played(room: Path, contender: str, level: str, model: str, seed: int = 1) -> JobResult:
    job = Job(
        domain="examples.minigrid:DOMAIN",
        scenario=level,
        contender=contender,
        model=model if DOMAIN.asks_model(contender) else "none",
        seed=seed,
    )
    return await DOMAIN.play(job, RunSettings(keep="all"), room)


@pytest.mark.parametrize("contender", sorted(set(CONTENDERS) - {"random", _UNSCORED}))
async def test_every_contender_with_a_sound_mind_opens_the_door(
    contender: str, tmp_path: Path
) -> None:
    played = await _played(tmp_path, contender, "doorkey-5x5", "scripted:sound")
    assert played.success
    assert played.causes == {}
    assert played.measures["reward"] is not None
    assert 0.5 < played.measures["reward"] <= 1
    asks = DOMAIN.asks_model(contender)
    assert bool(played.measures["model_calls"]) is asks
    assert bool(played.decided_by) is asks


async def test_a_random_player_stops_at_the_bound_and_its_failure_has_a_cause(
    tmp_path: Path,
) -> None:
    played = await _played(tmp_path, "random", "doorkey-6x6", "none")
    assert not played.success
    assert played.measures["actions"] == 50
    assert sum(played.causes.values()) == 1


@pytest.mark.parametrize(
    ("contender", "died"), [("plain", 1.0), ("plain-guarded", 0.0), ("coag-compact", 0.0)]
)
async def test_an_impulsive_mind_dies_in_the_lava_unless_constraints_hold_it(
    contender: str, died: float, tmp_path: Path
) -> None:
    played = await _played(tmp_path, contender, "lava-gap", "scripted:impulsive")
    assert played.measures["died"] == died


async def test_the_same_job_has_the_same_outcome(tmp_path: Path) -> None:
    one, other = [
        await _played(tmp_path / name, "coag-full", "unlock", "scripted:fallible", seed=4)
        for name in ("one", "other")
    ]
    kept = [
        {name: value for name, value in each.measures.items() if "seconds" not in name}
        for each in (one, other)
    ]
    assert kept[0] == kept[1]
    assert (one.success, one.decided_by) == (other.success, other.decided_by)


async def test_a_kept_episode_is_measured_again_from_its_trace(tmp_path: Path) -> None:
    played = await _played(tmp_path, "coag-compact", "empty", "scripted:sound")
    job = Job(scenario="empty", contender="coag-compact", model="scripted:sound", seed=1)
    assert DOMAIN.measure_again(job, tmp_path) == played


def _run_in(room: Path) -> Path:
    """The one run that was left in a folder."""
    (trace,) = room.glob("*/trace.jsonl")
    return trace.parent


async def test_the_run_of_an_episode_keeps_every_rule_of_the_architecture(tmp_path: Path) -> None:
    await _played(tmp_path, "coag-full", "two-rooms", "scripted:noisy")
    assert verify(_run_in(tmp_path)) == []


@pytest.mark.parametrize("contender", ["coag-compact", "plain-guarded"])
async def test_a_run_is_replayed_without_a_model_and_without_an_environment(
    contender: str, tmp_path: Path
) -> None:
    await _played(tmp_path, contender, "two-rooms", "scripted:fallible")
    report = await replay(_run_in(tmp_path))
    assert report.divergence is None


def test_a_run_cannot_be_continued() -> None:
    job = Job(scenario="empty", contender="plain", model="scripted:sound", seed=1)
    with pytest.raises(ConfigurationError, match="can be replayed and not gone on with"):
        build_again(job=job.model_dump(mode="json"), bound=3)
