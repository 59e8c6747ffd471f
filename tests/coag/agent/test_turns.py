"""One turn at a time, and trying it again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from autogen_agentchat.messages import MultiModalMessage, TextMessage
from autogen_core import CancellationToken, Image
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PILImage

from coag.agent._live import Live
from coag.agent._turns import Turns
from coag.cycle import TurnResult
from coag.schema import TokenUsage


def said(text: str, source: str = "user") -> TextMessage:
    return TextMessage(content=text, source=source)


def turns() -> Turns:
    return Turns("agent", Live("agent"))


async def ended(made: Turns) -> None:
    """A turn that is answered at once."""

    async def turn() -> AsyncGenerator[Any]:
        yield TurnResult(reason="respond", response="", cycles=1, usage=TokenUsage())

    made.begin(turn())
    async for _ in made.step(CancellationToken()):
        pass


def test_what_was_heard_in_a_turn_that_broke_off_is_not_heard_again() -> None:
    made, first = turns(), [said("a"), said("b")]
    assert made.unheard(first) == first
    assert made.unheard(first) == []
    third = said("c")
    assert made.unheard([said("a"), third, said("b")]) == [third]


def test_of_another_sender_kind_or_picture_it_is_another_message() -> None:
    made = turns()
    red, blue = (Image(PILImage.new("RGB", (2, 2), colour)) for colour in ("red", "blue"))
    messages: list[Any] = [
        said("a"),
        said("a", "bob"),
        MultiModalMessage(content=["a", red], source="user"),
    ]
    assert made.unheard(messages) == messages
    other = MultiModalMessage(content=["a", blue], source="user")
    assert made.unheard([other, messages[2]]) == [other]


async def test_after_an_answer_the_same_may_be_said_again() -> None:
    made = turns()
    made.unheard([said("a")])
    await ended(made)
    assert len(made.unheard([said("a")])) == 1


async def test_after_a_reset_too() -> None:
    made = turns()
    made.unheard([said("a")])
    await made.forget()
    assert len(made.unheard([said("a")])) == 1


@given(st.lists(st.text(max_size=3), max_size=6))
def test_within_one_turn_nothing_is_lost(texts: list[str]) -> None:
    messages = [said(text) for text in texts]
    assert turns().unheard(messages) == messages
