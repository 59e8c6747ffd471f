"""Coverage of awareness: dialogues, exams, the reader, scores, the page and its command."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.awareness import (
    DATA,
    PAPER,
    QUESTIONS,
    CachedPerception,
    Claim,
    Form,
    Kind,
    Question,
    RuleReader,
    cover,
    coverage_page,
    exams_in,
    memories_of,
    parseable,
    questions_named,
    read_outline,
    says,
    score,
    write_outline,
)
from coag.awareness import AwarenessState, ConversationAdapter, RulePerception, new_state
from coag.errors import ConfigurationError, ModelAnswerError, UnknownNameError
from coag.schema import SteppingClock, estimate_tokens

ANSWERS: dict[str, Any] = {
    "explicit_goals": [["paint the fence"]],
    "goal_hierarchy": [["buy paint", "paint the fence"]],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with one small dialogue beside the paper's, and the key to both."""
    folder = tmp_path / "data"
    folder.mkdir()
    turns = [
        {"message": "I want to paint the fence.", "goals": ["Paint the fence"]},
        {"message": "What colour?", "questions": ["What colour?"]},
    ]
    _write(folder / "dialogues.json", [{"name": "a fence", "turns": turns}])
    papers = json.loads((DATA / "questions.json").read_bytes())[PAPER]
    key = {
        "replies": ["Good.", "Green."],
        "summary": "The user wants to paint the fence and asked what colour.",
        "answers": {
            one.id: ANSWERS.get(one.id, []) for one in QUESTIONS if one.form is not Form.COMPUTED
        },
    }
    _write(folder / "questions.json", {PAPER: papers, "a fence": key})
    return folder


def _write(path: Path, what: object) -> None:
    path.write_text(json.dumps(what), encoding="utf-8")


def without(answers: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in answers.items() if key != name}


SPOILED: list[tuple[Callable[[Any], dict[str, Any]], str]] = [
    (
        lambda key: {"answers": without(key["answers"], "urgency")},
        "'a fence': no answer to 'urgency'",
    ),
    (lambda key: {"answers": {**key["answers"], "weather": []}}, r"'weather'.*urgency"),
    (
        lambda key: {"answers": {**key["answers"], "callbacks": [["fence", "paint"]]}},
        r"'callbacks' is one phrase, not \['fence'",
    ),
    (lambda key: {"replies": ["Good."]}, "1 replies to 2 turns"),
    (lambda key: {"replies": 1}, "holds no questions: wrong at a fence > replies"),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILED)
def test_a_key_that_does_not_fit_is_refused_with_its_place(
    data: Path, spoil: Callable[[Any], dict[str, Any]], message: str
) -> None:
    keys = json.loads((data / "questions.json").read_bytes())
    keys["a fence"] |= spoil(keys["a fence"])
    _write(data / "questions.json", keys)
    with pytest.raises((ConfigurationError, UnknownNameError), match=message):
        exams_in(data)


def test_dialogues_and_answers_belong_together(data: Path) -> None:
    path = data / "questions.json"
    keys = json.loads(path.read_bytes())
    _write(path, {**keys, "a wall": keys["a fence"]})
    with pytest.raises(ConfigurationError, match="'a wall', which is no dialogue"):
        exams_in(data)
    _write(path, {PAPER: keys[PAPER]})
    with pytest.raises(ConfigurationError, match="no answers for 'a fence'"):
        exams_in(data)
    path.unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        exams_in(data)


RIGHT = (("learn Python",), ("build a web scraper|scraper",))


def test_the_score_is_f1_over_the_items() -> None:
    found = score([("I want to learn Python",), ("and to cook",), ("and to sleep",)], RIGHT)
    assert found.recall == 0.5
    assert found.value == pytest.approx(2 * 0.5 * (1 / 3) / (0.5 + 1 / 3))
    assert score([("learning Python, building scrapers",)], RIGHT).value == 1


