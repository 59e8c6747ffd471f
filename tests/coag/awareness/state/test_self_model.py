"""What the agent can, may and has."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from coag.awareness import FailureNote, Need, Resource, SelfModel
from coag.errors import AwarenessError

BATTERY = Resource(name="battery", capacity=10, remaining=4)


def test_what_is_not_declared_is_not_restricted() -> None:
    verdict = SelfModel().can_i("anything")
    assert verdict.yes
    assert verdict.reasons == ()


def test_an_action_needs_a_capability_where_some_are_declared() -> None:
    me = SelfModel(capabilities=("search", "file.*"))
    assert me.can_i("Search").capable
    assert me.can_i("file.read").capable
    verdict = me.can_i("search the moon")
    assert not verdict.capable
    assert not verdict.yes
    assert verdict.authorised
    assert verdict.resourced
    assert "'search the moon' is none of the capabilities: search, file.*" in verdict.reasons[0]


def test_a_limitation_holds_for_every_action_with_its_words() -> None:
    me = SelfModel(limitations=("climb stairs",))
    assert not me.can_i("climb_stairs").capable
    assert not me.can_i("slowly climb stairs now").capable
    assert me.can_i("climb").capable
    assert me.can_i("stairs climb").capable


def test_an_entry_without_words_refuses_what_it_fits_only() -> None:
    assert not SelfModel(forbidden=("*",)).can_i("anything").authorised
    assert not SelfModel(forbidden=("!",)).can_i("!").authorised
    assert SelfModel(forbidden=("!",)).can_i("shout!").authorised


def test_forbidden_goes_before_allowed() -> None:
    me = SelfModel(allowed=("*",), forbidden=("delete",))
    assert me.can_i("write_file").authorised
    verdict = me.can_i("delete_file")
    assert not verdict.authorised
    assert verdict.reasons == ("'delete' is forbidden.",)
    assert me.can_i("undelete").authorised


def test_only_what_is_allowed_is_authorised_where_something_is() -> None:
    me = SelfModel(allowed=("read",))
    assert me.can_i("READ").authorised
    assert not me.can_i("read and write").authorised


def test_an_action_takes_what_it_needs() -> None:
    me = SelfModel(
        resources=(BATTERY,),
        needs=(Need(action="drive*", resource="battery", amount=5),),
    )
    verdict = me.can_i("drive home")
    assert not verdict.resourced
    assert verdict.reasons == ("'drive home' takes 5 battery, 4 left.",)
    assert me.can_i("wait").resourced


def test_a_need_of_something_that_is_not_there_is_not_met() -> None:
    me = SelfModel(needs=(Need(action="fly", resource="wings", amount=2),))
    assert me.can_i("fly").reasons == ("'fly' takes 2 wings, 0 left.",)


def test_an_action_without_a_stated_need_takes_of_what_nobody_s_needs_are_stated_of() -> None:
    room = Resource(name="room", capacity=3, remaining=0, depletable=False)
    empty = SelfModel(resources=(BATTERY, room)).spend("battery", 4)
    assert SelfModel(resources=(BATTERY, room)).can_i("wait").resourced
    assert empty.can_i("wait").reasons == ("battery has run out.",)
    stated = (Need(action="fly", resource="Battery", amount=2),)
    assert empty.model_copy(update={"needs": stated}).can_i("wait").resourced


def test_spending_lessens_what_can_run_out_and_never_below_nothing() -> None:
    me = SelfModel(resources=(BATTERY,))
    assert me.spend("Battery", 1.5).resources[0].remaining == 2.5
    assert me.spend("battery", 400).resources[0].remaining == 0
    room = Resource(name="room", capacity=3, remaining=2, depletable=False)
    assert SelfModel(resources=(room,)).spend("room", 1).resources == (room,)


def test_spending_what_is_unknown_or_negative_is_refused() -> None:
    me = SelfModel(resources=(BATTERY,))
    with pytest.raises(AwarenessError, match=r"'fuel'\. Known: battery"):
        me.spend("fuel", 1)
    for amount in (-1.0, float("nan"), float("inf")):
        with pytest.raises(AwarenessError, match="at least 0"):
            me.spend("battery", amount)


def test_a_reading_replaces_the_resource_of_its_name() -> None:
    full = Resource(name="Battery", capacity=10, remaining=10)
    me = SelfModel(resources=(BATTERY,)).read(full)
    assert me.resources == (full,)
    assert len(me.read(Resource(name="time", capacity=1, remaining=1)).resources) == 2


def test_a_resource_holds_no_more_than_fits() -> None:
    with pytest.raises(ValidationError, match="5 remaining of 4"):
        Resource(name="battery", capacity=4, remaining=5)


def test_the_latest_mistakes_are_kept() -> None:
    me = SelfModel()
    for step in range(5):
        me = me.note(FailureNote(step=step, action="open", lesson="push, do not pull"), keep=2)
    assert [one.step for one in me.failures] == [3, 4]
    assert me.note(FailureNote(step=9, action="open"), keep=0).failures == ()


@pytest.mark.parametrize("action", ["delete_order", "deleteOrder", "DeleteOrder", "Delete Order!"])
@pytest.mark.parametrize("forbidden", ["delete order", "deleteOrder", "DELETE_ORDER"])
def test_what_is_forbidden_is_so_however_its_words_are_joined(forbidden: str, action: str) -> None:
    assert not SelfModel(forbidden=(forbidden,)).can_i(action).authorised
