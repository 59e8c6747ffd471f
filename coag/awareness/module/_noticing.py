"""The attention items that the module raises by itself, and takes away again."""

from __future__ import annotations

from collections.abc import Collection

from coag.awareness._observation import ObservedAttention
from coag.awareness.state import Attention, AttentionType, Goal, attention_id

from ._settings import AwarenessSettings
from ._texts import short

_IMPASSE, _UNKNOWN, _CHANGED = 0.6, 0.8, 0.5


def impasse(content: str, settings: AwarenessSettings) -> ObservedAttention:
    """That nothing could be done, and why."""
    return ObservedAttention(
        type=AttentionType.ANOMALY,
        description=f"No action was possible: {short(content)}",
        urgency=_IMPASSE,
        ttl=settings.attention_ttl,
    )


def outcome_unknown(action: str, settings: AwarenessSettings) -> ObservedAttention:
    """That an action may or may not have had its effect."""
    return ObservedAttention(
        type=AttentionType.ANOMALY,
        description=f"Nobody knows whether {short(action)} had its effect: look before doing it "
        "again",
        urgency=_UNKNOWN,
        ttl=settings.attention_ttl,
    )


def changed(source: str, content: str, settings: AwarenessSettings) -> ObservedAttention:
    """That something outside changed by itself."""
    return ObservedAttention(
        type=AttentionType.TRANSITION,
        description=f"{short(source)} tells: {short(content)}",
        urgency=_CHANGED,
        ttl=settings.attention_ttl,
    )


def repeated(action: str, times: int, settings: AwarenessSettings) -> ObservedAttention:
    """That an action keeps failing: the more often, the more urgent."""
    return ObservedAttention(
        type=AttentionType.THREAT,
        description=_repeated(action),
        urgency=_rising(times - settings.repeated_failures),
        ttl=settings.attention_ttl,
    )


def stalled(goal: Goal, idle: int, settings: AwarenessSettings) -> ObservedAttention:
    """That a goal makes no progress: the longer, the more urgent."""
    return ObservedAttention(
        type=AttentionType.ANOMALY,
        description=_stalled(goal),
        urgency=_rising(idle - settings.stalled_cycles),
        ttl=settings.attention_ttl,
    )


def id_of_repeated(action: str) -> str:
    """The id of the item that says so."""
    return attention_id(AttentionType.THREAT, _repeated(action))


def id_of_stalled(goal: Goal) -> str:
    """The id of the item that says so."""
    return attention_id(AttentionType.ANOMALY, _stalled(goal))


def without(attention: Attention, ids: Collection[str]) -> Attention:
    """Attention without what is settled."""
    items = tuple(item for item in attention.items if item.id not in ids)
    if len(items) == len(attention.items):
        return attention
    return attention.model_copy(update={"items": items})


def _repeated(action: str) -> str:
    return f"{short(action)} fails again and again: find out why, or take another way"


def _stalled(goal: Goal) -> str:
    return f"No progress for a while on: {short(goal.description)}"


def _rising(beyond: int) -> float:
    return min(1.0, 0.7 + 0.1 * max(0, beyond))
