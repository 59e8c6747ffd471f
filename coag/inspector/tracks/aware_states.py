"""States of awareness in a trace, and what changed between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from coag.awareness import (
    AttentionItem,
    AwarenessState,
    Belief,
    Entity,
    FailureNote,
    Goal,
    InteractionProtocol,
    Relationship,
    Resource,
    Transition,
    load_state,
)
from coag.errors import AwarenessError
from coag.inspector.reading import in_a_line
from coag.inspector.views import Move, StateChange
from coag.schema import Snapshot
from coag.tracing import TraceIndex

# ---- The states of awareness modules as snapshots hold them ----


LONGEST = 1 << 24
"""Bytes of a snapshot's line above which it is passed over."""
_PARTS = ("goals", "trajectory", "attention", "domain")
"""What no state of another module has all of."""
_WHY = 300


@dataclass(frozen=True, slots=True)
class Kept:
    """What a snapshot holds of one awareness module."""

    state: AwarenessState | None
    """None where it cannot be read."""
    pursued: str = ""
    """Id of the goal that the activity serves; empty for none."""
    trouble: str = ""
    """Why it cannot be read."""


KeptByName = Mapping[str, Kept]


def snapshot_at(index: TraceIndex, position: int) -> Snapshot | None:
    """The snapshot at a position; None for what is none, or is too long.

    Raises:
        TraceError: The trace cannot be read.
    """
    if index.length(position) > LONGEST:
        return None
    (line,) = index.read([position])
    body = line.entry.body if line.entry else None
    return body if isinstance(body, Snapshot) else None


def kept_at(index: TraceIndex, position: int) -> KeptByName:
    """What the snapshot at a position holds of awareness modules, by their names.

    Raises:
        TraceError: The trace cannot be read.
    """
    found = snapshot_at(index, position)
    return kept_in(found) if found is not None else {}


def kept_in(snapshot: Snapshot) -> KeptByName:
    """What a snapshot holds of awareness modules, by their names."""
    modules = snapshot.modules.items()
    return {name: _kept(value) for name, value in modules if is_awareness(value)}


def is_awareness(value: object) -> bool:
    """Whether a module's saved state is that of an awareness module, readable or not."""
    state = _mapping(_mapping(value).get("state"))
    return all(part in state for part in _PARTS)


def _kept(value: object) -> Kept:
    saved = _mapping(value)
    pursued = _mapping(saved.get("standing")).get("goal")
    try:
        state = load_state(_mapping(saved.get("state")))
    except (AwarenessError, RecursionError) as error:
        return Kept(None, trouble=in_a_line(str(error), _WHY))
    return Kept(state, pursued if isinstance(pursued, str) else "")


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


# ---- What became of an awareness state from one cycle to the next ----


NAME = 160
"""Characters of a name."""
TOLD = 240
"""Characters of what is told of something."""

_T = TypeVar("_T")


@dataclass(slots=True)
class Changes:
    """How much changed, and the first of it."""

    limit: int
    """How many are told."""
    told: list[StateChange] = field(default_factory=list[StateChange])
    counts: dict[Move, int] = field(default_factory=lambda: dict.fromkeys(Move, 0))
    moves: dict[tuple[str, Hashable], Move] = field(
        default_factory=dict[tuple[str, Hashable], Move]
    )
    """What became of things that are there, by kind and key."""
    came: list[str] = field(default_factory=list[str])
    """The types of the transitions that came."""

    @property
    def of(self) -> int:
        """How much it is together."""
        return sum(self.counts.values())

    def take(self, change: StateChange) -> None:
        """One thing more that changed."""
        self.counts[change.move] += 1
        if len(self.told) < self.limit:
            self.told.append(change)


def changes_between(before: AwarenessState, after: AwarenessState, limit: int) -> Changes:
    """What is different, what counts most first.

    That something was noticed again, as it was, is no change.

    Args:
        before: The state.
        after: The same later.
        limit: How many are told; all are counted.
    """
    found = Changes(limit)
    for part in _parts(before, after):
        part(found)
    return found