def test_an_empty_claim_is_right_where_the_answer_is_none_and_a_missing_answer_never_is() -> None:
    assert score([], ()).value == 1
    assert score([("something",)], ()).value == score(None, ()).value == 0
    assert score([], RIGHT).value == score(None, RIGHT).recall == 0
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


_WORDS = st.text(st.sampled_from("abcdefgh XYZ"), min_size=1, max_size=12).map(str.strip)
_ITEMS = st.lists(_WORDS.filter(bool), min_size=1, max_size=4)


@given(st.dictionaries(_WORDS.filter(bool), _ITEMS, min_size=1, max_size=4))
def test_what_is_written_as_an_outline_is_read_back(sections: dict[str, list[str]]) -> None:
    text = "\n".join(
        "\n".join([f"{heading}:", *(f"  {item}" for item in items)])
        for heading, items in sections.items()
    )
    outline = read_outline(text)
    assert {one.heading: list(one.items) for one in outline.sections} == sections
    assert write_outline(outline) == text


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
    for question in questions_named([])[:-2]:
        assert read("", question.id) == ()


RULES = RuleReader()


async def test_the_published_page_is_what_its_command_writes() -> None:
    """All dialogues, kinds of memory and questions: what the reader finds is what it found."""
    found = await cover(exams_in(DATA), RULES, QUESTIONS)
    page = coverage_page(found, "case-study awareness coverage")
    assert page == (DATA.parent / "results" / "awareness-coverage.md").read_text()


async def test_the_papers_numbers_stand_beside_all_questions_only(data: Path) -> None:
    both = coverage_page(await cover(exams_in(data), RULES, QUESTIONS), "it")
    assert "## Table 6: 1 dialogue, means" in both
    assert "awareness by hand - summary" in both
    some = coverage_page(
        await cover(exams_in(data), RULES, questions_named(["urgency"])), "command"
    )
    assert "| 92 | 43 | 176 |" not in some


@pytest.mark.parametrize("budget", [1, 12, 20, 300])
async def test_the_buffer_that_is_cut_keeps_whole_newest_lines_within_the_budget(
    data: Path, budget: int
) -> None:
    _, fence = exams_in(data)
    memories = {memory.kind: memory for memory in await memories_of(fence, budget)}
    cut = memories[Kind.CUT]
    assert estimate_tokens(cut.text) <= budget
    assert memories[Kind.BUFFER].text.endswith(cut.text)
    assert len(memories) == len(Kind) - 1
    assert memories[Kind.SUMMARY].text == fence.key.summary
    assert ("[explicit] Paint the fence" in memories[Kind.BY_HAND].text) == (budget > 12)
    assert memories[Kind.BY_HAND].tokens <= budget


async def test_what_is_computed_of_the_text_needs_no_reader(data: Path) -> None:
    found = await cover(
        exams_in(data)[1:],
        _Silent(),
        questions_named(["token_budget", "machine_parseable"]),
        budget=15,
    )
    values = {(one.kind, one.question): one.score.value for one in found.scored}
    assert values[Kind.BUFFER, "token_budget"] == 0
    assert values[Kind.SUMMARY, "token_budget"] == 1
    assert values[Kind.BUFFER, "machine_parseable"] == 0.5
    assert values[Kind.SUMMARY, "machine_parseable"] == 0
    assert not any(one.failed for one in found.scored)
    found = await cover(exams_in(data)[1:], _Silent(), questions_named(["watch_list"]))
    assert all(one.failed and one.score.value == 0 for one in found.scored)
    assert "| no usable answer, scored 0 | 1 | 1 |" in coverage_page(found, "it")


async def test_a_perception_of_its_own_adds_an_injection_and_progress_is_reported(
    data: Path,
) -> None:
    steps: list[tuple[int, int]] = []
    found = await cover(
        exams_in(data),
        RULES,
        questions_named(["watch_list", "urgency"]),
        perception=RulePerception(),
        on_answer=lambda what, done, total: steps.append((done, total)),
    )
    assert Kind.BY_MODEL in found.kinds
    assert steps == sorted(steps)
    assert {total for _, total in steps} == {len(found.scored)}


