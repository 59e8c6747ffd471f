"""How far two readings agree, in the paper's terms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.awareness.agreement import agreement, compare, comparison_table, main
from case_study.awareness import (
    CONVERSATION,
    Dialogue,
    load_dialogues,
    run_analyses,
    run_perception,
)
from coag.awareness import ModelPerception, PerceptionSettings, RulePerception
from coag.awareness.adapters import ConversationAnalysis
from coag.errors import ConfigurationError
from coag.models import ScriptedModel, ScriptedReply, StructuredModel, scripted_answers

MESSAGES = tuple(turn.message for turn in CONVERSATION)


def as_answer(turn: ConversationAnalysis) -> dict[str, object]:
    """The turn as a model would answer that reads as we do."""
    entities = [{"name": one.name, "type": one.type.value} for one in turn.entities]
    return {
        "topics": list(turn.topics),
        "references_previous": turn.references_previous,
        "entities": entities,
        "sentiment": turn.sentiment.value,
        "goals": [goal.description for goal in turn.goals],
        "questions": list(turn.questions),
        "completed": [],
        "abandoned": [],
    }


def model(*answers: ScriptedReply) -> ModelPerception:
    asker = StructuredModel(ScriptedModel(scripted_answers(answers)))
    return ModelPerception(asker, settings=PerceptionSettings(trusted=True))


def test_what_is_equal_agrees_fully() -> None:
    for turn in CONVERSATION:
        assert agreement(turn.model_dump(), turn.model_dump()).score == 1.0


def test_the_paper_s_turn_1_agrees_by_0_88() -> None:
    hand = CONVERSATION[0].model_dump()
    seen = {**hand, "topics": ["Python programming", "web scraping"]}
    assert agreement(seen, hand).score == 0.875


@pytest.mark.parametrize(
    ("change", "dimension"),
    [
        ({"topics": ["cars"]}, "topics"),
        ({"topics": []}, "topics"),
        ({"sentiment": "angry"}, "sentiment"),
        ({"goals": []}, "goals"),
        ({"references_previous": True}, "references"),
    ],
)
def test_each_dimension_counts_a_quarter(change: dict[str, object], dimension: str) -> None:
    hand = CONVERSATION[0].model_dump()
    found = agreement({**hand, **change}, hand)
    assert found.score == 0.75
    assert found.model_dump()[dimension] == 0.0
    assert agreement(hand, {**hand, **change}) == found


async def test_a_model_that_reads_as_we_do_makes_the_same_state() -> None:
    seeing = model(*map(as_answer, CONVERSATION))
    compared = compare(
        "talk",
        await run_perception("model", seeing, MESSAGES),
        run_analyses("by hand", CONVERSATION),
    )
    assert compared.overall == 1.0
    assert compared.one_state == compared.other_state
    assert {one.what: one.both for one in compared.noticed} == {
        "pivot": (2,),
        "callback": (3,),
        "bad mood": (4,),
    }


async def test_a_turn_without_a_usable_answer_agrees_in_nothing_and_leaves_the_state() -> None:
    first, second, *rest = map(as_answer, CONVERSATION)
    seeing = model(first, "no", "no", *rest)
    course = await run_perception("model", seeing, MESSAGES)
    compared = compare("talk", course, run_analyses("by hand", CONVERSATION))
    assert course.state.step == 3
    assert [turn.score for turn in compared.turns] == [1.0, 0.0, 1.0, 1.0]
    assert compared.errors[0].startswith("turn 2: ")
    assert "Nothing usable:" in comparison_table(compared)
    assert second["topics"] == ["cooking", "pasta carbonara"]


async def test_the_rules_notice_what_the_paper_checks() -> None:
    course = await run_perception("rules", RulePerception(), MESSAGES)
    compared = compare("talk", course, run_analyses("by hand", CONVERSATION))
    assert all(set(one.other) <= set(one.one) for one in compared.noticed)
    assert comparison_table(compared).splitlines()[0] == "talk: rules beside by hand"


def test_courses_of_different_lengths_are_refused() -> None:
    one, other = run_analyses("a", CONVERSATION), run_analyses("b", CONVERSATION[:2])
    with pytest.raises(ValueError, match="the same turns, not 4 and 2"):
        compare("talk", one, other)


def test_dialogues_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "dialogues.json"
    dialogue = Dialogue(name="talk", turns=CONVERSATION)
    path.write_text(json.dumps([dialogue.model_dump(mode="json")]))
    assert load_dialogues(path) == (dialogue,)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[{}]", "wrong at 0 > name"),
        ('[{"name": "a", "turns": [{"topics": ["b"]}]}]', "turn 1 of 'a' has no message"),
        ('[{"name": "a", "turns": []}]', "wrong at 0 > turns"),
        ("no", "wrong at its beginning"),
    ],
)
def test_a_file_that_holds_no_dialogues_says_where(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "dialogues.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=error):
        load_dialogues(path)


def test_the_command_prints_tables_of_every_dialogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dialogues.json"
    dialogue = Dialogue(name="mine", turns=CONVERSATION[:2])
    path.write_text(f"[{dialogue.model_dump_json()}]")
    assert main(["agreement", "--dialogues", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "the paper's four turns: rules beside by hand" in printed
    assert "mine: rules beside by hand" in printed
    assert "rules beside by hand, 2 dialogues: " in printed


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agreement", "--dialogues", str(tmp_path / "none.json")]) == 1
    assert "Dialogues cannot be read" in capsys.readouterr().err
    assert main(["agreement", "--model", "nonsense"]) == 1
    assert "no form of model spec named 'nonsense'" in capsys.readouterr().err
