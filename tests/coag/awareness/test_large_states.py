"""States that hold very much: slower, never wrong."""

from __future__ import annotations

from coag.awareness import (
    AwarenessEngine,
    AwarenessState,
    Belief,
    ConversationAdapter,
    Entity,
    Goal,
    GoalGraph,
    NameResolver,
    Observation,
    WorldModel,
    load_state,
    updated,
)
from coag.schema import SteppingClock, estimate_tokens


def _engine(things: int) -> AwarenessEngine:
    """An engine whose world has so many topics, each mentioned once at the first step."""
    adapter = ConversationAdapter()
    state = AwarenessEngine(adapter, clock=SteppingClock()).state
    entities = tuple(
        Entity(name=f"thing {n}", type="topic", state={"topic_step": 1}, first_step=1, last_step=1)
        for n in range(things)
    )
    large = state.model_copy(update={"world": WorldModel(entities=entities), "step": 1})
    return AwarenessEngine(adapter, clock=SteppingClock(), state=large)


def _check(engine: AwarenessEngine, things: int) -> None:
    """Two steps: names are recognised among all, the budget holds, what is kept is the same."""
    engine.step({"topics": [f"Thing {things - 1}"], "goals": ["Find thing 7"]})
    text = engine.step({"topics": ["something new"]}, 300)
    entities = engine.state.world.entities
    assert len(entities) == things + 1
    assert (entities[things - 1].mentions, entities[things].name) == (2, "something new")
    assert "Find thing 7" in text
    assert "something new" in text
    for budget in (0, 40, 300):
        assert estimate_tokens(engine.inject(budget)) <= budget
    restored = AwarenessEngine(
        ConversationAdapter(), state=load_state(engine.state.model_dump_json())
    )
    assert restored.inject(300) == engine.inject(300)


def test_a_thousand_things_are_told_apart_and_shown_within_the_budget() -> None:
    _check(_engine(1_000), 1_000)


def test_what_an_update_keeps_for_the_next_one_changes_no_result() -> None:
    state = AwarenessEngine(ConversationAdapter(), clock=SteppingClock()).state
    goals = GoalGraph(goals=tuple(Goal(id=f"{n:08x}", description=f"Goal {n}") for n in range(9)))
    beliefs = tuple(Belief(text=f"Case {n} is alike") for n in range(9))
    world = WorldModel(assumptions=beliefs, unknowns=beliefs[:2])
    one = other = state.model_copy(update={"goals": goals, "world": world})
    resolver = NameResolver()
    for step in range(9):
        seen = Observation.parse(_brought(step))
        one = updated(one, seen, state.at, resolver=resolver)
        other = updated(other, seen, state.at, resolver=NameResolver())
        assert one == other
        assert AwarenessState.model_validate(one.model_dump()) == one


def _brought(step: int) -> dict[str, object]:
    """What comes anew, closes, waits, opens again and is settled, step by step."""
    changes = [
        {"goal": f"goal  {step}", "status": ["completed", "abandoned", "deferred"][step % 3]},
        {"goal": f"GOAL {step // 2}", "status": "active", "priority": 0.9, "succeeded": True},
    ]
    return {
        "goals": [
            {"description": f"Part of {step}", "parent": f"Goal {step}"},
            {"description": f"goal {8 - step // 2}", "depends_on": [f"Part of {step}"]},
        ],
        "goal_changes": changes,
        "assumptions": [f"case {step} is alike", f"new {step}"],
        "unknowns": [f"new {step}"],
        "resolved": [f"CASE {step} is alike", f"new {step}"],
    }
