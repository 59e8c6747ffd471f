"""Patterns are what pays again and again, and are not seen in chance."""

from __future__ import annotations

import random
from itertools import pairwise

from coag.judgment import RouteStep, biases_of, harvest


def steps(*names: str, reward: float = 0.9) -> list[RouteStep]:
    return [RouteStep(source=a, target=b, reward=reward) for a, b in pairwise(names)]


def test_an_edge_that_pays_again_and_again_is_a_wormhole() -> None:
    found = harvest([RouteStep(source="a", target="b", reward=0.9)] * 5)
    (wormhole,) = (one for one in found if one.kind == "wormhole")
    assert wormhole.route == ("a", "b")
    assert wormhole.uses == 5
    assert biases_of(found)["a", "b"] > 0.2


def test_an_edge_that_pays_by_chance_is_none() -> None:
    draw = random.Random(0)
    assert not harvest([RouteStep(source="a", target="b", reward=draw.random()) for _ in range(40)])


def test_a_circle_that_pays_is_one_resonance_wherever_it_begins() -> None:
    found = harvest(steps(*"abcabcabcabc"))
    circles = [one for one in found if one.kind == "resonance"]
    assert [one.route for one in circles] == [("a", "b", "c")]
    assert biases_of(circles)["c", "a"] > 0


def test_what_is_used_far_more_than_the_rest_is_an_attractor_and_adds_nothing() -> None:
    trace = [RouteStep(source="x", target="a", reward=0.2) for _ in range(60)]
    trace += [RouteStep(source="x", target=name, reward=0.2) for name in "bcdefgh"]
    found = harvest(trace)
    assert [one.route for one in found] == [("a",)]
    assert biases_of(found) == {}
    assert found[0].name == "attractor: a"


def test_a_short_trace_has_no_patterns() -> None:
    assert harvest([]) == ()
    assert harvest(steps("a", "b")) == ()
