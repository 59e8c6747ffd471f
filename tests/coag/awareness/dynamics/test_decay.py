"""What is not named any more fades and leaves; what something names stays."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coag.awareness import (
    Attention,
    AttentionItem,
    AttentionType,
    AwarenessState,
    Belief,
    DecaySettings,
    Entity,
    FailureNote,
    Goal,
    GoalGraph,
    GoalSource,
    GoalStatus,
    NameResolver,
    Observation,
    Relationship,
    SelfModel,
    Trajectory,
    Transition,
    TransitionType,
    WorldModel,
    updated,
)
from coag.awareness.dynamics import base_level, decayed, effective_priorities, weighed


def close_to(value: float) -> object:
    """Equal to a number but for rounding."""
    return pytest.approx(value, rel=1e-9)  # pyright: ignore[reportUnknownMemberType]


NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = DecaySettings()


def state(step: int, **modules: object) -> AwarenessState:
    return AwarenessState(domain="test", step=step, at=NOW).model_copy(update=modules)


def thing(name: str, *, step: int = 0, mentions: int = 1) -> Entity:
    return Entity(name=name, type="thing", first_step=0, last_step=step, mentions=mentions)


def goal(id: str, description: str = "Tidy up", *, step: int = 0, **fields: object) -> Goal:
    base = Goal(id=id, description=description, created_step=step, updated_step=step)
    return Goal.model_validate({**base.model_dump(), **fields})


def names(after: AwarenessState) -> list[str]:
    return [one.name for one in after.world.entities]


def ids(after: AwarenessState) -> list[str]:
    return [one.id for one in after.goals.goals]


def test_a_thing_that_was_mentioned_once_leaves_after_55_steps() -> None:
    world = WorldModel(entities=(thing("fox"),))
    assert names(decayed(state(53, world=world), SETTINGS).state) == ["fox"]
    gone = decayed(state(54, world=world), SETTINGS)
    assert names(gone.state) == []
    assert gone.left.entities == world.entities


def test_what_was_mentioned_often_stays_longer() -> None:
    world = WorldModel(entities=(thing("fox"), thing("owl", step=10, mentions=8)))
    assert names(decayed(state(200, world=world), SETTINGS).state) == ["owl"]


@pytest.mark.parametrize("mentions", [1, 2])
def test_base_level_is_that_of_act_r_for_one_mention_and_two(mentions: int) -> None:
    uses = [9.0, 4.0][-mentions:]
    exact = math.log(sum(age**-0.5 for age in uses))
    assert base_level(mentions, uses[0], uses[-1], 0.5) == close_to(exact)


@given(st.integers(1, 50), st.integers(1, 200), st.integers(0, 200), st.floats(0.1, 0.9))
def test_activation_falls_with_age_and_rises_with_mentions(
    mentions: int, last: int, span: int, decay: float
) -> None:
    now = base_level(mentions, last + span, last, decay)
    assert base_level(mentions, last + span + 1, last + 1, decay) < now
    assert base_level(mentions + 1, last + span, last, decay) > now


@pytest.mark.parametrize(
    "text", ["Find the red fox", "find the RED-FOXES!", "Ask about redfox", "Où est le Red Fox?"]
)
def test_what_a_goal_or_attention_names_stays(text: str) -> None:
    world = WorldModel(entities=(thing("red fox"), thing("owl")))
    item = AttentionItem(id="a", type=AttentionType.THREAT, description=text, created_step=900)
    wanted = GoalGraph(goals=(goal("00000001", text, step=900),))
    for modules in ({"attention": Attention(items=(item,))}, {"goals": wanted}):
        assert names(decayed(state(900, world=world, **modules), SETTINGS).state) == ["red fox"]


def test_what_only_a_closed_goal_names_leaves() -> None:
    closed = goal("00000001", "Find the fox", step=899, status="completed", closed_step=899)
    world = WorldModel(entities=(thing("fox"),))
    before = state(900, world=world, goals=GoalGraph(goals=(closed,)))
    assert names(decayed(before, SETTINGS).state) == []


def test_a_fresh_relationship_holds_what_it_leads_to_however_far() -> None:
    world = WorldModel(
        entities=(thing("a", step=90), thing("b"), thing("c"), thing("d"), thing("e")),
        relationships=(
            Relationship(source="a", type="near", target="b", step=80),
            Relationship(source="c", type="near", target="b", step=80),
            Relationship(source="d", type="near", target="a", step=1),
            Relationship(source="user", type="likes", target="e", step=80),
            Relationship(source="user", type="likes", target="a", step=80),
        ),
    )
    result = decayed(state(90, world=world), SETTINGS)
    assert names(result.state) == ["a", "b", "c"]
    left = [(one.source, one.target) for one in result.left.relationships]
    assert left == [("d", "a"), ("user", "e")]


def test_an_old_relationship_between_two_that_stay_stays() -> None:
    edge = Relationship(source="a", type="near", target="b", step=0)
    world = WorldModel(entities=(thing("a", step=90), thing("b", step=90)), relationships=(edge,))
    assert decayed(state(90, world=world), SETTINGS).state.world.relationships == (edge,)


def test_what_failures_and_discoveries_name_fades_more_slowly() -> None:
    world = WorldModel(entities=(thing("fox"), thing("owl"), thing("bee"), thing("hen")))
    trajectory = Trajectory(
        transitions=(
            Transition(step=1, type=TransitionType.FAILURE, description="The fox ran off"),
            Transition(
                step=1, type=TransitionType.DISCOVERY, description="Found", detail={"what": "owl"}
            ),
            Transition(step=1, type=TransitionType.PIVOT, description="To the hen"),
        )
    )
    me = SelfModel(failures=(FailureNote(step=1, action="catch", lesson="Fear the bee"),))
    before = state(300, world=world, trajectory=trajectory, self_model=me)
    assert names(decayed(before, SETTINGS).state) == ["fox", "owl", "bee"]
    later = before.model_copy(update={"step": 1000})
    assert names(decayed(later, SETTINGS).state) == []


def test_a_goal_counts_half_after_its_half_life_and_fully_when_it_is_named() -> None:
    graph = GoalGraph(goals=(goal("00000001", priority=0.8, source="inferred"),))
    assert effective_priorities(graph, 20, SETTINGS)["00000001"] == close_to(0.4)
    assert effective_priorities(graph, 40, SETTINGS)["00000001"] == close_to(0.2)
    named = graph.reprioritise("00000001", 0.8, 40)
    assert effective_priorities(named, 40, SETTINGS)["00000001"] == close_to(0.8)
    shown = weighed(state(40, goals=graph), SETTINGS).goals.get("00000001")
    assert shown.priority == close_to(0.2)


def test_a_goal_is_as_fresh_as_what_serves_it() -> None:
    parent = goal("00000001", priority=0.8, source="inferred")
    child = goal("00000002", "Sweep", step=40, parent_id="00000001")
    graph = GoalGraph(goals=(parent, child))
    assert effective_priorities(graph, 40, SETTINGS)["00000001"] == close_to(0.8)


def test_a_closed_goal_leaves_after_a_while_and_an_open_one_when_it_faded() -> None:
    graph = GoalGraph(
        goals=(
            goal("00000001", step=80, status="completed", closed_step=80),
            goal("00000002", step=81, status="completed", closed_step=81),
            goal("00000003", source="inferred", priority=0.6),
            goal("00000004", source="explicit", priority=0.6),
        )
    )
    result = decayed(state(100, goals=graph), SETTINGS)
    assert ids(result.state) == ["00000002", "00000004"]
    assert [one.id for one in result.left.goals] == ["00000001", "00000003"]
    assert ids(decayed(state(100, goals=graph), SETTINGS, staying=["00000003"]).state)[1:] == [
        "00000003",
        "00000004",
    ]


def test_a_goal_that_attention_names_does_not_fade_away() -> None:
    graph = GoalGraph(goals=(goal("00000001", "Feed the hen", source="inferred"),))
    item = AttentionItem(id="a", type=AttentionType.THREAT, description="feed  the HEN: now")
    before = state(500, goals=graph, attention=Attention(items=(item,)))
    assert ids(decayed(before, SETTINGS).state) == ["00000001"]
    assert ids(decayed(state(500, goals=graph), SETTINGS).state) == []


def test_a_goal_stays_while_one_that_stays_serves_it_or_waits_for_it() -> None:
    graph = GoalGraph(
        goals=(
            goal("00000001", status="abandoned", closed_step=0),
            goal("00000002", status="completed", closed_step=0),
            goal("00000003", status="completed", closed_step=0),
            goal(
                "00000004",
                step=99,
                parent_id="00000002",
                depends_on=("00000001", "00000003"),
                status="blocked",
            ),
        )
    )
    after = decayed(state(100, goals=graph), SETTINGS).state
    assert ids(after) == ["00000001", "00000002", "00000004"]
    waiting = after.goals.get("00000004")
    assert waiting.depends_on == ("00000001",)
    assert waiting.status is GoalStatus.BLOCKED


def test_beyond_the_bound_the_closed_go_first_and_what_waited_for_them_waits_no_more() -> None:
    graph = GoalGraph(
        goals=(
            goal("00000001", step=9, priority=0.9),
            goal("00000002", step=9, priority=0.1),
            goal("00000003", step=9, status="abandoned", closed_step=9),
            goal("00000004", step=9, depends_on=("00000002",), status="blocked"),
        )
    )
    kept = decayed(state(9, goals=graph), SETTINGS.model_copy(update={"most_goals": 3})).state
    assert ids(kept) == ["00000001", "00000002", "00000004"]
    fewer = decayed(state(9, goals=graph), SETTINGS.model_copy(update={"most_goals": 1}))
    assert ids(fewer.state) == ["00000002"]
    assert {one.id for one in fewer.left.goals} == {"00000001", "00000003", "00000004"}


def test_the_bounds_keep_the_urgent_the_open_and_the_latest() -> None:
    bounds = DecaySettings(most_beliefs=2, most_attention=1, most_transitions=1)
    items = tuple(
        AttentionItem(id=id, type=AttentionType.THREAT, description=id, urgency=urgency)
        for id, urgency in (("a", 0.2), ("b", 0.9))
    )
    transitions = tuple(
        Transition(step=step, type=TransitionType.FAILURE, description="x") for step in (1, 2)
    )
    unknowns = (Belief(text="a"), Belief(text="b", step=3, resolved=4), Belief(text="c", step=2))
    before = state(
        5,
        world=WorldModel(unknowns=unknowns),
        attention=Attention(items=items),
        trajectory=Trajectory(transitions=transitions),
    )
    result = decayed(before, bounds)
    assert [one.text for one in result.state.world.unknowns] == ["a", "c"]
    assert [one.id for one in result.state.attention.items] == ["b"]
    assert result.state.trajectory.transitions == transitions[1:]
    assert result.left.attention == items[:1]
    assert result.left.transitions == transitions[:1]


def test_a_state_in_which_nothing_fades_stays_the_same() -> None:
    before = state(5, world=WorldModel(entities=(thing("fox"),)))
    result = decayed(before, SETTINGS)
    assert result.state == before
    assert result.state.world.entities is before.world.entities


WORDS = st.sampled_from(["fox", "owl", "bee", "hen", "red fox", "C++", "🦊", "src/a.py", "cat's"])


@st.composite
def _states(draw: st.DrawFn) -> AwarenessState:
    step = draw(st.integers(0, 1000))
    steps = st.integers(0, step)
    entities = [
        Entity(name=name, type="thing", first_step=0, last_step=draw(steps), mentions=1)
        for name in draw(st.lists(WORDS, unique=True))
    ]
    edges = draw(
        st.lists(st.builds(Relationship, source=WORDS, type=st.just("x"), target=WORDS, step=steps))
    )
    described = draw(st.lists(WORDS, max_size=3))
    goals = tuple(
        goal(f"{place:08x}", f"Go to {name} now", step=draw(steps), source=GoalSource.INFERRED)
        for place, name in enumerate(described)
    )
    items = tuple(
        AttentionItem(id=name, type=AttentionType.ANOMALY, description=f"Look: {name}!")
        for name in draw(st.lists(WORDS, max_size=2, unique=True))
    )
    return state(
        step,
        world=WorldModel(entities=tuple(entities), relationships=tuple(edges)),
        goals=GoalGraph(goals=goals),
        attention=Attention(items=items),
    )


@given(_states(), st.integers(0, 5))
def test_nothing_that_is_named_ever_leaves(before: AwarenessState, most: int) -> None:
    result = decayed(before, DecaySettings(most_entities=most))
    after, left = result.state, {one.name for one in result.left.entities}
    for one in after.goals.active_goals:
        assert one.description.removeprefix("Go to ").removesuffix(" now") not in left
    for item in after.attention.items:
        assert item.id not in left
    for edge in after.world.relationships:
        assert not {edge.source, edge.target} & left
    assert left | set(names(after)) == set(names(before))
    known = {one.name for one in before.world.entities}
    for edge in result.left.relationships:
        assert {edge.source, edge.target} & left or not {edge.source, edge.target} & known
    assert AwarenessState.model_validate_json(after.model_dump_json()) == after


@given(_states())
def test_decay_right_after_decay_changes_nothing(before: AwarenessState) -> None:
    once = decayed(before, SETTINGS).state
    assert decayed(once, SETTINGS).state == once


@st.composite
def _turns(draw: st.DrawFn) -> list[dict[str, object]]:
    """A short pattern of turns that a long dialogue repeats with ever new names."""
    return draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "things": st.integers(0, 4),
                    "old": st.integers(0, 3),
                    "goal": st.sampled_from(["explicit", "inferred", "none"]),
                    "chain": st.booleans(),
                    "close": st.booleans(),
                    "sticky": st.booleans(),
                    "forever": st.booleans(),
                }
            ),
            min_size=1,
            max_size=4,
        )
    )


def _observation(turn: dict[str, object], step: int, goals: GoalGraph) -> Observation:
    def count(key: str) -> int:
        value = turn[key]
        assert isinstance(value, int)
        return value

    new = [f"thing {step} {place}" for place in range(count("things"))]
    old = [f"thing {step - back * 7} 0" for back in range(1, count("old") + 1) if step > back * 7]
    wanted = [] if turn["goal"] == "none" else [f"Reach the place {step}"]
    last = [one.description for one in goals.goals if one.is_open][-1:]
    depends = last if turn["chain"] and last and wanted else []
    return Observation.parse(
        {
            "entities": [{"name": name, "type": "thing"} for name in new + old],
            "relationships": [
                {"source": one, "type": "near", "target": other}
                for one, other in zip(new, old, strict=False)
            ],
            "goals": [
                {"description": one, "source": turn["goal"], "depends_on": depends}
                for one in wanted
            ],
            "goal_changes": [{"goal": one, "status": "completed"} for one in last]
            if turn["close"]
            else [],
            "attention_items": [{"type": "threat", "description": f"Danger {step}"}]
            if turn["forever"]
            else [],
            "assumptions": [f"It is {step}"],
            "unknowns": [f"Why {step}?"],
            "event": {
                "type": "failure" if turn["sticky"] else "progress",
                "description": f"It was {step}",
            },
        }
    )


@settings(max_examples=2)
@given(_turns())
def test_a_thousand_turns_stay_bounded(turns: list[dict[str, object]]) -> None:
    chosen = DecaySettings(most_entities=100, most_goals=60, most_relationships=100)
    resolver = NameResolver()
    now = state(0)
    sizes: list[int] = []
    for step in range(1, 1001):
        seen = _observation(turns[step % len(turns)], step, now.goals)
        now = updated(now, seen, NOW, resolver=resolver)
        if step % chosen.every == 0:
            now = decayed(now, chosen).state
            sizes.append(len(now.model_dump_json()))
            assert len(now.goals.goals) <= 60
            assert len(now.world.entities) <= 100 + 2 * 100 + 60 + 50
            assert len(now.world.relationships) <= 100
            assert len(now.attention.items) <= 50
            assert len(now.trajectory.transitions) <= 50
            assert len(now.world.assumptions) <= 100
    assert max(sizes[50:]) <= 1.3 * max(sizes[:50])
