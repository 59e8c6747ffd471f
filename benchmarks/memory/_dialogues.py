"""Conversations in the format of LoCoMo, which you have to bring along.

The data of LoCoMo (`snap-research/LoCoMo` on GitHub) is CC BY-NC 4.0 and no part of this
repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ._contender import Item

ADVERSARIAL = 5
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", ADVERSARIAL: "adversarial"}
_DATE = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question on a conversation."""

    text: str
    wanted: frozenset[str]
    """The ids of the turns that answer it."""
    category: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A conversation and what is asked of it."""

    name: str
    split: str
    """`dev` or `held-out`."""
    turns: tuple[Item, ...]
    """One memory each."""
    questions: tuple[Question, ...]
    skipped: int
    """Questions without evidence, or whose evidence is no turn."""


def read_dialogues(path: Path) -> list[Dialogue]:
    """All conversations of a file in LoCoMo's format.

    A sample may say with `_split` whether it is `dev`; all others are held out.
    """
    return [_dialogue(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def _dialogue(sample: Mapping[str, Any]) -> Dialogue:
    turns = _turns(sample["conversation"])
    known = {name for name, _, _ in turns}
    asked: list[Question] = []
    for one in sample["qa"]:
        wanted = frozenset[str](one.get("evidence") or ())
        if wanted and wanted <= known:
            asked.append(Question(text=one["question"], wanted=wanted, category=one["category"]))
    return Dialogue(
        name=sample["sample_id"],
        split="dev" if sample.get("_split") == "dev" else "held-out",
        turns=tuple(turns),
        questions=tuple(asked),
        skipped=len(sample["qa"]) - len(asked),
    )


def _turns(conversation: Mapping[str, Any]) -> list[Item]:
    found = (re.fullmatch(r"session_(\d+)", key) for key in conversation)
    turns: list[Item] = []
    for session in sorted(int(match[1]) for match in found if match):
        at = _moment(conversation.get(f"session_{session}_date_time", ""))
        for place, turn in enumerate(conversation[f"session_{session}"]):
            metadata = {
                "speaker": turn["speaker"],
                "session": session,
                "turn": place,
                "date": at.strftime("%d %B %Y").lstrip("0") if at else "",
                "date_iso": at.isoformat() if at else "",
                "caption": turn.get("blip_caption") or "",
            }
            turns.append((turn["dia_id"], turn["text"], metadata))
    return turns


def _moment(written: str) -> datetime | None:
    """The time of a session; None where it is missing or written in another way."""
    try:
        return datetime.strptime(written, _DATE)
    except ValueError:
        return None
