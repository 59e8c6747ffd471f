"""The state is its JSON."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coag.awareness import (
    Attention,
    AttentionItem,
    AttentionType,
    AwarenessState,
    Belief,
    CollaborationMode,
    Entity,
    FailureNote,
    Goal,
    GoalGraph,
    GoalOutcomes,
    GoalSource,
    GoalStatus,
    InteractionProtocol,
    Merge,
    MergeReason,
    Need,
    Relationship,
    Resource,
    ScanPattern,
    SelfModel,
    Trajectory,
    Transition,
    TransitionType,
    WorldModel,
    load_state,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
steps = st.integers(0, 10**6)
shares = st.floats(0, 1)
texts = st.text(max_size=8)
said = texts.map(lambda text: f"{text}a")
names = st.lists(said, max_size=2).map(tuple)
plain = texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
plain = plain | st.booleans() | st.none()
states = st.dictionaries(texts, plain, max_size=2)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=2).map(tuple)


@st.composite
def graphs(draw: st.DrawFn) -> GoalGraph:
    graph = GoalGraph()
    for step in range(draw(st.integers(0, 4))):
        ids = [goal.id for goal in graph.goals]
        description, source = draw(said), draw(st.sampled_from(GoalSource))
        goal = Goal(
            id=graph.fresh_id(description, source, step),
            description=description,
            source=source,
            priority=draw(shares),
            parent_id=draw(st.none() | st.sampled_from(ids)) if ids else None,
            depends_on=tuple(draw(st.lists(st.sampled_from(ids), unique=True))) if ids else (),
            completion_criteria=draw(st.none() | said),
            created_step=step,
            outcomes=GoalOutcomes(successes=draw(steps), failures=draw(steps)),
        )
        graph = graph.spawn(goal)
        if draw(st.booleans()):
            graph = graph.close(goal.id, GoalStatus.COMPLETED, step)
    return graph


trajectories = st.builds(
    Trajectory,
    transitions=some(
        st.builds(
            Transition,
            step=steps,
            type=st.sampled_from(TransitionType),
            description=said,
            detail=states,
        )
    ),
    window=st.integers(0, 9),
)
beliefs = some(st.builds(Belief, text=said, step=steps, resolved=st.none() | steps))
worlds = st.builds(
    WorldModel,
    entities=some(
        st.builds(Entity, name=said, type=said, state=states, affordances=names, aliases=names)
    ),
    relationships=some(st.builds(Relationship, source=said, type=said, target=said, step=steps)),
    assumptions=beliefs,
    unknowns=beliefs,
    merges=some(
        st.builds(Merge, name=said, entity=said, how=st.sampled_from(MergeReason), score=shares)
    ),
)
selves = st.builds(
    SelfModel,
    capabilities=names,
    limitations=names,
    resources=some(
        st.builds(
            Resource,
            name=said,
            capacity=st.floats(100, 1e9),
            remaining=st.floats(0, 100),
            depletable=st.booleans(),
        )
    ),
    needs=some(st.builds(Need, action=said, resource=said, amount=st.floats(0, 9))),
    allowed=names,
    forbidden=names,
    failures=some(st.builds(FailureNote, step=steps, action=said, reason=texts, lesson=texts)),
)
attentions = st.builds(
    Attention,
    items=some(
        st.builds(
            AttentionItem,
            id=said,
            type=st.sampled_from(AttentionType),
            description=said,
            urgency=shares,
            ttl=st.none() | st.integers(1, 99),
            created_step=steps,
            source=texts,
        )
    ),
    suppressed=names,
    scan_patterns=some(st.builds(ScanPattern, name=said, description=said)),
)
awareness_states = st.builds(
    AwarenessState,
    domain=said,
    goals=graphs(),
    trajectory=trajectories,
    world=worlds,
    self_model=selves,
    attention=attentions,
    protocol=st.builds(
        InteractionProtocol,
        style=texts,
        output_format=texts,
        escalation=names,
        mode=st.sampled_from(CollaborationMode),
        hard_constraints=names,
    ),
    step=steps,
    at=st.datetimes(timezones=st.just(UTC)),
)


@given(awareness_states)
def test_any_state_is_its_json(state: AwarenessState) -> None:
    text = state.model_dump_json()
    assert AwarenessState.model_validate_json(text) == state
    assert load_state(text) == state
    assert load_state(text).model_dump_json() == text
    assert load_state(state.model_dump(mode="json")) == state


def test_a_tick_is_one_step_later_at_the_given_time() -> None:
    state = AwarenessState(domain="d", at=NOW)
    later = state.tick(NOW + timedelta(seconds=1))
    assert (later.step, later.at) == (1, NOW + timedelta(seconds=1))
    assert (state.step, state.at) == (0, NOW)


def test_a_time_without_a_zone_is_utc() -> None:
    state = AwarenessState(domain="d", at=NOW).tick(datetime(2026, 3, 2))
    assert state.at == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_json_cannot_carry_is_refused(number: float) -> None:
    with pytest.raises(ValidationError):
        Entity(name="a", type="b", state={"x": number})
    with pytest.raises(ValidationError):
        Resource(name="a", capacity=number, remaining=0)


def test_the_enumerations_are_those_of_the_paper() -> None:
    said = {
        GoalStatus: "active, completed, abandoned, blocked, deferred",
        GoalSource: "explicit, inferred, emergent, spawned",
        TransitionType: "progress, reversal, pivot, discovery, external_event, failure, branch",
        AttentionType: "threat, opportunity, anomaly, transition",
        CollaborationMode: "autonomous, supervised, collaborative, advisory",
    }
    assert {kind: ", ".join(one.value for one in kind) for kind in said} == said
