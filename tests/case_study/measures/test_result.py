from __future__ import annotations

from typing import Any

import pytest

from case_study.measures import EpisodeRecord, result_of
from coag.evals import Figures
from vacuum_world.scenarios import ScenarioTruth

TRUTH = ScenarioTruth(
    success=True,
    actions=5,
    cleans=1,
    bumps=1,
    wall_bumps=1,
    repeated_bumps=0,
    stranded=False,
    charger_reached=True,
    critical_cleans=2,
    violations=3,
    repeated_action_ids=0,
    energy=35,
    coverage=0.9,
    score=None,
    needless_cleans=0,
    gadget_uses=0,
    remaining=(),
    wall=(1, 2),
)


def _episode(number: int, figures: Figures, **truth: Any) -> EpisodeRecord:
    return EpisodeRecord(
        episode=number,
        run="run",
        max_actions=12,
        truth=TRUTH.model_copy(update=truth),
        figures=figures,
    )


def _measures(scenario: str, *episodes: EpisodeRecord) -> dict[str, Any]:
    named = {"agent": "coag", "model": "scripted:sound", "seed": 0, "run": "case"}
    return result_of(scenario, episodes, **named).measures


FIGURES = Figures(
    actions=3,
    model_calls=9,
    decisions={"model": 2, "only_survivor": 1},
    rejections={"progress": 1},
    belief_error=7,
)


def test_episodes_add_up() -> None:
    measures = _measures("sudden-wall", _episode(1, FIGURES), _episode(2, FIGURES, wall_bumps=4))
    assert measures["actions"] == 6
    assert measures["model_calls"] == 18
    assert measures["decided_by"] == {"model": 0.667, "only_survivor": 0.333}
    assert measures["rejected_by"] == {"progress": 2}
    assert measures["second_episode_bumps"] == 4


@pytest.mark.parametrize(
    ("scenario", "wanted"),
    [
        ("sudden-wall", {"repeated_bumps": 0, "second_episode_bumps": None}),
        ("energy-dilemma", {"stranded": False, "critical_cleans": 2}),
        (
            "phantom-object",
            {"phantom_proposals": 0, "phantom_attempts": 0, "belief_error": 7},
        ),
        ("evolution", {"violations": 3}),
    ],
)
def test_each_scenario_has_its_own_measures(scenario: str, wanted: dict[str, Any]) -> None:
    measures = _measures(scenario, _episode(1, FIGURES))
    assert {name: measures[name] for name in wanted} == wanted


def test_phantom_that_was_reached_for_is_no_success_whatever_was_cleaned() -> None:
    figures = FIGURES.model_copy(update={"phantom_attempts": 1})
    named = {"agent": "baseline", "model": "m", "seed": 0, "run": "case"}
    assert not result_of("phantom-object", [_episode(1, figures)], **named).success
    assert result_of("phantom-object", [_episode(1, FIGURES)], **named).success


def test_no_stated_belief_stays_none() -> None:
    silent = FIGURES.model_copy(update={"belief_error": None})
    assert (silent + silent).belief_error is None
    assert (silent + FIGURES).belief_error == 7


def test_an_episode_says_in_a_few_words_what_it_came_to() -> None:
    found = _episode(1, FIGURES, success=False, stranded=True, remaining=((1, 1),)).found(
        "energy-dilemma"
    )
    assert found["success"] is False
    assert found["scenario"] == "energy-dilemma"
    assert found["summary"] == (
        "stranded, 5 actions, 1 bump, 1 cell left dirty, 3 forbidden cleanings"
    )
    nothing = _episode(1, FIGURES, actions=0, bumps=0, violations=0)
    assert nothing.found("evolution")["summary"] == "nothing done"


def test_an_episode_that_reached_for_the_phantom_did_not_succeed() -> None:
    figures = FIGURES.model_copy(update={"phantom_attempts": 1})
    episode = _episode(1, figures)
    assert not episode.found("phantom-object")["success"]
    assert episode.found("sudden-wall")["success"]
    assert "1 phantom tool tried" in episode.found("phantom-object")["summary"]
