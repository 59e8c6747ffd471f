"""What the outcome of a phase tells on its span: attributes and decision events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    Outcome,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
)

from . import _names as names
from ._content import Content
from ._values import Attributes, name, present

_MADE_UP = "action_exists"
"""The check that rejects actions that do not exist; what they are called is a model's text."""
_MOST_EVENTS = 100
"""Rejected candidates of a phase that are told of; all are counted."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a phase."""

    name: str
    attributes: Attributes = field(default_factory=Attributes)


@dataclass(slots=True)
class Decisions:
    """Reads outcomes; knows what was proposed in the cycle."""

    content: Content | None
    """None where no words are to be sent."""
    candidates: Mapping[str, Candidate] = field(default_factory=dict[str, Candidate])

    def attributes(self, outcome: Outcome) -> Attributes:
        """What stands on the phase's span itself."""
        match outcome:
            case RetrievalOutcome():
                return {
                    names.RECALLED: len(outcome.records),
                    names.CONSTRAINTS: [name(one) for one in outcome.constraints[:_MOST_EVENTS]],
                }
            case ReasoningOutcome():
                told: Attributes = {names.GOAL_STATUS: outcome.goal_status.value}
                return told | self._words(outcome.situation)
            case ProposalOutcome():
                self.candidates = {one.id: one for one in outcome.candidates}
                return {
                    names.CANDIDATES: len(outcome.candidates),
                    names.PROPOSED_BY: outcome.proposed_by,
                }
            case EvaluationOutcome():
                survivors = sum(one.survived for one in outcome.evaluations)
                count = len(outcome.evaluations)
                return {names.CANDIDATES: count, names.SURVIVORS: survivors}
            case SelectionOutcome():
                decided = outcome.decided_by and outcome.decided_by.value
                return present({names.DECIDED_BY: decided})
            case ExecutionOutcome():
                return {names.ACTION_STATUS: outcome.status.value}

    def events(self, outcome: Outcome) -> Iterator[Event]:
        """The decisions that an outcome is."""
        match outcome:
            case EvaluationOutcome():
                rejected = [one for one in outcome.evaluations if not one.survived]
                yield from (self._rejected(one) for one in rejected[:_MOST_EVENTS])
            case SelectionOutcome(impasse=True):
                yield Event(names.IMPASSE_EVENT, self._words(outcome.reason))
            case SelectionOutcome():
                yield from (self._selected(outcome, one) for one in outcome.chosen[:_MOST_EVENTS])
            case _:
                return

    def _rejected(self, evaluation: Evaluation) -> Event:
        verdict = evaluation.died_of
        constraint = verdict.constraint if verdict else ""
        known = None if constraint == _MADE_UP and self.content is None else self._action_of
        told: Attributes = {
            names.CANDIDATE_ID: name(evaluation.candidate_id),
            names.CONSTRAINT: name(constraint),
        }
        told |= {} if known is None else known(evaluation.candidate_id)
        return Event(names.REJECTED_EVENT, told | self._words(verdict.reason if verdict else ""))

    def _selected(self, outcome: SelectionOutcome, chosen: str) -> Event:
        told = present(
            {
                names.CANDIDATE_ID: name(chosen),
                names.DECIDED_BY: outcome.decided_by and outcome.decided_by.value,
            }
        )
        told |= self._action_of(chosen)
        return Event(names.SELECTED_EVENT, told | self._words(outcome.reason))

    def _action_of(self, candidate_id: str) -> Attributes:
        candidate = self.candidates.get(candidate_id)
        return {} if candidate is None else {names.ACTION: name(candidate.action)}

    def _words(self, text: str) -> Attributes:
        """The words themselves, where they are to be sent."""
        if self.content is None or not text:
            return {}
        return {names.CONTENT: self.content.text(text)}
