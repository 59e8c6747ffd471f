"""Rules about beliefs that a percept contradicts: a sensor that lied, or a world that changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from coag.schema import Phase

from ._causes import Cause, Diagnosis, Evidence
from ._domain import Facts
from ._returned import seen_in, told, why_failed
from ._scene import Return, Scene
from ._story import Seen, Story
from ._words import ended, shown

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
