from __future__ import annotations

import json
from pathlib import Path

import pytest

from case_study.awareness import (
    AnswerFile,
    KeptAnswer,
    ModelReader,
    Question,
    questions_named,
    reading_prompt,
)
from coag.errors import ConfigurationError, ModelCallError
from coag.models import (
    AskSettings,
    ScriptedModel,
    ScriptedRequest,
    StructuredModel,
    scripted_answers,
)

TEXT = "The user wants to learn Python in order to build a scraper."


def question(id: str) -> Question:
    (asked,) = questions_named([id])
    return asked


def reader(model: ScriptedModel, file: AnswerFile | None = None) -> ModelReader:
    return ModelReader(
        StructuredModel(model), name="scripted:test", answers=file, settings=AskSettings(reasks=0)
    )


async def test_phrases_and_pairs_become_claims_without_blanks_and_repetitions() -> None:
    phrases = {"items": ["learn Python", " learn Python ", " ", "build a scraper"]}
    pairs = {"items": [{"first": "learn Python", "second": "build a scraper"}]}
    asked = reader(ScriptedModel(scripted_answers([phrases, pairs])))
    assert await asked.read(TEXT, question("explicit_goals")) == (
        ("learn Python",),
        ("build a scraper",),
    )
    assert await asked.read(TEXT, question("goal_hierarchy")) == (
        ("learn Python", "build a scraper"),
    )


def test_the_text_comes_before_the_question_and_cannot_end_itself() -> None:
    first, second = (
        reading_prompt("a </notes> b", question(id))[-1].content for id in ("urgency", "unknowns")
    )
    assert first.count("</notes>") == 1
    text = first[: first.index("Question:")]
    assert second.startswith(text)
    assert (
        reading_prompt("a", question("urgency"))[0] == reading_prompt("b", question("unknowns"))[0]
    )


async def test_what_is_kept_is_not_asked_again_also_after_a_break(tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.jsonl"
    model = ScriptedModel(scripted_answers([{"items": ["one"]}, {"items": ["two"]}]))
    for _ in range(2):
        assert await reader(model, AnswerFile(path)).read(TEXT, question("urgency")) == (("one",),)
    assert model.calls == 1
    with path.open("a", encoding="utf-8") as file:
        file.write('{"model": "cut o')
    resumed = reader(model, AnswerFile(path))
    assert await resumed.read(TEXT, question("unknowns")) == (("two",),)
    assert model.calls == 2
    assert [json.loads(line)["asked"] for line in path.read_text().splitlines()] == [
        "urgency",
        "unknowns",
    ]


async def test_another_text_or_model_is_asked_anew(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "answers.jsonl")
    model = ScriptedModel(lambda request: {"items": [str(request.number)]})
    asked = reader(model, file)
    assert await asked.read(TEXT, question("urgency")) == (("1",),)
    assert await asked.read("Another text.", question("urgency")) == (("2",),)
    other = ModelReader(StructuredModel(model), name="scripted:other", answers=file)
    assert await other.read(TEXT, question("urgency")) == (("3",),)


async def test_an_answer_out_of_form_is_no_answer_and_kept_as_that(tmp_path: Path) -> None:
    model = ScriptedModel(scripted_answers(["I do not know."]))
    file = AnswerFile(tmp_path / "answers.jsonl")
    for _ in range(2):
        assert await reader(model, file).read(TEXT, question("urgency")) is None
    assert model.calls == 1


async def test_a_model_that_cannot_be_asked_gives_no_answer_and_three_in_a_row_end_it(
    tmp_path: Path,
) -> None:
    def broken(request: ScriptedRequest) -> str:
        raise OSError("nobody listens")

    path = tmp_path / "answers.jsonl"
    asked = reader(ScriptedModel(broken), AnswerFile(path))
    for _ in range(2):
        assert await asked.read(TEXT, question("urgency")) is None
    with pytest.raises(ModelCallError, match="nobody listens"):
        await asked.read(TEXT, question("urgency"))
    assert not path.exists()


def test_a_file_of_something_else_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    kept = KeptAnswer(model="m", asked="urgency", digest="d", outcome="answered", answer="{}")
    path.write_text(f"{kept.model_dump_json()}\nnonsense\n")
    with pytest.raises(ConfigurationError, match=r"Line 2 of .* is no kept answer: 'nonsense'"):
        AnswerFile(path)


@pytest.mark.parametrize("text", ['{"my": "config"}', "one\ntwo", "hello\n"])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is no kept answer"):
        AnswerFile(path)
    assert path.read_text() == text


def test_an_answer_with_any_line_separator_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    kept = KeptAnswer(model="m", asked="urgency", digest="d", outcome="answered", answer="x\u2028y")
    AnswerFile(path).keep(kept)
    assert AnswerFile(path).find("m", "urgency", "d") == kept
