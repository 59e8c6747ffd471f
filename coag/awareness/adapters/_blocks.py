"""What every domain shows of a state: one block for each thing that a reader must know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import nlargest
from typing import TypeVar

from coag.awareness.injection import InjectionBlock, InjectionItem
from coag.awareness.state import (
    AttentionItem,
    AwarenessState,
    Belief,
    Goal,
    GoalStatus,
    InteractionProtocol,
)

_Thing = TypeVar("_Thing")

MOST = 100
"""How many of one kind are considered; the others are counted as left out."""
_URGENT = 0.7
"""From here on an attention item tells its urgency."""
_CLOSED_SHOWN = 3
_LESSONS_SHOWN = 3


class Place(IntEnum):
    """Where a block stands, and what is chosen first.

    Goals, attention, topics, unknowns, trajectory: that is section 4.3 of the paper. Around them
    stands what it does not place.
    """

    RULES = 10
    GOALS = 20
    ERRORS = 30
    ATTENTION = 40
    TOPICS = 50
    UNKNOWNS = 60
    ASSUMPTIONS = 70
    TRAJECTORY = 80
    SELF = 90
    OTHER_GOALS = 100
    KNOWN = 110
    WATCHED = 120
    PROTOCOL = 130


def standard_blocks(state: AwarenessState) -> tuple[InjectionBlock, ...]:
    """The blocks of the six modules, as far as there is something in them.

    What a domain knows of its entities is the domain's to show.
    """
    return (
        *_rules(state),
        *_goals(state),
        _attention(state.attention.visible),
        _beliefs("UNKNOWNS", Place.UNKNOWNS, state.world.open_unknowns),
        _beliefs("ASSUMPTIONS", Place.ASSUMPTIONS, state.world.open_assumptions),
        _trajectory(state),
        *_self(state),
        InjectionBlock(
            heading="WATCHING FOR",
            priority=Place.WATCHED,
            items=tuple(InjectionItem(text=one.name) for one in state.attention.scan_patterns),
            first=0,
            inline=True,
        ),
        *_protocol(state.protocol),
    )


def newest_last(things: Sequence[_Thing], texts: Iterable[str]) -> tuple[InjectionItem, ...]:
    """Items for things in the order in which they came: a later one is more urgent."""
    return tuple(
        InjectionItem(text=text, urgency=(place + 1) / len(things))
        for place, text in enumerate(texts)
    )


def _rules(state: AwarenessState) -> tuple[InjectionBlock, ...]:
    """What holds whatever is wanted; a rule is never the first to go."""
    lines = [f"- {rule}" for rule in state.protocol.hard_constraints]
    lines += [f"- never do: {action}" for action in state.self_model.forbidden]
    items = tuple(InjectionItem(text=line, urgency=1.0) for line in lines)
    return (
        InjectionBlock(
            heading="HARD CONSTRAINTS", priority=Place.RULES, items=items, first=len(items)
        ),
    )


def _goals(state: AwarenessState) -> tuple[InjectionBlock, ...]:
    """Active goals; then those that wait, with what for; then the latest that ended."""
    goals = state.goals.goals
    named = {goal.id: goal.description for goal in goals}
    active = [goal for goal in goals if goal.status is GoalStatus.ACTIVE]
    waiting = [goal for goal in goals if goal.is_open and goal.status is not GoalStatus.ACTIVE]
    closed = sorted(
        (goal for goal in goals if not goal.is_open), key=lambda goal: goal.closed_step or 0
    )
    unmet = {goal.id for goal in goals if goal.status is not GoalStatus.COMPLETED}
    latest = closed[-_CLOSED_SHOWN:]
    return (
        _goal_block(
            "ACTIVE GOALS", Place.GOALS, active, {g.id: _goal_line(g, named) for g in top(active)}
        ),
        _goal_block(
            "WAITING GOALS",
            Place.OTHER_GOALS,
            waiting,
            {g.id: _waiting_line(g, named, unmet) for g in top(waiting)},
        ),
        InjectionBlock(
            heading="CLOSED GOALS",
            priority=Place.OTHER_GOALS,
            items=newest_last(latest, (f"[{g.status.value}] {g.description}" for g in latest)),
            first=_CLOSED_SHOWN,
        ),
    )


def top(goals: Sequence[Goal]) -> list[Goal]:
    """The goals of the highest priorities, in the order in which they were made."""
    if len(goals) <= MOST:
        return list(goals)
    chosen = {goal.id for goal in nlargest(MOST, goals, key=lambda goal: goal.priority)}
    return [goal for goal in goals if goal.id in chosen]


def _goal_block(
    heading: str, place: Place, goals: Sequence[Goal], lines: dict[str, str]
) -> InjectionBlock:
    return InjectionBlock(
        heading=heading,
        priority=place,
        items=tuple(
            InjectionItem(text=lines[goal.id], urgency=goal.priority)
            for goal in goals
            if goal.id in lines
        ),
        more=len(goals) - len(lines),
    )


def _goal_line(goal: Goal, named: dict[str, str]) -> str:
    part_of = f", part of: {named[goal.parent_id]}" if goal.parent_id else ""
    done = f", done when: {goal.completion_criteria}" if goal.completion_criteria else ""
    return f"[{goal.source.value}] {goal.description} (p={_number(goal.priority)}{part_of}{done})"


def _waiting_line(goal: Goal, named: dict[str, str], unmet: set[str]) -> str:
    waits = "; ".join(named[one] for one in goal.depends_on if one in unmet)
    why = f" (waits for: {waits})" if waits else ""
    return f"[{goal.status.value}] {goal.description}{why}"


def _attention(visible: Sequence[AttentionItem]) -> InjectionBlock:
    """What needs attention; the urgency is told where it is high."""
    return InjectionBlock(
        heading="ATTENTION",
        priority=Place.ATTENTION,
        items=tuple(
            InjectionItem(text=_attention_line(item), urgency=item.urgency)
            for item in visible[:MOST]
        ),
        more=max(0, len(visible) - MOST),
    )


def _attention_line(item: AttentionItem) -> str:
    told = f" (urgency={_number(item.urgency)})" if item.urgency >= _URGENT else ""
    return f"[{item.type.value}] {item.description}{told}"


def _beliefs(heading: str, place: Place, beliefs: Sequence[Belief]) -> InjectionBlock:
    latest = beliefs[-MOST:]
    return InjectionBlock(
        heading=heading,
        priority=place,
        items=newest_last(latest, (f"- {one.text}" for one in latest)),
        first=3,
        more=len(beliefs) - len(latest),
    )


def _trajectory(state: AwarenessState) -> InjectionBlock:
    """What happened, oldest first; under want of room the latest stay."""
    kept = state.trajectory.transitions
    latest = kept[-MOST:]
    return InjectionBlock(
        heading="TRAJECTORY",
        priority=Place.TRAJECTORY,
        items=newest_last(latest, (f"[{one.type.value}] {one.description}" for one in latest)),
        more=len(kept) - len(latest),
    )


def _self(state: AwarenessState) -> tuple[InjectionBlock, ...]:
    """What is left of resources, and what the latest mistakes taught."""
    resources = state.self_model.resources
    failures = state.self_model.failures[-_LESSONS_SHOWN:]
    return (
        InjectionBlock(
            heading="RESOURCES",
            priority=Place.SELF,
            items=tuple(
                InjectionItem(
                    text=f"{one.name} {_number(one.remaining)} of {_number(one.capacity)}",
                    urgency=1.0 - one.remaining / one.capacity if one.capacity else 1.0,
                )
                for one in resources
            ),
            inline=True,
        ),
        InjectionBlock(
            heading="LESSONS",
            priority=Place.SELF,
            items=newest_last(
                failures,
                (f"- {one.action}: {one.lesson or one.reason or 'failed'}" for one in failures),
            ),
            first=_LESSONS_SHOWN,
        ),
    )


def _protocol(protocol: InteractionProtocol) -> tuple[InjectionBlock, ...]:
    told = (f"mode {protocol.mode.value}", protocol.style, protocol.output_format)
    return (
        InjectionBlock(
            heading="ESCALATE WHEN",
            priority=Place.PROTOCOL,
            items=tuple(InjectionItem(text=f"- {rule}") for rule in protocol.escalation),
            first=0,
        ),
        InjectionBlock(
            heading="PROTOCOL",
            priority=Place.PROTOCOL,
            items=tuple(InjectionItem(text=one) for one in told if one),
            first=0,
            inline=True,
        ),
    )


def _number(value: float) -> str:
    """The number with two decimals at most: `0.7`, `1.0`, `120`."""
    return str(round(float(value), 2)) if value < 10 else f"{value:.0f}"
