"""Failures of memory, rules and the model's judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isinf
from typing import Any

from coag.schema import (
    DecidedBy,
    Evaluation,
    ExecutionStatus,
    GoalStatus,
    Phase,
    Record,
    RetrievalOutcome,
    record_id,
)

from .causes import Cause, Claim, Diagnosis, Evidence, ended, quoted, short
from .scene import Call, Scene, Story

# ---- Whether a decision brought the goal nearer, where the domain can tell ----


DETOUR = 2
"""Actions by which a way must be longer than another one before it counts as worse: one step
away instead of one nearer."""


def remaining(
    scene: Scene, story: Story, claims: Sequence[Claim], state: Mapping[str, Any] | None = None
) -> float | None:
    """Actions to the goal from the scene's state, or from another one, some claims believed."""
    at = scene.state if state is None else state
    return story.domain.remaining(story.circumstances(scene, at, claims))


def makes_sense_unruled(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether what it did brings the goal nearer for one who knows of no constraint."""
    projection = chosen_projection(scene)
    if projection is None:
        return False
    now = story.circumstances(scene, scene.state, claims)
    before = story.domain.remaining(replace(now, constraints=()))
    after = story.domain.remaining(replace(now, constraints=(), state=projection))
    return before is not None and after is not None and after < before


def chosen_projection(scene: Scene) -> Mapping[str, Any] | None:
    """What the selected candidate was predicted to lead to."""
    selection = scene.selection
    judged = scene.judged(selection.candidate_id) if selection else None
    return judged.projection if judged else None


def answered(scene: Scene) -> bool:
    """Whether the scene ended its turn with an answer."""
    return scene.execution is not None and scene.execution.response is not None


def too_early(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether it answered although there was a way to go on."""
    left = remaining(scene, story, claims) if answered(scene) else None
    return left is not None and 0 < left < inf


def wasted(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether what it did brought the goal no nearer, these claims taken for true."""
    if answered(scene):
        return too_early(scene, story, claims)
    return no_nearer(scene, story, claims)


def misled(
    scene: Scene,
    story: Story,
    claims: Sequence[Claim],
    wrong: Sequence[Claim],
    *,
    gave_up: bool,
) -> bool:
    """Whether what it did makes sense only for one who believes the wrong claims.

    Args:
        scene: The cycle.
        story: The run.
        claims: Everything that was recalled.
        wrong: Those of them that are suspected.
        gave_up: Only count that it gave up, not that it took another way.
    """
    true = [claim for claim in claims if claim not in wrong]
    if answered(scene):
        believed = remaining(scene, story, claims)
        ended = believed is not None and (isinf(believed) or believed == 0)
        return ended and too_early(scene, story, true)
    if gave_up:
        return False
    return no_nearer(scene, story, true) and not no_nearer(scene, story, claims)


def no_nearer(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether the action is predicted to bring the goal no nearer."""
    projection = chosen_projection(scene)
    if projection is None or projection == scene.state:
        return False
    before = remaining(scene, story, claims)
    if before is None or isinf(before):
        return False
    if before == 0:
        return True
    after = remaining(scene, story, claims, projection)
    return after is not None and after >= before


# ---- When a rejected candidate is a failure: not beside one that was done well in its place ----


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


# ---- Rules about recall: a record that fits did not come, or what came is not so ----


def changed_record(scene: Scene, story: Story) -> Diagnosis | None:
    """A recalled record has another content than the one that was written under its id."""
    for record in _recalled(scene):
        known = story.records.get(record.id)
        before = known[2].text if known else None
        own = record_id(record.kind, record.scope, record.text) == record.id
        foreign = not record.provenance.run or "[redacted]" in record.text
        if before == record.text or foreign or (before is None and own):
            continue
        evidence = [
            scene.at(
                Phase.RETRIEVAL, ended(f"Record {record.id[:8]} came as {quoted(record.text)}")
            )
        ]
        if known is not None:
            evidence.insert(0, _existing(known))
        return Diagnosis(
            cycle=scene.cycle,
            failure=f"Recall brought record {record.id[:8]} with a content that is not its own.",
            cause=Cause.WRONG_FACT,
            reason="A record's id stands for its text, and this text is another one.",
            evidence=tuple(evidence),
        )
    return None


def untrue_record(scene: Scene, story: Story) -> Diagnosis | None:
    """A recalled record says what is not so, and the agent followed it."""
    said = [
        (record, claim)
        for record in _recalled(scene)
        for claim in story.domain.record_claims(record)
    ]
    now = story.circumstances(scene, scene.state)
    refuted = [
        (record, claim)
        for record, claim in said
        if story.domain.holds(claim, now, remembered=True) is False
    ]
    claims = [claim for _, claim in said]
    for suspects, why in (
        (refuted, "What was perceived, asked for or ruled contradicts it."),
        (said, "Without it there is a way to the goal, and no percept confirms it."),
    ):
        wrong = [claim for _, claim in suspects]
        vetoed = (
            suspects is refuted
            and any(_vetoed(claim, scene, story) for claim in wrong)
            and bool(harm_of_rejection(scene, story, _without(claims, wrong)))
        )
        if vetoed or (wrong and misled(scene, story, claims, wrong, gave_up=suspects is said)):
            record = suspects[0][0]
            return Diagnosis(
                cycle=scene.cycle,
                failure=_what_it_did(scene),
                cause=Cause.WRONG_FACT,
                reason=f"It followed record {record.id[:8]}. {why}",
                evidence=(
                    scene.at(Phase.RETRIEVAL, ended(f"Recalled: {quoted(record.text)}")),
                    scene.at(Phase.EXECUTION, _what_it_did(scene)),
                ),
            )
    return None


def missed_record(scene: Scene, story: Story) -> Diagnosis | None:
    """A record exists that would have prevented what happened, and it was not recalled."""
    retrieval = scene.retrieval
    if retrieval is None:
        return None
    came = {record.id for record in _recalled(scene)}
    for name, known in story.records.items():
        if name in came or known[2].superseded_by is not None:
            continue
        for claim in story.domain.record_claims(known[2]):
            failure = _for_want_of(claim, scene, story)
            if failure:
                return _missed(scene, retrieval, known, failure)
    return None


def _missed(
    scene: Scene, retrieval: RetrievalOutcome, known: tuple[int, int, Record], failure: str
) -> Diagnosis:
    record = known[2]
    problem = next((note.text for _, note in scene.notes if note.about == "memory"), "")
    why = f" {problem}" if problem else ""
    return Diagnosis(
        cycle=scene.cycle,
        failure=failure,
        cause=Cause.MISSED_RETRIEVAL,
        reason=f"Record {record.id[:8]} tells of it, and it was not recalled.{why}",
        evidence=(
            _existing(known),
            scene.at(
                Phase.RETRIEVAL,
                f"{len(retrieval.records)} records came, not this one; the query was "
                f"{quoted(retrieval.query, 80)}.",
            ),
        ),
    )


def _for_want_of(claim: Claim, scene: Scene, story: Story) -> str:
    """What went wrong because nobody remembered a claim; empty if nothing did."""
    now = story.circumstances(scene, scene.state, ())
    if story.domain.holds(claim, now, remembered=True) is False:
        return ""
    recalled = story.recalled_claims(scene)
    vetoed = _vetoed(claim, scene, story)
    if vetoed and harm_of_rejection(scene, story, [*recalled, claim]):
        return ended(f"A candidate was rejected: {short(vetoed, 240)}")
    for returned in scene.returns:
        after = story.domain.facts(returned.after)
        if returned.percept.is_error and after.get(claim.fact) == claim.value:
            return f"{returned.percept.source} failed."
    if wasted(scene, story, [*recalled, claim]) and makes_sense_unruled(scene, story, recalled):
        return f"{_what_it_did(scene)} That leads away from the goal."
    return ""


def _vetoed(claim: Claim, scene: Scene, story: Story) -> str:
    """Why a candidate was rejected, if for what a claim says; else empty."""
    for judged in rejected(scene):
        died = judged.died_of
        told = story.domain.claims(died.reason) if died else ()
        if died and any((one.fact, one.value) == (claim.fact, claim.value) for one in told):
            return died.reason
    return ""


def _recalled(scene: Scene) -> Iterator[Record]:
    retrieval = scene.retrieval
    yield from (hit.record for hit in retrieval.records) if retrieval else ()


def _without(claims: Sequence[Claim], wrong: Sequence[Claim]) -> Sequence[Claim]:
    return [claim for claim in claims if claim not in wrong]


def _existing(known: tuple[int, int, Record]) -> Evidence:
    record = known[2]
    text = ended(f"Record {record.id[:8]} says {quoted(record.text)}")
    return Evidence(seq=known[0], cycle=known[1], phase=Phase.RETRIEVAL, text=text)


def _what_it_did(scene: Scene) -> str:
    done = scene.executed
    if scene.execution is not None and scene.execution.response is not None:
        return f"It answered {quoted(scene.execution.response, 80)} and ended the turn."
    return (
        ended(f"It did {done[0].action} {done[0].arguments or ''}".rstrip())
        if done
        else "It did nothing."
    )


# ---- Rules about what the model gave: no answer, a false situation, bad scores, a bad choice ----


Rule = Callable[[Scene, Story], Diagnosis | None]
"""From a scene and the run around it to a failure and its cause, or None."""

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
