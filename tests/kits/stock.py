"""Runs of stock agents in tests: a recorder, its records as a file gives them back, two tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autogen_core import FunctionCall

from coag.compat import Recorder
from coag.schema import ENTRY, Entry, SteppingClock, TraceRecord


def push(button: str, hard: bool = False) -> str:
    """Pushes a button."""
    if button == "red":
        raise ValueError("not that one")
    return json.dumps({"ok": button == "green"})


def pull(lever: int) -> str:
    """Pulls a lever."""
    return f"pulled {lever}"


def pushes(button: str = "green", id: str = "1") -> FunctionCall:
    """A model's call of `push`."""
    return FunctionCall(id=id, name="push", arguments=json.dumps({"button": button}))


def recorder(logs: Path | None = None) -> Recorder:
    """A recorder of `clerk`, whose clock steps."""
    return Recorder(logs, agent="clerk", clock=SteppingClock())


def written(recorded: Recorder) -> list[TraceRecord]:
    """The records as a file would give them back."""
    lines = [Entry(seq=0, body=record).model_dump_json() for record in recorded.records]
    return [ENTRY.validate_json(line).body for line in lines]


def only(recorded: Recorder | Sequence[TraceRecord], kind: type[Any]) -> list[Any]:
    """The records of one kind."""
    records = recorded.records if isinstance(recorded, Recorder) else recorded
    return [each for each in records if isinstance(each, kind)]
