"""Rules about what came back: a failed tool, a lying sensor, or a world that has changed."""

from __future__ import annotations

from coag.schema import ExecutionStatus, Failure, PerceptKind, Phase, Settlement

from ._causes import Cause, Diagnosis, Evidence
from ._progress import chosen_projection, no_nearer, remaining
from ._returned import seen_in, told, why_failed
from ._scene import Return, Scene
from ._story import Story
from ._words import ended, quoted, short, shown

APPROVAL = "approval"
"""The name under which somebody who approves refuses."""


def contradictory_return(scene: Scene, story: Story) -> Diagnosis | None:
    """One and the same return says two things: its structured part and the state it led to."""
    for returned in scene.returns:
        said = told(returned)
        for name, value in said.items():
            if name in returned.after and returned.after[name] != value:
                text = (
                    f"The return of {returned.percept.source} says {name} {shown(value)}, and "
                    f"the state that came of it {shown(returned.after[name])}."
                )
                return Diagnosis(
                    cycle=scene.cycle,
                    failure=f"What was perceived of {name} is not so.",
                    cause=Cause.MISPERCEPTION,
                    reason=text,
                    evidence=(seen_in(returned, scene, text),),
                    fact=name,
                )
    return None


def broken_tool(scene: Scene, story: Story) -> Diagnosis | None:
    """An action failed without a reason that lies in the world, or did nothing at all."""
    for returned in scene.returns:
        percept = returned.percept
        if percept.kind is PerceptKind.UNKNOWN_OUTCOME:
            unknown = _of_unknown_outcome(scene, story, returned)
            if unknown is not None:
                return unknown
            continue
        if percept.kind is PerceptKind.SETTLED:
            continue
        if percept.is_error and percept.failure is not Failure.DETERMINISTIC:
            text = ended(f"{percept.source} failed: {quoted(percept.content)}")
            return _not_executed(scene, text, returned)
        if not percept.is_error and _did_nothing(scene, story, returned):
            text = f"{percept.source} reported success, and nothing changed."
            return _not_executed(scene, text, returned)
    internal = next(
        (
            done
            for done in scene.executed
            if done.internal and done.status is ExecutionStatus.FAILED
        ),
        None,
    )
    if internal is None:
        return None
    return Diagnosis(
        cycle=scene.cycle,
        failure=ended(f"{internal.action} failed: {quoted(internal.result)}"),
        cause=Cause.INVALID_PROPOSAL,
        reason="An action on the agent's own memory was called in a way that it refuses.",
        evidence=(scene.at(Phase.EXECUTION, ended(short(internal.result))),),
    )


def _of_unknown_outcome(scene: Scene, story: Story, returned: Return) -> Diagnosis | None:
    """An action that gave no answer; nothing if it was found out later that it happened."""
    percept = returned.percept
    became = story.settled(scene, percept.caused_by)
    if became is Settlement.HAPPENED:
        return None
    if became is Settlement.DID_NOT_HAPPEN:
        text = ended(f"{percept.source} gave no answer: {quoted(percept.content)}")
        return _not_executed(scene, f"{text} Later it was found that it did not happen.", returned)
    return not_known(scene, percept.source, seen_in(returned, scene, ended(short(percept.content))))


def not_known(scene: Scene, action: str, shown_by: Evidence) -> Diagnosis:
    """Of an action it is not known whether it had its effect."""
    return Diagnosis(
        cycle=scene.cycle,
        failure=f"It is not known whether {action} had its effect.",
        cause=Cause.FAILED_EXECUTION,
        reason="It gave no answer, and the cycles after it do not tell what became of it.",
        evidence=(shown_by,),
    )


def never_answered(scene: Scene, story: Story) -> Diagnosis | None:
    """The run broke off while an action ran, and it was not gone on with."""
    answered = {receipt.intent_id for _, receipt in scene.receipts}
    for seq, intent in scene.intents:
        if scene.execution is None and intent.id not in answered and not story.ahead:
            text = f"{intent.action} began here, and no record shows what came of it."
            seen = Evidence(seq=seq, cycle=scene.cycle, phase=Phase.EXECUTION, text=text)
            return not_known(scene, intent.action, seen)
    return None


