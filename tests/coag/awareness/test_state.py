"""The state is its JSON, and each of its modules keeps its promises."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coag.awareness import (
    STICKY,
    Attention,
    AttentionItem,
    AttentionType,
    AwarenessState,
    Belief,
    CollaborationMode,
    Entity,
    FailureNote,
    Goal,
    GoalDraft,
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
from coag.awareness.state import attention_id
from coag.errors import AwarenessError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS, SHARES, TEXTS = st.integers(0, 10**6), st.floats(0, 1), st.text(max_size=8)
SAID = TEXTS.map(lambda text: f"{text}a")
NAMES = st.lists(SAID, max_size=2).map(tuple)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
STATES = st.dictionaries(TEXTS, TEXTS | NUMBERS | st.none(), max_size=2)


def some(kind: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.builds(kind, **fields), max_size=2).map(tuple)


@st.composite
def graphs(draw: st.DrawFn) -> GoalGraph:
    graph = GoalDraft()
    for step in range(draw(st.integers(0, 4))):
        ids = [goal.id for goal in graph.goals]
        description, source = draw(SAID), draw(st.sampled_from(GoalSource))
        goal = Goal(
            id=graph.fresh_id(description, source, step),
            description=description,
            source=source,
            priority=draw(SHARES),
            parent_id=draw(st.none() | st.sampled_from(ids)) if ids else None,
            depends_on=tuple(draw(st.lists(st.sampled_from(ids), unique=True))) if ids else (),
            completion_criteria=draw(st.none() | SAID),
            created_step=step,
            outcomes=GoalOutcomes(successes=draw(STEPS), failures=draw(STEPS)),
        )
        graph.spawn(goal)
        if draw(st.booleans()):
            graph.set_status(goal.id, GoalStatus.COMPLETED, step)
    return GoalGraph().drafted(graph)


TRANSITIONS = some(
    Transition, step=STEPS, type=st.sampled_from(TransitionType), description=SAID, detail=STATES
)
BELIEFS = some(Belief, text=SAID, step=STEPS, resolved=st.none() | STEPS)
WORLDS = st.builds(
    WorldModel,
    entities=some(Entity, name=SAID, type=SAID, state=STATES, affordances=NAMES, aliases=NAMES),
    relationships=some(Relationship, source=SAID, type=SAID, target=SAID, step=STEPS),
    assumptions=BELIEFS,
    unknowns=BELIEFS,
    merges=some(Merge, name=SAID, entity=SAID, how=st.sampled_from(MergeReason), score=SHARES),
)
SELVES = st.builds(
    SelfModel,
    capabilities=NAMES,
    limitations=NAMES,
    resources=some(Resource, name=SAID, capacity=st.floats(100, 1e9), remaining=st.floats(0, 100)),
    needs=some(Need, action=SAID, resource=SAID, amount=st.floats(0, 9)),
    allowed=NAMES,
    forbidden=NAMES,
    failures=some(FailureNote, step=STEPS, action=SAID, reason=TEXTS, lesson=TEXTS),
)
ITEMS = st.builds(
    AttentionItem,
    id=st.text("abc", min_size=1, max_size=2),
    type=st.sampled_from(AttentionType),
    description=SAID,
    urgency=SHARES,
    ttl=st.none() | st.integers(1, 9),
    created_step=st.integers(0, 9),
    source=TEXTS,
)


@given(
    st.builds(
        AwarenessState,
        domain=SAID,
        goals=graphs(),
        trajectory=st.builds(Trajectory, transitions=TRANSITIONS, window=st.integers(0, 9)),
        world=WORLDS,
        self_model=SELVES,
        attention=st.builds(
            Attention,
            items=st.lists(ITEMS, max_size=2).map(tuple),
            suppressed=NAMES,
            scan_patterns=some(ScanPattern, name=SAID, description=SAID),
        ),
        protocol=st.builds(
            InteractionProtocol,
            style=TEXTS,
            output_format=TEXTS,
            escalation=NAMES,
            mode=st.sampled_from(CollaborationMode),
            hard_constraints=NAMES,
        ),
        step=STEPS,
        at=st.datetimes(timezones=st.just(UTC)),
    )
)
def test_any_state_is_its_json(state: AwarenessState) -> None:
    text = state.model_dump_json()
    assert load_state(text) == state
    assert load_state(text).model_dump_json() == text
    assert load_state(state.model_dump(mode="json")) == state


def test_a_tick_is_one_step_later_at_the_given_time() -> None:
    state = AwarenessState(domain="d", at=NOW)
    later = state.tick(NOW + timedelta(seconds=1))
    assert (later.step, later.at) == (1, NOW + timedelta(seconds=1))
    assert (state.step, state.at) == (0, NOW)
    assert state.tick(datetime(2026, 3, 2)).at == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_json_cannot_carry_is_refused(number: float) -> None:
    with pytest.raises(ValidationError):
        Entity(name="a", type="b", state={"x": number})
    with pytest.raises(ValidationError):
        Resource(name="a", capacity=number, remaining=0)


@pytest.mark.parametrize("name", ["", "  ", "\n", "\ud800"])
def test_a_name_says_something_that_can_be_written(name: str) -> None:
    with pytest.raises(ValidationError):
        Entity(name=name, type="topic")


def test_the_enumerations_are_those_of_the_paper() -> None:
    values = {
        GoalStatus: "active, completed, abandoned, blocked, deferred",
        GoalSource: "explicit, inferred, emergent, spawned",
        TransitionType: "progress, reversal, pivot, discovery, external_event, failure, branch",
        AttentionType: "threat, opportunity, anomaly, transition",
        CollaborationMode: "autonomous, supervised, collaborative, advisory",
    }
    assert {kind: ", ".join(one.value for one in kind) for kind in values} == values


def test_a_world_shows_its_open_beliefs_and_its_entities_by_type_and_name() -> None:
    settled, open_one = Belief(text="settled", step=1, resolved=2), Belief(text="open", step=1)
    python, cooking = Entity(name="Python", type="concept"), Entity(name="cooking", type="topic")
    world = WorldModel(
        entities=(python, cooking),
        assumptions=(settled, open_one),
        unknowns=(open_one, settled),
    )
    assert world.open_assumptions == world.open_unknowns == (open_one,)
    assert world.of_type("topic") == (cooking,)
    assert world.get("Python") == python
    assert world.get("python") is None


# ---- attention ----


def item(id: str, urgency: float = 0.5, *, ttl: int | None = None, step: int = 0) -> AttentionItem:
    return AttentionItem(
        id=id,
        type=AttentionType.THREAT,
        description=f"about {id}",
        urgency=urgency,
        ttl=ttl,
        created_step=step,
    )


def ids(attention: Attention) -> list[str]:
    return [one.id for one in attention.visible]


def test_the_most_urgent_is_seen_first_and_of_equals_the_newest() -> None:
    items = (item("a", 0.5), item("b", 0.9), item("c", 0.5, step=1), item("d", 0.5))
    assert ids(Attention().add(*items)) == ["b", "c", "d", "a"]


def test_a_suppressed_item_is_there_but_not_seen_also_when_it_comes_back() -> None:
    attention = Attention().add(item("a", ttl=1), item("b")).suppress("a")
    assert (ids(attention), len(attention.items)) == (["b"], 2)
    assert attention.suppress("a") == attention
    assert ids(attention.unsuppress("a")) == ["b", "a"]
    assert ids(attention.expire(9).add(item("a", step=9))) == ["b"]
    with pytest.raises(AwarenessError, match=r"'c'\. Known: a, b"):
        attention.suppress("c")
    with pytest.raises(AwarenessError, match="'b' is not suppressed"):
        attention.unsuppress("b")


def test_the_same_thing_noticed_again_replaces_the_first() -> None:
    attention = Attention().add(item("a", 0.2), item("b"), item("a", 0.9, step=4))
    assert [(one.id, one.urgency) for one in attention.items] == [("a", 0.9), ("b", 0.5)]
    threat = attention_id(AttentionType.THREAT, "Fire in  the house")
    assert threat == attention_id(AttentionType.THREAT, "fire in the house")
    assert threat != attention_id(AttentionType.ANOMALY, "fire in the house")


@pytest.mark.parametrize("ttl", [0, -1])
def test_a_time_to_live_of_zero_is_refused(ttl: int) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        item("a", ttl=ttl)


@given(st.lists(ITEMS), st.integers(0, 20))
def test_expiry_takes_what_is_over_and_nothing_else(items: list[AttentionItem], step: int) -> None:
    attention = Attention().add(*items)
    rest = attention.expire(step)
    for one in attention.items:
        is_over = one.ttl is not None and step - one.created_step >= one.ttl
        assert (one not in rest.items) == is_over
    assert sorted(rest.visible, key=lambda one: -one.urgency) == list(rest.visible)


# ---- the trajectory ----


def went(*types: TransitionType) -> Trajectory:
    trajectory = Trajectory()
    for step, type in enumerate(types):
        trajectory = trajectory.record(Transition(step=step, type=type, description="x"))
    return trajectory


def test_failures_reversals_and_discoveries_outlast_the_window_and_a_pivot_on_demand() -> None:
    progress = [TransitionType.PROGRESS] * 5
    trajectory = went(*TransitionType, *progress)
    stays = (TransitionType.REVERSAL, TransitionType.DISCOVERY, TransitionType.FAILURE)
    assert [one.type for one in trajectory.compress().transitions] == [*stays, *progress]
    more = trajectory.model_copy(update={"sticky": (*STICKY, TransitionType.PIVOT)})
    assert TransitionType.PIVOT in [one.type for one in more.compress().transitions]
    short = went(*progress)
    assert short.compress() is short


@given(
    st.lists(
        st.builds(
            Transition,
            step=STEPS,
            type=st.sampled_from(TransitionType),
            description=st.just("x"),
        ),
        max_size=20,
    ),
    st.integers(0, 8),
    st.lists(st.sampled_from(TransitionType), unique=True).map(tuple),
)
def test_compression_keeps_the_recent_and_the_sticky_in_order_and_no_more(
    transitions: list[Transition], window: int, sticky: tuple[TransitionType, ...]
) -> None:
    at_once = Trajectory(transitions=tuple(transitions), window=window, sticky=sticky)
    recent = len(transitions) - window
    wanted = [one for at, one in enumerate(transitions) if at >= recent or one.type in sticky]
    assert list(at_once.compress().transitions) == wanted
    stepwise = Trajectory(window=window, sticky=sticky)
    for one in transitions:
        stepwise = stepwise.record(one).compress()
    assert stepwise == at_once.compress() == at_once.compress().compress()


# ---- the self model ----

BATTERY = Resource(name="battery", capacity=10, remaining=4)
ROOM = Resource(name="room", capacity=3, remaining=0, depletable=False)
DRIVE = Need(action="drive*", resource="battery", amount=5)
YES = ("", "", "")


@pytest.mark.parametrize(
    ("declared", "action", "capable", "authorised", "resourced"),
    [
        ({}, "anything", *YES),
        ({"capabilities": ("search", "file.*")}, "Search", *YES),
        ({"capabilities": ("search", "file.*")}, "file.read", *YES),
        (
            {"capabilities": ("search", "file.*")},
            "search the moon",
            "'search the moon' is none of the capabilities: search, file.*.",
            "",
            "",
        ),
        (
            {"limitations": ("climb stairs",)},
            "slowly climb stairs now",
            "The limitation 'climb stairs' holds for 'slowly climb stairs now'.",
            "",
            "",
        ),
        ({"limitations": ("climb stairs",)}, "climb", *YES),
        ({"limitations": ("climb stairs",)}, "stairs climb", *YES),
        ({"forbidden": ("*",)}, "anything", "", "'*' is forbidden.", ""),
        ({"forbidden": ("!",)}, "!", "", "'!' is forbidden.", ""),
        ({"forbidden": ("!",)}, "shout!", *YES),
        ({"allowed": ("*",), "forbidden": ("delete",)}, "write_file", *YES),
        (
            {"allowed": ("*",), "forbidden": ("delete",)},
            "delete_file",
            "",
            "'delete' is forbidden.",
            "",
        ),
        ({"allowed": ("*",), "forbidden": ("delete",)}, "undelete", *YES),
        ({"allowed": ("read",)}, "READ", *YES),
        (
            {"allowed": ("read",)},
            "read and write",
            "",
            "'read and write' is none of what is allowed: read.",
            "",
        ),
        (
            {"resources": (BATTERY,), "needs": (DRIVE,)},
            "drive home",
            "",
            "",
            "'drive home' takes 5 battery, 4 left.",
        ),
        ({"resources": (BATTERY,), "needs": (DRIVE,)}, "wait", *YES),
        ({"needs": (DRIVE,)}, "drive", "", "", "'drive' takes 5 battery, 0 left."),
    ],
)
def test_an_action_is_judged_by_what_is_declared(
    declared: dict[str, Any], action: str, capable: str, authorised: str, resourced: str
) -> None:
    verdict = SelfModel(**declared).can_i(action)
    assert verdict.reasons == tuple(filter(None, (capable, authorised, resourced)))
    assert (verdict.capable, verdict.authorised, verdict.resourced) == (
        not capable,
        not authorised,
        not resourced,
    )
    assert verdict.yes == (not verdict.reasons)


@pytest.mark.parametrize("action", ["delete_order", "deleteOrder", "DeleteOrder", "Delete Order!"])
@pytest.mark.parametrize("forbidden", ["delete order", "deleteOrder", "DELETE_ORDER"])
def test_what_is_forbidden_is_so_however_its_words_are_joined(forbidden: str, action: str) -> None:
    assert not SelfModel(forbidden=(forbidden,)).can_i(action).authorised


def test_an_action_without_a_need_takes_of_what_no_needs_are_declared_of() -> None:
    empty = SelfModel(resources=(BATTERY, ROOM)).spend("battery", 4)
    assert SelfModel(resources=(BATTERY, ROOM)).can_i("wait").resourced
    assert empty.can_i("wait").reasons == ("battery has run out.",)
    needs = (Need(action="fly", resource="Battery", amount=2),)
    assert empty.model_copy(update={"needs": needs}).can_i("wait").resourced


def test_spending_lessens_what_can_run_out_and_never_below_nothing() -> None:
    me = SelfModel(resources=(BATTERY, ROOM))
    assert me.spend("Battery", 1.5).resources[0].remaining == 2.5
    assert me.spend("battery", 400).resources[0].remaining == 0
    assert me.spend("room", 1) == me
    with pytest.raises(AwarenessError, match=r"'fuel'\. Known: battery"):
        me.spend("fuel", 1)
    for amount in (-1.0, math.nan, math.inf):
        with pytest.raises(AwarenessError, match="at least 0"):
            me.spend("battery", amount)


def test_a_reading_replaces_the_resource_of_its_name_which_holds_no_more_than_fits() -> None:
    full = Resource(name="Battery", capacity=10, remaining=10)
    me = SelfModel(resources=(BATTERY,)).read(full)
    assert me.resources == (full,)
    assert me.read(ROOM).resources == (full, ROOM)
    with pytest.raises(ValidationError, match="5 remaining of 4"):
        Resource(name="battery", capacity=4, remaining=5)


def test_the_latest_mistakes_are_kept() -> None:
    me = SelfModel()
    for step in range(5):
        me = me.note(FailureNote(step=step, action="open", lesson="push"), keep=2)
    assert [one.step for one in me.failures] == [3, 4]
    assert me.note(FailureNote(step=9, action="open"), keep=0).failures == ()
