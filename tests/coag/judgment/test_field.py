"""A field spreads energy to what lies near, and loses none by spreading it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import ConfigurationError
from coag.judgment import TorusField, context_energy, places_by_index, places_by_meaning

BINS = st.integers(0, 30)


@given(st.lists(st.tuples(BINS, BINS, st.floats(0, 10)), max_size=8), st.integers(0, 8))
def test_spreading_keeps_the_sum(injected: list[tuple[int, int, float]], steps: int) -> None:
    field = TorusField(7, 5)
    for theta, phi, energy in injected:
        field.inject((theta, phi), energy)
    before = field.total
    field.diffuse(0.3, 0.2, steps)
    assert field.total == pytest.approx(before)


def test_energy_reaches_neighbours_around_the_edge() -> None:
    field = TorusField(4, 4)
    field.inject((0, 0), 1.0)
    field.diffuse()
    assert field.at((3, 0)) == field.at((1, 0)) > 0
    assert field.at((0, 3)) == field.at((0, 1)) > 0
    assert field.at((2, 2)) == 0


def test_decay_takes_a_share() -> None:
    field = TorusField(2, 2)
    field.inject((1, 1), 4.0)
    field.decay(0.25)
    assert field.total == 3.0


def test_places_by_index_differ() -> None:
    places = places_by_index([str(number) for number in range(45)])
    assert len(set(places.values())) == 45


def test_places_by_meaning_bring_what_is_alike_together() -> None:
    vectors = {"a": [1, 0, 0], "b": [0.9, 0.1, 0], "c": [0, 1, 0.2], "d": [0, 0.9, 0.4]}
    places = places_by_meaning(vectors, 4, 4)
    assert abs(places["a"][0] - places["b"][0]) == 1
    assert abs(places["c"][0] - places["d"][0]) == 1
    assert places_by_meaning({}) == {}
    assert list(places_by_meaning({"a": [1.0]})) == ["a"]


def test_the_energy_of_a_context_is_highest_where_the_task_is() -> None:
    places = places_by_index(["a", "b", "c", "d"], 8, 8)
    energy = context_energy({"b": 1.0, "gone": 1.0}, places, theta=8, phi=8)
    assert max(energy, key=energy.__getitem__) == "b"
    assert energy["b"] == 1.0
    assert context_energy({}, places) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: TorusField(0, 3),
        lambda: TorusField().inject((0, 0), float("inf")),
        lambda: TorusField().diffuse(0.7, 0.7),
        lambda: TorusField().decay(2),
    ],
)
def test_what_is_out_of_range_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigurationError):
        wrong()  # type: ignore[operator]
