"""Conversations as a file gives them."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.memory import Dialogue, read_dialogues


def a_sample(**changed: Any) -> dict[str, Any]:
    """A conversation of two sessions, the second of which comes first in the file."""
    return {
        "sample_id": "talk-1",
        "conversation": {
            "speaker_a": "Ida",
            "speaker_b": "Ole",
            "session_10": [{"speaker": "Ole", "dia_id": "D10:1", "text": "Late."}],
            "session_10_date_time": "no date",
            "session_2": [
                {"speaker": "Ida", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a boat"},
                {"speaker": "Ole", "dia_id": "D2:2", "text": "Nice."},
            ],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [
            {"question": "What did Ida show?", "evidence": ["D2:1", "D2:1"], "category": 4},
            {"question": "Nothing?", "evidence": [], "category": 4},
            {"question": "Which?", "evidence": ["D9:9"], "category": 1},
        ],
        **changed,
    }


@pytest.fixture
def dialogue(tmp_path: Path) -> Dialogue:
    return read_one(tmp_path, a_sample(_split="dev"))


def read_one(folder: Path, sample: dict[str, Any]) -> Dialogue:
    path = folder / "talks.json"
    path.write_text(json.dumps([sample]), encoding="utf-8")
    return read_dialogues(path)[0]


def test_turns_come_in_the_order_of_their_sessions(dialogue: Dialogue) -> None:
    assert [name for name, _, _ in dialogue.turns] == ["D2:1", "D2:2", "D10:1"]


def test_a_turn_knows_who_spoke_when_and_where(dialogue: Dialogue) -> None:
    assert dialogue.turns[0][2] == {
        "speaker": "Ida",
        "session": 2,
        "turn": 0,
        "date": "8 May 2023",
        "date_iso": "2023-05-08T13:56:00",
        "caption": "a boat",
    }


def test_a_date_that_cannot_be_read_is_left_out(dialogue: Dialogue) -> None:
    assert (dialogue.turns[2][2]["date"], dialogue.turns[2][2]["date_iso"]) == ("", "")


def test_questions_without_usable_evidence_are_skipped_and_counted(dialogue: Dialogue) -> None:
    assert [question.text for question in dialogue.questions] == ["What did Ida show?"]
    assert dialogue.skipped == 2


def test_what_is_not_marked_is_held_out(tmp_path: Path, dialogue: Dialogue) -> None:
    assert dialogue.split == "dev"
    assert read_one(tmp_path, a_sample()).split == "held-out"
