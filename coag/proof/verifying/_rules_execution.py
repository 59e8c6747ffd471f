"""What executions tell of what was begun in them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from coag.schema import (
    ActionsListed,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    Outcome,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
)

from ._book import Book, Taking, same, same_json, shown
from ._rules_effects import Effects, check_as_judged
from ._rules_story import Story
from ._violation import Rule

RESULT_KEPT = 4_000
"""Characters of a result that an execution keeps."""
_RETURNS = (PerceptKind.TOOL_RETURN, PerceptKind.UNKNOWN_OUTCOME)


class Executions:
    """An execution's outcome is what its intents and receipts say.

    It is told of a record before `Effects`, which forgets what was begun once it is told of.
    """

    def __init__(self, book: Book, story: Story, effects: Effects) -> None:
        self.book = book
        self.story = story
        self.effects = effects
        self._external: frozenset[str] = frozenset()

    @property
    def takes(self) -> Taking:
        """Executions, and which actions are external."""
        return {"outcome": self._outcome, "actions": self._actions}

    def end(self, *, finished: bool) -> None:
        """Nothing is left open here."""

    def _actions(self, record: ActionsListed) -> None:
        self._external = frozenset(spec.name for spec in record.specs)

    def _outcome(self, record: Outcome) -> None:
        if not isinstance(record, ExecutionOutcome):
            return
        executed = record.executed
        self._check_mirror(record, executed)
        if self.story.memory is not None and not self.story.shaken:
            self._check_chosen(executed)
            for done in executed:
                self._check_done(done, record)
            self._check_all_told(record, executed)
        self._check_answer(record, executed)

    def _check_mirror(self, record: ExecutionOutcome, done: tuple[Executed, ...]) -> None:
        """Where a batch was run, the single fields tell of its first one."""
        statuses = {one.status for one in done}
        overall = next(
            (s for s in (ExecutionStatus.FAILED, ExecutionStatus.DONE) if s in statuses),
            ExecutionStatus.REFUSED if done else ExecutionStatus.NONE,
        )
        if record.status is not overall:
            self.book.violate(
                Rule.EXECUTION,
                f"The execution's status is {record.status}, that of its actions {overall}.",
            )
        if done and (record.action, record.arguments, record.intent_id) != (
            done[0].action,
            done[0].arguments,
            done[0].intent_id,
        ):
            self.book.violate(
                Rule.EXECUTION,
                f"The execution tells of {shown(record.action)} ({shown(record.intent_id)}), the "
                f"first of its batch is {shown(done[0].action)} ({shown(done[0].intent_id)}).",
            )

    def _check_chosen(self, executed: tuple[Executed, ...]) -> None:
        memory = self.story.memory
        selection = memory.cognitive_state.selection if memory else None
        if selection is None:
            return
        chosen = iter(selection.chosen)
        ids = [str(one.candidate_id) for one in executed]
        if not all(one in chosen for one in ids):  # in the same order, where not all were begun
            self.book.violate(
                Rule.EXECUTION,
                f"Executed: {', '.join(ids)}; selected: {', '.join(selection.chosen) or 'none'}.",
            )

    def _check_done(self, done: Executed, record: ExecutionOutcome) -> None:
        begun = [
            one
            for one in self.effects.begun.intents.values()
            if one.candidate_id == done.candidate_id
        ]
        named = f"{done.action} ({done.candidate_id})"
        if done.status is ExecutionStatus.REFUSED:
            if begun or done.intent_id is not None:
                self.book.violate(
                    Rule.EXECUTION, f"{named} was refused, and yet has an intent: it was begun."
                )
            return
        check_as_judged(done, named, self.story, self.book, Rule.EXECUTION)
        if done.internal and done.action in self._external:
            self.book.violate(
                Rule.EXECUTION, f"{named} is told of as internal; it is an external action."
            )
        intent = self.effects.begun.intents.get(done.intent_id or "") or (
            begun[0] if begun else None
        )
        if not done.internal and (intent is None or intent.id != done.intent_id):
            self.book.violate(
                Rule.INTENT,
                f"{named} was run without an intent {shown(done.intent_id)} of its own.",
            )
        if intent is None:
            return
        if intent.internal is not done.internal:
            self.book.violate(
                Rule.EXECUTION,
                f"{named} is {_inner(done.internal)}, its intent {_inner(intent.internal)}.",
            )
        self._check_receipt(done, intent, record)

    def _check_receipt(self, done: Executed, intent: Intent, record: ExecutionOutcome) -> None:
        receipt = self.effects.begun.receipts.get(intent.id)
        returns = [
            one for one in record.queued if one.caused_by == intent.id and one.kind in _RETURNS
        ]
        told = returns[0] if returns else None
        unknown = told is not None and told.kind is PerceptKind.UNKNOWN_OUTCOME
        named = f"{intent.action} ({intent.id})"
        if not intent.internal and len(returns) != 1:
            self.book.violate(
                Rule.EXECUTION,
                f"{named} brought {len(returns)} returns; an external action brings one.",
            )
        if receipt is None:
            if not unknown or done.status is not ExecutionStatus.FAILED:
                self.book.violate(Rule.RECEIPT, f"{named} is {done.status} and has no receipt.")
            return
        ended = ExecutionStatus.DONE if receipt.status is ReceiptStatus.DONE else None
        if done.status is not (ended or ExecutionStatus.FAILED):
            self.book.violate(
                Rule.RECEIPT, f"{named} is {done.status}, by its receipt {receipt.status}."
            )
        open_end = receipt.status in (ReceiptStatus.UNKNOWN, ReceiptStatus.CANCELLED)
        if unknown is not open_end and (told is not None or open_end):
            self.book.violate(
                Rule.RECEIPT,
                f"The receipt of {named} says {receipt.status}, and what is perceived of it is "
                f"{'its return' if told else 'nothing'}.",
            )
        if not open_end:
            self._check_content(done, receipt, told, named)
        if told is not None:
            self._check_return(told, intent, receipt, named)

    def _check_content(
        self, done: Executed, receipt: Receipt, told: Percept | None, named: str
    ) -> None:
        if not same(done.result[:RESULT_KEPT], receipt.content[:RESULT_KEPT]):
            self.book.violate(
                Rule.RECEIPT,
                f"The receipt of {named} says {shown(receipt.content)}, its result "
                f"{shown(done.result)}.",
            )
        if told is not None and not same(told.content, receipt.content):
            self.book.violate(
                Rule.RECEIPT,
                f"The receipt of {named} says {shown(receipt.content)}, what is perceived of it "
                f"{shown(told.content)}.",
            )

    def _check_return(self, told: Percept, intent: Intent, receipt: Receipt, named: str) -> None:
        failed = receipt.status is not ReceiptStatus.DONE
        pairs: Mapping[str, tuple[object, object]] = {
            "source": (told.source, intent.action),
            "arguments": (told.arguments, intent.arguments),
            "is_error": (told.is_error, failed),
        }
        for name, (perceived, true) in pairs.items():
            if not same_json(perceived, true):
                self.book.violate(
                    Rule.EXECUTION,
                    f"The return of {named} has {name} {shown(perceived)} instead of "
                    f"{shown(true)}.",
                )

    def _check_all_told(self, record: ExecutionOutcome, executed: tuple[Executed, ...]) -> None:
        told = {one.candidate_id for one in executed}
        unknown = {
            one.caused_by for one in record.queued if one.kind is PerceptKind.UNKNOWN_OUTCOME
        }
        for intent in self.effects.begun.intents.values():
            if intent.candidate_id not in told and intent.id not in unknown:
                self.book.violate(
                    Rule.EXECUTION,
                    f"Intent {shown(intent.id)} ({intent.action}) was begun, and the execution "
                    "does not tell of it.",
                )
        for percept in record.queued:
            if percept.caused_by is None or percept.caused_by in self.effects.begun.intents:
                continue
            if not self.story.foreign:
                self.book.violate(
                    Rule.PERCEPT,
                    f"Percept {shown(percept.id)} is said to be caused by "
                    f"{shown(percept.caused_by)}, no intent of this cycle.",
                )

    def _check_answer(self, record: ExecutionOutcome, executed: tuple[Executed, ...]) -> None:
        if (record.response is None) is not (record.ended_by is None) and record.ended_by:
            self.book.violate(
                Rule.EXECUTION, f"{shown(record.ended_by)} ended the turn without an answer."
            )
        if record.response is None:
            return
        by = [one for one in executed if one.status is ExecutionStatus.DONE and one.internal]
        if record.ended_by is not None:  # version 1 did not name it at first
            by = [one for one in by if one.action == record.ended_by]
        if not any(_answers(one, record.response) for one in by):
            self.book.violate(
                Rule.EXECUTION,
                f"The answer {shown(record.response)} is not what {shown(record.ended_by)} gave.",
            )


def _inner(internal: bool) -> str:
    return "internal" if internal else "external"


def _answers(done: Executed, response: str) -> bool:
    if not same(done.result[:RESULT_KEPT], response[:RESULT_KEPT]):
        return False
    if done.action != "respond":
        return True
    given = done.arguments or {}
    whole = json.dumps(given, ensure_ascii=False)
    return same(response, str(given.get("text", ""))) or same(response, whole)
