"""What one awareness module held as a cycle began, as far as there is room for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from coag.awareness import (
    AttentionItem,
    AwarenessState,
    Belief,
    Entity,
    Goal,
    GoalGraph,
    InteractionProtocol,
    SelfModel,
    Transition,
)
from coag.inspector.reading import in_a_line
from coag.inspector.views import (
    AttentionView,
    GoalView,
    Listing,
    Move,
    ResourceView,
    Stand,
    TransitionView,
)

from ._aware_changes import NAME, TOLD, Changes, changes_between, told_state
from ._aware_read import Kept

GOALS = 200
"""Goals that are told."""
_WAITS = 8
"""Goals that one waits for, as far as they are told."""
_ATTENTION = 60
_TRANSITIONS = 60
_RESOURCES = 24
_CHANGES = 60
_ROWS = 50
"""Rows of a further part of the state."""

Since = Callable[[int], int]
"""The first cycle that began after a step of the state."""
SinceItem = Callable[[AttentionItem], int]
"""The same of an item of attention, since which it is there without a gap."""


def stand_of(
    module: str,
    cycle: int,
    kept: Kept | None,
    before: tuple[int, Kept] | None,
    since: Since,
    item_since: SinceItem,
) -> Stand:
    """What a module held as a cycle began.

    Args:
        module: Its name.
        cycle: The cycle.
        kept: What the snapshot holds of it; None for nothing.
        before: The cycle before and what its snapshot holds; None where there is none.
        since: In which cycles what was at a step of the state was seen first.
        item_since: The same for attention.
    """
    if kept is None or kept.state is None:
        why = kept.trouble if kept else "The trace holds no state of it as this cycle began."
        return Stand(module=module, cycle=cycle, trouble=why)
    state = kept.state
    was = before[1].state if before else None
    changed = changes_between(was, state, _CHANGES) if was is not None else Changes(0)
    open_goals = sum(goal.is_open for goal in state.goals.goals)
    return Stand(
        module=module,
        cycle=cycle,
        domain=in_a_line(state.domain, NAME),
        mode=state.protocol.mode.value,
        goals=_goals(state.goals, kept.pursued, changed, since),
        goals_open=open_goals,
        goals_closed=len(state.goals.goals) - open_goals,
        attention=_attention(state, changed, item_since),
        attention_of=len(state.attention.items),
        suppressed=sum(one.id in state.attention.suppressed for one in state.attention.items),
        transitions=_transitions(state, changed, since),
        transitions_of=len(state.trajectory.transitions),
        resources=_resources(state, was),
        resources_of=len(state.self_model.resources),
        changes=tuple(changed.told),
        changes_of=changed.of,
        before=before[0] if before and was is not None else None,
        listings=tuple(_listings(state, since)),
    )


def _goals(graph: GoalGraph, pursued: str, changed: Changes, since: Since) -> tuple[GoalView, ...]:
    """The goals; of many the open ones first, then those that were changed last."""
    kept = graph.goals
    if len(kept) > GOALS:
        best = sorted(kept, key=lambda goal: (goal.id != pursued, not goal.is_open))[:GOALS]
        names = {goal.id for goal in best}
        kept = tuple(goal for goal in kept if goal.id in names)
    return tuple(_goal(goal, pursued, changed, since) for goal in kept)


def _goal(goal: Goal, pursued: str, changed: Changes, since: Since) -> GoalView:
    return GoalView(
        id=goal.id,
        description=in_a_line(goal.description, TOLD),
        status=goal.status.value,
        source=goal.source.value,
        priority=goal.priority,
        parent=goal.parent_id or "",
        waits_for=goal.depends_on[:_WAITS],
        pursued=goal.id == pursued and goal.is_open,
        criteria=in_a_line(goal.completion_criteria or "", TOLD),
        since=since(goal.created_step),
        move=changed.moves.get(("goal", goal.id)),
    )


def _attention(
    state: AwarenessState, changed: Changes, since: SinceItem
) -> tuple[AttentionView, ...]:
    ignored = frozenset(state.attention.suppressed)
    shown = state.attention.visible
    hidden = tuple(one for one in state.attention.items if one.id in ignored)
    return tuple(
        AttentionView(
            type=one.type.value,
            description=in_a_line(one.description, TOLD),
            urgency=one.urgency,
            ttl=one.ttl,
            left=None if one.ttl is None else max(0, one.created_step + one.ttl - state.step),
            since=since(one),
            source=in_a_line(one.source, NAME),
            suppressed=one.id in ignored,
            move=changed.moves.get(("attention", one.id)),
        )
        for one in (*shown, *hidden)[:_ATTENTION]
    )


def _transitions(
    state: AwarenessState, changed: Changes, since: Since
) -> tuple[TransitionView, ...]:
    newest = state.trajectory.transitions[::-1][:_TRANSITIONS]
    return tuple(
        TransitionView(
            type=one.type.value,
            description=in_a_line(one.description, TOLD),
            since=since(one.step),
            sticky=one.type in state.trajectory.sticky,
            move=_move_of(one, changed),
        )
        for one in newest
    )


def _move_of(one: Transition, changed: Changes) -> Move | None:
    return changed.moves.get(("transition", (one.step, one.type.value, one.description)))


def _resources(state: AwarenessState, was: AwarenessState | None) -> tuple[ResourceView, ...]:
    before = {one.name: one.remaining for one in was.self_model.resources} if was else {}
    return tuple(
        ResourceView(
            name=in_a_line(one.name, NAME),
            remaining=one.remaining,
            capacity=one.capacity,
            before=before.get(one.name),
        )
        for one in state.self_model.resources[:_RESOURCES]
    )


# ---- the rest of the state, as tables ----


def _listings(state: AwarenessState, since: Since) -> list[Listing]:
    """Those parts that hold anything."""
    world, mine = state.world, state.self_model
    things = sorted(world.entities, key=lambda one: (-one.last_step, one.name))
    edges = sorted(world.relationships, key=lambda one: -one.step)
    found = [
        _listing(
            "Not known",
            ("question", "since cycle", "state"),
            [_belief(one, since) for one in _open_first(world.unknowns)],
        ),
        _listing(
            "Assumed",
            ("assumption", "since cycle", "state"),
            [_belief(one, since) for one in _open_first(world.assumptions)],
        ),
        _listing(
            "Mistakes and lessons",
            ("action", "reason", "lesson", "cycle"),
            [
                (one.action, one.reason, one.lesson, _cycle(since(one.step)))
                for one in reversed(mine.failures)
            ],
        ),
        _listing(
            "Things, the last mentioned first",
            ("name", "type", "state", "last in cycle"),
            [_thing(one, since) for one in things[:_ROWS]],
            of=len(things),
        ),
        _listing(
            "How things hang together",
            ("source", "relationship", "target"),
            [(one.source, one.type, one.target) for one in edges[:_ROWS]],
            of=len(edges),
        ),
        _listing("What it can and may do", ("rule", "actions"), _rules(mine)),
        _listing(
            "What it watches for",
            ("pattern", "description"),
            [(one.name, one.description) for one in state.attention.scan_patterns],
        ),
        _listing("How it works together", ("rule", "text"), _protocol(state.protocol)),
    ]
    return [one for one in found if one.of]


def _listing(
    title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], of: int | None = None
) -> Listing:
    told = tuple(tuple(in_a_line(cell, TOLD) for cell in row) for row in rows[:_ROWS])
    return Listing(title=title, heads=heads, rows=told, of=len(rows) if of is None else of)


def _belief(one: Belief, since: Since) -> tuple[str, ...]:
    settled = "open" if one.resolved is None else f"settled, {_cycle(since(one.resolved))}"
    return one.text, _cycle(since(one.step)), settled


def _open_first(beliefs: Iterable[Belief]) -> list[Belief]:
    return sorted(beliefs, key=lambda one: (one.resolved is not None, -one.step))


def _thing(one: Entity, since: Since) -> tuple[str, ...]:
    return one.name, one.type, told_state(one), _cycle(since(one.last_step))


def _rules(mine: SelfModel) -> list[tuple[str, str]]:
    needs = [f"{one.action}: {one.amount:g} {one.resource}" for one in mine.needs]
    rules = (
        ("able to", mine.capabilities),
        ("not able to", mine.limitations),
        ("allowed", mine.allowed),
        ("forbidden", mine.forbidden),
        ("takes", tuple(needs)),
    )
    return [(name, ", ".join(texts[:_ROWS])) for name, texts in rules if texts]


def _protocol(protocol: InteractionProtocol) -> list[tuple[str, str]]:
    rules = [("hard constraint", one) for one in protocol.hard_constraints]
    rules += [("hands over", one) for one in protocol.escalation]
    said = (("style", protocol.style), ("output", protocol.output_format))
    return [*rules, *((name, text) for name, text in said if text)]


def _cycle(number: int) -> str:
    return str(number)
