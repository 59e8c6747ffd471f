"""Failures of beliefs, and of the world."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from coag.schema import ExecutionStatus, Failure, PerceptKind, Phase, Settlement

from .causes import Cause, Diagnosis, Evidence, Facts, ended, quoted, short, shown
from .judging import chosen_projection, no_nearer, remaining
from .scene import Return, Scene, Seen, Story, seen_in, told, why_failed

_DOUBT = "If not that, then the projection is wrong, or the tool."
"""What is said of every prediction that did not come true: the trace cannot tell these apart."""
_ODD_NOW = "Later readings say again what was believed before."


def refuted_belief(scene: Scene, story: Story) -> Diagnosis | None:
    """What is perceived now is not what was believed, and no own action explains it."""
    for returned in scene.returns:
        expected = story.expected(scene, returned)
        lonely = _lonely(story, scene, returned) if story.domain.complete else None
        if lonely is not None:
            return lonely
        for name, new, old in _surprises(story, returned, expected):
            cause, reason = _judged(name, new, old, scene, story, returned, expected)
            if cause is not None:
                predicted = name in expected
                before = _predicted(name, old, scene, story) if predicted else _was(name, old)
                doubted = predicted and cause is not Cause.MISPERCEPTION
                why = f"{reason} {_DOUBT}" if doubted and not returned.percept.is_error else reason
                misled = story.misled_by(name) if cause is Cause.CHANGED_ENVIRONMENT else None
                if misled is not None:
                    why = f"It may follow from cycle {misled}, where {name} was misperceived."
                belief = "was expected to be" if predicted else "was"
                text = f"{name} {belief} {shown(old.value)} and is perceived as {shown(new)}."
                found = _refuted(scene, returned, cause, (text, why), before)
                return replace(found, fact=name if reason == _ODD_NOW else "", follows=misled)
    return None


def _refuted(
    scene: Scene, returned: Return, cause: Cause, told: tuple[str, str], before: Evidence
) -> Diagnosis:
    """The diagnosis of a belief: what was told of it, and why."""
    text, why = told
    failure = text
    if returned.percept.is_error:
        failure = ended(f"{returned.percept.source} failed: {why_failed(returned)}")
        why = f"{text} {why}"
    return Diagnosis(
        cycle=scene.cycle,
        failure=failure,
        cause=cause,
        reason=why,
        evidence=(before, seen_in(returned, scene, text)),
    )


def _was(name: str, old: Seen) -> Evidence:
    text = f"{name} was {shown(old.value)}."
    return Evidence(seq=old.seq, cycle=old.cycle, phase=None, text=text)


def _predicted(name: str, old: Seen, scene: Scene, story: Story) -> Evidence:
    """The record of the evaluation that holds the projection, with what was seen before."""
    before = story.history(name)[-1].value
    unless = f"; it was {shown(before)}" if before != old.value else ""
    text = f"The projection of what was chosen: {name} {shown(old.value)}{unless}."
    return scene.at(Phase.EVALUATION, text)


def _lonely(story: Story, scene: Scene, returned: Return) -> Diagnosis | None:
    """A fact's first reading that every later one contradicts, and none of the agent's deeds."""
    for name, value in story.domain.facts(returned.after).items():
        later = [] if story.history(name) else story.later(name, scene, returned.seq)
        if not later or later[0].failed or any(s.own or s.value == value for s in later):
            continue
        text = f"{name} is read as {shown(value)}."
        return Diagnosis(
            cycle=scene.cycle,
            failure=f"What was perceived of {name} is not so.",
            cause=Cause.MISPERCEPTION,
            reason=f"{text} Every later reading says {shown(later[0].value)}.",
            evidence=(
                seen_in(returned, scene, text),
                Evidence(
                    seq=later[0].seq,
                    cycle=later[0].cycle,
                    phase=None,
                    text=f"{name} is {shown(later[0].value)}.",
                ),
            ),
            fact=name,
        )
    return None


def _surprises(story: Story, returned: Return, expected: Facts) -> Sequence[tuple[str, Any, Seen]]:
    """Facts that are perceived otherwise than they were, and not because of the action."""
    found: list[tuple[str, Any, Seen]] = []
    for name, value in story.domain.facts(returned.after).items():
        history = story.history(name)
        if not history or not (story.domain.complete or name in expected):
            continue
        believed = expected[name] if name in expected else history[-1].value
        if value != believed and not _no_forecast(name, value, story, returned, expected):
            old = Seen(history[-1].cycle, history[-1].seq, believed, own=name in expected)
            found.append((name, value, old))
    return found


def _no_forecast(name: str, value: Any, story: Story, returned: Return, expected: Facts) -> bool:
    """Whether a projection cannot have meant a fact so, in a domain that does not say.

    A list that holds more than what was predicted is knowledge that has grown. A fact that stayed
    as it was, where the action brought about other things that were predicted, was only reset:
    of the place where one comes to nothing is known before.
    """
    if story.domain.complete:
        return False
    before, after = story.domain.facts(returned.before), story.domain.facts(returned.after)
    was, now = before.get(name), expected[name]
    if all(isinstance(one, list) for one in (was, now, value)):
        seen, meant, held = _items(value), _items(now), _items(was)
        return (meant - held) <= seen and not (held - meant) & seen
    others = (other for other in expected if other != name and before.get(other) != expected[other])
    return value == was and any(after.get(other) == expected[other] for other in others)


def _items(values: object) -> set[str]:
    return {json.dumps(one, sort_keys=True) for one in cast("list[object]", values)}


def _judged(
    name: str,
    new: Any,
    old: Seen,
    scene: Scene,
    story: Story,
    returned: Return,
    expected: Facts,
) -> tuple[Cause | None, str]:
    """Whether a sensor lied, then or now, or the world has changed."""
    history = [seen for seen in story.history(name)]
    later = story.later(name, scene, returned.seq)
    before = history[-1].value
    if told(returned).get(name) == new:
        return Cause.CHANGED_ENVIRONMENT, "The action's own result says so too."
    odd_now = _returns_to(old.value, new, later)
    if odd_now:
        return Cause.MISPERCEPTION, _ODD_NOW
    if old.own and name in expected and before == new:
        return Cause.FAILED_EXECUTION, "The action did not bring about what it was to bring."
    if _was_odd(new, before, history):
        return Cause.MISPERCEPTION, "The reading before is the odd one among those around it."
    if _unconfirmed(before, history) and later and not returned.percept.is_error:
        return Cause.MISPERCEPTION, "One reading alone said otherwise, and none says so again."
    achieved = name in story.achieved
    if not story.domain.may_change(name, before, new, achieved):
        return Cause.MISPERCEPTION, "That does not change so by itself."
    return Cause.CHANGED_ENVIRONMENT, "Nothing that the agent did explains it, and it stays so."


def _returns_to(believed: Any, new: Any, later: Sequence[Seen]) -> bool:
    """Whether what follows says the old again, without an own action that brought it back."""
    for seen in later:
        if seen.value == new:
            continue
        return seen.value == believed and not seen.own
    return False


def _was_odd(new: Any, believed: Any, history: Sequence[Seen]) -> bool:
    """Whether an earlier observation agrees with the new one, and only few between them do not."""
    run = 0
    for seen in reversed(history):
        if seen.value == believed and not seen.own:
            run += 1
            continue
        return seen.value == new and run <= 3
    return False


def _unconfirmed(believed: Any, history: Sequence[Seen]) -> bool:
    """Whether a belief rests on one reading alone, the first of its fact."""
    return len(history) == 1 and history[0].value == believed and not history[0].own


# ---- Rules about what came back: a failed tool, a lying sensor, or a world that has changed ----


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
