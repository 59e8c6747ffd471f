"""Awareness over cycles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from coag.errors import ConfigurationError, UnknownNameError
from coag.inspector.reading import in_a_line
from coag.inspector.views import (
    AttentionView,
    AwarenessView,
    Course,
    CycleChange,
    GoalView,
    Lane,
    Listing,
    Marks,
    Move,
    ResourceView,
    Series,
    Span,
    Stand,
    StateChange,
    TransitionView,
)
from coag.tracing import RecordKind, TraceIndex

from .aware_states import (
    NAME,
    TOLD,
    Changes,
    Kept,
    KeptByName,
    changes_between,
    is_awareness,
    kept_at,
    snapshot_at,
    told_state,
)
from .beliefs import cycle_snapshots

# ---- What one awareness module held over the cycles of a run, a state at a time ----


_DRAWN = 24
"""Lanes of goals, and of attention, that are drawn."""
_SPANS = 4_000
"""Stretches of each that are kept."""
_SERIES = 8
"""Numbers that are drawn."""
_NAMED = 32
"""Resources that are followed."""
_TOLD = 5
"""Changes of a cycle that are told."""
_COUNTED = 40
"""Changes from which those that are told are chosen."""
_COUNTS = ("open goals", "closed goals", "attention", "open questions", "things known")


@dataclass(slots=True)
class _Line:
    """A goal or an item of attention, as far as it was followed."""

    label: str
    type: str
    spans: list[Span] = field(default_factory=list[Span])
    begun: list[int] = field(default_factory=list[int])
    """Of each stretch the cycle since which it was there without a gap."""


@dataclass(slots=True)
class _Lines:
    """All goals, or all items of attention."""

    by_id: dict[str, _Line] = field(default_factory=dict[str, _Line])
    count: int = 0
    """Stretches that are kept."""
    known: set[str] = field(default_factory=set[str])
    """Ids of all that were met, drawn or not."""

    def take(self, id: str, label: str, type: str, now: Span, before: int | None) -> None:
        """One of them as a cycle began.

        Args:
            id: Its id.
            label: Its description.
            type: Its source or type.
            now: A stretch of this one cycle.
            before: The cycle that was looked at before this one.
        """
        self.known.add(id)
        line = self.by_id.get(id)
        if line is None:
            if self.count >= _SPANS:
                return
            line = self.by_id[id] = _Line(in_a_line(label, NAME), type)
        last = line.spans[-1] if line.spans else None
        joined = last is not None and last.last == before
        if last is not None and joined and _alike(last, now):
            weight = max(last.weight, now.weight)
            line.spans[-1] = replace(last, last=now.last, weight=weight)
        elif self.count < _SPANS:
            line.begun.append(line.begun[-1] if joined else now.first)
            line.spans.append(now)
            self.count += 1

    def since(self, id: str, cycle: int) -> int | None:
        """The cycle since which one is there without a gap; None where that is not known."""
        line = self.by_id.get(id) or _Line("", "")
        pairs = zip(line.spans, line.begun, strict=True)
        return next((at for one, at in pairs if one.first <= cycle <= one.last), None)


def _alike(one: Span, other: Span) -> bool:
    return one.state == other.state and one.pursued == other.pursued


class CourseBuilder:
    """Follows one module from cycle to cycle.

    Args:
        module: Its name.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._cycles: list[int] = []
        self._steps: list[int] = []
        """The state's step as each of them began; -1 where it cannot be read."""
        self._goals, self._attention = _Lines(), _Lines()
        self._marks: dict[str, dict[int, int]] = {}
        self._sticky: set[str] = set()
        self._resources: dict[str, tuple[float, dict[int, float]]] = {}
        self._counts: list[tuple[int, ...] | None] = []
        self._changes: list[CycleChange] = []
        self._before: AwarenessState | None = None

    def take(self, cycle: int, kept: Kept) -> None:
        """What it held as the next cycle began."""
        before = self._cycles[-1] if self._cycles else None
        self._cycles.append(cycle)
        state = kept.state
        self._steps.append(-1 if state is None else state.step)
        self._counts.append(None if state is None else _counts(state))
        if state is None:
            return
        for goal in state.goals.goals:
            self._take_goal(goal, kept.pursued, cycle, before)
        ignored = frozenset(state.attention.suppressed)
        for item in state.attention.items:
            self._take_item(item, ignored, cycle, before)
        for one in state.self_model.resources[:_NAMED]:
            held = self._resources.setdefault(one.name, (one.capacity, {}))
            held[1][cycle] = one.remaining
        self._compare(cycle, state)
        self._before = state

    def _take_goal(self, goal: Goal, pursued: str, cycle: int, before: int | None) -> None:
        span = Span(
            first=cycle,
            last=cycle,
            state=goal.status.value,
            weight=goal.priority,
            pursued=goal.id == pursued and goal.is_open,
        )
        self._goals.take(goal.id, goal.description, goal.source.value, span, before)

    def _take_item(
        self, item: AttentionItem, ignored: frozenset[str], cycle: int, before: int | None
    ) -> None:
        state = "suppressed" if item.id in ignored else "visible"
        span = Span(first=cycle, last=cycle, state=state, weight=item.urgency)
        self._attention.take(item.id, item.description, item.type.value, span, before)

    def _compare(self, cycle: int, state: AwarenessState) -> None:
        sticky = {one.value for one in state.trajectory.sticky}
        self._sticky |= sticky
        was = self._before
        if was is None:
            for one in state.trajectory.transitions:
                self._mark(one.type.value, cycle)
            return
        found = changes_between(was, state, _COUNTED)
        for type in found.came:
            self._mark(type, cycle)
        self._changes.append(_change(cycle, found, sticky))

    def _mark(self, type: str, cycle: int) -> None:
        at = self._marks.setdefault(type, {})
        at[cycle] = at.get(cycle, 0) + 1

    # ---- what is known ----

    def since(self, step: int, cycle: int) -> int:
        """The first cycle that began when a step of the state was over.

        Args:
            step: The step.
            cycle: The cycle from which one looks back.
        """
        found = cycle
        pairs = zip(reversed(self._cycles), reversed(self._steps), strict=True)
        for at, reached in pairs:
            if at > cycle or reached < 0:
                continue
            if reached < step:
                break
            found = at
        return found

    def item_since(self, item: AttentionItem, cycle: int) -> int:
        """The cycle since which something needs attention without a gap."""
        found = self._attention.since(item.id, cycle)
        return self.since(item.created_step, cycle) if found is None else found

    def course(self) -> Course:
        """What was followed so far, as far as there is room for it."""
        series = self._series()
        last = self._cycles[-1] if self._cycles else 0
        marks = [
            Marks(type=type, sticky=type in self._sticky, at=tuple(at.items()))
            for type, at in self._marks.items()
        ]
        return Course(
            module=self._module,
            cycles=tuple(self._cycles),
            goals=_lanes(self._goals, last, open_only=True),
            goals_of=len(self._goals.known),
            attention=_lanes(self._attention, last, open_only=False),
            attention_of=len(self._attention.known),
            marks=tuple(sorted(marks, key=lambda one: (not one.sticky, one.type))),
            series=tuple(series[:_SERIES]),
            series_of=len(series),
            changes=tuple(self._changes),
        )

    def _series(self) -> list[Series]:
        """Resources, then the counts that were not the same throughout."""
        found = [
            Series(
                name=in_a_line(name, NAME),
                values=tuple(values.get(cycle) for cycle in self._cycles),
                capacity=capacity,
            )
            for name, (capacity, values) in self._resources.items()
        ]
        for at, name in enumerate(_COUNTS):
            values = tuple(float(one[at]) if one else None for one in self._counts)
            if len(set(values) - {None}) > 1:
                found.append(Series(name=name, values=values))
        return found


