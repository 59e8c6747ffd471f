"""Rules on actions: their ancestry, intents, receipts and results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from coag.cycle import COMPLETED, IDEMPOTENCY_KEY, identity
from coag.schema import (
    ActionsListed,
    ActionSpec,
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    Receipt,
    ReceiptStatus,
    SelectionOutcome,
    TurnEnd,
)
from coag.tracing import REDACTED

from .book import Book, Rule, Taking, same, same_json, shown
from .story import Story, is_closing

# ---- Intents and receipts: nothing acts but what was selected, once ----


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


# ---- From candidate to selection: what is selected was proposed, judged and allowed ----


BUILT_IN = frozenset(
    {
        "action_exists",
        "arguments",
        "state_is_current",
        "memory_scope",
        "progress",
        "projection",
        "unsettled",
        "arguments_unchanged",
        "constraints_in_force",
        "parallel",
        "minimum_score",
    }
)
"""The checks of the cycle itself, which give verdicts beside the constraints."""
_UNSCORED = 0.5
"""Rank of a survivor without a score, as Selection has it."""
_BROKEN_OFF = ("cancelled", "error")
"""Why a turn ends whose cycle was closed without acting."""


class Ancestry:
    """What was selected goes back to a candidate that every constraint in force let pass."""

    def __init__(self, book: Book, story: Story) -> None:
        self.book = book
        self.story = story
        self._must_close = ""
        self._closed: tuple[int | None, int] | None = None
        self._in_turn = False
        self._on: Mapping[Phase, Callable[[Any], None]] = {
            Phase.RETRIEVAL: self._retrieval,
            Phase.PROPOSAL: self._proposal,
            Phase.EVALUATION: self._evaluation,
            Phase.SELECTION: self._selection,
            Phase.EXECUTION: self._execution,
        }

    @property
    def takes(self) -> Taking:
        """Outcomes, and where turns begin and end."""
        return {
            "outcome": self._outcome,
            "turn_start": self._turn_start,
            "turn_end": self._turn_end,
        }

    def end(self, *, finished: bool) -> None:
        """A cycle that was closed last may have been left by a crash."""

    def _outcome(self, record: Outcome) -> None:
        check = self._on.get(record.phase)
        if check is not None:
            check(record)

    def _turn_start(self, record: Any) -> None:
        del record
        self._in_turn, self._closed = True, None

    def _turn_end(self, record: TurnEnd) -> None:
        if record.reason not in _BROKEN_OFF:
            self._check_closed(f"its turn ended for {shown(record.reason)}")
        self._in_turn, self._closed = False, None

    def _check_closed(self, but: str) -> None:
        if self._closed is None:
            return
        (seq, cycle), self._closed = self._closed, None
        here, self.book.seq = self.book.seq, seq
        self.book.violate(
            Rule.EXECUTION,
            f"Cycle {cycle} was closed without acting, as where a turn breaks off, but {but}.",
        )
        self.book.seq = here

    # ---- phase by phase ----

    def _retrieval(self, record: Outcome) -> None:
        del record
        self._must_close = ""
        memory = self.story.memory
        if self._closed is not None and memory and REDACTED in str(memory.to_json()):
            self._closed = None  # a resumed cycle that held a secret is closed in its turn
        self._check_closed("another cycle follows in the same turn")

    def _proposal(self, record: ProposalOutcome) -> None:
        ids = [candidate.id for candidate in record.candidates]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        if twice:
            self.book.violate(Rule.CANDIDATE, f"Two candidates have the id {shown(twice[0])}.")
        if record.proposed_by == "nobody" and record.candidates:
            self.book.violate(
                Rule.CANDIDATE, f"Nobody proposed, but there are candidates: {', '.join(ids)}."
            )
        memory = self.story.memory
        reasoning = memory.cognitive_state.reasoning if memory else None
        if record.proposed_by == "draft" and reasoning is not None:
            drafts = {draft.id: draft for draft in reasoning.drafts}
            for candidate in record.candidates:
                if drafts.get(candidate.id) != candidate:
                    self.book.violate(
                        Rule.CANDIDATE,
                        f"Candidate {shown(candidate.id)} ({candidate.action}) is not what "
                        "Reasoning drafted.",
                    )

    def _evaluation(self, record: EvaluationOutcome) -> None:
        candidates, pinned = self._candidates(), self._pinned()
        if candidates is None:
            return
        if candidates and not record.evaluations:
            self._must_close = "no candidate was evaluated"
            return
        ids = tuple(one.candidate_id for one in record.evaluations)
        if ids != tuple(one.id for one in candidates):
            self.book.violate(
                Rule.CANDIDATE,
                f"The candidates {', '.join(one.id for one in candidates) or 'none'} were "
                f"proposed, and {', '.join(ids) or 'none'} evaluated.",
            )
        by_id = {one.id: one for one in candidates}
        for judged in record.evaluations:
            if judged.candidate_id in by_id:
                self._check_arguments(judged, by_id[judged.candidate_id])
            if pinned is not None:
                self._check_verdicts(judged, pinned)

    def _check_arguments(self, judged: Evaluation, candidate: Candidate) -> None:
        if judged.arguments is None:
            if judged.survived:
                self.book.violate(
                    Rule.CANDIDATE,
                    f"Candidate {shown(candidate.id)} survived without valid arguments.",
                )
            return
        try:
            written = json.loads(candidate.raw_arguments or "{}")
        except (ValueError, RecursionError):
            written = None
        named = _completed(judged)
        given = {k: v for k, v in judged.arguments.items() if k not in named}
        if isinstance(written, dict):
            mine = cast("dict[str, Any]", written)
            written = {name: value for name, value in mine.items() if name not in named}
        if REDACTED not in candidate.raw_arguments and not same_json(written, given):
            self.book.violate(
                Rule.CANDIDATE,
                f"Candidate {shown(candidate.id)} was proposed with the arguments "
                f"{shown(candidate.raw_arguments)} and evaluated with {shown(judged.arguments)}.",
            )

    def _check_verdicts(self, judged: Evaluation, pinned: Sequence[str]) -> None:
        names = [verdict.constraint for verdict in judged.verdicts]
        for name in names:
            if name not in BUILT_IN and name not in pinned:
                self.book.violate(
                    Rule.CONSTRAINT,
                    f"Candidate {shown(judged.candidate_id)} was judged by {shown(name)}, which "
                    f"is not in force in this cycle ({', '.join(pinned) or 'none is'}).",
                )
        asked = [name for name in names if name in pinned and name not in BUILT_IN]
        wanted = [name for name in pinned if name not in BUILT_IN]
        if judged.survived and asked != wanted:
            missing = [name for name in wanted if name not in asked] or asked
            self.book.violate(
                Rule.CONSTRAINT,
                f"Candidate {shown(judged.candidate_id)} survived, but {', '.join(missing)}, in "
                "force in this cycle, did not judge it as it should.",
            )
        elif any(not verdict.allowed for verdict in judged.verdicts[:-1]):
            self.book.violate(
                Rule.CONSTRAINT,
                f"Candidate {shown(judged.candidate_id)} was judged on by {shown(names[-1])} after "
                f"{shown(judged.died_of.constraint if judged.died_of else '')} had forbidden it.",
            )

    def _selection(self, record: SelectionOutcome) -> None:
        survivors = self._survivors()
        if survivors is None:
            return
        if (record.candidate_id is None) is not (record.decided_by is None):
            self.book.violate(
                Rule.SELECTION,
                f"{shown(record.candidate_id)} was selected, and decided by "
                f"{shown(record.decided_by)}.",
            )
        if record.candidate_id is None:
            if survivors:
                self._must_close = f"{survivors[0].candidate_id} survived and was not selected"
            return
        alive = [one.candidate_id for one in survivors]
        dead = [one for one in record.chosen if one not in alive]
        if dead:
            self.book.violate(
                Rule.SELECTION,
                f"{', '.join(dead)} was selected, which did not survive; these did: "
                f"{', '.join(alive) or 'none'}.",
            )
            return
        self._check_decision(record, survivors)

    def _check_decision(self, record: SelectionOutcome, survivors: Sequence[Evaluation]) -> None:
        alive = tuple(one.candidate_id for one in survivors)
        problem = ""
        if record.decided_by is DecidedBy.ONLY_SURVIVOR and len(alive) != 1:
            problem = f"as the only survivor, but {len(alive)} survived: {', '.join(alive)}"
        elif record.decided_by is not DecidedBy.ONLY_SURVIVOR and len(alive) == 1:
            problem = f"by {record.decided_by}, but it is the only survivor"
        elif record.batch and (record.batch != alive or not self._is_batch(alive)):
            problem = f"as the batch {', '.join(record.batch)}, but it is none of what survived"
        elif record.decided_by is DecidedBy.RANK:
            best = max(survivors, key=_rank)
            if best.candidate_id != record.candidate_id:
                problem = f"by rank, but {best.candidate_id} has the best score, {_rank(best):.2f}"
        if problem:
            self.book.violate(
                Rule.SELECTION, f"{shown(record.candidate_id)} was selected {problem}."
            )

    def _is_batch(self, ids: Sequence[str]) -> bool:
        batches = {one.batch for one in self._candidates() or () if one.id in ids}
        return len(batches) == 1 and None not in batches

    def _execution(self, record: ExecutionOutcome) -> None:
        memory = self.story.memory
        if memory is None or self.story.shaken:
            return
        closing = is_closing(record)
        if self._must_close and not closing:
            self.book.violate(
                Rule.SELECTION,
                f"In cycle {record.cycle} {self._must_close}, which only happens where a cycle "
                f"breaks off; but its execution is {record.status} ({shown(record.result)}).",
            )
        if record.status is ExecutionStatus.NONE and closing and self._in_turn:
            self._closed = (self.book.seq, record.cycle)

    # ---- what the cycle has so far ----

    def _candidates(self) -> Sequence[Candidate] | None:
        memory = self.story.memory
        proposal = memory.cognitive_state.proposal if memory else None
        return proposal.candidates if proposal and not self.story.shaken else None

    def _survivors(self) -> list[Evaluation] | None:
        memory = self.story.memory
        evaluation = memory.cognitive_state.evaluation if memory else None
        if evaluation is None or self.story.shaken:
            return None
        return [one for one in evaluation.evaluations if one.survived]

    def _pinned(self) -> Sequence[str] | None:
        memory = self.story.memory
        retrieval = memory.cognitive_state.retrieval if memory else None
        return retrieval.constraints if retrieval else None


def _completed(evaluation: Evaluation) -> set[str]:
    """The names of arguments that are not as they were written: the tool completed them."""
    told = (one.reason for one in evaluation.verdicts if one.constraint == "arguments")
    named = next(told, "")
    if not named.startswith(COMPLETED):
        return {IDEMPOTENCY_KEY}
    try:
        return {IDEMPOTENCY_KEY, *json.loads(f"[{named.removeprefix(COMPLETED)}]")}
    except (ValueError, TypeError):
        return {IDEMPOTENCY_KEY}


def _rank(evaluation: Evaluation) -> float:
    return evaluation.rank(_UNSCORED)


# ---- What executions tell of what was begun in them ----


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
