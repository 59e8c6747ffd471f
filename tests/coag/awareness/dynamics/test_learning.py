"""Priorities of new goals follow how goals of their source and type went, within bounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    AwarenessState,
    GoalGraph,
    GoalSource,
    LearningSettings,
    NameResolver,
    Observation,
    Tally,
    TallyOf,
    updated,
)
from coag.awareness.dynamics import (
    expected_rate,
    goal_type,
    learned,
    learned_priority,
    weighed_goals,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = LearningSettings()


def close_to(value: float) -> object:
    """Equal to a number but for rounding."""
    return pytest.approx(value, rel=1e-9)  # pyright: ignore[reportUnknownMemberType]


def after(*observations: dict[str, object]) -> AwarenessState:
    """The state after these observations, learning from each."""
    state = AwarenessState(domain="test", at=NOW)
    for one in observations:
        seen = Observation.parse(one)
        before, state = state, updated(state, seen, NOW, resolver=NameResolver())
        state = learned(before.goals, state, SETTINGS)
    return state


def counts(state: AwarenessState) -> dict[str, tuple[int, int]]:
    return {one.name: (one.successes, one.failures) for one in state.self_model.tallies}


def wanted(description: str, source: str = "inferred") -> dict[str, object]:
    return {"goals": [{"description": description, "source": source}]}


def change(goal: str, **what: object) -> dict[str, object]:
    return {"goal_changes": [{"goal": goal, **what}]}


def test_outcomes_and_ends_are_counted_once_by_source_and_type() -> None:
    state = after(
        wanted("Answer: why?"),
        wanted("Build a boat", "explicit"),
        change("Answer: why?", succeeded=True),
        {},
        change("Answer: why?", status="completed"),
        {},
        change("Build a boat", succeeded=False),
        change("Build a boat", status="abandoned"),
    )
    assert counts(state) == {
        "inferred": (2, 0),
        "answer": (2, 0),
        "explicit": (0, 2),
        "build": (0, 2),
    }
    assert AwarenessState.model_validate_json(state.model_dump_json()) == state


def test_a_goal_that_ends_as_it_is_seen_first_counts_too() -> None:
    state = after({**wanted("Build a boat"), **change("Build a boat", status="completed")})
    assert counts(state) == {"inferred": (1, 0), "build": (1, 0)}


def test_a_state_in_which_nothing_ended_is_the_same_state() -> None:
    state = after(wanted("Build a boat"))
    assert learned(GoalGraph(), state, SETTINGS) is state


def test_the_expected_rate_is_the_mean_of_a_beta_with_the_sources_rate_as_the_types_prior() -> None:
    tallies = (
        Tally(of=TallyOf.SOURCE, name="inferred", successes=6, failures=0),
        Tally(of=TallyOf.TYPE, name="build", successes=0, failures=6),
    )
    source_rate = (6 + 2) / (6 + 4)
    assert expected_rate(GoalSource.INFERRED, "Cook", tallies, SETTINGS) == close_to(source_rate)
    both = (0 + 4 * source_rate) / (6 + 4)
    assert expected_rate(GoalSource.INFERRED, "Build it", tallies, SETTINGS) == close_to(both)
    assert expected_rate(GoalSource.EMERGENT, "Cook", tallies, SETTINGS) == 0.5


def test_new_goals_of_a_sort_that_fails_matter_less_and_of_one_that_succeeds_more() -> None:
    ends = [wanted(f"Build {n}") for n in range(9)]
    closes = [change(f"Build {n}", status="abandoned") for n in range(9)]
    good = [wanted(f"Answer {n}", "emergent") for n in range(9)]
    done = [change(f"Answer {n}", status="completed") for n in range(9)]
    state = after(*ends, *closes, *good, *done)
    seen = Observation.parse(
        {
            "goals": [
                {"description": "Build a boat", "source": "inferred", "priority": 0.5},
                {"description": "Answer me", "source": "emergent", "priority": 0.5},
                {"description": "Build a house", "source": "explicit", "priority": 0.5},
            ]
        }
    )
    boat, answer, house = weighed_goals(seen, state, SETTINGS).goals
    assert 0.3 <= boat.priority < 0.36
    assert 0.64 < answer.priority <= 0.7
    assert 0.4 <= house.priority < 0.5


def test_without_experience_nothing_is_moved() -> None:
    seen = Observation.parse(wanted("Build a boat"))
    assert weighed_goals(seen, after(), SETTINGS) is seen


def test_a_type_is_the_first_word() -> None:
    said = ["Answer: what?", "answer this", "  Build!", "🦊"]
    assert [goal_type(one) for one in said] == ["answer", "answer", "build", "other"]


def test_the_types_counted_longest_ago_go_first() -> None:
    few = LearningSettings(most_types=2)
    state = AwarenessState(domain="test", at=NOW)
    for word in ("build", "cook", "build", "sing"):
        seen = Observation.parse(
            {**wanted(f"{word} it"), **change(f"{word} it", status="completed")}
        )
        before, state = state, updated(state, seen, NOW, resolver=NameResolver())
        state = learned(before.goals, state, few)
    types = [one.name for one in state.self_model.tallies if one.of is TallyOf.TYPE]
    assert types == ["build", "sing"]


COUNTS = st.integers(0, 10_000)
TALLIES = st.builds(
    Tally,
    of=st.sampled_from(TallyOf),
    name=st.sampled_from(["build", *GoalSource]),
    successes=COUNTS,
    failures=COUNTS,
)
BOUNDS = st.builds(
    LearningSettings,
    influence=st.floats(0, 1),
    explicit_influence=st.floats(0, 1),
    prior_successes=st.floats(0.1, 50),
    prior_failures=st.floats(0.1, 50),
)


@given(st.floats(0, 1), st.sampled_from(GoalSource), st.lists(TALLIES), BOUNDS)
def test_no_experience_moves_a_priority_by_more_than_is_stated(
    priority: float, source: GoalSource, tallies: list[Tally], bounds: LearningSettings
) -> None:
    moved = learned_priority(priority, source, "Build a boat", tuple(tallies), bounds)
    explicit = source is GoalSource.EXPLICIT
    most = bounds.explicit_influence if explicit else bounds.influence
    assert 0.0 <= moved <= 1.0
    assert abs(moved - priority) <= most + 1e-9


@given(st.floats(0, 1), st.sampled_from(GoalSource), COUNTS, COUNTS)
def test_one_more_success_never_lessens_a_priority(
    priority: float, source: GoalSource, won: int, lost: int
) -> None:
    fewer, more = (
        learned_priority(
            priority,
            source,
            "Build",
            (Tally(of=TallyOf.TYPE, name="build", successes=number, failures=lost),),
            SETTINGS,
        )
        for number in (won, won + 1)
    )
    assert more >= fewer
