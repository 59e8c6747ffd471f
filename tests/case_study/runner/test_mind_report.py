"""Working memory in the words of the world's page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from case_study.runner import report_of
from coag.context import CognitiveState, WorkingMemory
from coag.schema import (
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    SelectionOutcome,
    Verdict,
)

NOW: dict[str, Any] = {"cycle": 4, "at": datetime(2026, 1, 1, tzinfo=UTC)}
CANDIDATES = (
    Candidate(id="a", action="move_agent", raw_arguments='{"direction": "east"}', reason="dirt"),
    Candidate(id="b", action="clean_current_cell", reason="dirty here"),
    Candidate(id="c", action="move_agent", raw_arguments="to the east"),
)
EVALUATIONS = (
    Evaluation(candidate_id="a", verdicts=(Verdict.allow(),), score=0.8),
    Evaluation(
        candidate_id="b",
        verdicts=(Verdict(allowed=False, reason="8 left", constraint="keep_charge"),),
    ),
)
SEEN: dict[str, Any] = {
    "position": [1, 0],
    "battery": 8,
    "grid": [5, 5],
    "dirty": [[1, 1]],
    "clean": [[1, 0]],
}


def memory(phase: Phase | None, mind: CognitiveState, **state: Any) -> WorkingMemory:
    return WorkingMemory(
        activity="main", cycle=4, phase=phase, perceptual_state=state, cognitive_state=mind
    )


def test_nothing_is_told_before_the_first_phase() -> None:
    assert report_of(memory(None, CognitiveState(), **SEEN)) is None


def test_candidates_are_told_with_what_they_died_of() -> None:
    mind = CognitiveState(
        proposal=ProposalOutcome(**NOW, candidates=CANDIDATES),
        evaluation=EvaluationOutcome(**NOW, evaluations=EVALUATIONS),
        selection=SelectionOutcome(
            **NOW, candidate_id="a", decided_by=DecidedBy.RANK, reason="best"
        ),
    )
    report = report_of(memory(Phase.SELECTION, mind, **SEEN))
    assert report is not None
    assert (report.phase, report.cycle, report.about) == ("Selection", 4, "best")
    assert [(one.text, one.state, one.note) for one in report.options] == [
        ("move_agent east", "chosen", "0.80, dirt"),
        ("clean_current_cell", "rejected", "keep_charge: 8 left"),
        ("move_agent to the east", "open", ""),
    ]
    evaluated = report_of(memory(Phase.EVALUATION, mind, **SEEN))
    assert evaluated is not None
    assert evaluated.about == "1 of 2 candidates survive"


def test_belief_is_the_perceptual_state_and_nothing_where_nothing_was_sensed() -> None:
    mind = CognitiveState(reasoning=ReasoningOutcome(**NOW, situation="x" * 700))
    report = report_of(memory(Phase.REASONING, mind, **SEEN))
    assert report is not None
    assert report.belief is not None
    assert (report.belief.position, report.belief.battery) == ((1, 0), 8)
    assert (report.belief.dirty, report.belief.clean) == (((1, 1),), ((1, 0),))
    assert len(report.about) == 600
    blank = report_of(memory(Phase.REASONING, mind))
    assert blank is not None
    assert blank.belief is not None
    assert (blank.belief.position, blank.belief.battery) == (None, None)


def test_an_impasse_and_what_was_run_are_told_in_a_sentence() -> None:
    impasse = CognitiveState(selection=SelectionOutcome(**NOW))
    told = report_of(memory(Phase.SELECTION, impasse))
    assert told is not None
    assert told.about == "An impasse: no candidate survived."
    ran = ExecutionOutcome(
        **NOW,
        status=ExecutionStatus.DONE,
        action="clean_current_cell",
        result='{"ok": true}\nSTATE {}',
    )
    done = report_of(memory(Phase.EXECUTION, CognitiveState(execution=ran)))
    assert done is not None
    assert done.about == 'clean_current_cell: done. {"ok": true}'
    none = ExecutionOutcome(**NOW, status=ExecutionStatus.NONE)
    idle = report_of(memory(Phase.EXECUTION, CognitiveState(execution=none)))
    assert idle is not None
    assert idle.about == "Nothing was run."
