from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from case_study.awareness import DATA, PAPER, QUESTIONS, Form

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


@pytest.fixture
def keys(data: Path) -> dict[str, Any]:
    """The key of the small folder, to be spoiled and written again."""
    return json.loads((data / "questions.json").read_bytes())


@pytest.fixture
def save(data: Path) -> Callable[[object], None]:
    """Writes another key into the small folder."""
    return lambda keys: _write(data / "questions.json", keys)
