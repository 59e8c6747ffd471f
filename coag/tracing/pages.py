"""Pages for reading: one JSON file per phase, made from the records as they were written."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic_core import from_json, to_json

from coag._util.files import private
from coag.schema import (
    PHASES,
    Intent,
    ModelCall,
    Outcome,
    Receipt,
    TraceRecord,
)

from .files import FOLDER, trace_errors

_GROUPS = {
    "percept": "percepts",
    "model_call": "model_calls",
    "intent": "intents",
    "receipt": "receipts",
    "note": "notes",
    "written": "written",
    "actions": "actions",
}
"""Records that a page shows beside its outcome, and under which name."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
"""Opened without Python's file objects, whose calls each cost the run a moment."""
_KEPT = 200
"""How many records one page shows at most, besides its outcome; the trace has them all."""


class PageFiles(Protocol):
    """Takes finished pages: writes them, or compares them with what is there."""

    def write(self, cycle: int, name: str, page: dict[str, Any]) -> None:
        """Takes one page; one of the same name is replaced."""
        ...

    def count(self, cycle: int) -> int:
        """How many pages a cycle has already."""
        ...


class PhasePages:
    """Writes `CYCLE/N-PHASE.json` at each outcome: the outcome and all that led to it.

    A page shows what was recorded since the outcome before: model calls with their prompts and
    raw answers, percepts, intents, receipts, notes. Snapshots are left to the trace.

    Args:
        folder: Gets one subfolder per cycle; or what takes the pages in its place.
    """

    def __init__(self, folder: Path | PageFiles) -> None:
        self._files = _Files(folder) if isinstance(folder, Path) else folder
        self._since: deque[str] = deque(maxlen=_KEPT)

    def add(self, record: TraceRecord, text: str) -> None:
        """Takes note of a record; writes the page if it is an outcome.

        Raises:
            TraceError: If the page cannot be written.
        """
        if record.record == "outcome":
            self._write(record, from_json(text))
        elif record.record in _GROUPS:
            self._since.append(text)

    def _write(self, outcome: Outcome, fields: dict[str, Any]) -> None:
        page: dict[str, Any] = {
            "cycle": outcome.cycle,
            "phase": outcome.phase,
            "outcome": _without(fields, "record", "cycle", "phase"),
        }
        for text in self._since:
            record = from_json(text)
            page.setdefault(_GROUPS[record["record"]], []).append(_readable(record))
        self._since.clear()
        number = PHASES.index(outcome.phase) + 1
        self._files.write(outcome.cycle, f"{number}-{outcome.phase}.json", page)


class PlainPages:
    """Writes `CYCLE/N-model.json` per model call and `CYCLE/N-action.json` per receipt.

    Args:
        folder: Gets one subfolder per cycle; or what takes the pages in its place.
    """

    def __init__(self, folder: Path | PageFiles) -> None:
        self._files = _Files(folder) if isinstance(folder, Path) else folder
        self._intents: dict[str, str] = {}
        self._cycle: int | None = None
        self._number = 0

    def add(self, record: TraceRecord, text: str) -> None:
        """Takes note of a record; writes a page for a model call or a receipt.

        Raises:
            TraceError: If the page cannot be written.
        """
        if isinstance(record, Intent):
            self._intents[record.id] = text
        elif isinstance(record, ModelCall):
            page = {"cycle": record.cycle, "model_call": _readable(from_json(text))}
            self._files.write(record.cycle, self._next(record.cycle, "model"), page)
        elif isinstance(record, Receipt):
            intent = self._intents.pop(record.intent_id, None)
            page: dict[str, Any] = {"cycle": record.cycle}
            if intent is not None:
                page["intent"] = _readable(from_json(intent))
            page["receipt"] = _readable(from_json(text))
            self._files.write(record.cycle, self._next(record.cycle, "action"), page)

    def _next(self, cycle: int, what: str) -> str:
        if cycle != self._cycle:
            self._cycle = cycle
            self._number = self._files.count(cycle)
        self._number += 1
        return f"{self._number}-{what}.json"


class _Files:
    """The page files, one folder per cycle."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: int | None = None

    def write(self, cycle: int, name: str, page: dict[str, Any]) -> None:
        folder = self._of(cycle)
        rest = memoryview(page_text(page))
        with trace_errors(folder / name, "cannot be written"):
            if cycle != self._made:
                folder.mkdir(mode=FOLDER, parents=True, exist_ok=True)
                self._made = cycle
            file = private(f"{folder}/{name}", _NEW)
            try:
                while rest:
                    rest = rest[os.write(file, rest) :]
            finally:
                os.close(file)

    def count(self, cycle: int) -> int:
        folder = self._of(cycle)
        return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0

    def _of(self, cycle: int) -> Path:
        return self._folder / f"{cycle:04d}"


def page_text(page: dict[str, Any]) -> bytes:
    """A page as it is in its file."""
    return to_json(page, indent=2)


def _readable(record: dict[str, Any]) -> dict[str, Any]:
    """The record's fields for reading: without its tag, long texts of a model call as lines."""
    if record["record"] != "model_call":
        return _without(record, "record")
    fields = _without(record, "record", "cycle", "phase", "messages", "raw")
    fields["messages"] = [
        {key: _lines(value) for key, value in message.items()} for message in record["messages"]
    ]
    fields["raw"] = _lines(record["raw"])
    return fields


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _lines(value: Any) -> Any:
    """A text of several lines as the list of them, which JSON would show as one."""
    if not isinstance(value, str) or "\n" not in value:
        return value
    return cast("list[Any]", value.split("\n"))
