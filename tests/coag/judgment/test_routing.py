"""Advice follows the task and what was learned; learning stays within its bounds."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import ConfigurationError
from coag.judgment import (
    START,
    Advising,
    Capability,
    CapabilityEdge,
    CapabilityGraph,
    RoutingSettings,
    advise,
    chances,
    choose,
    confidence,
    reinforce,
    score,
)

UNIT = st.floats(0, 1)
PAPER = RoutingSettings(rate=1.0, evidence=0.0, unlearning=1.0)


def graph() -> CapabilityGraph:
    return CapabilityGraph([Capability(name=name) for name in ("a", "b", "c")])


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30), st.floats(0.01, 10))
def test_chances_are_one_in_all(scores: list[float], temperature: float) -> None:
    shares = chances(scores, temperature)
    assert sum(shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)


@given(st.lists(st.tuples(UNIT, UNIT, UNIT), max_size=60))
def test_a_weight_never_leaves_its_bounds(rewards: list[tuple[float, float, float]]) -> None:
    made = graph()
    for reward, cost, trust in rewards:
        edge = reinforce(made, "a", "b", reward, cost=cost, trust=trust, settings=PAPER)
        assert -2.5 <= edge.weight <= 2.5
        assert 0 <= edge.novelty <= 1


def test_reinforcement_is_equation_2() -> None:
    made = graph()
    edge = reinforce(made, "a", "b", 0.9, cost=0.1, settings=RoutingSettings(rate=0.5))
    assert edge.weight == pytest.approx(0.5 * (0.9 - 0.1 - 0.5))


def test_what_paid_comes_first_and_what_failed_last() -> None:
    made = graph()
    for _ in range(6):
        reinforce(made, START, "b", 1.0)
        reinforce(made, START, "a", 0.0)
    assert [one.capability for one in advise(made, START)] == ["b", "c", "a"]


def test_without_delta_every_task_gets_the_same_advice() -> None:
    made, flat = graph(), RoutingSettings(context=0.0)
    scores = {
        tuple(one.score for one in advise(made, START, Advising(context=task, settings=flat)))
        for task in ({"a": 1.0}, {"b": 1.0}, {"c": 1.0})
    }
    assert len(scores) == 1
    first = {
        advise(made, START, Advising(context={name: 1.0}))[0].capability for name in ("a", "b", "c")
    }
    assert first == {"a", "b", "c"}


def test_thin_evidence_counts_less() -> None:
    made = graph()
    edge = reinforce(made, "a", "b", 1.0)
    thin = confidence(edge)
    for _ in range(20):
        reinforce(made, "a", "b", 1.0)
    assert 0 < thin <= 0.5 < confidence(edge) < 1
    assert confidence(made.edge("b", "c")) == 0


def test_an_edge_that_stopped_working_is_unlearned_by_half() -> None:
    made, kept = graph(), graph()
    for one, settings in ((made, RoutingSettings()), (kept, RoutingSettings(unlearning=1.0))):
        for reward in [1.0] * 10 + [0.0] * 2:
            reinforce(one, "a", "b", reward, settings=settings)
    assert 0 < made.edge("a", "b").weight < 0.6 * kept.edge("a", "b").weight


def test_a_reward_from_an_untrusted_source_changes_little_or_nothing() -> None:
    made = graph()
    reinforce(made, "a", "b", 1.0, trust=0.0)
    assert made.edge("a", "b").tries == 0
    assert made.edge("a", "b").weight == 0
    reinforce(made, "a", "b", 1.0, trust=0.1)
    assert made.edge("a", "b").weight == pytest.approx(0.01)


def test_a_choice_follows_its_probabilities() -> None:
    made = graph()
    for _ in range(20):
        reinforce(made, START, "b", 1.0)
    advice, draw = advise(made, START), random.Random(1)
    drawn = [choose(advice, draw).capability for _ in range(400)]
    assert drawn.count("b") / 400 == pytest.approx(advice[0].probability, abs=0.08)


def test_advice_says_what_it_is_based_on() -> None:
    made = graph()
    reinforce(made, START, "b", 1.0)
    now = Advising(context={"b": 0.5}, biases={(START, "b"): 0.2})
    assert "1 tries" in (why := advise(made, START, now, k=1)[0].why)
    assert "fits the task 0.50" in why
    assert "route pattern +0.20" in why


@pytest.mark.parametrize("wrong", [float("nan"), 1.5, -0.1])
def test_a_reward_out_of_range_is_refused(wrong: float) -> None:
    with pytest.raises(ConfigurationError, match="reward must be from 0 to 1"):
        reinforce(graph(), "a", "b", wrong)


def test_settings_out_of_range_and_empty_choices_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="temperature"):
        RoutingSettings(temperature=0)
    with pytest.raises(ConfigurationError, match="nothing to choose"):
        choose([], random.Random(0))
    assert chances([], 1.0) == []


def by_the_equation(edge: CapabilityEdge, now: Advising) -> float:
    how, key = now.settings, (edge.source, edge.target)
    return (
        how.utility * edge.utility
        - how.cost * edge.cost
        + how.novelty * edge.novelty
        + confidence(edge, how) * edge.weight
        + now.biases.get(key, 0.0)
        + how.context * now.context.get(edge.target, 0.0)
    )


@given(st.integers(0, 10_000), st.integers(1, 40), st.none() | st.integers(0, 45))
def test_advice_is_that_of_the_equations_to_the_last_digit(
    seed: int, count: int, k: int | None
) -> None:
    draw = random.Random(seed)
    some = (0.25, 0.5, draw.random())  # few values, so that scores are often equal
    names = [f"n{at}" for at in range(count)]
    made = CapabilityGraph(
        [Capability(name=one, utility=draw.choice(some), cost=draw.choice(some)) for one in names]
    )
    for _ in range(count):
        reinforce(made, START, draw.choice(names), draw.choice(some))
    now = Advising(
        context={one: draw.choice(some) for one in names if draw.random() < 0.3},
        biases={(START, one): draw.choice(some) for one in names if draw.random() < 0.2},
    )
    scores = {one.target: by_the_equation(one, now) for one in made.leaving(START)}
    powers = {one: math.exp((each - max(scores.values())) / 0.1) for one, each in scores.items()}
    total = math.fsum(powers.values())
    found = advise(made, START, now, k=k)
    order = sorted(scores, key=lambda one: (-scores[one], one))[:k]
    assert [one.capability for one in found] == order
    assert [one.score for one in found] == [scores[one] for one in order]
    assert [one.probability for one in found] == [powers[one] / total for one in order]
    assert score(made.edge(START, "n0"), now) == scores["n0"]
