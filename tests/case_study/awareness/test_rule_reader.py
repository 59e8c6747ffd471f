from __future__ import annotations

import asyncio

import pytest

from case_study.awareness import Claim, RuleReader, questions_named

BUFFER = """\
User: I want to learn Python and build a web scraper.
Assistant: Gladly. Do you want to begin with loops?
User: By the way, how do you make carbonara?
Assistant: Eggs, pecorino, no cream.
User: Going back to Python: my sister Anna says it is easy. I am not sure which library she means.
Assistant: BeautifulSoup, probably.
User: It keeps crashing! I am so frustrated. What can I do by tomorrow?
"""
SUMMARY = (
    "The user wants to learn Python in order to build a web scraper. They then asked about "
    "carbonara, returned to Python, and are now frustrated because BeautifulSoup keeps failing. "
    "It is unclear which error they get; they assume that it is a bug. The report is due tomorrow."
)
INJECTION = """\
<sagen>
ACTIVE GOALS:
  [explicit] Learn Python (p=0.7, part of: Build a web scraper)
  [inferred] Answer: How do you make carbonara? (p=0.6)

ATTENTION:
  [threat] User sentiment: frustrated (urgency=0.8)
  [opportunity] Callback to earlier topic: {'Python'}

ACTIVE TOPICS: Python, BeautifulSoup

UNKNOWNS:
  - which error it gives

ASSUMPTIONS:
  - it is a bug

TRAJECTORY:
  [pivot] Pivoted from {'Python'} to {'carbonara'}
  [failure] BeautifulSoup crashed

CLOSED GOALS:
  [completed] Install Python

KNOWN: Anna (person)

WATCHING FOR: emotional escalation
[2 more left out]
</sagen>
"""


def read(text: str, question: str) -> tuple[Claim, ...]:
    (asked,) = questions_named([question])
    claims = asyncio.run(RuleReader().read(text, asked))
    assert claims is not None
    return claims


def told(text: str, question: str) -> str:
    return " | ".join(" -> ".join(claim) for claim in read(text, question))


@pytest.mark.parametrize("text", [BUFFER, SUMMARY, INJECTION])
@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("explicit_goals", "Python"),
        ("active_topics", ""),
        ("callbacks", "Python"),
        ("sentiment", "frustrated"),
        ("transition_order", "Python"),
        ("transition_types", "failure"),
        ("compression", "scraper"),
    ],
)
def test_what_every_kind_of_text_says_is_read_from_each(
    text: str, question: str, word: str
) -> None:
    assert read(text, question)
    assert word in told(text, question)


@pytest.mark.parametrize("text", [SUMMARY, INJECTION])
def test_which_goal_serves_which_is_read_from_prose_and_from_a_marker(text: str) -> None:
    ((child, parent),) = read(text, "goal_hierarchy")
    assert "earn Python" in child
    assert "scraper" in parent


@pytest.mark.parametrize("text", [BUFFER, INJECTION])
def test_a_turn_to_something_else_is_read_from_speech_and_from_a_marker(text: str) -> None:
    ((left, new),) = read(text, "topic_pivots")
    assert "Python" in left
    assert "carbonara" in new


@pytest.mark.parametrize(
    "text",
    [
        "They switched from Python to cooking.",
        "They asked about Python. By the way, they want to cook.",
        "TRAJECTORY:\n  Topic shift: Python -> cooking",
    ],
)
def test_turns_are_read_in_any_phrasing(text: str) -> None:
    ((left, new),) = read(text, "topic_pivots")
    assert "Python" in left
    assert "cook" in new


def test_what_an_assistant_says_is_no_goal_and_no_feeling_of_the_user() -> None:
    text = "User: Hello.\nAssistant: I want to help. I am so happy. Learn Python!"
    assert read(text, "explicit_goals") == ()
    assert read(text, "sentiment") == ()