class _Silent:
    """A reader that never answers."""

    @property
    def name(self) -> str:
        return "silent"

    async def read(self, text: str, question: Question) -> tuple[Claim, ...] | None:
        return None


Run = Callable[..., int]


@pytest.fixture
def run(command: Run, data: Path) -> Run:
    """Runs the command on the small folder; gives its exit code."""
    return lambda *words: command("awareness", "coverage", "--data", str(data), *words)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A component file of a scripted model, as a spec."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "coverage_script.py").write_text(
        "def answer(request):\n"
        "    form = request.schema_name or ''\n"
        "    if 'Conversation' in form:\n"
        "        return {'topics': ['fence'], 'references_previous': False, 'entities': [],\n"
        "                'sentiment': 'neutral', 'goals': ['Paint the fence'], 'questions': []}\n"
        "    raise OSError(form)\n"
    )
    component = {
        "provider": "coag.models.ScriptedModel",
        "component_type": "model",
        "config": {"script": {"name": "coverage_script:answer"}},
    }
    path = tmp_path / "model.json"
    path.write_text(json.dumps(component))
    return str(path)


def test_the_page_is_printed_and_written(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    assert run("-o", str(page)) == 0
    out = capsys.readouterr().out
    assert page.read_text() == out
    assert "read by rules" in out
    assert "case-study awareness coverage --data DIR" in out
    assert str(tmp_path) not in out


def test_a_model_perceives_and_a_second_run_asks_it_nothing(
    run: Run, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    readings = tmp_path / "r" / "r.jsonl"
    words = ["--model", model, "--questions", "explicit_goals,urgency", "--dialogue", "a fence"]
    kept = ["--readings", str(readings)]
    assert run(*words, *kept) == 0
    first = capsys.readouterr().out
    assert "awareness by model" in first
    assert "model.json" in first
    assert len(readings.read_text().splitlines()) > 0
    (tmp_path / "coverage_script.py").write_text("def answer(request): raise OSError('no')\n")
    sys.modules.pop("coverage_script", None)
    assert run(*words, *kept) == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--questions", "weather"], "no question named 'weather'"),
        (["--dialogue", "a wall"], "no dialogue named 'a wall'"),
        (["--trusted"], "--trusted: only with --model"),
        (["--model", "nobody"], "form of model spec named 'nobody'"),
    ],
)
def test_a_wrong_option_is_named_in_one_line(
    run: Run, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert run(*words) == 2
    assert message in " ".join(capsys.readouterr().err.split())


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


@pytest.mark.parametrize("whole", [0, 1])
@pytest.mark.parametrize("torn", [b"{", b'{"key":', b'{"key": "cu'])
async def test_a_line_that_was_cut_off_goes_with_the_next_reading_and_not_before(
    tmp_path: Path,
    state: AwarenessState,
    whole: int,
    torn: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file, counting = tmp_path / "new" / "readings.jsonl", Counting()
    opened = CachedPerception(counting, file, "one")
    assert not file.parent.exists()
    for turn in range(whole):
        await opened.perceive(f"{turn}\u2028{TEXT}", state)
    file.parent.mkdir(exist_ok=True)
    with file.open("ab") as lines:
        lines.write(torn)
    held = file.read_bytes()
    one = CachedPerception(counting, file, "one")
    assert "was cut off" in caplog.text
    assert file.read_bytes() == held
    await one.perceive("next", state)
    await one.perceive("last", state)
    counting.asked.clear()
    again = CachedPerception(counting, file, "one")
    for text in (*(f"{turn}\u2028{TEXT}" for turn in range(whole)), "next", "last"):
        await again.perceive(text, state)
    assert counting.asked == []


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
