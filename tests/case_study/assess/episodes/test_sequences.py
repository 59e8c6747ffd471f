"""Sequences of episodes as a domain of an assessment."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from kits.ponds import Noted

from case_study.assess import (
    Alone,
    Assessment,
    AssessmentError,
    How,
    Plan,
    begun,
    contenders_named,
    measure_again,
    sweep,
)
from case_study.assess.episodes import ARMS, DOMAIN, arm_named, arms_of, in_episode
from coag.errors import UnknownNameError

ARMS_PLAYED = ("coag-compact:kept", "coag-compact:emptied")


def _plan(*arms: str, episodes: int = 2) -> Plan:
    return Plan(
        domain="episodes",
        contenders=arms,
        scenarios=("sudden-wall",),
        models=("scripted:sound",),
        seeds=(1,),
        episodes=episodes,
        started_at=datetime(2027, 1, 1, tzinfo=UTC),
    )


@pytest.fixture
def swept(tmp_path: Path, noted: Noted) -> Assessment:
    """Both arms of CoAG compact, two episodes each."""
    begun(tmp_path, _plan(*ARMS_PLAYED))
    return sweep(tmp_path, Alone(), How(keep="all", episodes=2), noted)


def test_both_arms_are_measured_episode_by_episode_and_again_from_their_runs(
    swept: Assessment,
) -> None:
    kept, emptied = swept.trials
    assert kept.success
    assert emptied.success

    def told(measure: str) -> list[tuple[float | None, ...]]:
        return [
            tuple(trial.measures[in_episode(measure, number)] for number in (1, 2))
            for trial in (kept, emptied)
        ]

    assert told("bumps") == [(1, 0), (1, 1)]
    assert told("noted") == [(1, 0), (1, 1)]
    assert told("success") == [(1, 1), (1, 1)]
    recalled, none_recalled = told("recalled")
    assert recalled[0] == 0
    assert (recalled[1] or 0) > 0
    assert none_recalled == (0, 0)
    assert (told("beside")[0][1] or 0) > 0
    for measure in ("actions", "tokens", "model_calls", "energy"):
        (first, later), (same, control) = told(measure)
        assert first == same
        assert (later or 0) < (control or 0)
        assert kept.measures[measure] == (first or 0) + (later or 0)
    again = measure_again(swept.folder)
    assert (again.measured, again.unchanged) == (2, 2)


def test_a_number_of_episodes_is_part_of_what_an_assessment_is(tmp_path: Path) -> None:
    begun(tmp_path, _plan(*ARMS_PLAYED))
    with pytest.raises(AssessmentError, match="episodes there 2, asked for 3"):
        begun(tmp_path, _plan(*ARMS_PLAYED, episodes=3), extend=True)


def test_every_contender_with_a_long_term_memory_has_two_arms() -> None:
    assert {arm.contender for arm in ARMS.values()} >= {"coag-full", "coag-compact", "plain-memory"}
    assert not {"plain", "rules", "coag-without-retrieval"} & {
        arm.contender for arm in ARMS.values()
    }
    assert all(DOMAIN.asks_model(name) for name in ARMS)
    assert "emptied" in arm_named("coag-full:emptied").summary
    with pytest.raises(UnknownNameError, match="coag-full:kept"):
        arm_named("coag-full")


def test_a_contender_asks_for_both_of_its_arms_and_groups_for_those_of_each() -> None:
    known = tuple(ARMS)
    assert contenders_named("coag-compact", known) == ARMS_PLAYED
    assert contenders_named("coag-compact:kept", known) == ARMS_PLAYED[:1]
    assert set(contenders_named("headline", known)) == {
        f"{name}:{how}"
        for name in ("plain-memory", "coag-compact", "coag-full")
        for how in ("kept", "emptied")
    }


def test_only_contenders_of_which_both_arms_are_there_can_be_compared() -> None:
    assert arms_of((*ARMS_PLAYED, "coag-full:kept", "plain")) == {
        "coag-compact": {"kept": ARMS_PLAYED[0], "emptied": ARMS_PLAYED[1]}
    }
