"""The order of the phases."""

from __future__ import annotations

from coag.schema import PHASES, Phase, phase_after


def test_a_cycle_starts_with_retrieval() -> None:
    assert phase_after(None) is Phase.RETRIEVAL


def test_after_execution_the_next_cycle_starts() -> None:
    assert phase_after(Phase.EXECUTION) is Phase.RETRIEVAL


def test_following_the_phases_visits_each_once_in_order() -> None:
    visited: list[Phase] = []
    phase = phase_after(None)
    while phase not in visited:
        visited.append(phase)
        phase = phase_after(phase)
    assert tuple(visited) == PHASES
    assert [str(each) for each in PHASES] == [
        "retrieval",
        "reasoning",
        "proposal",
        "evaluation",
        "selection",
        "execution",
    ]