def test_inferred_and_closed_goals_are_not_stated_and_open_ones() -> None:
    assert read(INJECTION, "explicit_goals") == (
        ("[explicit] Learn Python (p=0.7, part of: Build a web scraper)",),
    )
    assert "carbonara" in told(INJECTION, "implied_goals")


def test_only_the_last_message_asks_what_is_still_open() -> None:
    assert "carbonara" not in told(BUFFER, "implied_goals")
    assert "by tomorrow" in told(BUFFER, "implied_goals")


def test_statuses_are_read_from_headings_tags_and_words() -> None:
    assert ("[completed] Install Python", "completed") in read(INJECTION, "goal_lifecycle")
    text = "Lisbon was dropped. The hotel is booked. They still want to find a flight."
    assert {status for _, status in read(text, "goal_lifecycle")} == {
        "abandoned",
        "completed",
        "open",
    }
    assert read("It is not finished.", "goal_lifecycle") == ()


@pytest.mark.parametrize(
    "text",
    [
        "GOALS:\n  Learn Python (p=0.9)\n  Cook (p=0.2)",
        "Learning Python is more important than to cook.",
        "Above all they want to learn Python; to cook can wait.",
    ],
)
def test_a_ranking_is_read_from_numbers_and_from_words(text: str) -> None:
    (ranking,) = read(text, "goal_priorities")
    assert "Python" in ranking[0]
    assert "ook" in ranking[-1]


def test_equal_numbers_rank_nothing() -> None:
    assert read("GOALS:\n  Learn Python (p=0.7)\n  Cook (p=0.7)", "goal_priorities") == ()


def test_topics_now_are_those_of_the_last_message_or_of_their_list() -> None:
    ((last,),) = read(BUFFER, "active_topics")
    assert last.startswith("It keeps crashing!")
    assert read(INJECTION, "active_topics") == (("Python",), ("BeautifulSoup",))


def test_a_feeling_that_is_denied_or_past_is_not_felt_now() -> None:
    assert read("They are not worried.", "sentiment") == ()
    assert read("At first they were angry.", "sentiment") == ()
    assert read("They were anxious, but now they are happy.", "sentiment")[0][0].startswith("happy")


def test_the_highest_number_of_urgency_is_what_presses_most() -> None:
    text = "ATTENTION:\n  [threat] A (urgency=0.9)\n  [threat] B (urgency=0.7)"
    assert read(text, "urgency") == (("[threat] A (urgency=0.9)",),)
    assert "due tomorrow" in told(SUMMARY, "urgency")


def test_kinds_are_read_from_brackets_and_from_words_but_not_from_numbers() -> None:
    kinds = read(INJECTION, "entity_types")
    assert ("Anna", "person") in kinds
    assert not any("p=0" in kind for _, kind in kinds)
    assert any("Anna" in name and kind == "person" for name, kind in read(BUFFER, "entity_types"))


def test_what_is_unknown_or_assumed_is_read_from_prose_speech_and_headings() -> None:
    assert "which error" in told(SUMMARY, "unknowns")
    assert "not sure which library" in told(BUFFER, "unknowns")
    assert "- which error it gives" in told(INJECTION, "unknowns")
    assert "it is a bug" in told(SUMMARY, "assumptions")
    assert read(INJECTION, "assumptions") == (("- it is a bug",),)


def test_what_is_watched_for_has_not_happened() -> None:
    text = "WATCHING FOR: failure of the build, callback to Python"
    assert read(text, "watch_list") == (("failure of the build",), ("callback to Python",))
    assert read(text, "sticky_failures") == ()
    assert read(text, "callbacks") == ()


@pytest.mark.parametrize("question", ["sentiment", "watch_list", "assumptions", "goal_priorities"])
def test_a_text_that_does_not_say_the_role_claims_nothing(question: str) -> None:
    assert read("Python is a snake. User: The snake sleeps.", question) == ()


def test_nothing_is_read_from_nothing() -> None:
    for question in questions_named([])[:-2]:
        assert read("", question.id) == ()
