"""How a prompt tells what earlier phases of the same cycle have come to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    Phase,
    PromptMessage,
    Trust,
    cut_to_tokens,
    numbered,
)

from ._allotment import Part
from ._budgets import Budgets
from ._sections import escape_delimiters
from ._working_memory import WorkingMemory

ANSWER_TEXT = 500
"""Characters of each text of an earlier answer that a growing prompt keeps."""
ANSWER_TOKENS = 800
"""Tokens of an earlier answer that a growing prompt keeps, unless a budget says otherwise."""
_FOR_THE_TRACE = frozenset({"record", "at", "usage", "cycle", "phase", "id", "proposed_by"})
"""Fields of outcomes that say nothing to a model."""


def earlier_answer(phase: Phase, memory: WorkingMemory, budgets: Budgets) -> PromptMessage:
    """What the model answered in an earlier phase of this cycle, from the committed outcome.

    In short: without what is empty, what the trace alone needs, and what later sections show;
    with its longer texts cut.
    """
    outcome = getattr(memory.cognitive_state, phase.value)
    told: dict[str, Any] = {}
    if isinstance(outcome, EvaluationOutcome):
        told = {"evaluations": _judgements(outcome)}
    elif outcome is not None:
        told = outcome.model_dump(mode="json", exclude_none=True)
    text = json.dumps(_in_short(told), ensure_ascii=False)
    text = cut_to_tokens(text, budgets.cognition or ANSWER_TOKENS)
    return PromptMessage(role="assistant", content=escape_delimiters(text, "\\u003c"))


def _judgements(outcome: EvaluationOutcome) -> list[dict[str, Any]]:
    """What was thought of the survivors; the rules, and what they foresee, decide by themselves."""
    return [
        {"candidate": number, "score": judged.score, "reason": judged.reason}
        for number, judged in enumerate(numbered(outcome.evaluations), 1)
        if judged.score is not None
    ]


def _in_short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= ANSWER_TEXT else f"{value[:ANSWER_TEXT]}…"
    if isinstance(value, list):
        return [_in_short(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {
            key: _in_short(item)
            for key, item in items
            if key not in _FOR_THE_TRACE and item not in ("", [], {})
        }
    return value


def reasoning_part(memory: WorkingMemory, budgets: Budgets) -> Part | None:
    """How the agent understood its situation in this cycle."""
    reasoning = memory.cognitive_state.reasoning
    if reasoning is None or not reasoning.situation:
        return None
    risks = "".join(f"\n- risk: {risk}" for risk in reasoning.risks)
    return Part(
        name="cognition",
        title="Your reasoning",
        source="reasoning",
        trust=Trust.UNTRUSTED,
        entries=(f"{reasoning.situation}{risks}\nGoal: {reasoning.goal_status.value}.",),
        keeps="alike",
        cap=budgets.cognition,
    )


def candidates_part(
    memory: WorkingMemory,
    evaluations: Sequence[Evaluation],
    predictions: Mapping[str, str],
    budgets: Budgets,
) -> Part | None:
    """The candidates that survived the hard checks, with predictions and scores.

    They stand by rank, with the numbers that `numbered` gives them: before there are scores, these
    are one order.
    """
    proposal = memory.cognitive_state.proposal
    survivors = numbered(evaluations)
    if proposal is None or not survivors:
        return None
    by_id = {candidate.id: candidate for candidate in proposal.candidates}
    ranked = sorted(enumerate(survivors, 1), key=lambda each: -each[1].rank())
    lines = (
        _line(number, by_id[judged.candidate_id], judged, predictions.get(judged.candidate_id))
        for number, judged in ranked
    )
    return Part(
        name="cognition",
        title="Candidates",
        source="candidates",
        trust=Trust.UNTRUSTED,
        entries=tuple(lines),
        keeps="alike",
        cap=budgets.cognition,
    )


def _line(number: int, candidate: Candidate, judged: Evaluation, prediction: str | None) -> str:
    line = f"{number}. {candidate.action} {candidate.raw_arguments}"
    if candidate.reason:
        line += f" - {candidate.reason}"
    if prediction:
        line += f"\n   predicted state: {prediction}"
    if judged.gain is not None:
        line += f"\n   brings the goal nearer by {judged.gain:+.2f}"
    if judged.score is not None:
        line += f"\n   score {judged.score:.2f}: {judged.reason}"
    return line