def _parts(was: AwarenessState, now: AwarenessState) -> Iterator[Callable[[Changes], None]]:
    """Each part of the state, as what compares it; equal parts are passed over."""
    if was.goals != now.goals:
        names = {goal.id: goal.description for goal in (*was.goals.goals, *now.goals.goals)}
        before, after = _by(was.goals.goals, _id), _by(now.goals.goals, _id)
        yield lambda found: _compare(found, _goals(names), before, after)
    if was.attention != now.attention:
        held = _by(was.attention.items, _id), _by(now.attention.items, _id)
        ignored = frozenset(was.attention.suppressed), frozenset(now.attention.suppressed)
        yield lambda found: _attention(found, held, ignored)
    yield lambda found: _transitions(found, was, now)
    yield from _models(was, now)


def _models(was: AwarenessState, now: AwarenessState) -> Iterator[Callable[[Changes], None]]:
    """The parts of the self model, of the protocol and of the world."""
    mine, self_model = was.self_model, now.self_model
    if mine.resources != self_model.resources:
        yield _comparing(_RESOURCE, mine.resources, self_model.resources, _name)
    if mine.failures != self_model.failures:
        yield _comparing(_FAILURE, mine.failures, self_model.failures, _mistake)
    if was.protocol != now.protocol:
        yield _comparing(_PROTOCOL, (was.protocol,), (now.protocol,), type)
    world, then = now.world, was.world
    if then.unknowns != world.unknowns:
        yield _comparing(_belief("unknown"), then.unknowns, world.unknowns, _text)
    if then.assumptions != world.assumptions:
        yield _comparing(_belief("assumption"), then.assumptions, world.assumptions, _text)
    if then.entities != world.entities:
        yield _comparing(_THING, then.entities, world.entities, _name)
    if then.relationships != world.relationships:
        yield _comparing(_EDGE, then.relationships, world.relationships, _ends)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How things of one kind are compared and told."""

    kind: str
    name: Callable[[Any], str]
    told: Callable[[Any], str]


def _comparing(
    kind: _Kind, was: Iterable[_T], now: Iterable[_T], key: Callable[[_T], Hashable]
) -> Callable[[Changes], None]:
    return lambda found: _compare(found, kind, _by(was, key), _by(now, key))


def _compare(
    found: Changes, kind: _Kind, was: Mapping[Hashable, Any], now: Mapping[Hashable, Any]
) -> None:
    for key, one in now.items():
        before = was.get(key)
        if before is one or before == one:
            continue
        after, then = kind.told(one), kind.told(before) if before is not None else ""
        if before is not None and then == after:
            continue
        move = Move.ADDED
        if before is not None:
            move, (then, after) = Move.CHANGED, _apart(then, after)
        found.moves[kind.kind, key] = move
        found.take(_change(kind, one, move, then, after))
    for key, one in was.items():
        if key not in now:
            found.take(_change(kind, one, Move.GONE, kind.told(one), ""))


def _apart(before: str, after: str) -> tuple[str, str]:
    """What is told of both without the parts that are the same."""
    was, now = before.split(", "), after.split(", ")
    gone, new = [one for one in was if one not in now], [one for one in now if one not in was]
    return ", ".join(gone) or before, ", ".join(new) or after


def _change(kind: _Kind, one: Any, move: Move, before: str, after: str) -> StateChange:
    return StateChange(
        kind=kind.kind,
        name=in_a_line(kind.name(one), NAME),
        move=move,
        before=in_a_line(before, TOLD),
        after=in_a_line(after, TOLD),
    )


def _attention(
    found: Changes,
    held: tuple[Mapping[Hashable, AttentionItem], Mapping[Hashable, AttentionItem]],
    ignored: tuple[frozenset[str], frozenset[str]],
) -> None:
    """Attention: an item that was suppressed since is another one."""
    was, now = held
    _compare(found, _ATTENTION, was, now)
    for key in now.keys() & was.keys():
        before, after = (str(key) in one for one in ignored)
        if before is not after:
            found.moves["attention", key] = Move.CHANGED
            words = ("suppressed" if one else "shown" for one in (before, after))
            found.take(_change(_ATTENTION, now[key], Move.CHANGED, *words))


def _transitions(found: Changes, was: AwarenessState, now: AwarenessState) -> None:
    """Transitions that came; that others were left out by compression is no change."""
    known = set(map(_passed, was.trajectory.transitions))
    for one in now.trajectory.transitions:
        if _passed(one) not in known:
            found.moves["transition", _passed(one)] = Move.ADDED
            found.came.append(one.type.value)
            found.take(_change(_TRANSITION, one, Move.ADDED, "", one.type.value))


# ---- what tells things of a kind apart ----


def _by(things: Iterable[_T], key: Callable[[_T], Hashable]) -> dict[Hashable, _T]:
    return {key(one): one for one in things}


def _id(one: Goal | AttentionItem) -> str:
    return one.id


def _name(one: Entity | Resource) -> str:
    return one.name


def _text(one: Belief) -> str:
    return one.text


def _mistake(one: FailureNote) -> tuple[int, str, str]:
    return one.step, one.action, one.reason


def _ends(one: Relationship) -> tuple[str, str, str]:
    return one.source, one.type, one.target


def _passed(one: Transition) -> tuple[int, str, str]:
    return one.step, one.type.value, one.description


# ---- what is told of them ----


def _goals(names: Mapping[str, str]) -> _Kind:
    """Goals; others that they serve or await are told by their descriptions."""

    def named(id: str) -> str:
        return in_a_line(names.get(id, id), 60)

    def told(goal: Goal) -> str:
        parts = [goal.status.value, f"p {goal.priority:.2f}"]
        if goal.parent_id:
            parts.append(f"serves {named(goal.parent_id)}")
        if goal.depends_on:
            parts.append(f"waits for {', '.join(map(named, goal.depends_on[:4]))}")
        return ", ".join(parts)

    return _Kind("goal", lambda goal: goal.description, told)


def _told_attention(item: AttentionItem) -> str:
    return f"{item.type.value}, urgency {item.urgency:.2f}"


def told_state(entity: Entity, limit: int = 12) -> str:
    """What is known of a thing, in a line."""
    fields = list(entity.state.items())
    told = ", ".join(f"{name} {value}" for name, value in fields[:limit])
    more = f" and {len(fields) - limit} more" if len(fields) > limit else ""
    return f"{told}{more}"


def _told_entity(entity: Entity) -> str:
    return f"{entity.type}: {told_state(entity)}" if entity.state else entity.type


def _told_protocol(protocol: InteractionProtocol) -> str:
    rules = f", {len(protocol.hard_constraints)} hard constraints"
    return f"{protocol.mode.value}, {protocol.style or 'no style'}{rules}"


def _belief(kind: str) -> _Kind:
    def told(one: Belief) -> str:
        return "open" if one.resolved is None else "settled"

    return _Kind(kind, lambda one: one.text, told)


def _told_failure(one: FailureNote) -> str:
    return f"{one.reason} {one.lesson}".strip() or "failed"


def _told_resource(one: Resource) -> str:
    return f"{one.remaining:g} of {one.capacity:g}"


_ATTENTION = _Kind("attention", lambda one: one.description, _told_attention)
_TRANSITION = _Kind("transition", lambda one: one.description, lambda one: one.type.value)
_RESOURCE = _Kind("resource", lambda one: one.name, _told_resource)
_FAILURE = _Kind("failure", lambda one: one.action, _told_failure)
_THING = _Kind("thing", lambda one: one.name, _told_entity)
_EDGE = _Kind(
    "relationship", lambda one: f"{one.source} {one.type} {one.target}", lambda one: "there"
)
_PROTOCOL = _Kind("protocol", lambda one: "how it works together", _told_protocol)
