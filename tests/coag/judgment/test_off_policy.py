"""A policy is judged by choices that another one made; the truth of these worlds is known."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from coag.errors import ConfigurationError
from coag.judgment import LoggedChoice, doubly_robust, ips, snips

TRUTH = {"a": 0.2, "b": 0.5, "c": 0.9}
LOGGING = {"a": 0.6, "b": 0.3, "c": 0.1}
BETTER = {"a": 0.1, "b": 0.2, "c": 0.7}
VALUE = sum(share * TRUTH[name] for name, share in BETTER.items())


def logged(count: int, seed: int) -> list[LoggedChoice]:
    draw, made = random.Random(seed), list[LoggedChoice]()
    for name in draw.choices(list(LOGGING), list(LOGGING.values()), k=count):
        reward = float(draw.random() < TRUTH[name])
        made.append(LoggedChoice(chosen=name, probability=LOGGING[name], reward=reward))
    return made


def better(_: LoggedChoice) -> Mapping[str, float]:
    return BETTER


def roughly(choice: LoggedChoice, option: str) -> float:
    return TRUTH[option] + 0.1


def test_all_three_estimates_come_near_the_truth() -> None:
    choices = logged(20_000, 1)
    for found in (ips(choices, better), snips(choices, better)):
        assert found.value == pytest.approx(VALUE, abs=0.03)
    assert doubly_robust(choices, better, roughly).value == pytest.approx(VALUE, abs=0.03)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    for estimate in (ips, snips):
        holds = 0
        for seed in range(200):
            found = estimate(logged(400, seed), better)
            holds += found.low <= VALUE <= found.high
        assert holds >= 178


def test_a_model_of_rewards_makes_the_interval_narrower() -> None:
    choices = logged(500, 2)
    plain, robust = ips(choices, better), doubly_robust(choices, better, roughly)
    assert robust.high - robust.low < plain.high - plain.low


def test_few_choices_tell_little_where_policies_differ() -> None:
    choices = logged(300, 3)
    assert ips(choices, better).effective < 150
    assert ips(choices, lambda _: LOGGING).effective == pytest.approx(300)


def test_choices_that_cannot_be_judged_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="above 0"):
        LoggedChoice(chosen="a", probability=0, reward=1)
    with pytest.raises(ConfigurationError, match="finite"):
        LoggedChoice(chosen="a", probability=1, reward=float("nan"))
    with pytest.raises(ConfigurationError, match="got none"):
        ips([], better)
    with pytest.raises(ConfigurationError, match="none of the logged"):
        snips(logged(5, 1), lambda _: {"z": 1.0})
