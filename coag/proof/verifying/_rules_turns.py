"""Turns, and the model calls within them."""

from __future__ import annotations

from typing import Any

from coag.schema import (
    RESUMED,
    ExecutionOutcome,
    ModelCall,
    Note,
    Outcome,
    Phase,
    TokenUsage,
    TurnEnd,
    TurnStart,
    phase_after,
)

from ._book import Book, Taking, same, shown
from ._rules_story import Story, is_closing
from ._violation import Rule

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
