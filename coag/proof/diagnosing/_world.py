"""Rules about what came back: a failed tool, a lying sensor, or a world that has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from coag.schema import ExecutionStatus, Failure, PerceptKind, Phase

from ._causes import Cause, Diagnosis, Evidence
from ._domain import Facts
from ._progress import no_nearer
from ._scene import Return, Scene
from ._story import Seen, Story

APPROVAL = "approval"
"""The name under which somebody who approves refuses."""


def contradictory_return(scene: Scene, story: Story) -> Diagnosis | None:
    """One and the same return says two things: its structured part and the state it led to."""
    for returned in scene.returns:
        told = _told(returned)
        for name, value in told.items():
            if name in returned.after and returned.after[name] != value:
                text = (
                    f"The return of {returned.percept.source} says {name} {value!r}, and the "
                    f"state that came of it {returned.after[name]!r}."
                )
                return Diagnosis(
                    cycle=scene.cycle,
                    failure=f"What was perceived of {name} is not so.",
                    cause=Cause.MISPERCEPTION,
                    reason=text,
                    evidence=(_seen(returned, scene, text),),
                )
    return None


def broken_tool(scene: Scene, story: Story) -> Diagnosis | None:
    """An action failed without a reason that lies in the world, or did nothing at all."""
    for returned in scene.returns:
        percept = returned.percept
        if percept.kind is PerceptKind.UNKNOWN_OUTCOME:
            text = f"{percept.source} gave no answer: {percept.content[:120]!r}."
            return _not_executed(scene, text, returned)
        if percept.is_error and percept.failure is not Failure.DETERMINISTIC:
            text = f"{percept.source} failed: {percept.content[:120]!r}."
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
        failure=f"{internal.action} failed: {internal.result[:120]!r}.",
        cause=Cause.INVALID_PROPOSAL,
        reason="An action on the agent's own memory was called in a way that it refuses.",
        evidence=(scene.at(Phase.EXECUTION, internal.result[:120]),),
    )


def _not_executed(scene: Scene, text: str, returned: Return) -> Diagnosis:
    return Diagnosis(
        cycle=scene.cycle,
        failure=text,
        cause=Cause.FAILED_EXECUTION,
        reason="Nothing that was perceived speaks against the action: the tool did not do it.",
        evidence=(_seen(returned, scene, text),),
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


def refuted_belief(scene: Scene, story: Story) -> Diagnosis | None:
    """What is perceived now is not what was believed, and no own action explains it."""
    for returned in scene.returns:
        expected = story.expected(scene, returned)
        lonely = _lonely(story, scene, returned) if story.domain.complete else None
        if lonely is not None:
            return lonely
        for name, new, old in _surprises(story, returned, expected):
            cause, reason = _judged(name, new, old, scene, story, returned, expected)
            if cause is None:
                continue
            text = f"{name} was {old.value!r} and is perceived as {new!r}."
            failure = (
                f"{returned.percept.source} failed: {_why(returned)}."
                if returned.percept.is_error
                else f"What is perceived is not what was expected: {text}"
            )
            before = Evidence(
                seq=old.seq, cycle=old.cycle, phase=None, text=f"{name} was {old.value!r}."
            )
            return Diagnosis(
                cycle=scene.cycle,
                failure=failure,
                cause=cause,
                reason=f"{text} {reason}",
                evidence=(before, _seen(returned, scene, text)),
            )
    return None


def refused_at_last(scene: Scene, story: Story) -> Diagnosis | None:
    """What Evaluation had allowed was forbidden, or not approved, right before it was to run."""
    for done in scene.executed:
        if done.status is ExecutionStatus.REFUSED and not done.internal:
            unapproved = f" {APPROVAL}: " in done.result
            return Diagnosis(
                cycle=scene.cycle,
                failure=done.result[:160],
                cause=Cause.INVALID_PROPOSAL if unapproved else Cause.CHANGED_ENVIRONMENT,
                reason=(
                    "Whoever approves did not want it."
                    if unapproved
                    else "It was allowed in Evaluation: what the rule looks at changed since."
                ),
                evidence=(scene.at(Phase.EXECUTION, done.result[:160]),),
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
        evidence=(Evidence(seq=seq, cycle=scene.cycle, phase=None, text=end.response[:160]),),
    )


def _lonely(story: Story, scene: Scene, returned: Return) -> Diagnosis | None:
    """A fact's first reading that every later one contradicts, and none of the agent's deeds."""
    for name, value in story.domain.facts(returned.after).items():
        later = [] if story.history(name) else story.later(name, scene, returned.seq)
        if not later or later[0].failed or any(s.own or s.value == value for s in later):
            continue
        text = f"{name} is read as {value!r}."
        return Diagnosis(
            cycle=scene.cycle,
            failure=f"What was perceived of {name} is not so.",
            cause=Cause.MISPERCEPTION,
            reason=f"{text} Every later reading says {later[0].value!r}.",
            evidence=(
                _seen(returned, scene, text),
                Evidence(
                    seq=later[0].seq,
                    cycle=later[0].cycle,
                    phase=None,
                    text=f"{name} is {later[0].value!r}.",
                ),
            ),
        )
    return None


def refused_by_the_world(scene: Scene, story: Story) -> Diagnosis | None:
    """An action failed for a reason in the world that nothing that was known told of."""
    for returned in scene.returns:
        if returned.percept.is_error:
            text = f"{returned.percept.source} failed: {_why(returned)}."
            if no_nearer(scene, story, story.recalled_claims(scene)):
                return _pointless(scene, returned, text)
            return Diagnosis(
                cycle=scene.cycle,
                failure=text,
                cause=Cause.CHANGED_ENVIRONMENT,
                reason="By what was perceived and remembered it should have worked.",
                evidence=(_seen(returned, scene, text),),
            )
    return None


def _pointless(scene: Scene, returned: Return, text: str) -> Diagnosis:
    return Diagnosis(
        cycle=scene.cycle,
        failure=text,
        cause=Cause.INVALID_PROPOSAL,
        reason="The state showed already that it would bring nothing.",
        evidence=(
            scene.at(Phase.PROPOSAL, "Here it was proposed."),
            _seen(returned, scene, text),
        ),
    )


def _surprises(story: Story, returned: Return, expected: Facts) -> Sequence[tuple[str, Any, Seen]]:
    """Facts that are perceived otherwise than they were, and not because of the action."""
    found: list[tuple[str, Any, Seen]] = []
    for name, value in story.domain.facts(returned.after).items():
        history = story.history(name)
        if not history or not (story.domain.complete or name in expected):
            continue
        believed = expected[name] if name in expected else history[-1].value
        if value != believed:
            old = Seen(history[-1].cycle, history[-1].seq, believed, own=name in expected)
            found.append((name, value, old))
    return found


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
    if _told(returned).get(name) == new:
        return Cause.CHANGED_ENVIRONMENT, "The action's own result says so too."
    odd_now = _returns_to(old.value, new, later)
    if odd_now:
        return Cause.MISPERCEPTION, "Later readings say again what was believed before."
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


def _told(returned: Return) -> Mapping[str, Any]:
    data: Any = returned.percept.data
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else {}


def _why(returned: Return) -> str:
    reason = _told(returned).get("reason")
    return str(reason or returned.percept.content)[:160]


def _seen(returned: Return, scene: Scene, text: str) -> Evidence:
    return Evidence(seq=returned.seq, cycle=scene.cycle, phase=Phase.EXECUTION, text=text)
