"""What one awareness module held over the cycles of a run, a state at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coag.awareness import AttentionItem, AwarenessState, Goal
from coag.inspector.reading import in_a_line
from coag.inspector.views import Course, CycleChange, Lane, Marks, Series, Span, StateChange

from ._aware_changes import NAME, Changes, changes_between
from ._aware_read import Kept

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
