"""Attention: by urgency, for its time, unless it is ignored on purpose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coag.awareness import Attention, AttentionItem, AttentionType
from coag.awareness.state import attention_id
from coag.errors import AwarenessError


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


def with_items(*items: AttentionItem) -> Attention:
    attention = Attention()
    for one in items:
        attention = attention.add(one)
    return attention


def test_the_most_urgent_is_seen_first_and_of_equals_the_newest() -> None:
    attention = with_items(item("a", 0.5), item("b", 0.9), item("c", 0.5, step=1), item("d", 0.5))
    assert ids(attention) == ["b", "c", "d", "a"]


def test_an_item_lives_for_its_steps_its_own_among_them() -> None:
    attention = with_items(item("a", ttl=1, step=3), item("b", ttl=2, step=3), item("c", step=3))
    assert ids(attention.expire(3)) == ["c", "b", "a"]
    assert ids(attention.expire(4)) == ["c", "b"]
    assert ids(attention.expire(5)) == ["c"]
    assert ids(attention.expire(500)) == ["c"]


@pytest.mark.parametrize("ttl", [0, -1])
def test_a_time_to_live_of_zero_is_refused(ttl: int) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        item("a", ttl=ttl)


def test_a_suppressed_item_is_there_but_not_seen() -> None:
    attention = with_items(item("a"), item("b")).suppress("a")
    assert ids(attention) == ["b"]
    assert len(attention.items) == 2
    assert attention.suppress("a") == attention
    assert ids(attention.unsuppress("a")) == ["b", "a"]


def test_what_is_suppressed_stays_so_when_it_comes_back() -> None:
    attention = with_items(item("a", ttl=1)).suppress("a").expire(9).add(item("a", step=9))
    assert ids(attention) == []


def test_an_unknown_id_is_neither_suppressed_nor_unsuppressed() -> None:
    attention = with_items(item("a"))
    with pytest.raises(AwarenessError, match=r"'b'\. Known: a"):
        attention.suppress("b")
    with pytest.raises(AwarenessError, match="'a' is not suppressed"):
        attention.unsuppress("a")


def test_the_same_thing_noticed_again_takes_the_place_of_the_first() -> None:
    attention = with_items(item("a", 0.2), item("b"), item("a", 0.9, step=4))
    assert [(one.id, one.urgency) for one in attention.items] == [("a", 0.9), ("b", 0.5)]
    threat = attention_id(AttentionType.THREAT, "Fire in  the house")
    assert threat == attention_id(AttentionType.THREAT, "fire in the house")
    assert threat != attention_id(AttentionType.ANOMALY, "fire in the house")


@given(
    st.lists(
        st.builds(
            item,
            st.text("abc", min_size=1, max_size=2),
            st.floats(0, 1),
            ttl=st.none() | st.integers(1, 9),
            step=st.integers(0, 9),
        )
    ),
    st.integers(0, 20),
)
def test_expiry_takes_what_is_over_and_nothing_else(items: list[AttentionItem], step: int) -> None:
    attention = with_items(*items)
    left = attention.expire(step)
    over = [one for one in attention.items if one not in left.items]
    assert all(one.ttl is not None and step - one.created_step >= one.ttl for one in over)
    assert all(one.ttl is None or step - one.created_step < one.ttl for one in left.items)
    assert sorted(left.visible, key=lambda one: -one.urgency) == list(left.visible)
