"""Rules about what the model gave: no answer, a false situation, bad scores, a bad choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from coag.schema import DecidedBy, Evaluation, GoalStatus, Phase

from ._causes import Cause, Diagnosis, Evidence
from ._progress import DETOUR, remaining, too_early
from ._scene import Call, Scene
from ._story import Story
from ._words import ended, quoted, short

Rule = Callable[[Scene, Story], Diagnosis | None]
"""From a scene and the run around it to a failure and its cause, or None."""

_CALL = 240
"""Characters of a candidate that are told."""
_TOLERANCE = 0.01
"""Scores that differ by less are the same."""


def unusable_answer(phase: Phase | None) -> Rule:
    """The model gave a phase nothing that could be used, or could not be asked."""

    def rule(scene: Scene, story: Story) -> Diagnosis | None:
        calls = [(seq, call) for seq, call in scene.calls if call.phase is phase]
        if not calls or calls[-1][1].error is None:
            return None
        return _unusable(scene, phase, calls)

    return rule


def _unusable(scene: Scene, phase: Phase | None, calls: Sequence[tuple[int, Call]]) -> Diagnosis:
    named = str(phase) if phase else "The turn"
    return Diagnosis(
        cycle=scene.cycle,
        failure=f"{named.capitalize()} got no answer that could be used.",
        cause=Cause.UNUSABLE_ANSWER,
        reason=ended(f"{len(calls)} model call(s) failed, the last one: {calls[-1][1].error}"),
        evidence=tuple(
            Evidence(
                seq=seq,
                cycle=scene.cycle,
                phase=phase,
                text=ended(
                    f"Attempt {call.attempt}: {call.error}; the answer: {quoted(call.raw, 60)}"
                ),
            )
            for seq, call in calls
        ),
    )


def false_situation(scene: Scene, story: Story) -> Diagnosis | None:
    """Reasoning says what the state, the goal or the memory contradict."""
    reasoning = scene.reasoning
    if reasoning is None or scene.unanswered(Phase.REASONING):
        return None
    now = story.circumstances(scene, scene.state)
    for claim in story.domain.claims(reasoning.situation):
        if story.domain.holds(claim, now, remembered=False) is False:
            text = f"It says {quoted(claim.text)}, and what it was shown does not."
            return _faulty(scene, text)
    left = remaining(scene, story, now.recalled)
    if reasoning.goal_status is not GoalStatus.OPEN and left is not None and 0 < left < inf:
        text = f"It calls the goal {reasoning.goal_status}; {left:g} actions would reach it."
        return _faulty(scene, text)
    return None


def _faulty(scene: Scene, text: str) -> Diagnosis:
    situation = quoted(scene.reasoning.situation if scene.reasoning else "")
    return Diagnosis(
        cycle=scene.cycle,
        failure="The situation was misunderstood.",
        cause=Cause.FAULTY_REASONING,
        reason=text,
        evidence=(scene.at(Phase.REASONING, ended(f"The situation it gave: {situation}")),),
    )


def faulty_evaluation(scene: Scene, story: Story) -> Diagnosis | None:
    """The best score went to a candidate that is predicted to be worse than another one."""
    scored = _scored(scene)
    chosen = scene.selection.candidate_id if scene.selection else None
    if len(scored) < 2 or scene.unanswered(Phase.EVALUATION):
        return None
    top = max(scored, key=lambda one: (one.rank(), one.candidate_id == chosen))
    ways = {one.candidate_id: _way(one, scene, story) for one in scored}
    own, best = (
        ways[top.candidate_id],
        min((way for way in ways.values() if way is not None), default=None),
    )
    if own is None or best is None or own < best + DETOUR or top.candidate_id != chosen:
        return None
    if scene.proposal and top.candidate_id == scene.proposal.candidates[0].id:
        return None  # Proposal, too, put it first: it is the plan that is long, not a score
    better = next(one for one in scored if ways[one.candidate_id] == best)
    text = (
        f"{_named(top, scene)} got {top.score:g} and leaves {own:g} actions to the goal; "
        f"{_named(better, scene)} got {better.score:g} and leaves {best:g}."
    )
    return Diagnosis(
        cycle=scene.cycle,
        failure=f"{_named(top, scene)} was taken for the best.",
        cause=Cause.FAULTY_EVALUATION,
        reason="The scores contradict the predicted effects.",
        evidence=(scene.at(Phase.EVALUATION, text),),
    )


def bad_selection(scene: Scene, story: Story) -> Diagnosis | None:
    """The model chose a candidate whose score is not the best."""
    selection = scene.selection
    if selection is None or selection.decided_by is not DecidedBy.MODEL or selection.batch:
        return None
    scored = _scored(scene)
    chosen = next((one for one in scored if one.candidate_id == selection.candidate_id), None)
    best = max(scored, key=lambda one: one.score or 0.0, default=None)
    if chosen is None or best is None:
        return None
    if (chosen.score or 0.0) > (best.score or 0.0) - _TOLERANCE:
        return None
    text = (
        f"{_named(chosen, scene)} with {chosen.score:g} was chosen over {_named(best, scene)} "
        f"with {best.score:g}."
    )
    return Diagnosis(
        cycle=scene.cycle,
        failure=text,
        cause=Cause.BAD_SELECTION,
        reason="The choice departs from the scores that it was shown.",
        evidence=(
            scene.at(Phase.EVALUATION, f"The best score, {best.score:g}, is another one's."),
            scene.at(Phase.SELECTION, text),
        ),
    )


def early_answer(scene: Scene, story: Story) -> Diagnosis | None:
    """It answered although there was a way to go on, and nothing above explains it."""
    if not too_early(scene, story, story.recalled_claims(scene)):
        return None
    text = "It ended the turn with an answer; there was a way to go on."
    return Diagnosis(
        cycle=scene.cycle,
        failure=text,
        cause=Cause.INVALID_PROPOSAL,
        reason="No better action was proposed.",
        evidence=(scene.at(Phase.PROPOSAL, "The candidates hold nothing better."),),
    )


def _scored(scene: Scene) -> list[Evaluation]:
    judged = scene.evaluation.evaluations if scene.evaluation else ()
    return [one for one in judged if one.survived and one.score is not None]


def _way(judged: Evaluation, scene: Scene, story: Story) -> float | None:
    """Actions to the goal after a candidate; an answer leaves the goal where it is."""
    candidate = scene.candidate(judged.candidate_id)
    claims = story.recalled_claims(scene)
    if candidate is not None and candidate.action == "respond":
        left = remaining(scene, story, claims)
        return left if left in (None, 0, inf) else inf
    if judged.projection is None:
        return None
    return remaining(scene, story, claims, judged.projection)


def _named(judged: Evaluation, scene: Scene) -> str:
    candidate = scene.candidate(judged.candidate_id)
    if candidate is None:
        return judged.candidate_id
    return short(f"{candidate.action} {candidate.raw_arguments}", _CALL)
