"""When a rejected candidate is a failure: not beside one that was done well in its place."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from coag.schema import Evaluation, ExecutionStatus, Phase

from ._causes import Cause, Diagnosis
from ._domain import Claim
from ._progress import chosen_projection, remaining, wasted
from ._scene import Scene
from ._story import Story
from ._words import ended, short

FORM_CHECKS = ("action_exists", "arguments")
"""Checks of Evaluation that a candidate dies of whose form is wrong."""
_CALL = 240
"""Characters of a candidate that are told."""


def invalid_proposal(scene: Scene, story: Story) -> Diagnosis | None:
    """Nothing was proposed, or what cannot or must not be done, and the run suffered from it."""
    proposal = scene.proposal
    if proposal is None or scene.unanswered(Phase.PROPOSAL):
        return None
    if not proposal.candidates and proposal.proposed_by in ("model", "native"):
        return _invalid(scene, "Nothing was proposed.", "The answer holds no candidate.")
    harm = harm_of_rejection(scene, story, story.recalled_claims(scene))
    for judged in rejected(scene) if harm else ():
        died, candidate = judged.died_of, scene.candidate(judged.candidate_id)
        if died is None or candidate is None:
            continue
        ruled = died.constraint not in FORM_CHECKS
        why = "The rule was in force." if ruled else "No such call can be made."
        asked = short(f"{candidate.action} {candidate.raw_arguments}", _CALL)
        failure = ended(f"{asked} was rejected by {died.constraint}: {short(died.reason, _CALL)}")
        return _invalid(scene, failure, f"{why} {harm}")
    return None


def rejected(scene: Scene) -> Sequence[Evaluation]:
    """What Evaluation found out about the candidates that it rejected."""
    judged = scene.evaluation.evaluations if scene.evaluation else ()
    return [one for one in judged if not one.survived]


def harm_of_rejection(scene: Scene, story: Story, claims: Sequence[Claim]) -> str:
    """In what a cycle suffered from its rejections, as a sentence; empty if it did not.

    Args:
        scene: The cycle.
        story: The run before it.
        claims: What is taken for true, besides the state.
    """
    if not rejected(scene) or _failed(scene):
        return ""
    evaluation = scene.evaluation
    if evaluation is not None and not any(one.survived for one in evaluation.evaluations):
        return "Nothing survived."
    if story.recurs(scene):
        return "The cycle before was the same: the run comes no further."
    if wasted(scene, story, claims) or _idle(scene, story, claims):
        return "What was done in its place brought the goal no nearer."
    return ""


def _failed(scene: Scene) -> bool:
    """Whether what was executed failed; then that is the failure of the cycle."""
    sound = (ExecutionStatus.DONE, ExecutionStatus.NONE)
    return any(done.status not in sound for done in scene.executed) or any(
        returned.percept.is_error for returned in scene.returns
    )


def _idle(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether it did what is predicted to change nothing, although there was a way to go."""
    left = remaining(scene, story, claims) if chosen_projection(scene) == scene.state else None
    return left is not None and 0 < left < inf


def _invalid(scene: Scene, failure: str, why: str) -> Diagnosis:
    return Diagnosis(
        cycle=scene.cycle,
        failure=failure,
        cause=Cause.INVALID_PROPOSAL,
        reason=why,
        evidence=(
            scene.at(Phase.PROPOSAL, "Here it was proposed."),
            scene.at(Phase.EVALUATION, failure),
        ),
    )
