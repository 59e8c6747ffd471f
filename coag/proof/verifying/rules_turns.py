"""Rules on turns, cycles, model calls and ids."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, cast

from coag.schema import (
    RESUMED,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Receipt,
    ReceiptStatus,
    Snapshot,
    TokenUsage,
    TurnEnd,
    TurnStart,
    parsed_arguments,
    phase_after,
)

from .book import Book, Rule, Taking, same, shown
from .story import HOOKED, Story, is_closing

# ---- Turns, and the model calls within them ----


_ASKING = frozenset(
    {Phase.RETRIEVAL, Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION, Phase.SELECTION}
)
"""The phases that may ask a model; Retrieval, with which a cycle begins, for a summary."""
_NOTHING = TokenUsage()


class Turns:
    """Turns begin and end in order, cycles are within them, and their answers are theirs."""

    def __init__(self, book: Book, story: Story) -> None:
        self.book = book
        self.story = story
        self._turn: int | None = None
        """The last turn that began; None if not known."""
        self._open: bool | None = None if story.foreign else False
        """Whether it goes on; None if not known."""
        self._bare = False
        self._response: str | None = None

    @property
    def takes(self) -> Taking:
        """All that is in turns."""
        return {
            "turn_start": self._start,
            "turn_end": self._end,
            "outcome": self._outcome,
            "snapshot": self._snapshot,
            "percept": self._told,
            "model_call": self._told,
            "intent": self._told,
        }

    def end(self, *, finished: bool) -> None:
        """A finished run has finished its turns."""
        if finished and self._open and not self._bare:
            self.book.violate(Rule.TURN, f"The run has ended in the middle of turn {self._turn}.")

    def _told(self, record: Any) -> None:
        del record
        self._bare = False

    def _snapshot(self, record: Any) -> None:
        if record.reason == "loaded":
            self._turn = None  # turns are counted on from the loaded state
        if record.reason == "forked" and self._turn is None:
            self._open = None  # it goes on with a turn that began in its parent
        self._bare = self._bare and record.reason != "cycle"

    def _start(self, record: TurnStart) -> None:
        again = self._bare and record.turn == self._turn  # a crash took all but the turn's start
        if self._open and not again:
            self.book.violate(
                Rule.TURN, f"Turn {record.turn} begins while turn {self._turn} goes on."
            )
        follows = self._turn is None or record.turn > self._turn
        if not follows and not again:
            self.book.violate(Rule.TURN, f"Turn {record.turn} follows turn {self._turn}.")
        elif self._turn is not None and record.turn > self._turn + 1:
            self.book.remark(
                f"Turn {record.turn} follows turn {self._turn}: what is between could not be "
                "recorded, or was never begun."
            )
        self._check_cycle(record)
        self._turn, self._open, self._bare, self._response = record.turn, True, True, None

    def _end(self, record: TurnEnd) -> None:
        if self._open is False:
            self.book.violate(Rule.TURN, f"Turn {record.turn} ends, and none goes on.")
        elif self._turn is not None and record.turn != self._turn:
            self.book.violate(
                Rule.TURN, f"Turn {record.turn} ends while turn {self._turn} goes on."
            )
        self._check_cycle(record)
        self._check_response(record, known=self._open is True)
        self._turn, self._open, self._bare = record.turn, False, False

    def _check_cycle(self, record: TurnStart | TurnEnd) -> None:
        memory = self.story.memory
        if memory is not None and not self.story.shaken and record.cycle != memory.cycle:
            self.book.violate(
                Rule.TURN, f"Turn {record.turn} names cycle {record.cycle} in cycle {memory.cycle}."
            )

    def _check_response(self, record: TurnEnd, *, known: bool) -> None:
        if not known or self.story.shaken:
            return
        if record.reason == "respond" and self._response is None:
            self.book.violate(
                Rule.TURN, f"Turn {record.turn} ends with an answer, but no action answered."
            )
        if self._response is None or record.reason in ("cancelled", "error"):
            return
        if not same(record.response, self._response):
            self.book.violate(
                Rule.TURN,
                f"Turn {record.turn} ends with {shown(record.response)}; the agent's answer was "
                f"{shown(self._response)}.",
            )

    def _outcome(self, record: Outcome) -> None:
        self._bare = False
        if self._open is False and not self._may_close(record) and not self.story.shaken:
            self.book.violate(
                Rule.TURN,
                f"{record.phase} of cycle {record.cycle} is outside of any turn.",
            )
        if isinstance(record, ExecutionOutcome) and record.response is not None:
            self._response = record.response

    def _may_close(self, record: Outcome) -> bool:
        """Outside of turns only the rest of a cycle that a loaded state was in is closed."""
        return (
            self.story.foreign
            and record.phase is not Phase.RETRIEVAL
            and (not isinstance(record, ExecutionOutcome) or is_closing(record))
        )


class Calls:
    """Models are asked by the phase that goes on, and what that uses is in its outcome."""

    def __init__(self, book: Book, story: Story, version: int) -> None:
        self.book = book
        self.story = story
        self._tells_of_resuming = version > 1
        self._calls: list[ModelCall] = []
        """Those since the last outcome."""
        self._lost: tuple[int | None, str] | None = None

    @property
    def takes(self) -> Taking:
        """Model calls, and what sums them up."""
        return {
            "model_call": self._call,
            "outcome": self._outcome,
            "snapshot": self._snapshot,
            "note": self._note,
        }

    def end(self, *, finished: bool) -> None:
        """Calls of an outcome that was not reached are nobody's."""

    def _snapshot(self, record: Any) -> None:
        del record
        self._calls = []

    def _note(self, record: Note) -> None:
        if record.about == RESUMED:
            self._calls = []  # of a phase that was broken off, and is begun again

    def _call(self, record: ModelCall) -> None:
        memory = self.story.memory
        if memory is None or self.story.shaken:
            return
        self._calls.append(record)
        phase = phase_after(memory.phase)
        cycle = memory.cycle + (phase is Phase.RETRIEVAL)
        if phase not in _ASKING or record.phase is not phase or record.cycle != cycle:
            self.book.violate(
                Rule.MODEL_CALL,
                f"Call {shown(record.id)} is of {record.phase} in cycle {record.cycle}; it stands "
                f"in {phase} of cycle {cycle}.",
            )

    def _outcome(self, record: Outcome) -> None:
        calls, self._calls = self._calls, []
        if record.phase is Phase.RETRIEVAL:
            self._lost = None
        if self.story.memory is None or self.story.shaken:
            return
        used = _sum(calls) if calls else _NOTHING
        if record.usage != used and not self._asked_again(record, calls):
            text = f"{record.phase} of cycle {record.cycle} tells of {_told(record.usage)}; its "
            text += f"model calls used {_told(used)}."
            if (
                record.usage.nothing
            ):  # so it is where the phase broke off, which the cycle's end shows
                self._lost = self._lost or (self.book.seq, text)
            else:
                self.book.violate(Rule.USAGE, text)
        if isinstance(record, ExecutionOutcome) and self._lost is not None:
            (seq, text), self._lost = self._lost, None
            if not is_closing(record):
                here, self.book.seq = self.book.seq, seq
                self.book.violate(Rule.USAGE, text)
                self.book.seq = here

    def _asked_again(self, record: Outcome, calls: list[ModelCall]) -> bool:
        """Whether a crash broke the phase off, so that its first calls are in no outcome.

        Traces of version 1 do not tell that a run was resumed.
        """
        if self._tells_of_resuming:
            return False
        for number, call in enumerate(calls[1:], start=1):
            if call.attempt == 1 and _sum(calls[number:]) == record.usage:
                self.book.remark(
                    f"{number} model calls of {record.phase} in cycle {record.cycle} are in no "
                    "outcome: the phase was broken off and begun again, or they were added."
                )
                return True
        return False