def _not_executed(scene: Scene, text: str, returned: Return) -> Diagnosis:
    reason = "Nothing that was perceived speaks against the action: the tool did not do it."
    return _failed(scene, returned, text, Cause.FAILED_EXECUTION, reason)


def _failed(
    scene: Scene, returned: Return, text: str, cause: Cause, reason: str, *before: Evidence
) -> Diagnosis:
    """An action failed, as its return shows; `before` is what shows the cause."""
    return Diagnosis(
        cycle=scene.cycle,
        failure=text,
        cause=cause,
        reason=reason,
        evidence=(*before, seen_in(returned, scene, text)),
    )


def _did_nothing(scene: Scene, story: Story, returned: Return) -> bool:
    expected = story.expected(scene, returned)
    before, after = story.domain.facts(returned.before), story.domain.facts(returned.after)
    changed = [name for name, value in after.items() if before.get(name, value) != value]
    return (
        bool(expected)
        and not changed
        and not any(
            after.get(name) == value
            for name, value in expected.items()
            if before.get(name) != value
        )
    )


def refused_at_last(scene: Scene, story: Story) -> Diagnosis | None:
    """What Evaluation had allowed was forbidden, or not approved, right before it was to run."""
    for done in scene.executed:
        if done.status is ExecutionStatus.REFUSED and not done.internal:
            unapproved = f" {APPROVAL}: " in done.result
            return Diagnosis(
                cycle=scene.cycle,
                failure=ended(short(done.result)),
                cause=Cause.INVALID_PROPOSAL if unapproved else Cause.CHANGED_ENVIRONMENT,
                reason=(
                    "Whoever approves did not want it."
                    if unapproved
                    else "It was allowed in Evaluation: what the rule looks at changed since."
                ),
                evidence=(scene.at(Phase.EXECUTION, ended(short(done.result))),),
            )
    return None


def broken_turn(scene: Scene, story: Story) -> Diagnosis | None:
    """The turn broke off, and no record says why."""
    if scene.end is None or scene.end[1].reason != "error":
        return None
    seq, end = scene.end
    return Diagnosis(
        cycle=scene.cycle,
        failure="The turn broke off.",
        cause=None,
        reason="No record of this cycle shows what it came from.",
        evidence=(Evidence(seq=seq, cycle=scene.cycle, phase=None, text=short(end.response)),),
    )


def refused_by_the_world(scene: Scene, story: Story) -> Diagnosis | None:
    """An action failed for a reason in the world that nothing that was known told of."""
    for returned in scene.returns:
        unknown = returned.percept.kind is PerceptKind.UNKNOWN_OUTCOME
        if returned.percept.is_error and not unknown:
            text = ended(f"{returned.percept.source} failed: {why_failed(returned)}")
            if _foreseen(scene, story, returned):
                return _scored_badly(scene, returned, text)
            if no_nearer(scene, story, story.recalled_claims(scene)):
                return _pointless(scene, returned, text)
            reason = "By what was perceived and remembered it should have worked."
            return _failed(scene, returned, text, Cause.CHANGED_ENVIRONMENT, reason)
    return None


def _foreseen(scene: Scene, story: Story, returned: Return) -> bool:
    """Whether what came of a failed action is just what its projection had said.

    A projection that was to bring the goal nearer did not say so: somebody else had been there.
    """
    claims, projection = story.recalled_claims(scene), chosen_projection(scene)
    left, after_it = (remaining(scene, story, claims, state) for state in (None, projection))
    if left is not None and after_it is not None and after_it < left:
        return False
    expected = story.expected(scene, returned)
    before, after = story.domain.facts(returned.before), story.domain.facts(returned.after)
    return any(before.get(name) != value for name, value in expected.items()) and all(
        after.get(name) == value for name, value in expected.items()
    )


def _scored_badly(scene: Scene, returned: Return, text: str) -> Diagnosis:
    reason = "Its projection said what would come of it, and it was valued all the same."
    survived = scene.at(Phase.EVALUATION, "Here it survived, with its projection.")
    return _failed(scene, returned, text, Cause.FAULTY_EVALUATION, reason, survived)


def _pointless(scene: Scene, returned: Return, text: str) -> Diagnosis:
    reason = "The state showed already that it would bring nothing."
    proposed = scene.at(Phase.PROPOSAL, "Here it was proposed.")
    return _failed(scene, returned, text, Cause.INVALID_PROPOSAL, reason, proposed)
