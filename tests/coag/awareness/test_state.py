"""The state is its JSON, and each of its modules keeps its promises."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.aware_runs import item
from pydantic import ValidationError

from coag.awareness import (
    Attention,
    AttentionType,
    AwarenessState,
    Belief,
    CollaborationMode,
    Entity,
    GoalSource,
    GoalStatus,
    Need,
    Resource,
    SelfModel,
    Trajectory,
    Transition,
    TransitionType,
    WorldModel,
    load_state,
)
from coag.awareness.state import STICKY, AttentionItem, FailureNote
from coag.errors import AwarenessError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXTS = st.text(max_size=8)
VISIBLE_TEXTS = TEXTS.map(lambda text: f"{text}a")
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
SCALARS = st.dictionaries(TEXTS, TEXTS | NUMBERS | st.none(), max_size=2)


@given(VISIBLE_TEXTS, VISIBLE_TEXTS, SCALARS, st.floats(0, 1), st.datetimes(timezones=st.just(UTC)))
def test_any_state_is_its_json(
    text: str, other: str, known: dict[str, Any], share: float, at: datetime
) -> None:
    went = Transition(step=1, type=TransitionType.PIVOT, description=text, detail=known)
    state = AwarenessState(
        domain=other,
        world=WorldModel(entities=(Entity(name=text, type=other, state=known, aliases=(other,)),)),
        trajectory=Trajectory(transitions=(went,)),
        attention=Attention().add(item(1, text, urgency=share)),
        self_model=SelfModel(limitations=(text,), failures=(FailureNote(step=2, action=other),)),
        at=at,
    )
    dumped = state.model_dump_json()
    assert load_state(dumped) == load_state(state.model_dump(mode="json")) == state
    assert load_state(dumped.encode()) == load_state(state.model_dump()) == state
    assert load_state(dumped).model_dump_json() == dumped


def test_a_tick_is_one_step_later_at_the_given_time() -> None:
    state = AwarenessState(domain="d", at=NOW)
    later = state.tick(NOW + timedelta(seconds=1))
    assert (later.step, later.at) == (1, NOW + timedelta(seconds=1))
    assert (state.step, state.at) == (0, NOW)
    assert state.tick(datetime(2026, 3, 2)).at == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        (Entity, {"name": "a", "type": "b", "state": {"x": math.nan}}, "finite"),
        (Entity, {"name": "a", "type": "b", "state": {"x": math.inf}}, "finite"),
        *((Entity, {"name": name, "type": "t"}, "name") for name in ("", "  ", "\n", "\ud800")),
        (Resource, {"name": "a", "capacity": math.inf, "remaining": 0}, "finite"),
        (Resource, {"name": "a", "capacity": 4, "remaining": 5}, "5 remaining of 4"),
        (AttentionItem, {"id": "a", "type": "threat", "description": "b", "ttl": 0}, "than 0"),
        (AttentionItem, {"id": "a", "type": "threat", "description": "b", "ttl": -1}, "than 0"),
    ],
)
def test_what_says_nothing_or_json_cannot_carry_is_refused(
    kind: type[AwarenessState], fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        kind(**fields)


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
    beliefs = (settled, open_one)
    world = WorldModel(entities=(python, cooking), assumptions=beliefs, unknowns=beliefs)
    assert world.open_assumptions == world.open_unknowns == (open_one,)
    assert world.of_type("topic") == (cooking,)
    assert (world.get("Python"), world.get("python")) == (python, None)


# ---- attention ----


def ids(attention: Attention) -> list[str]:
    return [one.id for one in attention.visible]


def test_the_most_urgent_is_seen_first_and_of_equals_the_newest() -> None:
    ranks = ((0.5, 0), (0.9, 0), (0.5, 1), (0.5, 0))
    items = (
        item(at, urgency=urgency, created_step=step) for at, (urgency, step) in enumerate(ranks)
    )
    assert ids(Attention().add(*items)) == ["i1", "i2", "i3", "i0"]


def test_a_suppressed_item_is_there_but_not_seen_also_when_it_comes_back() -> None:
    attention = Attention().add(item(1, ttl=1), item(2)).suppress("i1")
    assert (ids(attention), len(attention.items)) == (["i2"], 2)
    assert attention.suppress("i1") == attention
    assert ids(attention.unsuppress("i1")) == ["i2", "i1"]
    assert ids(attention.expire(9).add(item(1, created_step=9))) == ["i2"]
    with pytest.raises(AwarenessError, match=r"'c'\. Known: i1, i2"):
        attention.suppress("c")
    with pytest.raises(AwarenessError, match="'i2' is not suppressed"):
        attention.unsuppress("i2")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.none() | st.integers(1, 9))))
def test_an_item_replaces_the_one_of_its_id_and_expires_when_its_time_is_over(
    specs: list[tuple[int, int, int | None]],
) -> None:
    items = [item(number, created_step=step, ttl=ttl) for number, step, ttl in specs]
    attention = Attention().add(*items)
    assert {one.id: one for one in attention.items} == {one.id: one for one in items}
    rest = attention.expire(9)
    for one in attention.items:
        is_over = one.ttl is not None and 9 - one.created_step >= one.ttl
        assert (one not in rest.items) == is_over


# ---- the trajectory ----


@given(
    st.lists(st.sampled_from(TransitionType), max_size=20),
    st.integers(0, 8),
    st.just(STICKY) | st.lists(st.sampled_from(TransitionType), unique=True).map(tuple),
)
def test_compression_keeps_the_recent_and_the_sticky_in_order_and_no_more(
    types: list[TransitionType], window: int, sticky: tuple[TransitionType, ...]
) -> None:
    went = [Transition(step=at, type=type, description="x") for at, type in enumerate(types)]
    at_once = Trajectory(transitions=tuple(went), window=window, sticky=sticky)
    recent = len(went) - window
    wanted = [one for at, one in enumerate(went) if at >= recent or one.type in sticky]
    assert list(at_once.compress().transitions) == wanted
    stepwise = Trajectory(window=window, sticky=sticky)
    for one in went:
        stepwise = stepwise.record(one).compress()
    assert stepwise == at_once.compress() == at_once.compress().compress()


def test_failures_reversals_and_discoveries_are_sticky() -> None:
    assert [one.value for one in STICKY] == ["failure", "reversal", "discovery"]
    assert (Trajectory().sticky, Trajectory().window) == (STICKY, 5)


# ---- the self model ----

BATTERY = Resource(name="battery", capacity=10, remaining=4)
ROOM = Resource(name="room", capacity=3, remaining=0, depletable=False)
DRIVE = Need(action="drive*", resource="battery", amount=5)
FILES = {"capabilities": ("search", "file.*")}
STAIRS = {"limitations": ("climb stairs",)}
ALL_BUT = {"allowed": ("*",), "forbidden": ("delete",)}
DRIVING = {"resources": (BATTERY,), "needs": (DRIVE,)}


@pytest.mark.parametrize(
    ("declared", "action", "failing", "reason"),
    [
        ({}, "anything", "", ""),
        (FILES, "Search", "", ""),
        (FILES, "file.read", "", ""),
        (FILES, "search it", "capable", "'search it' is none of the capabilities: search, file.*."),
        (STAIRS, "now climb stairs", "capable", "The limitation 'climb stairs' holds for "),
        (STAIRS, "climb", "", ""),
        (STAIRS, "stairs climb", "", ""),
        ({"forbidden": ("*",)}, "anything", "authorised", "'*' is forbidden."),
        ({"forbidden": ("!",)}, "!", "authorised", "'!' is forbidden."),
        ({"forbidden": ("!",)}, "shout!", "", ""),
        (ALL_BUT, "write_file", "", ""),
        (ALL_BUT, "delete_file", "authorised", "'delete' is forbidden."),
        (ALL_BUT, "undelete", "", ""),
        ({"allowed": ("read",)}, "READ", "", ""),
        ({"allowed": ("read",)}, "read it", "authorised", "'read it' is none of what is allowed: "),
        (DRIVING, "drive home", "resourced", "'drive home' takes 5 battery, 4 left."),
        (DRIVING, "wait", "", ""),
        ({"needs": (DRIVE,)}, "drive", "resourced", "'drive' takes 5 battery, 0 left."),
    ],
)
def test_an_action_is_judged_by_what_is_declared(
    declared: dict[str, Any], action: str, failing: str, reason: str
) -> None:
    verdict = SelfModel(**declared).can_i(action)
    for name in ("capable", "authorised", "resourced"):
        assert getattr(verdict, name) == (name != failing)
    assert verdict.yes == (not failing)
    assert len(verdict.reasons) == bool(failing)
    assert " ".join(verdict.reasons).startswith(reason)


@pytest.mark.parametrize("action", ["delete_order", "deleteOrder", "Delete\u200b Order!"])
@pytest.mark.parametrize("forbidden", ["delete order", "deleteOrder", "DELETE_ORDER"])
def test_what_is_forbidden_is_so_however_its_words_are_joined(forbidden: str, action: str) -> None:
    assert not SelfModel(forbidden=(forbidden,)).can_i(action).authorised


def test_an_action_without_a_need_takes_of_what_no_needs_are_declared_of() -> None:
    empty = SelfModel(resources=(BATTERY, ROOM)).spend("battery", 4)
    assert SelfModel(resources=(BATTERY, ROOM)).can_i("wait").resourced
    assert empty.can_i("wait").reasons == ("battery has run out.",)
    needs = (Need(action="fly", resource="Battery", amount=2),)
    assert empty.model_copy(update={"needs": needs}).can_i("wait").resourced


def test_spending_lessens_what_can_run_out_and_a_reading_replaces_what_is_known() -> None:
    me = SelfModel(resources=(BATTERY, ROOM))
    assert me.spend("Battery", 1.5).resources[0].remaining == 2.5
    assert me.spend("battery", 400).resources[0].remaining == 0
    assert me.spend("room", 1) == me
    with pytest.raises(AwarenessError, match=r"'fuel'\. Known: battery"):
        me.spend("fuel", 1)
    for amount in (-1.0, math.nan, math.inf):
        with pytest.raises(AwarenessError, match="at least 0"):
            me.spend("battery", amount)
    full = Resource(name="Battery", capacity=10, remaining=10)
    assert me.read(full).resources == (full, ROOM)


def test_the_latest_mistakes_are_kept() -> None:
    me = SelfModel()
    for step in range(5):
        me = me.note(FailureNote(step=step, action="open", lesson="push"), keep=2)
    assert [one.step for one in me.failures] == [3, 4]
    assert me.note(FailureNote(step=9, action="open"), keep=0).failures == ()