def _sum(calls: list[ModelCall]) -> TokenUsage:
    return sum((call.usage for call in calls), _NOTHING)


def _told(usage: TokenUsage) -> str:
    cost = f", cost {usage.cost:g}" if usage.cost else ""
    return (
        f"{usage.calls} calls, {usage.prompt_tokens} + {usage.completion_tokens} tokens "
        f"({usage.cached_tokens} cached){cost}"
    )


# ---- Ids count up: what a snapshot says of them fits what was numbered before it ----


_CALL = re.compile(r"call-(\d{6,12})")


class Ids:
    """Counts of ids never go back, and are not behind the model calls that were numbered."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._counts: dict[str, int] = {}

    @property
    def takes(self) -> Taking:
        """Snapshots, and model calls, which nobody outside of the run numbers."""
        return {"snapshot": self._snapshot, "model_call": self._call}

    def end(self, *, finished: bool) -> None:
        """Nothing is left open."""

    def _call(self, record: ModelCall) -> None:
        if found := _CALL.fullmatch(record.id):
            self._counts["call"] = max(int(found[1]), self._counts.get("call", 0))

    def _snapshot(self, record: Snapshot) -> None:
        for kind, known in self._counts.items() if record.ids else ():
            told = record.ids.get(kind, 0)
            if told < known:
                self.book.violate(
                    Rule.SNAPSHOT,
                    f"The snapshot says that {told} ids of {shown(kind)} had been given; there "
                    f"were {known} before it.",
                )
        self._counts = {**self._counts, **record.ids}


# ---- What the trace of an agent can hold that calls its tools straight away ----


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
