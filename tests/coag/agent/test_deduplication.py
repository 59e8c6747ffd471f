"""What is said again after a turn that broke off."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from autogen_agentchat.messages import MultiModalMessage, TextMessage
from autogen_core import Image
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PILImage

from coag.agent.inbox import MessageDeduplicator


def said(text: str, source: str = "user") -> TextMessage:
    return TextMessage(content=text, source=source)


def hear(heard: MessageDeduplicator, *texts: str) -> list[str]:
    """What was new of a turn that took in all of it and broke off."""
    new = heard.new([said(text) for text in texts])
    for message in new:
        heard.note(message)
    return [message.to_text() for message in new]


def test_a_turn_that_is_tried_again_hears_nothing_twice() -> None:
    heard = MessageDeduplicator()
    assert hear(heard, "a", "b") == ["a", "b"]
    assert hear(heard, "a", "b") == []
    assert hear(heard, "a", "b", "c") == ["c"]
    assert hear(heard, "a", "b", "c") == []
    assert hear(heard, "c") == []


def test_a_team_that_says_the_same_task_again_is_heard_once() -> None:
    heard = MessageDeduplicator()
    assert hear(heard, "task") == ["task"]
    assert hear(heard, "task", "task") == []
    assert hear(heard, "task", "task", "more") == ["more"]
    assert hear(heard, "task", "task", "more", "more") == []


def test_an_order_that_is_given_again_after_another_one_is_heard_again() -> None:
    heard = MessageDeduplicator()
    for order in ("Delete the file.", "No, stop.", "Delete the file."):
        assert hear(heard, order) == [order]
    assert hear(heard, "Delete the file.") == []
    assert hear(heard, "Delete the file.", "No, stop.") == ["No, stop."]


def test_what_was_not_taken_in_is_still_new() -> None:
    heard = MessageDeduplicator()
    first, second = heard.new([said("a"), said("b")])
    heard.note(first)
    assert heard.new([said("a"), said("b")])[0].to_text() == "b"
    assert heard.new([second]) == [second]
    assert hear(MessageDeduplicator(), "a") == ["a"]


def test_of_another_sender_kind_or_picture_it_is_another_message() -> None:
    red, blue = (Image(PILImage.new("RGB", (2, 2), colour)) for colour in ("red", "blue"))
    messages: list[Any] = [
        said("a"),
        said("a", "bob"),
        MultiModalMessage(content=["a", red], source="user"),
        MultiModalMessage(content=["a", blue], source="user"),
    ]
    heard = MessageDeduplicator()
    for message in messages:
        assert heard.new([message]) == [message]
        heard.note(message)
        assert heard.new([message]) == []


@given(st.lists(st.text(max_size=3), max_size=6))
def test_within_one_turn_nothing_is_lost(texts: list[str]) -> None:
    assert hear(MessageDeduplicator(), *texts) == texts


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=4), st.sampled_from("ab"))
def test_what_was_said_last_is_what_was_heard_last(texts: list[str], last: str) -> None:
    heard, all_new = MessageDeduplicator(), list[str]()
    for text in [*texts, last]:
        all_new += hear(heard, text)
    assert all_new[-1] == last
    assert all(one != other for one, other in pairwise(all_new))
