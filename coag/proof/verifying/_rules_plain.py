"""What the trace of an agent can hold that calls its tools straight away."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, cast

from coag.schema import (
    Intent,
    ModelCall,
    Note,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    TurnEnd,
    TurnStart,
    parsed_arguments,
)

from ._book import Book, Taking, same, shown
from ._rules_story import HOOKED
from ._violation import Rule

_UNKNOWN = (ReceiptStatus.UNKNOWN, ReceiptStatus.CANCELLED)


class PlainTurns:
    """Turns in order, each the cycle of what is in it, and no phases."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._turn: int | None = None
        self._open = False

    @property
    def takes(self) -> Taking:
        """Turns, what is in them, and what cannot be there."""
        return {
            "turn_start": self._start,
            "turn_end": self._end,
            "model_call": self._within,
            "outcome": self._outcome,
        }

    def end(self, *, finished: bool) -> None:
        """An agent that raised has not ended its turn; that is no violation."""
        if finished and self._open:
            self.book.remark(f"The run has ended in the middle of turn {self._turn}.")

    def _start(self, record: TurnStart) -> None:
        if self._open:
            self.book.violate(
                Rule.TURN, f"Turn {record.turn} begins while turn {self._turn} goes on."
            )
        if self._turn is not None and record.turn != self._turn + 1:
            self.book.violate(Rule.TURN, f"Turn {record.turn} follows turn {self._turn}.")
        self._turn, self._open = record.turn, True

    def _end(self, record: TurnEnd) -> None:
        if not self._open and self._turn is not None:
            self.book.violate(Rule.TURN, f"Turn {record.turn} ends, and none goes on.")
        elif self._turn not in (None, record.turn):
            self.book.violate(
                Rule.TURN, f"Turn {record.turn} ends while turn {self._turn} goes on."
            )
        self._turn, self._open = record.turn, False

    def _within(self, record: ModelCall) -> None:
        if record.phase is not None:
            self.book.violate(
                Rule.MODEL_CALL,
                f"Call {shown(record.id)} is of the phase {record.phase}; a plain agent has none.",
            )
        if self._turn is not None and record.cycle != self._turn:
            self.book.violate(
                Rule.MODEL_CALL,
                f"Call {shown(record.id)} names turn {record.cycle} in turn {self._turn}.",
            )

    def _outcome(self, record: Any) -> None:
        self.book.violate(
            Rule.PHASE, f"A plain agent has no phases, and here is a {record.phase} outcome."
        )


class PlainEffects:
    """Every action has an intent, was asked for and allowed, and has one receipt."""

    def __init__(self, book: Book, *, cut: bool) -> None:
        self.book = book
        self._cut = cut
        self._open: dict[str, Intent] = {}
        self._ended: dict[str, Receipt] = {}
        self._known: set[str] = set()
        self._asked: Counter[str] | None = None
        """Tool calls of this turn's answers that were not run yet; None without model calls."""
        self._allowed: dict[str, bool] = {}
        """Whether the rules let a call pass, by its id, as they were asked last."""

    @property
    def takes(self) -> Taking:
        """What asks for actions, and what tells of them."""
        return {
            "turn_start": self._turn,
            "model_call": self._call,
            "note": self._note,
            "intent": self._intent,
            "receipt": self._receipt,
            "percept": self._percept,
        }

    def end(self, *, finished: bool) -> None:
        """Whatever was begun has its receipt."""
        for intent in self._open.values():
            text = f"Intent {shown(intent.id)} ({intent.action}) has no receipt."
            if finished:
                self.book.violate(Rule.RECEIPT, text)
            else:
                self.book.remark(text)

    def _turn(self, record: TurnStart) -> None:
        del record
        self._asked = None

    def _call(self, record: ModelCall) -> None:
        self._asked = Counter() if self._asked is None else self._asked
        for call in record.tool_calls:
            self._asked[_wish(str(call.get("name", "")), call.get("arguments"))] += 1

    def _note(self, record: Note) -> None:
        call, verdicts = record.details.get("call"), record.details.get("verdicts")
        if record.about == "constraint" and isinstance(call, str) and isinstance(verdicts, list):
            given = cast("list[object]", verdicts)
            self._allowed[call] = all(_allows(verdict) for verdict in given)

    def _intent(self, record: Intent) -> None:
        named = f"Intent {shown(record.id)} ({record.action})"
        if record.id in self._known:
            self.book.violate(Rule.INTENT, f"There are two intents {shown(record.id)}.")
        self._known.add(record.id)
        self._open[record.id] = record
        if record.candidate_id is not None and not self._allowed.pop(record.candidate_id, False):
            self.book.violate(
                Rule.CONSTRAINT, f"{named} was begun, and the rules did not let it pass before."
            )
        if self._asked is None:
            return
        wish = _wish(record.action, record.arguments)
        if not self._asked[wish]:
            self.book.violate(
                Rule.INTENT,
                f"{named} with {shown(record.arguments)} was asked for by no model call of its "
                "turn.",
            )
        self._asked[wish] -= 1

    def _receipt(self, record: Receipt) -> None:
        intent = self._open.pop(record.intent_id, None)
        if intent is None:
            told = "has its receipt already" if record.intent_id in self._known else "is not there"
            if not self._cut:
                self.book.violate(
                    Rule.RECEIPT,
                    f"A receipt tells of intent {shown(record.intent_id)}, which {told}.",
                )
            return
        if intent.candidate_id is None and record.cycle != intent.cycle:
            self.book.violate(
                Rule.RECEIPT,
                f"The receipt of {shown(intent.id)} is of cycle {record.cycle}, its intent of "
                f"cycle {intent.cycle}.",
            )
        if intent.candidate_id is not None:  # under guard: what it returns is perceived
            self._ended[intent.id] = record

    def _percept(self, record: Percept) -> None:
        if record.state_patch and record.kind not in HOOKED:
            self.book.violate(
                Rule.PERCEPT,
                f"Percept {shown(record.id)}, a {record.kind}, changed the perceptual state by "
                f"{shown(record.state_patch)}; messages and impasses may not.",
            )
        if record.kind is PerceptKind.TOOL_RETURN:
            receipt = self._ended.pop(record.caused_by or "", None)
            if receipt is None:
                self.book.violate(
                    Rule.PERCEPT,
                    f"Percept {shown(record.id)} is the return of {shown(record.caused_by)}, which "
                    "has not ended, or was told before.",
                )
            elif not same(record.content, receipt.content) or receipt.status in _UNKNOWN:
                self.book.violate(
                    Rule.RECEIPT,
                    f"The receipt of {shown(receipt.intent_id)} says {receipt.status}, "
                    f"{shown(receipt.content)}; what is perceived of it {shown(record.content)}.",
                )


def _allows(verdict: object) -> bool:
    return isinstance(verdict, dict) and cast("dict[str, object]", verdict).get("allowed") is True


def _wish(action: str, arguments: object) -> str:
    """A call as it can be compared, however it is written."""
    given = parsed_arguments(arguments) if isinstance(arguments, str) else arguments
    return f"{action} {json.dumps(given, sort_keys=True)}"
