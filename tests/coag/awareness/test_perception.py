"""What the rules see, and that they take any text."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.awareness.paper import CODING
from case_study.awareness import CONVERSATION
from coag.awareness import (
    AwarenessEngine,
    AwarenessState,
    CodingAdapter,
    ConversationAdapter,
    PerceptionDomain,
    RulePerception,
)

TALK, CODE = RulePerception(), RulePerception(PerceptionDomain.CODING)
START = AwarenessState(domain="conversation", at=datetime(2026, 11, 24, tzinfo=UTC))


def talk(*messages: str) -> AwarenessState:
    engine = AwarenessEngine(ConversationAdapter())
    for message in messages:
        engine.step(asyncio.run(_raw(TALK, message, engine.state)))
    return engine.state


def work(*messages: str) -> AwarenessState:
    engine = AwarenessEngine(CodingAdapter())
    for message in messages:
        engine.step(asyncio.run(_raw(CODE, message, engine.state)))
    return engine.state


async def _raw(perception: RulePerception, text: str, state: AwarenessState) -> dict[str, Any]:
    return dict(await perception.perceive(text, state))


def said(text: str, state: AwarenessState = START) -> dict[str, Any]:
    return asyncio.run(_raw(TALK, text, state))


def coded(text: str, state: AwarenessState = START) -> dict[str, Any]:
    return asyncio.run(_raw(CODE, text, state))


def goals(text: str) -> list[str]:
    return [goal["description"] for goal in said(text)["goals"]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I want to learn Spanish and find a tutor.", ["Learn Spanish", "Find a tutor"]),
        ("I'd like to visit Rome, because it is old.", ["Visit Rome"]),
        ("I need to buy milk and bread", ["Buy milk and bread"]),
        ("I'm trying to save money. I'm trying to save money!", ["Save money"]),
        ("My goal is to run a marathon.", ["Run a marathon"]),
        ("Please help me plan a trip.", ["Plan a trip"]),
        ("Can you help me plan a trip?", []),
        ("Let's cook; then we can talk.", ["Cook"]),
        ("We also need a new door.", ["Get a new door"]),
        ("He wants to sing.", []),
    ],
)
def test_goals_are_what_somebody_says_that_they_want(text: str, found: list[str]) -> None:
    assert goals(text) == found


def test_questions_are_sentences_that_ask_without_their_fillers() -> None:
    found = said("Hi, I am Ann. By the way, what is dew? And why? It is wet.")["questions"]
    assert found == ["What is dew?", "Why?"]


@pytest.mark.parametrize(
    ("text", "mood"),
    [
        ("This is useless and not working, I hate it!", "angry"),
        ("It keeps crashing.", "frustrated"),
        ("It doesn't work", "frustrated"),
        ("I am worried about the exam.", "anxious"),
        ("I don't understand recursion.", "confused"),
        ("That is sad.", "negative"),
        ("Great, thanks!", "positive"),
        ("I am not worried, and no longer confused.", "neutral"),
        ("The train leaves at nine.", "neutral"),
    ],
)
def test_moods_are_told_by_words_that_are_not_negated(text: str, mood: str) -> None:
    assert said(text)["sentiment"] == mood


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("Tell me about photosynthesis.", ["photosynthesis"]),
        ("Does Marie Curie have a museum in Paris?", ["Marie Curie", "Paris"]),
        ("how do I cook a risotto", ["risotto"]),
        ("NumPy and C++ are both fine for me", ["NumPy", "C++"]),
        ("Yes.", []),
    ],
)
def test_topics_are_names_and_what_follows_a_cue(text: str, topics: list[str]) -> None:
    assert said(text)["topics"] == topics


def test_known_names_are_topics_however_they_are_written() -> None:
    state = talk("Tell me about risotto.")
    assert said("my RISOTTO burnt", state)["topics"] == ["risotto"]


def test_something_is_taken_up_again_only_where_something_was() -> None:
    assert said("Going back to Python: is it slow?")["references_previous"] is False
    state = talk("Tell me about Python.")
    assert said("Going back to Python: is it slow?", state)["references_previous"] is True
    assert said("Is Python slow?", state)["references_previous"] is False


def test_goals_that_are_reached_or_given_up_are_closed() -> None:
    state = talk(
        "I want to learn Python. I want to buy a bike.",
        "I have finished learning Python.",
        "Never mind the bike.",
    )
    assert [goal.status for goal in state.goals.goals] == ["completed", "abandoned"]


def test_the_paper_s_talk_gives_its_pivot_its_callback_and_its_frustration() -> None:
    state = talk(*(turn.message for turn in CONVERSATION))
    assert {item.type for item in state.attention.items} >= {"transition", "opportunity", "threat"}
    assert {one.name for one in state.world.entities} >= {"Python", "BeautifulSoup"}
    assert [goal.description for goal in state.goals.goals][:2] == [
        "Learn Python",
        "Build a web scraper",
    ]


def test_parts_of_software_are_known_by_their_form() -> None:
    found = coded(
        "In src/app.py import requests; GET /users/{id} calls load_user() with DATABASE_URL, "
        "settings.toml and Redis over JWT."
    )
    expected = {
        "files": ["src/app.py"],
        "libraries": ["requests"],
        "endpoints": ["GET /users/{id}"],
        "functions": ["load_user"],
        "configs": ["settings.toml", "DATABASE_URL"],
        "services": ["Redis"],
        "concepts": ["JWT"],
    }
    assert {name: found[name] for name in expected} == expected


def test_an_error_has_its_message_and_is_fixed_by_name_by_word_or_as_the_only_one() -> None:
    raised = coded("I get ValueError: bad digit. And save() raises DiskFull.")
    assert raised["errors"] == [
        {"name": "ValueError", "message": "bad digit"},
        {"name": "DiskFull", "message": ""},
    ]
    state = work("I get ValueError: bad digit.", "Now save() raises ConnectionLost.")
    assert coded("The ValueError is fixed.", state)["fixed"] == ["ValueError"]
    assert coded("The connection works now.", state)["fixed"] == ["ConnectionLost"]
    assert coded("It is fixed.", state)["fixed"] == []
    only = work("I get ValueError: bad digit.")
    assert coded("Fixed it, thanks!", only)["fixed"] == ["ValueError"]


@pytest.mark.parametrize(
    "text",
    ["It is not fixed.", "How can it be fixed?", "It still needs to be fixed.", "I fixed dinner?"],
)
def test_what_is_not_fixed_stays_unresolved(text: str) -> None:
    state = work("I get ValueError: bad digit.")
    assert coded(text, state)["fixed"] == []


def test_an_error_that_is_named_as_gone_does_not_show() -> None:
    state = work("I get a ValueError.")
    found = coded("The ValueError is gone, but now I see a KeyError.", state)
    assert (found["fixed"], [one["name"] for one in found["errors"]]) == (
        ["ValueError"],
        ["KeyError"],
    )


def test_what_was_tried_in_vain_is_a_failure() -> None:
    found = coded("I tried restarting Redis, but it hangs.")["failure"]
    assert (found["action"], found["reason"]) == ("restarting Redis", "it hangs")


def test_the_paper_s_work_gives_an_error_its_fix_and_a_new_one() -> None:
    state = work(*(turn.message for turn in CODING))
    statuses = {
        one.name: one.state.get("error_status")
        for one in state.world.entities
        if one.type == "error"
    }
    assert statuses == {"ConnectionRefusedError": "resolved", "EmptyResultSet": "unresolved"}
    assert [one.type for one in state.trajectory.transitions] == [
        "progress",
        "failure",
        "discovery",
        "branch",
    ]


@given(st.lists(st.text(max_size=200), min_size=1, max_size=3))
def test_any_text_gives_an_analysis_that_the_adapter_takes(texts: list[str]) -> None:
    assert talk(*texts).step == len(texts)
    assert work(*texts).step == len(texts)


_TEXT = (
    "I want to learn Python and raises ValueError: fixed not. never mind the GET /x main.py ? - "
    "going back to A_B f() tried but ; \n"
)
_WORDS = st.sampled_from(_TEXT.split(" "))


@given(st.lists(st.lists(_WORDS, max_size=12).map(" ".join), min_size=1, max_size=4))
def test_any_words_of_the_rules_give_an_analysis_that_the_adapter_takes(texts: list[str]) -> None:
    assert talk(*texts).step == len(texts)
    assert work(*texts).step == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        "YESSS it DOES",
        "Nobody asked ALL the others about it.",
        "He does it in his own way, May be.",
    ],
)
async def test_small_words_are_no_topics_however_they_are_written(text: str) -> None:
    engine = AwarenessEngine(ConversationAdapter())
    seen = await RulePerception().perceive(text, engine.state)
    assert seen["topics"] == []


async def test_what_may_happen_to_somebody_is_no_goal() -> None:
    engine = AwarenessEngine(ConversationAdapter())
    seen = await RulePerception().perceive("I am going to be fined, am I not?", engine.state)
    assert seen["goals"] == []
