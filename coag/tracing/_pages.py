"""Pages for reading: one JSON file per phase, made from the trace's records."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, cast

from coag.errors import TraceError
from coag.schema import (
    PHASES,
    ActionsListed,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Outcome,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TraceRecord,
    TurnEnd,
    TurnStart,
)

from ._as_json import page_text
from ._private import FOLDER, private
from ._redactor import Redactor

_OUTCOMES = (
    RetrievalOutcome
    | ReasoningOutcome
    | ProposalOutcome
    | EvaluationOutcome
    | SelectionOutcome
    | ExecutionOutcome
)
_GROUPS = {
    "percept": "percepts",
    "model_call": "model_calls",
    "intent": "intents",
    "receipt": "receipts",
    "note": "notes",
    "written": "written",
}
_KEPT = 200
"""How many records one page shows at most, besides its outcome; the trace has them all."""


class PhasePages:
    """Writes `CYCLE/N-PHASE.json` at each outcome: the outcome and all that led to it.

    A page shows what was recorded since the outcome before: model calls with their prompts and
    raw answers, percepts, intents, receipts, notes. Snapshots are left to the trace.

    Args:
        folder: Gets one subfolder per cycle.
        redactor: Takes secrets out.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._files = _Files(folder, redactor)
        self._since: deque[TraceRecord] = deque(maxlen=_KEPT)

    def add(self, record: TraceRecord) -> None:
        """Takes note of a record; writes the page if it is an outcome.

        Raises:
            TraceError: If the page cannot be written.
        """
        if isinstance(record, _OUTCOMES):
            self._write(record)
        elif not isinstance(record, Snapshot | ActionsListed | TurnStart | TurnEnd):
            self._since.append(record)

    def _write(self, outcome: Outcome) -> None:
        page: dict[str, Any] = {
            "cycle": outcome.cycle,
            "phase": outcome.phase,
            "outcome": outcome.model_dump(exclude={"record", "cycle", "phase"}),
        }
        for record in self._since:
            page.setdefault(_GROUPS[record.record], []).append(_shown(record))
        self._since.clear()
        number = PHASES.index(outcome.phase) + 1
        self._files.write(outcome.cycle, f"{number}-{outcome.phase}.json", page)


class PlainPages:
    """Writes `CYCLE/N-model.json` per model call and `CYCLE/N-action.json` per receipt.

    Args:
        folder: Gets one subfolder per cycle.
        redactor: Takes secrets out.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._files = _Files(folder, redactor)
        self._intents: dict[str, Intent] = {}
        self._cycle: int | None = None
        self._number = 0

    def add(self, record: TraceRecord) -> None:
        """Takes note of a record; writes a page for a model call or a receipt.

        Raises:
            TraceError: If the page cannot be written.
        """
        if isinstance(record, Intent):
            self._intents[record.id] = record
        elif isinstance(record, ModelCall):
            page = {"cycle": record.cycle, "model_call": _shown(record)}
            self._files.write(record.cycle, self._next(record.cycle, "model"), page)
        elif isinstance(record, Receipt):
            intent = self._intents.pop(record.intent_id, None)
            page: dict[str, Any] = {"cycle": record.cycle}
            if intent is not None:
                page["intent"] = _shown(intent)
            page["receipt"] = _shown(record)
            self._files.write(record.cycle, self._next(record.cycle, "action"), page)

    def _next(self, cycle: int, what: str) -> str:
        if cycle != self._cycle:
            self._cycle = cycle
            self._number = self._files.count(cycle)
        self._number += 1
        return f"{self._number}-{what}.json"


class _Files:
    """The page files, one folder per cycle."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._folder = folder
        self._redactor = redactor
        self._made: int | None = None

    def write(self, cycle: int, name: str, page: dict[str, Any]) -> None:
        """Writes one page; a page of the same name is replaced."""
        folder = self._of(cycle)
        text = page_text(page)
        try:
            if cycle != self._made:
                folder.mkdir(mode=FOLDER, parents=True, exist_ok=True)
                self._made = cycle
            with open(folder / name, "w", encoding="utf-8", opener=private) as file:
                file.write(self._redactor.clean(text, indent=2))
        except OSError as error:
            problem = error.strerror or type(error).__name__
            raise TraceError(folder / name, f"cannot be written: {problem}") from error

    def count(self, cycle: int) -> int:
        """How many pages a cycle has already, e.g. from before a crash."""
        folder = self._of(cycle)
        return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0

    def _of(self, cycle: int) -> Path:
        return self._folder / f"{cycle:04d}"


def _shown(record: TraceRecord) -> dict[str, Any]:
    """The record's fields for reading: without its tag, long texts of a model call as lines."""
    if not isinstance(record, ModelCall):
        return record.model_dump(exclude={"record"})
    fields = record.model_dump(exclude={"record", "cycle", "phase", "messages", "raw"})
    fields["messages"] = [_lines_of(message) for message in record.messages]
    fields["raw"] = _lines(record.raw)
    return fields


def _lines_of(message: dict[str, Any]) -> dict[str, Any]:
    return {key: _lines(value) for key, value in message.items()}


def _lines(value: Any) -> Any:
    """A text of several lines as the list of them, which JSON would show as one."""
    if not isinstance(value, str) or "\n" not in value:
        return value
    return cast("list[Any]", value.split("\n"))
