"""Intents and receipts: nothing acts but what was selected, once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coag.cycle import identity
from coag.schema import (
    ActionsListed,
    ActionSpec,
    Executed,
    Intent,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Receipt,
)

from ._book import Book, Taking, same_json, shown
from ._rules_story import Story
from ._violation import Rule


@dataclass(slots=True)
class Begun:
    """What was begun in the Execution that is going on."""

    intents: dict[str, Intent] = field(default_factory=dict[str, Intent])
    receipts: dict[str, Receipt] = field(default_factory=dict[str, Receipt])


def check_as_judged(
    done: Intent | Executed, named: str, story: Story, book: Book, rule: Rule
) -> None:
    """What is run must be what was proposed, with the arguments that were judged.

    Args:
        done: What is run, as its intent or its execution tells.
        named: What it is called in a sentence.
        story: The cycle so far.
        book: Takes the violations.
        rule: The rule that they break.
    """
    cognitive = story.memory.cognitive_state if story.memory else None
    if not (cognitive and cognitive.proposal and cognitive.evaluation):
        return
    for candidate in cognitive.proposal.candidates:
        if candidate.id == done.candidate_id and candidate.action != done.action:
            book.violate(rule, f"{named} was proposed as {shown(candidate.action)}.")
    for judged in cognitive.evaluation.evaluations:
        if judged.candidate_id == done.candidate_id and not same_json(
            judged.arguments, done.arguments
        ):
            book.violate(
                rule,
                f"{named} was executed with {shown(done.arguments)}, and judged with "
                f"{shown(judged.arguments)}.",
            )


class Effects:
    """Nothing acts but what was selected, once, between intent and receipt."""

    def __init__(self, book: Book, story: Story) -> None:
        self.book = book
        self.story = story
        self.begun = Begun()
        self._known: set[str] = set()
        self._specs: dict[str, ActionSpec] = {}

    @property
    def takes(self) -> Taking:
        """What brackets actions, and what is told of them."""
        return {
            "intent": self._intent,
            "receipt": self._receipt,
            "outcome": self._outcome,
            "percept": self._percept,
            "snapshot": self._snapshot,
            "actions": self._actions,
        }

    def end(self, *, finished: bool) -> None:
        """What was begun and never told of may have had its effect."""
        for intent in self.begun.intents.values():
            text = (
                f"Intent {shown(intent.id)} ({intent.action}) is the last that is known: whether "
                "it had its effect, is not."
            )
            if finished:
                self.book.violate(Rule.EXECUTION, text)
            else:
                self.book.remark(text)

    def _snapshot(self, record: Any) -> None:
        if record.reason != "cycle":  # the cycle that they belonged to is not gone on with
            self.begun = Begun()

    def _actions(self, record: ActionsListed) -> None:
        self._specs = {spec.name: spec for spec in record.specs}

    # ---- intents ----

    def _intent(self, record: Intent) -> None:
        if record.id in self._known:
            self.book.violate(Rule.INTENT, f"There are two intents {shown(record.id)}.")
        self._known.add(record.id)
        self.begun.intents[record.id] = record
        memory = self.story.memory
        if memory is None or self.story.shaken:
            return
        if memory.phase is not Phase.SELECTION or record.cycle != memory.cycle:
            self.book.violate(
                Rule.INTENT,
                f"Intent {shown(record.id)} of cycle {record.cycle} stands after {memory.phase} of "
                f"cycle {memory.cycle}; actions run in Execution only.",
            )
            return
        self._check_selected(record)
        self._check_settled(record)
        again = [
            one.id
            for one in self.begun.intents.values()
            if one.candidate_id == record.candidate_id and one.id != record.id
        ]
        if again:
            self.book.violate(
                Rule.INTENT,
                f"Candidate {shown(record.candidate_id)} was run twice: by {shown(again[0])} and "
                f"by {shown(record.id)}.",
            )

    def _check_selected(self, record: Intent) -> None:
        memory = self.story.memory
        cognitive = memory.cognitive_state if memory else None
        if cognitive is None or cognitive.selection is None:
            return
        named = f"Intent {shown(record.id)} ({record.action})"
        if record.candidate_id not in cognitive.selection.chosen:
            self.book.violate(
                Rule.INTENT,
                f"{named} is of candidate {shown(record.candidate_id)}, which was not selected.",
            )
            return
        check_as_judged(record, named, self.story, self.book, Rule.INTENT)

    def _check_settled(self, record: Intent) -> None:
        """What may have happened already was not begun again before that was known."""
        memory, spec = self.story.memory, self._specs.get(record.action)
        if memory is None or spec is None or spec.read_only or spec.idempotent:
            return
        mine = identity(record.action, record.arguments)
        for one in memory.unsettled:
            if one.action == record.action and identity(one.action, one.arguments) == mine:
                self.book.violate(
                    Rule.INTENT,
                    f"Intent {shown(record.id)} ({record.action}) repeats "
                    f"{shown(one.intent_id)}, whose outcome was not known.",
                )

    # ---- receipts ----

    def _receipt(self, record: Receipt) -> None:
        intent = self.begun.intents.get(record.intent_id)
        if intent is None:
            self.book.violate(
                Rule.RECEIPT, f"A receipt tells of {shown(record.intent_id)}, which is not running."
            )
            return
        if record.intent_id in self.begun.receipts:
            self.book.violate(
                Rule.RECEIPT, f"Intent {shown(record.intent_id)} has a second receipt."
            )
        if record.cycle != intent.cycle:
            self.book.violate(
                Rule.RECEIPT,
                f"The receipt of {shown(intent.id)} is of cycle {record.cycle}, its intent of "
                f"cycle {intent.cycle}.",
            )
        self.begun.receipts[record.intent_id] = record

    def _outcome(self, record: Outcome) -> None:
        """An execution tells of all that was begun in it; see `Executions`."""
        if record.phase is Phase.RETRIEVAL and self.begun.intents and not self.story.shaken:
            first = next(iter(self.begun.intents.values()))
            self.book.violate(
                Rule.EXECUTION,
                f"No execution tells of intent {shown(first.id)} of cycle {first.cycle}.",
            )
        if record.phase in (Phase.RETRIEVAL, Phase.EXECUTION):
            self.begun = Begun()

    def _percept(self, record: Percept) -> None:
        if record.caused_by is None or record.caused_by in self._known or self.story.foreign:
            return
        if record.kind is PerceptKind.SETTLED:  # of an earlier run, perhaps; see `Story`
            return
        if self.story.memory is not None and not self.story.shaken:
            self.book.violate(
                Rule.PERCEPT,
                f"Percept {shown(record.id)} is said to be caused by {shown(record.caused_by)}, "
                "no intent of this run.",
            )
