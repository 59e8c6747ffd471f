"""Scenarios that mislead, met by each temperament where nothing holds it: no agent, no rules."""

from __future__ import annotations

import pytest
from kits.bare_world import played, succeeds

from case_study.temperaments import MIXTURES
from vacuum_world.scenarios import ADVERSARIAL

SEEDS = range(6)


@pytest.mark.parametrize("scenario", ADVERSARIAL)
def test_sound_succeeds_wherever_it_is_misled(scenario: str) -> None:
    assert all(succeeds("sound", scenario, seed) for seed in SEEDS)


@pytest.mark.long
@pytest.mark.parametrize("scenario", ADVERSARIAL)
def test_sound_succeeds_nearly_always(scenario: str) -> None:
    assert sum(succeeds("sound", scenario, seed) for seed in range(50)) >= 48


@pytest.mark.parametrize(
    ("temperament", "scenario"),
    [
        ("stubborn", "delayed-effect"),
        ("stubborn", "contradiction"),
        ("impulsive", "delayed-effect"),
        ("impulsive", "contradiction"),
        ("gullible", "false-manual"),
        ("gullible", "poisoned-memory"),
        ("gullible", "distraction"),
    ],
)
def test_each_fault_has_a_trap_to_fall_into(temperament: str, scenario: str) -> None:
    failed = [seed for seed in SEEDS if not succeeds(temperament, scenario, seed)]
    assert len(failed) >= len(SEEDS) // 2


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_mixture_is_the_same_for_the_same_seed(mixture: str) -> None:
    first, again = (played(mixture, "distraction", 3) for _ in range(2))
    assert first == again


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_mixture_fails_here_and_succeeds_there(mixture: str) -> None:
    cases = [("delayed-effect", seed) for seed in SEEDS]
    cases += [("contradiction", seed) for seed in SEEDS]
    outcomes = {succeeds(mixture, scenario, seed) for scenario, seed in cases}
    assert outcomes == {True, False}
