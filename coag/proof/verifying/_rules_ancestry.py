"""From candidate to selection: what is selected was proposed, judged and allowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from coag.cycle import COMPLETED, IDEMPOTENCY_KEY
from coag.schema import (
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Phase,
    ProposalOutcome,
    SelectionOutcome,
    TurnEnd,
)
from coag.tracing import REDACTED

from ._book import Book, Taking, same_json, shown
from ._rules_story import Story, is_closing
from ._violation import Rule

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
