"""What is not named any more fades and leaves; priorities follow how goals went."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.aware_runs import item

from coag.awareness import (
    Attention,
    AwarenessState,
    Belief,
    DecaySettings,
    Entity,
    Goal,
    GoalGraph,
    GoalSource,
    GoalStatus,
    LearningSettings,
    Observation,
    Relationship,
    SelfModel,
    Trajectory,
    Transition,
    TransitionType,
    WorldModel,
)
from coag.awareness.dynamics import (
    base_level,
    decayed,
    effective_priorities,
    learned,
    learned_priority,
    weighed,
    weighed_goals,
)
from coag.awareness.names import NameResolver
from coag.awareness.state import FailureNote, Tally, TallyOf
from coag.awareness.updating import updated

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS, LEARNING = DecaySettings(), LearningSettings()
ONE, TWO, THREE, FOUR = (f"{number:08x}" for number in range(1, 5))


def close_to(value: float) -> object:
    """Equal to a number but for rounding."""
    return pytest.approx(value, rel=1e-9)  # pyright: ignore[reportUnknownMemberType]


def state(step: int, **modules: object) -> AwarenessState:
    return AwarenessState(domain="test", step=step, at=NOW).model_copy(update=modules)


def things(*names: str, step: int = 0, mentions: int = 1) -> tuple[Entity, ...]:
    fields: dict[str, Any] = {"type": "thing", "last_step": step, "mentions": mentions}
    return tuple(Entity(name=name, **fields) for name in names)


def world_of(*names: str) -> WorldModel:
    return WorldModel(entities=things(*names))


def goal(id: str, description: str = "Tidy up", *, step: int = 0, **fields: Any) -> Goal:
    return Goal(id=id, description=description, created_step=step, updated_step=step, **fields)


def graph_of(*goals: Goal) -> GoalGraph:
    return GoalGraph(goals=goals)


def attending(*texts: str) -> Attention:
    return Attention(items=tuple(item(at, text) for at, text in enumerate(texts)))


def names(after: AwarenessState) -> list[str]:
    return [one.name for one in after.world.entities]


def ids(after: AwarenessState) -> list[str]:
    return [one.id for one in after.goals.goals]


# ---- decay of things ----


def test_a_thing_that_was_mentioned_once_leaves_after_55_steps_and_often_later() -> None:
    world = world_of("fox")
    assert names(decayed(state(53, world=world), SETTINGS)) == ["fox"]
    assert names(decayed(state(54, world=world), SETTINGS)) == []
    more = WorldModel(entities=(*things("fox"), *things("owl", step=10, mentions=8)))
    assert names(decayed(state(200, world=more), SETTINGS)) == ["owl"]
    assert names(decayed(state(10_000, world=more), SETTINGS)) == []
    early = state(5, world=world)
    assert decayed(early, SETTINGS) == early


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
def test_what_an_open_goal_or_attention_names_stays(text: str) -> None:
    world = world_of("red fox", "owl")
    wanted, closed = goal(ONE, text, step=900), goal(ONE, text, status="abandoned", step=899)
    for modules in ({"attention": attending(text)}, {"goals": graph_of(wanted)}):
        assert names(decayed(state(900, world=world, **modules), SETTINGS)) == ["red fox"]
    over = state(900, world=world, goals=graph_of(closed))
    assert names(decayed(over, SETTINGS)) == []


def test_a_fresh_relationship_holds_what_it_leads_to_however_far() -> None:
    edges = (("a", "b", 80), ("c", "b", 80), ("d", "a", 1), ("user", "e", 80), ("user", "a", 80))
    world = WorldModel(
        entities=(*things("a", step=90), *things("b", "c", "d", "e")),
        relationships=tuple(
            Relationship(source=source, type="near", target=target, step=step)
            for source, target, step in edges
        ),
    )
    after = decayed(state(90, world=world), SETTINGS)
    assert names(after) == ["a", "b", "c"]
    kept = [(one.source, one.target) for one in after.world.relationships]
    assert kept == [("a", "b"), ("c", "b"), ("user", "a")]


def test_what_failures_and_discoveries_name_fades_more_slowly() -> None:
    kinds = (TransitionType.FAILURE, TransitionType.DISCOVERY, TransitionType.PIVOT)
    texts = ("The fox ran off", "Found", "To the hen")
    transitions = tuple(
        Transition(step=1, type=kind, description=text, detail={"what": "owl"} if place else {})
        for place, (kind, text) in enumerate(zip(kinds, texts, strict=True))
    )
    note = FailureNote(step=1, action="catch", lesson="Fear the bee")
    before = state(
        300,
        world=world_of("fox", "owl", "bee", "hen"),
        trajectory=Trajectory(transitions=transitions),
        self_model=SelfModel(failures=(note,)),
    )
    assert names(decayed(before, SETTINGS)) == ["fox", "owl", "bee"]
    assert names(decayed(before.model_copy(update={"step": 1000}), SETTINGS)) == []


def test_the_bounds_keep_the_urgent_the_open_and_the_latest() -> None:
    bounds = DecaySettings(most_beliefs=2, most_attention=1, most_transitions=1)
    items = (item(1, urgency=0.2), item(2, urgency=0.9))
    failure = TransitionType.FAILURE
    went = tuple(Transition(step=step, type=failure, description="x") for step in (1, 2))
    unknowns = (Belief(text="a"), Belief(text="b", step=3, resolved=4), Belief(text="c", step=2))
    before = state(
        5,
        world=WorldModel(unknowns=unknowns),
        attention=Attention(items=items),
        trajectory=Trajectory(transitions=went),
    )
    after = decayed(before, bounds)
    assert [one.text for one in after.world.unknowns] == ["a", "c"]
    assert (after.attention.items, after.trajectory.transitions) == (items[1:], went[1:])


# ---- decay of goals ----


def test_a_goal_counts_half_after_its_half_life_and_fully_when_it_or_its_part_is_named() -> None:
    graph = graph_of(goal(ONE, priority=0.8, source="inferred"))
    weights = [effective_priorities(graph, step, SETTINGS)[ONE] for step in (20, 40)]
    assert weights == [close_to(0.4), close_to(0.2)]
    assert weighed(state(40, goals=graph), SETTINGS).goals.get(ONE).priority == close_to(0.2)
    named = graph_of(goal(ONE, priority=0.8, source="inferred", step=40))
    part = graph_of(*graph.goals, goal(TWO, "Sweep", step=40, parent_id=ONE))
    for fresh in (named, part):
        assert effective_priorities(fresh, 40, SETTINGS)[ONE] == close_to(0.8)


def test_a_closed_goal_leaves_after_a_while_and_an_open_one_when_it_faded() -> None:
    graph = graph_of(
        goal(ONE, step=80, status="completed", closed_step=80),
        goal(TWO, step=81, status="completed", closed_step=81),
        goal(THREE, source="inferred", priority=0.6),
        goal(FOUR, source="explicit", priority=0.6),
    )
    assert ids(decayed(state(100, goals=graph), SETTINGS)) == [TWO, FOUR]
    staying = decayed(state(100, goals=graph), SETTINGS, staying=[THREE])
    assert ids(staying) == [TWO, THREE, FOUR]


def test_a_goal_that_attention_names_does_not_fade_away() -> None:
    graph = graph_of(goal(ONE, "Feed the hen", source="inferred"))
    before = state(500, goals=graph, attention=attending("feed  the HEN: now"))
    assert ids(decayed(before, SETTINGS)) == [ONE]
    assert ids(decayed(state(500, goals=graph), SETTINGS)) == []


def test_a_goal_stays_while_one_that_stays_serves_it_or_waits_for_it() -> None:
    last = goal(FOUR, step=99, parent_id=TWO, depends_on=(ONE, THREE), status="blocked")
    done: dict[str, Any] = {"status": "completed", "closed_step": 0}
    graph = graph_of(
        goal(ONE, status="abandoned", closed_step=0), goal(TWO, **done), goal(THREE, **done), last
    )
    after = decayed(state(100, goals=graph), SETTINGS)
    assert ids(after) == [ONE, TWO, FOUR]
    assert after.goals.get(FOUR).depends_on == (ONE,)
    assert after.goals.get(FOUR).status is GoalStatus.BLOCKED


def test_beyond_the_bound_the_closed_go_first_and_what_waited_for_them_waits_no_more() -> None:
    graph = graph_of(
        goal(ONE, step=9, priority=0.9),
        goal(TWO, step=9, priority=0.1),
        goal(THREE, step=9, status="abandoned", closed_step=9),
        goal(FOUR, step=9, depends_on=(TWO,), status="blocked"),
    )
    after = {m: ids(decayed(state(9, goals=graph), DecaySettings(most_goals=m))) for m in (3, 1)}
    assert after == {3: [ONE, TWO, FOUR], 1: [TWO]}


WORDS = st.sampled_from(["fox", "owl", "bee", "hen", "red fox", "C++", "🦊", "src/a.py", "cat's"])


@st.composite
def _states(draw: st.DrawFn) -> AwarenessState:
    step = draw(st.integers(0, 1000))
    steps = st.integers(0, step)
    entities = [
        Entity(name=name, type="thing", last_step=draw(steps))
        for name in draw(st.lists(WORDS, unique=True))
    ]
    edges = draw(
        st.lists(st.builds(Relationship, source=WORDS, type=st.just("x"), target=WORDS, step=steps))
    )
    goals = (
        goal(f"{place:08x}", f"Go to {name} now", step=draw(steps), source=GoalSource.INFERRED)
        for place, name in enumerate(draw(st.lists(WORDS, max_size=3)))
    )
    return state(
        step,
        world=WorldModel(entities=tuple(entities), relationships=tuple(edges)),
        goals=graph_of(*goals),
        attention=attending(*draw(st.lists(WORDS, max_size=2, unique=True))),
    )


@given(_states(), st.integers(0, 5))
def test_nothing_that_is_named_ever_leaves(before: AwarenessState, most: int) -> None:
    after = decayed(before, DecaySettings(most_entities=most))
    known = set(names(before))
    left = known - set(names(after))
    for one in after.goals.active_goals:
        assert one.description.removeprefix("Go to ").removesuffix(" now") not in left
    assert not left & {item.description for item in after.attention.items}
    for edge in after.world.relationships:
        assert not {edge.source, edge.target} & left
    for edge in (one for one in before.world.relationships if one not in after.world.relationships):
        assert {edge.source, edge.target} & left or not {edge.source, edge.target} & known
    assert AwarenessState.model_validate_json(after.model_dump_json()) == after


@given(_states())
def test_decay_right_after_decay_changes_nothing(before: AwarenessState) -> None:
    once = decayed(before, SETTINGS)
    assert decayed(once, SETTINGS) == once


# ---- learning ----


def after(*raw: dict[str, object], chosen: LearningSettings = LEARNING) -> AwarenessState:
    """The state after these observations, learning from each."""
    now = state(0)
    for one in raw:
        seen = Observation.parse(one)
        before, now = now, updated(now, seen, NOW, resolver=NameResolver())
        now = learned(before.goals, now, chosen)
    return now


def counts(now: AwarenessState) -> dict[str, tuple[int, int]]:
    return {one.name: (one.successes, one.failures) for one in now.self_model.tallies}


def wanted(description: str, source: str = "inferred") -> dict[str, Any]:
    return {"goals": [{"description": description, "source": source}]}


def change(goal: str, **what: object) -> dict[str, object]:
    return {"goal_changes": [{"goal": goal, **what}]}


def test_outcomes_and_ends_are_counted_once_by_source_and_type() -> None:
    now = after(
        wanted("Answer: why?"),
        wanted("Build a boat", "explicit"),
        change("Answer: why?", succeeded=True),
        {},
        change("Answer: why?", status="completed"),
        {},
        change("Build a boat", succeeded=False),
        change("Build a boat", status="abandoned"),
        {**wanted("Cook", "emergent"), **change("Cook", status="completed")},
    )
    assert counts(now) == {
        "inferred": (2, 0),
        "answer": (2, 0),
        "explicit": (0, 2),
        "build": (0, 2),
        "emergent": (1, 0),
        "cook": (1, 0),
    }
    assert AwarenessState.model_validate_json(now.model_dump_json()) == now
    assert learned(now.goals, now, LEARNING) is now


def rate(source: GoalSource, description: str, tallies: tuple[Tally, ...]) -> float:
    """The expected rate, by how far it moves a priority without a bound."""
    chosen = LearningSettings(influence=0.5, explicit_influence=0.5)
    return learned_priority(0.5, source, description, tallies, chosen)


def test_the_expected_rate_is_the_mean_of_a_beta_with_the_sources_rate_as_the_types_prior() -> None:
    tallies = (
        Tally(of=TallyOf.SOURCE, name="inferred", successes=6, failures=0),
        Tally(of=TallyOf.TYPE, name="build", successes=0, failures=6),
    )
    source_rate = (6 + 2) / (6 + 4)
    assert rate(GoalSource.INFERRED, "Cook", tallies) == close_to(source_rate)
    both = (0 + 4 * source_rate) / (6 + 4)
    assert rate(GoalSource.INFERRED, "Build it", tallies) == close_to(both)
    assert rate(GoalSource.EMERGENT, "Cook", tallies) == 0.5


def test_new_goals_of_a_type_that_fails_matter_less_and_of_one_that_succeeds_more() -> None:
    raw: list[dict[str, object]] = []
    for n in range(9):
        raw += [wanted(f"Build {n}"), change(f"Build {n}", status="abandoned")]
        raw += [wanted(f"Answer {n}", "emergent"), change(f"Answer {n}", status="completed")]
    goals = wanted("Build a boat"), wanted("Answer me", "emergent"), wanted("Build it", "explicit")
    seen = Observation.parse({"goals": [one for each in goals for one in each["goals"]]})
    boat, answer, house = weighed_goals(seen, after(*raw), LEARNING).goals
    assert 0.3 <= boat.priority < 0.36
    assert 0.64 < answer.priority <= 0.7
    assert 0.4 <= house.priority < 0.5
    assert weighed_goals(seen, after(), LEARNING) is seen


def test_a_type_is_the_first_word_and_the_one_counted_longest_ago_is_removed_first() -> None:
    raw = [
        {**wanted(f"{word} it"), **change(f"{word} it", status="completed")}
        for word in ("  Build", "cook", "build", "🦊", "Build:")
    ]
    now = after(*raw, chosen=LearningSettings(most_types=2))
    types = [one.name for one in now.self_model.tallies if one.of is TallyOf.TYPE]
    assert types == ["it", "build"]


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
def test_no_experience_moves_a_priority_by_more_than_its_bound(
    priority: float, source: GoalSource, tallies: list[Tally], bounds: LearningSettings
) -> None:
    moved = learned_priority(priority, source, "Build a boat", tuple(tallies), bounds)
    explicit = source is GoalSource.EXPLICIT
    most = bounds.explicit_influence if explicit else bounds.influence
    assert 0.0 <= moved <= 1.0
    assert abs(moved - priority) <= most + 1e-9
