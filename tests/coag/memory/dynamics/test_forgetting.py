"""The forgetting curve: how long a record lasts, and what use does to it."""

from __future__ import annotations

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.record_states import COMPANION, NOW, PLAIN, days_later, encoded, settings, state_of, times
from kits.remembered import remembered

from coag.memory.dynamics import MemoryDynamicsSettings, RecordState, has_faded, strength_now, used
from coag.memory.dynamics.forgetting import is_exempt, neutral_stability
from coag.schema import Dynamics, Record

SETTINGS_AND_STATES = settings().flatmap(lambda how: st.tuples(st.just(how), encoded(how)))


def with_forgetting(**changed: float | frozenset[str]) -> MemoryDynamicsSettings:
    return MemoryDynamicsSettings.model_validate({"forgetting": changed})


def test_strength_is_as_encoded_at_first_and_1_e_after_one_stability() -> None:
    state = state_of(strength=0.6, stability=10.0)
    assert strength_now(state, NOW, COMPANION) == 0.6
    assert strength_now(state, days_later(10), COMPANION) == pytest.approx(0.6 / exp(1))


@given(SETTINGS_AND_STATES, times(), st.floats(0.0, 1e12))
def test_strength_falls_with_time_and_stays_between_0_and_1(
    one: tuple[MemoryDynamicsSettings, RecordState], now: float, later: float
) -> None:
    how, state = one
    first, second = strength_now(state, now, how), strength_now(state, now + later, how)
    assert 0.0 <= second <= first <= 1.0


@pytest.mark.parametrize("retention", [0.01, 7.0, 180.0, 20_000.0])
@pytest.mark.parametrize("floor", [0.01, 0.05, 0.3])
def test_a_neutral_record_lasts_as_many_days_as_retention_says(
    retention: float, floor: float
) -> None:
    how = with_forgetting(retention=retention, floor=floor)
    state = state_of(stability=neutral_stability(how))
    assert not has_faded(state, days_later(retention * 0.999), how)
    assert has_faded(state, days_later(retention * 1.001), how)


def test_a_neutral_record_lasts_months_not_hours_by_default() -> None:
    assert not has_faded(state_of(), days_later(179), COMPANION)
    assert has_faded(state_of(), days_later(181), COMPANION)


@given(SETTINGS_AND_STATES, times(), st.floats(0.0, 1e9))
def test_use_never_weakens(
    one: tuple[MemoryDynamicsSettings, RecordState], now: float, later: float
) -> None:
    how, state = one
    after = used(state, now, how)
    assert 1.0 >= after.strength >= state.strength
    assert after.stability >= state.stability
    assert after.uses == state.uses + 1
    then = max(now, state.used_at) + later  # where the clock jumped back, time begins again
    assert strength_now(after, max(now, then), how) >= 0.0
    if now >= state.used_at:
        assert strength_now(after, then, how) >= strength_now(state, then, how)


def test_spaced_uses_make_a_record_more_stable_than_as_many_at_once() -> None:
    at_once = spaced = state_of()
    for time in range(5):
        at_once = used(at_once, NOW + time, COMPANION)
        spaced = used(spaced, days_later(30 * (time + 1)), COMPANION)
    assert at_once.stability == pytest.approx(state_of().stability, rel=1e-4)
    assert spaced.stability > 3 * at_once.stability


def test_the_harder_a_recall_the_more_it_adds_and_each_further_one_adds_less() -> None:
    growth = [
        used(state_of(uses=uses), days_later(day), COMPANION).stability / state_of().stability
        for day, uses in ((10, 0), (60, 0), (60, 5))
    ]
    assert 1 < growth[0] < growth[1]
    assert 1 < growth[2] < growth[1]


def test_what_stirs_gains_more_by_use() -> None:
    stirring = state_of(valence=-1.0, arousal=1.0)
    plain, stirred = (used(one, days_later(30), COMPANION) for one in (state_of(), stirring))
    assert stirred.stability > plain.stability


def test_stability_grows_to_the_ceiling_and_no_further() -> None:
    how, state = with_forgetting(ceiling=100.0), state_of()
    for time in range(1, 50):
        state = used(state, days_later(200 * time), how)
    assert state.stability == 100.0
    above = state_of(stability=500.0)
    assert used(above, days_later(400), how).stability == 500.0


def test_a_clock_that_jumps_back_counts_as_no_time_and_takes_no_use_back() -> None:
    state = state_of(used_at=days_later(36_500))
    assert strength_now(state, NOW, COMPANION) == state.strength
    after = used(state, NOW, COMPANION)
    assert (after.used_at, after.uses) == (state.used_at, state.uses + 1)
    assert not has_faded(after, days_later(36_500), COMPANION)


def test_flashbulbs_and_exempt_records_never_fade() -> None:
    for kept in (state_of(flashbulb=True), state_of(exempt=True)):
        assert not has_faded(kept, days_later(1e6), COMPANION)


def test_without_forgetting_nothing_fades_and_a_use_is_only_counted() -> None:
    assert strength_now(state_of(), days_later(1e6), PLAIN) == state_of().strength
    assert not has_faded(state_of(strength=0.0), days_later(1e6), PLAIN)
    after = used(state_of(), days_later(9), PLAIN)
    assert after == state_of(uses=1, used_at=days_later(9))


def test_important_records_and_those_of_a_type_that_is_named_are_exempt() -> None:
    def record(importance: float = 0.5, type: str = "note") -> Record:
        return remembered("t", type=type, dynamics=Dynamics(importance=importance))

    how = with_forgetting(exempt_types=frozenset({"rule"}))
    found = [is_exempt(one, how) for one in (record(), record(0.9), record(type="rule"))]
    assert found == [False, True, True]
    assert is_exempt(record(1.0), PLAIN)
