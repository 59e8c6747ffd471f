"""Rules on actions: their ancestry, intents, receipts and results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from coag._util.secrets import REDACTED
from coag.context import CognitiveState
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
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TurnEnd,
    TurnStart,
)

from .findings import Checker, Findings, Rule, RuleFinding, same, same_json, shown
from .rules_turns import StateRules, check_same_cycle, is_closing

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


class CandidateRules(Checker):
    """What was selected goes back to a candidate that every constraint in force let pass."""

    def __init__(self, state: StateRules) -> None:
        self._state = state
        self._must_close = ""
        """Why the cycle cannot act, if it cannot."""
        self._closed: tuple[int | None, int] | None = None
        """Number of the record, and the cycle, where a cycle was closed without acting."""
        self._in_turn = False

    @property
    def _cognitive(self) -> CognitiveState:
        """The outcomes of the cycle so far; none while they are not known for sure."""
        memory = self._state.certain
        return CognitiveState() if memory is None else memory.cognitive_state

    def on_turn_start(self, record: TurnStart) -> None:
        """A turn begins."""
        self._in_turn, self._closed = True, None

    def on_turn_end(self, record: TurnEnd) -> Findings:
        """A turn whose cycle was closed without acting was interrupted."""
        if record.reason not in ("cancelled", "error"):
            yield from self._check_closed(f"its turn ended for {shown(record.reason)}")
        self._in_turn, self._closed = False, None

    def _check_closed(self, but: str) -> Findings:
        if self._closed is not None:
            (seq, cycle), self._closed = self._closed, None
            closed = f"Cycle {cycle} was closed without acting, as after an interruption"
            yield Rule.EXECUTION.says(f"{closed}, but {but}.", seq)

    def on_retrieval(self, record: RetrievalOutcome) -> Findings:
        """Another cycle in the turn was not interrupted."""
        self._must_close = ""
        memory = self._state.memory
        if self._closed is not None and memory and REDACTED in str(memory.to_json()):
            self._closed = None  # a resumed cycle that held a secret is closed in its turn
        yield from self._check_closed("another cycle follows in the same turn")

    def on_proposal(self, record: ProposalOutcome) -> Findings:
        """Ids are given once, and drafts are what Reasoning drafted."""
        ids = [candidate.id for candidate in record.candidates]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        if twice:
            yield Rule.CANDIDATE.says(f"Two candidates have the id {shown(twice[0])}.")
        if record.proposed_by == "nobody" and record.candidates:
            yield Rule.CANDIDATE.says(
                f"Nobody proposed, but there are candidates: {', '.join(ids)}."
            )
        memory = self._state.memory
        reasoning = memory.cognitive_state.reasoning if memory else None
        if record.proposed_by == "draft" and reasoning is not None:
            drafts = {draft.id: draft for draft in reasoning.drafts}
            for candidate in record.candidates:
                if drafts.get(candidate.id) != candidate:
                    named = f"Candidate {shown(candidate.id)} ({candidate.action})"
                    yield Rule.CANDIDATE.says(f"{named} is not what Reasoning drafted.")

    def on_evaluation(self, record: EvaluationOutcome) -> Findings:
        """Every candidate is judged, on what was proposed, by what is in force."""
        proposal, retrieval = self._cognitive.proposal, self._cognitive.retrieval
        if proposal is None:
            return
        if proposal.candidates and not record.evaluations:
            self._must_close = "no candidate was evaluated"
            return
        by_id = {one.id: one for one in proposal.candidates}
        ids = tuple(one.candidate_id for one in record.evaluations)
        if ids != tuple(one.id for one in proposal.candidates):
            names = (", ".join(some) or "none" for some in (by_id, ids))
            yield Rule.CANDIDATE.says(
                "The candidates {} were proposed, and {} evaluated.".format(*names)
            )
        for judged in record.evaluations:
            if judged.candidate_id in by_id:
                yield from _check_arguments(judged, by_id[judged.candidate_id])
            if retrieval is not None:
                yield from _check_verdicts(judged, retrieval.constraints)

    def on_selection(self, record: SelectionOutcome) -> Findings:
        """A survivor is selected, by whom it says."""
        evaluation = self._cognitive.evaluation
        if evaluation is None:
            return
        survivors = [one for one in evaluation.evaluations if one.survived]
        if (record.candidate_id is None) is not (record.decided_by is None):
            chosen, by = shown(record.candidate_id), shown(record.decided_by)
            yield Rule.SELECTION.says(f"{chosen} was selected, and decided by {by}.")
        if record.candidate_id is None:
            if survivors:
                self._must_close = f"{survivors[0].candidate_id} survived and was not selected"
            return
        alive = [one.candidate_id for one in survivors]
        dead = [one for one in record.chosen if one not in alive]
        if dead:
            gone = f"{', '.join(dead)} was selected, which did not survive"
            yield Rule.SELECTION.says(f"{gone}; these did: {', '.join(alive) or 'none'}.")
        elif problem := self._decision_problem(record, survivors):
            yield Rule.SELECTION.says(f"{shown(record.candidate_id)} was selected {problem}.")

    def _decision_problem(self, record: SelectionOutcome, survivors: Sequence[Evaluation]) -> str:
        alive = tuple(one.candidate_id for one in survivors)
        if record.decided_by is DecidedBy.ONLY_SURVIVOR and len(alive) != 1:
            return f"as the only survivor, but {len(alive)} survived: {', '.join(alive)}"
        if record.decided_by is not DecidedBy.ONLY_SURVIVOR and len(alive) == 1:
            return f"by {record.decided_by}, but it is the only survivor"
        if record.batch and (record.batch != alive or not self._is_batch(alive)):
            return f"as the batch {', '.join(record.batch)}, but it is none of what survived"
        if record.decided_by is DecidedBy.RANK:
            best = max(survivors, key=Evaluation.rank)
            if best.candidate_id != record.candidate_id:
                return f"by rank, but {best.candidate_id} has the best score, {best.rank():.2f}"
        return ""

    def _is_batch(self, ids: Sequence[str]) -> bool:
        proposal = self._cognitive.proposal
        candidates = proposal.candidates if proposal else ()
        batches = {one.batch for one in candidates if one.id in ids}
        return len(batches) == 1 and None not in batches

    def on_execution(self, record: ExecutionOutcome) -> Findings:
        """What cannot act does not, and what could is remembered if it did not."""
        if self._state.certain is None:
            return
        closing = is_closing(record)
        if self._must_close and not closing:
            why = f"In cycle {record.cycle} {self._must_close}, as only after an interruption"
            done = f"its execution is {record.status} ({shown(record.result)})"
            yield Rule.SELECTION.says(f"{why}; but {done}.")
        if record.status is ExecutionStatus.NONE and closing and self._in_turn:
            self._closed = (self.log.seq, record.cycle)


def _check_arguments(judged: Evaluation, candidate: Candidate) -> Findings:
    """A candidate is evaluated on the arguments that it was proposed with."""
    if judged.arguments is None:
        if judged.survived:
            yield Rule.CANDIDATE.says(
                f"Candidate {shown(candidate.id)} survived without valid arguments."
            )
        return
    try:
        written = json.loads(candidate.raw_arguments or "{}")
    except (ValueError, RecursionError):
        written = None
    completed = _completed(judged)
    evaluated = {name: value for name, value in judged.arguments.items() if name not in completed}
    if isinstance(written, dict):
        mine = cast("dict[str, Any]", written)
        written = {name: value for name, value in mine.items() if name not in completed}
    if REDACTED not in candidate.raw_arguments and not same_json(written, evaluated):
        raw, given = shown(candidate.raw_arguments), shown(judged.arguments)
        named = f"Candidate {shown(candidate.id)} was proposed with the arguments {raw}"
        yield Rule.CANDIDATE.says(f"{named} and evaluated with {given}.")


def _completed(evaluation: Evaluation) -> set[str]:
    names = {IDEMPOTENCY_KEY}
    reasons = (one.reason for one in evaluation.verdicts if one.constraint == "arguments")
    if (named := next(reasons, "")).startswith(COMPLETED):
        with suppress(ValueError, TypeError):
            names |= set(json.loads(f"[{named.removeprefix(COMPLETED)}]"))
    return names


def _check_verdicts(judged: Evaluation, pinned: Sequence[str]) -> Findings:
    """Every constraint in force has judged, up to the first that forbids, and no other one."""
    named = f"Candidate {shown(judged.candidate_id)}"
    names = [verdict.constraint for verdict in judged.verdicts]
    for name in names:
        if name not in BUILT_IN and name not in pinned:
            known = f"not in force in this cycle ({', '.join(pinned) or 'none is'})"
            yield Rule.CONSTRAINT.says(f"{named} was judged by {shown(name)}, which is {known}.")
    judges = [name for name in names if name in pinned and name not in BUILT_IN]
    wanted = [name for name in pinned if name not in BUILT_IN]
    if judged.survived and judges != wanted:
        missing = [name for name in wanted if name not in judges] or judges
        lacking = f"{', '.join(missing)}, in force in this cycle"
        yield Rule.CONSTRAINT.says(f"{named} survived, but {lacking}, did not judge it.")
    elif any(not verdict.allowed for verdict in judged.verdicts[:-1]):
        forbade = judged.rejected_by.constraint if judged.rejected_by else ""
        last = f"was still judged by {shown(names[-1])} after {shown(forbade)} had forbidden it"
        yield Rule.CONSTRAINT.says(f"{named} {last}.")


# ---- Intents and receipts: nothing acts but what was selected, once ----


_RESULT = 4_000
"""Characters of a result that an execution keeps."""
_RETURNS = (PerceptKind.TOOL_RETURN, PerceptKind.UNKNOWN_OUTCOME)


class EffectRules(Checker):
    """Nothing acts but what was selected, once, and executions say what came of it."""

    def __init__(self, state: StateRules) -> None:
        self._state = state
        self._intents: dict[str, Intent] = {}
        """What was begun in the Execution at work, by id."""
        self._receipts: dict[str, Receipt] = {}
        """How that ended."""
        self._known: set[str] = set()
        self._specs: dict[str, ActionSpec] = {}

    def end(self, *, finished: bool) -> Findings:
        """What was begun and is in no outcome may have had its effect."""
        for intent in self._intents.values():
            text = f"Intent {shown(intent.id)} ({intent.action}) is the last that is known: whether"
            rule = Rule.EXECUTION if finished else None
            yield RuleFinding(rule, f"{text} it had its effect, is not.")

    def on_snapshot(self, record: Snapshot) -> None:
        """A cycle that a loaded state replaces is not continued."""
        if record.reason != "cycle":
            self._intents, self._receipts = {}, {}

    def on_actions(self, record: ActionsListed) -> None:
        """These actions are external."""
        self._specs = {spec.name: spec for spec in record.specs}

    def on_intent(self, record: Intent) -> Findings:
        """It is of a selected candidate, with the arguments that were judged, once."""
        if record.id in self._known:
            yield Rule.INTENT.says(f"There are two intents {shown(record.id)}.")
        self._known.add(record.id)
        self._intents[record.id] = record
        memory = self._state.certain
        if memory is None:
            return
        if memory.phase is not Phase.SELECTION or record.cycle != memory.cycle:
            named = f"Intent {shown(record.id)} of cycle {record.cycle}"
            after = f"comes after {memory.phase} of cycle {memory.cycle}"
            yield Rule.INTENT.says(f"{named} {after}; actions run in Execution only.")
            return
        named = f"Intent {shown(record.id)} ({record.action})"
        selection = memory.cognitive_state.selection
        if selection is not None and record.candidate_id not in selection.chosen:
            yield Rule.INTENT.says(
                f"{named} is of candidate {shown(record.candidate_id)}, which was not selected."
            )
        elif selection is not None:
            yield from _check_as_judged(record, named, memory.cognitive_state, Rule.INTENT)
        yield from self._check_settled(record, named)
        for one in self._intents.values():
            if one.candidate_id == record.candidate_id and one.id != record.id:
                twice = f"by {shown(one.id)} and by {shown(record.id)}"
                yield Rule.INTENT.says(
                    f"Candidate {shown(record.candidate_id)} was run twice: {twice}."
                )
                return

    def _check_settled(self, record: Intent, named: str) -> Findings:
        memory, spec = self._state.memory, self._specs.get(record.action)
        if memory is None or spec is None or spec.read_only or spec.idempotent:
            return
        mine = identity(record.action, record.arguments)
        for one in memory.unsettled:
            if one.action == record.action and identity(one.action, one.arguments) == mine:
                yield Rule.INTENT.says(
                    f"{named} repeats {shown(one.intent_id)}, whose outcome was not known."
                )

    def on_receipt(self, record: Receipt) -> Findings:
        """It ends an intent of its cycle, once."""
        intent = self._intents.get(record.intent_id)
        if intent is None:
            yield Rule.RECEIPT.says(
                f"A receipt is of {shown(record.intent_id)}, which is not running."
            )
            return
        if record.intent_id in self._receipts:
            yield Rule.RECEIPT.says(f"Intent {shown(record.intent_id)} has a second receipt.")
        yield from check_same_cycle(record, intent)
        self._receipts[record.intent_id] = record

    def on_retrieval(self, record: RetrievalOutcome) -> Findings:
        """An execution has all that was begun in it; see `on_execution`."""
        first = next(iter(self._intents.values()), None)
        if first is not None and not self._state.uncertain:
            text = f"No execution has intent {shown(first.id)} of cycle {first.cycle}."
            yield Rule.EXECUTION.says(text)
        self._intents, self._receipts = {}, {}

    def on_percept(self, record: Percept) -> Findings:
        """What was caused was caused by an intent of this run."""
        known = record.caused_by is None or record.caused_by in self._known or self._state.foreign
        if known or record.kind is PerceptKind.SETTLED:  # settled: of an earlier run, perhaps
            return
        if self._state.certain is not None:
            by = f"is said to be caused by {shown(record.caused_by)}"
            yield Rule.PERCEPT.says(f"Percept {shown(record.id)} {by}, no intent of this run.")

    def on_execution(self, record: ExecutionOutcome) -> Findings:
        """Compares an execution with its intents, receipts and percepts."""
        yield from _check_mirror(record)
        memory = self._state.certain
        if memory is not None:
            cognitive = memory.cognitive_state
            yield from _check_chosen(record.executed, cognitive.selection)
            for done in record.executed:
                yield from self._check_done(done, record, cognitive)
            yield from self._check_complete(record)
        yield from _check_answer(record)
        self._intents, self._receipts = {}, {}

    def _check_done(
        self, done: Executed, record: ExecutionOutcome, cognitive: CognitiveState
    ) -> Findings:
        intents = self._intents
        begun = [one for one in intents.values() if one.candidate_id == done.candidate_id]
        named = f"{done.action} ({done.candidate_id})"
        if done.status is ExecutionStatus.REFUSED:
            if begun or done.intent_id is not None:
                yield Rule.EXECUTION.says(
                    f"{named} was refused, and yet has an intent: it was begun."
                )
            return
        yield from _check_as_judged(done, named, cognitive, Rule.EXECUTION)
        if done.internal and done.action in self._specs:
            yield Rule.EXECUTION.says(f"{named} is recorded as internal; it is an external action.")
        intent = intents.get(done.intent_id or "") or next(iter(begun), None)
        if not done.internal and (intent is None or intent.id != done.intent_id):
            yield Rule.INTENT.says(
                f"{named} was run without an intent {shown(done.intent_id)} of its own."
            )
        if intent is None:
            return
        if intent.internal is not done.internal:
            words = ["internal" if one.internal else "external" for one in (done, intent)]
            yield Rule.EXECUTION.says(f"{named} is {words[0]}, its intent {words[1]}.")
        yield from self._check_receipt(done, intent, record)

    def _check_receipt(self, done: Executed, intent: Intent, record: ExecutionOutcome) -> Findings:
        receipt = self._receipts.get(intent.id)
        returns = [
            one for one in record.queued if one.caused_by == intent.id and one.kind in _RETURNS
        ]
        returned = next(iter(returns), None)
        unknown = returned is not None and returned.kind is PerceptKind.UNKNOWN_OUTCOME
        named = f"{intent.action} ({intent.id})"
        if not intent.internal and len(returns) != 1:
            yield Rule.EXECUTION.says(
                f"{named} brought {len(returns)} returns; an external action brings one."
            )
        if receipt is None:
            if not unknown or done.status is not ExecutionStatus.FAILED:
                yield Rule.RECEIPT.says(f"{named} is {done.status} and has no receipt.")
            return
        succeeded = receipt.status is ReceiptStatus.DONE
        if done.status is not (ExecutionStatus.DONE if succeeded else ExecutionStatus.FAILED):
            yield Rule.RECEIPT.says(f"{named} is {done.status}, by its receipt {receipt.status}.")
        open_end = receipt.status in (ReceiptStatus.UNKNOWN, ReceiptStatus.CANCELLED)
        if unknown is not open_end and (returned is not None or open_end):
            what = "its return" if returned else "nothing"
            says = f"The receipt of {named} says {receipt.status}"
            yield Rule.RECEIPT.says(f"{says}, and what is perceived of it is {what}.")
        if not open_end:
            yield from _check_content(done, receipt, returned, named)
        if returned is not None:
            yield from _check_return(returned, intent, succeeded, named)

    def _check_complete(self, record: ExecutionOutcome) -> Findings:
        executed = {one.candidate_id for one in record.executed}
        unknown = {
            one.caused_by for one in record.queued if one.kind is PerceptKind.UNKNOWN_OUTCOME
        }
        for intent in self._intents.values():
            if intent.candidate_id not in executed and intent.id not in unknown:
                named = f"Intent {shown(intent.id)} ({intent.action})"
                yield Rule.EXECUTION.says(f"{named} was begun, and is not in the execution.")
        for percept in record.queued:
            known = percept.caused_by is None or percept.caused_by in self._intents
            if not known and not self._state.foreign:
                by = f"is said to be caused by {shown(percept.caused_by)}"
                yield Rule.PERCEPT.says(
                    f"Percept {shown(percept.id)} {by}, no intent of this cycle."
                )


# ---- What of that needs no more than the records ----


def _check_as_judged(
    done: Intent | Executed, named: str, cognitive: CognitiveState, rule: Rule
) -> Findings:
    if cognitive.proposal is None or cognitive.evaluation is None:
        return
    for candidate in cognitive.proposal.candidates:
        if candidate.id == done.candidate_id and candidate.action != done.action:
            yield rule.says(f"{named} was proposed as {shown(candidate.action)}.")
    for judged in cognitive.evaluation.evaluations:
        if judged.candidate_id == done.candidate_id and not same_json(
            judged.arguments, done.arguments
        ):
            given, judged_with = shown(done.arguments), shown(judged.arguments)
            yield rule.says(f"{named} was executed with {given}, and judged with {judged_with}.")


def _check_mirror(record: ExecutionOutcome) -> Findings:
    """Where a batch was run, the single fields are those of its first action."""
    done = record.executed
    right = record.model_copy(update={"status": ExecutionStatus.NONE})
    right = ExecutionOutcome.of(done, cycle=record.cycle, at=record.at) if done else right
    for name in ("status", "action", "arguments", "intent_id"):
        own, its = getattr(record, name), getattr(right, name)
        if own != its:
            says = f"The execution's {name} is {shown(own)}, that of its actions {shown(its)}."
            yield Rule.EXECUTION.says(says)


def _check_chosen(executed: Sequence[Executed], selection: SelectionOutcome | None) -> Findings:
    if selection is None:
        return
    chosen = iter(selection.chosen)
    ids = [str(one.candidate_id) for one in executed]
    if not all(one in chosen for one in ids):  # in the same order, where not all were begun
        yield Rule.EXECUTION.says(
            f"Executed: {', '.join(ids)}; selected: {', '.join(selection.chosen) or 'none'}."
        )


def _check_content(
    done: Executed, receipt: Receipt, returned: Percept | None, named: str
) -> Findings:
    says = f"The receipt of {named} says {shown(receipt.content)}"
    if not same(done.result[:_RESULT], receipt.content[:_RESULT]):
        yield Rule.RECEIPT.says(f"{says}, its result {shown(done.result)}.")
    if returned is not None and not same(returned.content, receipt.content):
        yield Rule.RECEIPT.says(f"{says}, what is perceived of it {shown(returned.content)}.")


def _check_return(returned: Percept, intent: Intent, succeeded: bool, named: str) -> Findings:
    pairs: Mapping[str, tuple[object, object]] = {
        "source": (returned.source, intent.action),
        "arguments": (returned.arguments, intent.arguments),
        "is_error": (returned.is_error, not succeeded),
    }
    for name, (perceived, true) in pairs.items():
        if not same_json(perceived, true):
            yield Rule.EXECUTION.says(
                f"The return of {named} has {name} {shown(perceived)} instead of {shown(true)}."
            )


def _check_answer(record: ExecutionOutcome) -> Findings:
    if record.response is None:
        if record.ended_by and not record.suspended:
            yield Rule.EXECUTION.says(f"{shown(record.ended_by)} ended the turn without an answer.")
        return
    by = [one for one in record.executed if one.status is ExecutionStatus.DONE and one.internal]
    if record.ended_by is not None:  # version 1 did not name it at first
        by = [one for one in by if one.action == record.ended_by]
    if not any(_answers(one, record.response) for one in by):
        yield Rule.EXECUTION.says(
            f"The answer {shown(record.response)} is not what {shown(record.ended_by)} gave."
        )


def _answers(done: Executed, response: str) -> bool:
    if not same(done.result[:_RESULT], response[:_RESULT]):
        return False
    if done.action != "respond":
        return True
    arguments = done.arguments or {}
    as_json = json.dumps(arguments, ensure_ascii=False)
    return same(response, str(arguments.get("text", ""))) or same(response, as_json)
