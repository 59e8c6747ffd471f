"""What the rules see, and that they take any text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
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
    DomainAdapter,
    PerceptionDomain,
    RulePerception,
)

TALK, CODE = RulePerception(), RulePerception(PerceptionDomain.CODING)
START = AwarenessState(domain="conversation", at=datetime(2026, 11, 24, tzinfo=UTC))


def read(perception: RulePerception, text: str, state: AwarenessState = START) -> dict[str, Any]:
    async def perceived() -> Mapping[str, object]:
        return await perception.perceive(text, state)

    return dict(asyncio.run(perceived()))


def lived(adapter: DomainAdapter, perception: RulePerception, *messages: str) -> AwarenessState:
    engine = AwarenessEngine(adapter)
    for message in messages:
        engine.step(read(perception, message, engine.state))
    return engine.state


def talk(*messages: str) -> AwarenessState:
    return lived(ConversationAdapter(), TALK, *messages)


def work(*messages: str) -> AwarenessState:
    return lived(CodingAdapter(), CODE, *messages)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I want to learn Spanish and find a tutor.", ["Learn Spanish", "Find a tutor"]),
        ("I'd like to visit Rome, because it is old.", ["Visit Rome"]),
        ("I need to buy milk and bread", ["Buy milk and bread"]),
        ("I'm trying to save money. I'm trying to save money!", ["Save money"]),
        ("My goal is to run a marathon.", ["Run a marathon"]),
        ("Please help me plan a trip.", ["Plan a trip"]),
        ("Let's cook; then we can talk.", ["Cook"]),
        ("We also need a new door.", ["Get a new door"]),
        ("Can you help me plan a trip?", []),
        ("He wants to sing.", []),
        ("I am going to be fined, am I not?", []),
    ],
)
def test_goals_are_what_somebody_says_that_they_want(text: str, found: list[str]) -> None:
    assert [goal["description"] for goal in read(TALK, text)["goals"]] == found


def test_questions_are_sentences_that_ask_without_their_fillers() -> None:
    text = "Hi, I am Ann. By the way, what is dew? And why? It is wet."
    assert read(TALK, text)["questions"] == ["What is dew?", "Why?"]


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
def test_moods_are_shown_by_words_that_are_not_negated(text: str, mood: str) -> None:
    assert read(TALK, text)["sentiment"] == mood


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("Tell me about photosynthesis.", ["photosynthesis"]),
        ("Does Marie Curie have a museum in Paris?", ["Marie Curie", "Paris"]),
        ("how do I cook a risotto", ["risotto"]),
        ("NumPy and C++ are both fine for me", ["NumPy", "C++"]),
        *((text, []) for text in ("Yes.", "YESSS it DOES")),
        ("Nobody asked ALL the others about it.", []),
        ("He does it in his own way, May be.", []),
    ],
)
def test_topics_are_names_and_what_follows_a_cue(text: str, topics: list[str]) -> None:
    assert read(TALK, text)["topics"] == topics


def test_known_names_are_topics_and_a_reference_needs_something_earlier() -> None:
    state = talk("Tell me about risotto.", "Tell me about Python.")
    back = "Going back to Python: is it slow?"
    assert read(TALK, "my RISOTTO burnt", state)["topics"] == ["risotto"]
    assert read(TALK, back)["references_previous"] is False
    assert read(TALK, back, state)["references_previous"] is True
    assert read(TALK, "Is Python slow?", state)["references_previous"] is False


def test_goals_that_are_reached_or_given_up_are_closed() -> None:
    wanted = "I want to learn Python. I want to buy a bike."
    state = talk(wanted, "I have finished learning Python.", "Never mind the bike.")
    assert [goal.status for goal in state.goals.goals] == ["completed", "abandoned"]


def test_the_paper_s_scenarios_give_their_events() -> None:
    state = talk(*(turn.message for turn in CONVERSATION))
    assert {item.type for item in state.attention.items} >= {"transition", "opportunity", "threat"}
    assert {one.name for one in state.world.entities} >= {"Python", "BeautifulSoup"}
    first = [goal.description for goal in state.goals.goals][:2]
    assert first == ["Learn Python", "Build a web scraper"]
    state = work(*(turn.message for turn in CODING))
    errors = {one.name: one.state["error_status"] for one in state.world.of_type("error")}
    assert errors == {"ConnectionRefusedError": "resolved", "EmptyResultSet": "unresolved"}
    types = [one.type for one in state.trajectory.transitions]
    assert types == ["progress", "failure", "discovery", "branch"]


def test_parts_of_software_are_known_by_their_form() -> None:
    found = read(
        CODE,
        "In src/app.py import requests; GET /users/{id} calls load_user() with DATABASE_URL, "
        "settings.toml and Redis over JWT.",
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


ONE, TWO = "I get ValueError: bad digit.", "Now save() raises ConnectionLost."


@pytest.mark.parametrize(
    ("before", "text", "fixed", "errors"),
    [
        ((), f"{ONE} And save() raises DiskFull.", [], ["ValueError", "DiskFull"]),
        ((ONE, TWO), "The ValueError is fixed.", ["ValueError"], []),
        ((ONE, TWO), "The connection works now.", ["ConnectionLost"], []),
        ((ONE, TWO), "It is fixed.", [], []),
        ((ONE,), "Fixed it, thanks!", ["ValueError"], []),
        *(((ONE,), text, [], []) for text in ("It is not fixed.", "How can it be fixed?")),
        *(((ONE,), text, [], []) for text in ("It still needs to be fixed.", "I fixed dinner?")),
        ((ONE,), "The ValueError is gone, but now a KeyError.", ["ValueError"], ["KeyError"]),
    ],
)
def test_errors_are_named_and_fixed_by_name_by_word_or_as_the_only_one(
    before: tuple[str, ...], text: str, fixed: list[str], errors: list[str]
) -> None:
    found = read(CODE, text, work(*before))
    assert (found["fixed"], [one["name"] for one in found["errors"]]) == (fixed, errors)
    if not before:
        assert [one["message"] for one in found["errors"]] == ["bad digit", ""]


def test_what_was_tried_without_success_is_a_failure() -> None:
    found = read(CODE, "I tried restarting Redis, but it hangs.")["failure"]
    assert (found["action"], found["reason"]) == ("restarting Redis", "it hangs")


WORDS = (
    "I want to learn Python and raises ValueError: fixed not. never mind the GET /x main.py ? - "
    "going back to A_B f() tried but ; \n"
)


@given(
    st.lists(
        st.text(max_size=200)
        | st.lists(st.sampled_from(WORDS.split(" ")), max_size=12).map(" ".join),
        min_size=1,
        max_size=3,
    )
)
def test_any_text_gives_an_analysis_that_the_adapter_takes(texts: list[str]) -> None:
    assert talk(*texts).step == len(texts)
    assert work(*texts).step == len(texts)
