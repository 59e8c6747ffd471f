"""Coverage of awareness: dialogues, exams, the reader, scores, the page and its command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import case_study
from case_study.awareness import (
    PAPER,
    QUESTIONS,
    CachedPerception,
    Claim,
    Kind,
    RuleReader,
    cover,
    exams,
    memories_of,
    parseable,
    says,
    score,
)
from coag.awareness import AwarenessState, ConversationAdapter, RulePerception, new_state
from coag.errors import ConfigurationError, ModelAnswerError
from coag.schema import SteppingClock, estimate_tokens

RESULTS = Path(case_study.__file__).parent / "results"
RIGHT = (("learn Python",), ("build a web scraper|scraper",))


def test_the_score_is_f1_over_the_items() -> None:
    found = score([("I want to learn Python",), ("and to cook",), ("and to sleep",)], RIGHT)
    assert found.recall == 0.5
    assert found.value == pytest.approx(2 * 0.5 * (1 / 3) / (0.5 + 1 / 3))
    assert score([("learning Python, building scrapers",)], RIGHT).value == 1


def test_an_empty_claim_is_right_where_the_answer_is_none() -> None:
    assert score([], ()).value == 1
    assert score([("something",)], ()).value == 0
    assert score([], RIGHT).value == 0
    claims = [("learn Python",), ("build a scraper",), ("cook",)]
    assert score(claims, RIGHT, sampled=True).value == 1  # more than a sample costs nothing
    assert score(claims, RIGHT).value < 1


def test_pairs_count_in_their_order_only() -> None:
    right = (("Python", "cooking"),)
    assert score([("about Python", "then cooking")], right).value == 1
    assert score([("cooking", "Python")], right).value == 0
    assert score([("Python and cooking",)], right).value == 0
    assert score([("Python", "a nap", "cooking")], right).value == 1


@pytest.mark.parametrize(
    ("text", "phrase", "there"),
    [
        ("She is learning Python.", "learn Python", True),
        ("Errors in BeautifulSoup", "BeautifulSoup error", True),
        ("Python", "learn Python", False),
        ("the frustration grows", "frustrated", True),
        ("asked about pasta", "make pasta carbonara", False),
        ("a good carbonara with pasta", "make pasta carbonara", True),
        ("the libraries", "library", True),
        ("anything", "|", False),
    ],
)
def test_a_phrase_is_said_where_its_words_are_whatever_their_endings(
    text: str, phrase: str, there: bool
) -> None:
    assert says(text, phrase) is there


@given(
    st.lists(st.tuples(st.text(max_size=20)), max_size=5),
    st.lists(st.tuples(st.text(min_size=1, max_size=20)), max_size=5),
    st.booleans(),
)
def test_scores_are_shares(
    claims: list[tuple[str]], right: list[tuple[str]], sampled: bool
) -> None:
    found = score(claims, right, sampled=sampled)
    assert 0 <= found.value <= 1
    assert 0 <= found.recall <= 1


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("", 0.0),
        ("They want to learn Python.", 0.0),
        ("GOALS:\n  Learn\nand then some prose", 0.0),
        ("User: Hello.\nAssistant: Hello.\nUser: Bye.", 0.5),
        ("Goal: learn\nMood: happy", 1.0),
        ("Goals:\n- learn\n- cook", 1.0),
    ],
)
def test_prose_is_not_parsed_a_transcript_in_part_and_an_outline_whole(
    text: str, worth: float
) -> None:
    assert parseable(text) == worth


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
    (asked,) = (one for one in QUESTIONS if one.id == question)
    return RuleReader().read(text, asked)


def claimed(text: str, question: str) -> str:
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
    assert word in claimed(text, question)


def test_what_an_assistant_says_is_no_goal_and_no_feeling_of_the_user() -> None:
    text = "User: Hello.\nAssistant: I want to help. I am so happy. Learn Python!"
    assert read(text, "explicit_goals") == ()
    assert read(text, "sentiment") == ()


def test_what_is_watched_for_has_not_happened() -> None:
    text = "WATCHING FOR: failure of the build, callback to Python"
    assert read(text, "watch_list") == (("failure of the build",), ("callback to Python",))
    assert read(text, "sticky_failures") == ()
    assert read(text, "callbacks") == ()


def test_nothing_is_read_from_nothing() -> None:
    for question in QUESTIONS[:-2]:
        assert read("", question.id) == ()


async def test_the_published_page_is_what_its_command_writes(
    tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """All dialogues, kinds of memory and questions: what the reader finds is what it found."""
    page = tmp_path / "page.md"
    assert await asyncio.to_thread(command, "awareness", "coverage", "-o", str(page)) == 0
    published = RESULTS / "awareness-coverage.md"
    assert page.read_text() == capsys.readouterr().out == published.read_text()


@pytest.mark.parametrize("budget", [1, 12, 20, 300])
async def test_the_buffer_that_is_cut_keeps_whole_newest_lines_within_the_budget(
    budget: int,
) -> None:
    exam = exams()["a broken build"]
    memories = await memories_of(exam, budget)
    cut = memories[Kind.CUT]
    assert estimate_tokens(cut) <= budget
    assert memories[Kind.BUFFER].endswith(cut)
    assert len(memories) == len(Kind) - 1
    assert memories[Kind.SUMMARY] == exam.key.summary
    assert estimate_tokens(memories[Kind.BY_HAND]) <= budget


async def test_a_perception_of_its_own_adds_an_injection_and_a_second_run_asks_it_nothing(
    tmp_path: Path,
) -> None:
    exam, counting = exams()[PAPER], Counting()
    seen: list[str] = []
    pages = [
        await cover(
            [exam],
            CachedPerception(counting, tmp_path / "r" / "r.jsonl", "one"),
            lambda what, done, total: seen.append(f"{what} {done} {total}"),
        )
        for _ in range(2)
    ]
    assert pages[0][PAPER][Kind.BY_MODEL].total == pages[1][PAPER][Kind.BY_RULES].total
    assert counting.asked == list(exam.messages)
    assert seen == [f"{PAPER} 0 1"] * 2


def test_a_wrong_model_is_named_in_one_line(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("awareness", "coverage", "--model", "nobody") == 2
    assert "form of model spec named 'nobody'" in " ".join(capsys.readouterr().err.split())


TEXT = "I want to learn Python."


class Counting:
    """Reads by rules, counts, and fails on the given text."""

    def __init__(self, fails_on: str = "") -> None:
        self.asked: list[str] = []
        self._fails_on = fails_on

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        self.asked.append(text)
        if text == self._fails_on:
            raise ModelAnswerError(expected="conversation", problem="no JSON", raw="?", attempts=2)
        return await RulePerception().perceive(text, state)


@pytest.fixture
def state() -> AwarenessState:
    return new_state(ConversationAdapter(), SteppingClock())


async def test_a_reading_that_failed_fails_alike_without_being_asked_again(
    tmp_path: Path, state: AwarenessState
) -> None:
    file, counting = tmp_path / "readings.jsonl", Counting(fails_on=TEXT)
    await CachedPerception(Counting(), file, "another").perceive(TEXT, state)
    said: list[str] = []
    for _ in range(2):
        with pytest.raises(ModelAnswerError, match="no JSON") as caught:
            await CachedPerception(counting, file, "one").perceive(TEXT, state)
        said.append(str(caught.value))
    assert counting.asked == [TEXT]
    assert said[0] == said[1]


async def test_a_foreign_line_is_named_with_its_number_and_left_as_it_is(
    tmp_path: Path, state: AwarenessState
) -> None:
    file = tmp_path / "readings.jsonl"
    await CachedPerception(Counting(), file, "one").perceive(TEXT, state)
    held = file.read_bytes() + b'{"mine": 1}\nno newline'
    file.write_bytes(held)
    with pytest.raises(ConfigurationError, match=r"Line 2 of .* is no kept reading: .*mine"):
        CachedPerception(Counting(), file, "one")
    assert file.read_bytes() == held
    with pytest.raises(ConfigurationError, match="Readings cannot be read from"):
        CachedPerception(Counting(), tmp_path, "one")