def _counts(state: AwarenessState) -> tuple[int, ...]:
    open_goals = sum(goal.is_open for goal in state.goals.goals)
    return (
        open_goals,
        len(state.goals.goals) - open_goals,
        len(state.attention.visible),
        len(state.world.open_unknowns),
        len(state.world.entities),
    )


def _lanes(lines: _Lines, last: int, *, open_only: bool) -> tuple[Lane, ...]:
    """Those that are drawn: what lasts to the end and weighs most; in the order of coming."""
    ranked = sorted(lines.by_id.items(), key=lambda one: _worth(one[1], last, open_only=open_only))
    drawn = {id for id, _ in ranked[:_DRAWN]}
    return tuple(
        Lane(id=id, label=line.label, type=line.type, spans=tuple(line.spans))
        for id, line in lines.by_id.items()
        if id in drawn
    )


def _worth(line: _Line, last: int, *, open_only: bool) -> tuple[bool, bool, float, int]:
    """The least comes first."""
    spans: Sequence[Span] = line.spans
    lasts = bool(spans) and spans[-1].last == last
    closed = open_only and (not spans or spans[-1].state in ("completed", "abandoned"))
    weight = max((one.weight for one in spans), default=0.0)
    known = sum(one.last - one.first + 1 for one in spans)
    return (open_only and not lasts, closed, -weight, -known)


_ORDER: Mapping[str, int] = {
    kind: at
    for at, kind in enumerate(
        ("goal", "failure", "transition", "attention", "resource", "unknown", "assumption")
    )
}


def _change(cycle: int, found: Changes, sticky: Iterable[str]) -> CycleChange:
    """How much changed, and what counts most of it: goals, mistakes, what sticks, attention."""
    kept = frozenset(sticky)

    def rank(one: StateChange) -> int:
        if one.kind == "transition" and one.after in kept:
            return 0
        return _ORDER.get(one.kind, len(_ORDER))

    added, changed, gone = found.counts.values()
    told = tuple(sorted(found.told, key=rank)[:_TOLD])
    return CycleChange(cycle=cycle, added=added, changed=changed, gone=gone, told=told)


# ---- What one awareness module held as a cycle began, as far as there is room for it ----


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


# ---- Where the agent stood: what its awareness modules held as cycles began ----


