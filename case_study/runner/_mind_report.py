"""What an agent thinks and believes, in the words of the world's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from case_study.robot import VacuumState
from coag.context import CognitiveState, WorkingMemory
from coag.schema import PHASES, Candidate, Evaluation, ExecutionOutcome, Phase
from vacuum_world.showing import Belief, Option, Report

_TEXT, _NOTE, _ABOUT, _OPTIONS = 200, 200, 600, 12
_ARGUMENTS: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_ALL = tuple(phase.value.capitalize() for phase in PHASES)


def report_of(memory: WorkingMemory) -> Report | None:
    """What is reported of a vacuum robot's working memory; None before its first phase."""
    if memory.phase is None:
        return None
    return Report(
        phase=memory.phase.value.capitalize(),
        phases=_ALL,
        about=_cut(_about(memory.phase, memory.cognitive_state), _ABOUT),
        options=_options(memory.cognitive_state),
        cycle=memory.cycle,
        belief=_belief(VacuumState.model_validate(memory.perceptual_state)),
    )


def _belief(state: VacuumState) -> Belief:
    known = state.position is not None
    return Belief(
        position=state.position,
        battery=state.battery if known else None,
        dirty=state.dirty,
        clean=tuple(cell for cell in state.clean if cell not in state.dirty),
        obstacles=state.obstacles,
    )


def _about(phase: Phase, mind: CognitiveState) -> str:
    """One phase in a sentence or two; long ones are cut by who shows them."""
    match phase:
        case Phase.RETRIEVAL if mind.retrieval:
            return _counted(len(mind.retrieval.records), "record recalled", "records recalled")
        case Phase.REASONING if mind.reasoning:
            return mind.reasoning.situation
        case Phase.PROPOSAL if mind.proposal:
            return _counted(len(mind.proposal.candidates), "candidate", "candidates")
        case Phase.EVALUATION if mind.evaluation:
            judged = mind.evaluation.evaluations
            survivors = sum(each.survived for each in judged)
            return f"{survivors} of {_counted(len(judged), 'candidate', 'candidates')} survive"
        case Phase.SELECTION if mind.selection:
            if mind.selection.impasse:
                return "An impasse: no candidate survived."
            return mind.selection.reason or f"Chosen by {mind.selection.decided_by}."
        case Phase.EXECUTION if mind.execution:
            return _done(mind.execution)
        case _:
            return ""


def _done(execution: ExecutionOutcome) -> str:
    """What was run and how it ended; of a tool's answer the first line."""
    deeds = [f"{one.action}: {one.status}." for one in execution.executed] or ["Nothing was run."]
    first = execution.result.strip().partition("\n")[0]
    return " ".join([*deeds, first]).strip()


def _options(mind: CognitiveState) -> tuple[Option, ...]:
    candidates = mind.proposal.candidates if mind.proposal else ()
    judged = {each.candidate_id: each for each in _evaluations(mind)}
    chosen = mind.selection.chosen if mind.selection else ()
    return tuple(
        _option(each, judged.get(each.id), each.id in chosen) for each in candidates[:_OPTIONS]
    )


def _evaluations(mind: CognitiveState) -> Sequence[Evaluation]:
    return mind.evaluation.evaluations if mind.evaluation else ()


def _option(candidate: Candidate, judged: Evaluation | None, chosen: bool) -> Option:
    died_of = judged.died_of if judged else None
    state: Literal["open", "chosen", "rejected"] = "chosen" if chosen else "open"
    note = candidate.reason
    if died_of is not None:
        state = "rejected"
        note = ": ".join(part for part in (died_of.constraint, died_of.reason) if part)
    elif judged is not None:
        score = None if judged.score is None else f"{judged.score:.2f}"
        note = ", ".join(part for part in (score, judged.reason or candidate.reason) if part)
    return Option(text=_cut(_deed(candidate), _TEXT), state=state, note=_cut(note, _NOTE))


def _deed(candidate: Candidate) -> str:
    """An action with its arguments, as short as they can be told."""
    raw = candidate.raw_arguments
    arguments = candidate.arguments
    if arguments is None:
        try:
            arguments = _ARGUMENTS.validate_json(raw)
        except ValidationError:
            return f"{candidate.action or '(no action)'} {raw}".strip()
    return " ".join([candidate.action or "(no action)", *map(str, arguments.values())])


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