_LOOKS = 250
"""Cycles that are looked at over time."""
_BYTES = 1 << 24
"""Bytes of snapshots that are read to look over time."""
_STEPS = 120
"""Cycles that are offered to be shown."""
NOT_AWARE = "This run keeps no awareness state: its agent has no modules=[Awareness()]."
_MODULES = 4
"""Modules that are told of; more are only counted."""


def is_aware(index: TraceIndex) -> bool:
    """Whether a run keeps the state of an awareness module: its first or last snapshot has one.

    Raises:
        TraceError: The trace cannot be read.
    """
    positions = list(index.positions(RecordKind.SNAPSHOT))
    for position in dict.fromkeys((*positions[:1], *positions[-1:])):
        found = snapshot_at(index, position)
        if found is not None and any(map(is_awareness, found.modules.values())):
            return True
    return False


class AwarenessTrack:
    """The awareness modules of a run, over its cycles and as any one of them began.

    It looks at the trace once; when that has grown, make another one.

    Args:
        index: The run's trace, as far as it was scanned.
        looks: Cycles that are looked at over time; of a longer run every so-many-eth is.

    Raises:
        TraceError: The trace cannot be read.
    """

    def __init__(self, index: TraceIndex, *, looks: int = _LOOKS) -> None:
        self._index = index
        self.lines = index.lines
        """How many lines the trace had."""
        self._begun = cycle_snapshots(index)
        self._cycles = [cycle for cycle, _ in self._begun]
        self.every = self._interval(looks)
        """Every how-many-eth cycle is looked at over time."""
        self._builders: dict[str, CourseBuilder] = {}
        self._courses: dict[str, Course] = {}
        self._look()

    def _interval(self, looks: int) -> int:
        """So many cycles that neither they nor their bytes are too many."""
        size = sum(self._index.length(position) for _, position in self._begun)
        return max(1, math.ceil(len(self._begun) / looks), math.ceil(size / _BYTES))

    def _look(self) -> None:
        last = len(self._begun) - 1
        chosen = range(0, len(self._begun), self.every)
        for at in (*chosen, *(() if last in chosen or last < 0 else (last,))):
            cycle, position = self._begun[at]
            for name, kept in kept_at(self._index, position).items():
                if name in self._builders or len(self._builders) < 4 * _MODULES:
                    self._builders.setdefault(name, CourseBuilder(name)).take(cycle, kept)
        self._courses = {name: each.course() for name, each in self._builders.items()}

    @property
    def aware(self) -> bool:
        """Whether there is any state of an awareness module."""
        return bool(self._builders)

    def beside(self, cycle: int) -> tuple[int | None, int | None]:
        """The cycles before and after one; None where there is none."""
        at = self._place(cycle)
        after = self._cycles[at + 1] if at + 1 < len(self._cycles) else None
        return self._cycles[at - 1] if at else None, after

    def view(self, cycle: int | None = None) -> AwarenessView:
        """Where the agent stood as a cycle began.

        Args:
            cycle: The cycle; None for the last one.

        Raises:
            ConfigurationError: The run keeps no state of any awareness module.
            UnknownNameError: The trace holds no state of that cycle.
            TraceError: The trace cannot be read.
        """
        if not self.aware:
            raise ConfigurationError(NOT_AWARE)
        at = len(self._begun) - 1 if cycle is None else self._place(cycle)
        here, position = self._begun[at]
        now = kept_at(self._index, position)
        before = self._before(at)
        names = sorted(self._builders)
        shown = names[:_MODULES]
        return AwarenessView(
            cycle=here,
            last=self._cycles[-1],
            stands=tuple(self._stand(name, here, now, before) for name in shown),
            courses=tuple(self._courses[name] for name in shown),
            every=self.every,
            steps=tuple(self._steps(at)),
            steps_of=len(self._cycles),
            modules_left_out=len(names) - len(shown),
        )

    def _place(self, cycle: int) -> int:
        at = self._cycles.index(cycle) if cycle in self._cycles else -1
        if at < 0:
            known = [f"{self._cycles[0]} to {self._cycles[-1]}"]
            raise UnknownNameError("cycle with a kept state", str(cycle), known)
        return at

    def _before(self, at: int) -> tuple[int, KeptByName] | None:
        if not at:
            return None
        cycle, position = self._begun[at - 1]
        return cycle, kept_at(self._index, position)

    def _stand(
        self, name: str, cycle: int, now: KeptByName, before: tuple[int, KeptByName] | None
    ) -> Stand:
        builder = self._builders[name]
        earlier = before[1].get(name) if before else None
        was: tuple[int, Kept] | None = (before[0], earlier) if before and earlier else None
        return stand_of(
            name,
            cycle,
            now.get(name),
            was,
            lambda step: builder.since(step, cycle),
            lambda item: builder.item_since(item, cycle),
        )

    def _steps(self, at: int) -> Sequence[int]:
        """The cycles around a place, as many as are offered."""
        first = max(0, min(at - _STEPS // 2, len(self._cycles) - _STEPS))
        return self._cycles[first : first + _STEPS]
