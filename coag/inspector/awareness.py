"""What the awareness modules of an agent held over the cycles of a run.

A state is read as things of a few kinds: goals, items that need attention, transitions, resources
and so on. `_KINDS` says for each kind what tells its things apart, how one is described, and how it
is shown; the tables of a state, the differences between two states, and the history over the
cycles all follow from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from coag.awareness import AwarenessState, Goal, load_state
from coag.errors import AwarenessError, ConfigurationError, UnknownNameError
from coag.tracing import RecordKind, TraceIndex

from .beliefs import cycle_snapshots
from .texts import in_a_line
from .trace_scan import snapshot_at
from .views import (
    AwarenessView,
    CycleChange,
    Lane,
    LaneSpan,
    ModuleHistory,
    ModuleState,
    Move,
    Series,
    StateChange,
    StateRow,
    StateTable,
)

NOT_AWARE = "This run keeps no awareness state: its agent has no modules=[Awareness()]."
_PARTS = ("goals", "trajectory", "attention", "domain")
"""No state of another module has all of these."""
_NAME = 160
_TEXT = 240


@dataclass(frozen=True, slots=True)
class SavedState:
    """What a snapshot has of one awareness module."""

    state: AwarenessState | None
    """None where it cannot be read."""
    pursued: str = ""
    """Id of the goal that the activity serves; empty for none."""
    trouble: str = ""
    """Why it cannot be read."""


def is_aware(index: TraceIndex) -> bool:
    """Whether a run keeps the state of an awareness module: its first or last snapshot has one.

    Raises:
        TraceError: The trace cannot be read.
    """
    positions = list(index.positions(RecordKind.SNAPSHOT))
    ends = dict.fromkeys((*positions[:1], *positions[-1:]))
    return any(_saved_states(index, position) for position in ends)


def _saved_states(index: TraceIndex, position: int) -> dict[str, SavedState]:
    """The states in the snapshot at a position, by the modules' names."""
    snapshot = snapshot_at(index, position)
    modules = snapshot.modules if snapshot is not None else {}
    found: dict[str, SavedState] = {}
    for name, value in modules.items():
        saved = _mapping(value)
        state = _mapping(saved.get("state"))
        if not all(part in state for part in _PARTS):
            continue
        pursued = _mapping(saved.get("standing")).get("goal")
        try:
            loaded = load_state(state)
        except (AwarenessError, RecursionError) as error:
            found[name] = SavedState(None, trouble=in_a_line(str(error), _TEXT))
        else:
            found[name] = SavedState(loaded, pursued if isinstance(pursued, str) else "")
    return found


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


# ---- The kinds of things in a state ----


Rows = Iterable[tuple[Any, tuple[str, ...]]]
"""Things, each with one text for every head of its table."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """How the things of one kind are shown and compared."""

    kind: str
    title: str
    heads: tuple[str, ...]
    """The first column names a thing, the others describe it."""
    rows: Callable[[AwarenessState], Rows]
    key: Callable[[Any], Hashable]
    """What tells its things apart."""
    step: Callable[[Any], int] | None = None
    """The state's step at which a thing came."""
    compared: int | None = None
    """How many columns are compared; None for all."""
    only_added: bool = False
    """True where leaving things out, as compression does, is no change."""

    def description(self, cells: tuple[str, ...]) -> str:
        """What is compared, as one text."""
        return ", ".join(cell for cell in cells[1 : self.compared] if cell)


def _goals(state: AwarenessState) -> Rows:
    names = {goal.id: goal.description[:60] for goal in state.goals.goals}
    for goal in state.goals.goals:
        yield (
            goal,
            (
                goal.description,
                goal.status.value,
                goal.source.value,
                f"p {goal.priority:.2f}",
                names.get(goal.parent_id or "", ""),
                "; ".join(names.get(one, one) for one in goal.depends_on[:8]),
                goal.completion_criteria or "",
            ),
        )


def _attention(state: AwarenessState) -> Rows:
    """By urgency; what is suppressed last."""
    suppressed = frozenset(state.attention.suppressed)
    hidden = [one for one in state.attention.items if one.id in suppressed]
    for item in (*state.attention.visible, *hidden):
        left = "until removed"
        if item.ttl is not None:
            left = f"{max(0, item.created_step + item.ttl - state.step)} of {item.ttl}"
        shown = "suppressed" if item.id in suppressed else ""
        yield item, (item.description, item.type.value, f"{item.urgency:.2f}", shown, left)


def _transitions(state: AwarenessState) -> Rows:
    for one in state.trajectory.transitions[::-1]:
        kept = "kept for good" if one.type in state.trajectory.sticky else ""
        yield one, (one.description, one.type.value, kept)


def _beliefs(beliefs: Iterable[Any]) -> Rows:
    for one in sorted(beliefs, key=lambda one: (one.resolved is not None, -one.step)):
        yield one, (one.text, "open" if one.resolved is None else "settled")


def _things(state: AwarenessState) -> Rows:
    for one in sorted(state.world.entities, key=lambda one: (-one.last_step, one.name)):
        fields = list(one.state.items())
        shown = ", ".join(f"{name} {value}" for name, value in fields[:12])
        yield (
            one,
            (one.name, one.type, shown + (f" and {len(fields) - 12} more" * bool(fields[12:]))),
        )


def _rules(state: AwarenessState) -> Rows:
    """What the agent can and may do, and how it works together."""
    mine, protocol = state.self_model, state.protocol
    rules = {
        "mode": protocol.mode.value,
        "style": protocol.style,
        "output": protocol.output_format,
        "hard constraints": "; ".join(protocol.hard_constraints),
        "hands over": "; ".join(protocol.escalation),
        "able to": ", ".join(mine.capabilities),
        "not able to": ", ".join(mine.limitations),
        "allowed": ", ".join(mine.allowed),
        "forbidden": ", ".join(mine.forbidden),
        "takes": ", ".join(f"{one.action}: {one.amount:g} {one.resource}" for one in mine.needs),
        "watches for": "; ".join(
            f"{one.name}: {one.description}" for one in state.attention.scan_patterns
        ),
    }
    return ((rule, rule) for rule in rules.items() if rule[1])


_GOAL = _Kind(
    "goal",
    "Goals",
    ("goal", "status", "source", "priority", "serves", "waits for", "reached when"),
    _goals,
    lambda goal: goal.id,
    lambda goal: goal.created_step,
)
_TRANSITION = _Kind(
    "transition",
    "How it came about, the newest first",
    ("what", "type", "kept"),
    _transitions,
    lambda one: (one.step, one.type.value, one.description),
    lambda one: one.step,
    only_added=True,
)
_KINDS = (
    _GOAL,
    _Kind(
        "attention",
        "Attention, the most urgent first",
        ("what", "type", "urgency", "suppressed", "steps left"),
        _attention,
        lambda item: item.id,
        lambda item: item.created_step,
        compared=4,
    ),
    _TRANSITION,
    _Kind(
        "resource",
        "Resources",
        ("resource", "left"),
        lambda state: (
            (one, (one.name, f"{one.remaining:g} of {one.capacity:g}"))
            for one in state.self_model.resources
        ),
        lambda one: one.name,
    ),
    _Kind(
        "unknown",
        "Not known",
        ("question", "state"),
        lambda state: _beliefs(state.world.unknowns),
        lambda one: one.text,
        lambda one: one.step,
    ),
    _Kind(
        "assumption",
        "Assumed",
        ("assumption", "state"),
        lambda state: _beliefs(state.world.assumptions),
        lambda one: one.text,
        lambda one: one.step,
    ),
    _Kind(
        "failure",
        "Mistakes and lessons",
        ("action", "reason", "lesson"),
        lambda state: (
            (one, (one.action, one.reason, one.lesson)) for one in state.self_model.failures[::-1]
        ),
        lambda one: (one.step, one.action, one.reason),
        lambda one: one.step,
    ),
    _Kind(
        "thing",
        "Things, the last mentioned first",
        ("name", "type", "state"),
        _things,
        lambda one: one.name,
    ),
    _Kind(
        "relationship",
        "How things hang together",
        ("relationship",),
        lambda state: (
            (one, (f"{one.source} {one.type} {one.target}",))
            for one in sorted(state.world.relationships, key=lambda one: -one.step)
        ),
        lambda one: (one.source, one.type, one.target),
    ),
    _Kind(
        "protocol",
        "What it can and may do, and how it works together",
        ("rule", "text"),
        _rules,
        lambda rule: rule[0],
    ),
)


# ---- The difference between two states ----


@dataclass(slots=True)
class StateDifference:
    """How much changed, and the first of it."""

    limit: int
    """How many changes are kept; all are counted."""
    changes: list[StateChange] = field(default_factory=list[StateChange])
    counts: dict[Move, int] = field(default_factory=lambda: dict.fromkeys(Move, 0))
    moves: dict[tuple[str, Hashable], Move] = field(
        default_factory=dict[tuple[str, Hashable], Move]
    )
    """What became of the things that are there, by kind and key."""

    def take(self, kind: _Kind, key: Hashable, name: str, move: Move, *texts: str) -> None:
        """One thing more that changed; `texts` describe it before and after."""
        self.counts[move] += 1
        if move is not Move.GONE:
            self.moves[kind.kind, key] = move
        if len(self.changes) < self.limit:
            name, before, after = (in_a_line(text, _TEXT) for text in (name, *texts))
            self.changes.append(
                StateChange(kind=kind.kind, name=name, move=move, before=before, after=after)
            )


def difference(before: AwarenessState, after: AwarenessState, limit: int) -> StateDifference:
    """What is different, what counts most first.

    That something was noticed again, as it was, is no change.
    """
    found = StateDifference(limit)
    for kind in _KINDS:
        was = {kind.key(one): cells for one, cells in kind.rows(before)}
        now = {kind.key(one): cells for one, cells in kind.rows(after)}
        for key, cells in now.items():
            description = kind.description(cells)
            if key not in was:
                found.take(kind, key, cells[0], Move.ADDED, "", description)
            elif (earlier := kind.description(was[key])) != description:
                found.take(kind, key, cells[0], Move.CHANGED, *_apart(earlier, description))
        for key, cells in was.items() if not kind.only_added else ():
            if key not in now:
                found.take(kind, key, cells[0], Move.GONE, kind.description(cells), "")
    return found


def _apart(before: str, after: str) -> tuple[str, str]:
    """Two descriptions without the parts that are the same."""
    was, now = before.split(", "), after.split(", ")
    gone, new = [one for one in was if one not in now], [one for one in now if one not in was]
    return ", ".join(gone) or "-", ", ".join(new) or "-"


# ---- One state ----


_ROWS = {"goal": 200, "attention": 60, "transition": 60}
"""Rows of a table; of others `_OTHERS`."""
_OTHERS = 50
_CHANGES = 60
Since = Callable[[_Kind, Any], int | None]
"""The first cycle looked at that began with a thing."""


def _module_state(
    module: str,
    cycle: int,
    saved: SavedState | None,
    before: tuple[int, SavedState] | None,
    since: Since,
) -> ModuleState:
    if saved is None or saved.state is None:
        why = saved.trouble if saved else "The trace holds no state of it as this cycle began."
        return ModuleState(module=module, cycle=cycle, trouble=why)
    state, was = saved.state, before[1].state if before else None
    changed = difference(was, state, _CHANGES) if was is not None else StateDifference(0)
    tables = [_table(kind, state, saved.pursued, changed, since) for kind in _KINDS]
    return ModuleState(
        module=module,
        cycle=cycle,
        domain=in_a_line(state.domain, _NAME),
        mode=state.protocol.mode.value,
        facts=tuple(_facts(state, saved.pursued, before if was is not None else None, changed)),
        tables=tuple(table for table in tables if table.of),
        changes=tuple(changed.changes),
        changes_of=sum(changed.counts.values()),
        before=before[0] if before and was is not None else None,
    )


def _facts(
    state: AwarenessState,
    pursued: str,
    before: tuple[int, SavedState] | None,
    changed: StateDifference,
) -> Iterator[tuple[str, str]]:
    goals = state.goals.goals
    named = [goal.description for goal in goals if goal.id == pursued and goal.is_open]
    yield "Pursued now", in_a_line(named[0], _NAME) if named else "no open goal"
    open_goals = sum(goal.is_open for goal in goals)
    yield "Goals", f"{open_goals} open, {len(goals) - open_goals} closed"
    hidden = sum(one.id in state.attention.suppressed for one in state.attention.items)
    shown = len(state.attention.items) - hidden
    yield "Attention", f"{shown}, {hidden} suppressed" if hidden else str(shown)
    for one in state.self_model.resources[:4]:
        yield in_a_line(one.name, 40), f"{one.remaining:g} of {one.capacity:g}"
    if before is not None:
        yield f"Changed since cycle {before[0]}", str(sum(changed.counts.values()))


def _table(
    kind: _Kind, state: AwarenessState, pursued: str, changed: StateDifference, since: Since
) -> StateTable:
    all_rows = list(kind.rows(state))
    placed = [(one, cells, 0) for one, cells in all_rows]
    if kind is _GOAL:
        by_id = {goal.id: cells for goal, cells in all_rows}
        tree = _goal_tree([goal for goal, _ in all_rows], pursued)
        placed = [(goal, by_id[goal.id], depth) for goal, depth in tree]
    awaited = {on for goal in state.goals.goals if goal.is_open for on in goal.depends_on}
    rows: list[StateRow] = []
    for one, cells, depth in placed[: _ROWS.get(kind.kind, _OTHERS)]:
        move = changed.moves.get((kind.kind, kind.key(one)))
        row = StateRow(
            cells=tuple(in_a_line(cell, _TEXT) for cell in cells),
            since=since(kind, one),
            move=move,
            depth=depth,
            strong=kind is _GOAL and one.id == pursued and one.is_open,
            closed=kind is _GOAL and not (one.is_open or move or one.id in awaited),
        )
        rows.append(row)
    return StateTable(
        kind=kind.kind, title=kind.title, heads=kind.heads, rows=tuple(rows), of=len(all_rows)
    )


def _goal_tree(goals: Sequence[Goal], pursued: str) -> list[tuple[Goal, int]]:
    """Goals, each below the one that it serves; of many the open ones.

    A log may say that goals serve each other in a circle: those come last.
    """
    limit = _ROWS["goal"]
    if len(goals) > limit:
        best = sorted(goals, key=lambda goal: (goal.id != pursued, not goal.is_open))[:limit]
        names = {goal.id for goal in best}
        goals = [goal for goal in goals if goal.id in names]
    ids = {goal.id for goal in goals}
    children: dict[str, list[Goal]] = {}
    for goal in goals:
        parent = goal.parent_id or ""
        children.setdefault(parent if parent in ids else "", []).append(goal)
    placed: dict[str, tuple[Goal, int]] = {}
    waiting = [(goal, 0) for goal in reversed(children.get("", []))]
    while waiting:
        goal, depth = waiting.pop()
        placed[goal.id] = (goal, depth)
        waiting += [(one, depth + 1) for one in reversed(children.get(goal.id, []))]
    return [*placed.values(), *((goal, 0) for goal in goals if goal.id not in placed)]


# ---- The history over the cycles ----


_DRAWN = 24
"""Lanes of each kind that are drawn."""
_SPANS = 4_000
"""Spans of each kind that are kept."""
_SERIES = 8
_MAIN = 5
"""Changes of a cycle that are named."""
_COMPARED = 40
"""Changes from which those are chosen."""
_GRAVE = ("failure", "reversal")
_RANK = ("goal", "failure", "transition", "attention", "resource", "unknown", "assumption")
_COUNTS: Mapping[str, Callable[[AwarenessState], int]] = {
    "open goals": lambda state: sum(goal.is_open for goal in state.goals.goals),
    "attention": lambda state: len(state.attention.visible),
    "open questions": lambda state: len(state.world.open_unknowns),
    "things known": lambda state: len(state.world.entities),
}


class _Lanes:
    """All lanes of one kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._labels: dict[Hashable, str] = {}
        self._spans: dict[Hashable, list[LaneSpan]] = {}
        self._count = 0
        self._known: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self._known)

    def take(self, key: Hashable, label: str, now: LaneSpan, before: int | None) -> None:
        """One thing as a cycle began; `before` is the cycle looked at before this one."""
        self._known.add(key)
        spans = self._spans.setdefault(key, [])
        self._labels.setdefault(key, in_a_line(label, _NAME))
        last = spans[-1] if spans and spans[-1].last == before else None
        if last is not None and (last.state, last.strong) == (now.state, now.strong):
            spans[-1] = replace(last, last=now.last, weight=max(last.weight, now.weight))
        elif self._count < _SPANS:
            spans.append(now)
            self._count += 1

    def drawn(self, last: int) -> list[Lane]:
        """The lanes that last to the end and weigh most, in the order in which they came."""

        def rank(key: Hashable) -> tuple[bool, bool, float]:
            spans = self._spans[key]
            lasts = bool(spans) and spans[-1].last == last
            closed = not spans or spans[-1].state in ("completed", "abandoned")
            return not lasts, closed, -max((one.weight for one in spans), default=0.0)

        best = set(sorted(self._spans, key=rank)[:_DRAWN])
        return [
            Lane(kind=self._kind, label=self._labels[key], spans=tuple(spans))
            for key, spans in self._spans.items()
            if key in best
        ]


class _History:
    """Follows one module from cycle to cycle.

    Args:
        module: Its name.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._cycles: list[int] = []
        self._steps: list[int] = []
        """The state's step as each of them began; -1 where it cannot be read."""
        self._lanes = {kind: _Lanes(kind) for kind in ("goal", "transition", "attention")}
        self._values: dict[str, dict[int, float]] = {}
        self._capacities: dict[str, float] = {}
        self._changes: list[CycleChange] = []
        self._before: AwarenessState | None = None

    def take(self, cycle: int, saved: SavedState) -> None:
        """What it held as the next cycle began."""
        before = self._cycles[-1] if self._cycles else None
        state = saved.state
        self._cycles.append(cycle)
        self._steps.append(-1 if state is None else state.step)
        if state is None:
            return
        for goal in state.goals.goals:
            pursued = goal.id == saved.pursued and goal.is_open
            span = LaneSpan(
                first=cycle,
                last=cycle,
                state=goal.status.value,
                weight=goal.priority,
                strong=pursued,
            )
            self._lanes["goal"].take(goal.id, goal.description, span, before)
        for item in state.attention.items:
            shown = "suppressed" if item.id in state.attention.suppressed else "visible"
            span = LaneSpan(first=cycle, last=cycle, state=shown, weight=item.urgency)
            label = f"{item.type.value}: {item.description}"
            self._lanes["attention"].take(item.id, label, span, before)
        for one in state.self_model.resources[:_SERIES]:
            self._capacities[one.name] = one.capacity
            self._values.setdefault(one.name, {})[cycle] = one.remaining
        for name, count in _COUNTS.items():
            self._values.setdefault(name, {})[cycle] = float(count(state))
        self._compare(cycle, state)
        self._before = state

    def _compare(self, cycle: int, state: AwarenessState) -> None:
        """Counts what changed since the cycle before, and marks the transitions that came."""
        found = difference(self._before, state, _COMPARED) if self._before else None
        for one in state.trajectory.transitions:
            key = (_TRANSITION.kind, _TRANSITION.key(one))
            if found is None or key in found.moves:
                strong, name = one.type in state.trajectory.sticky, one.type.value
                span = LaneSpan(first=cycle, last=cycle, strong=strong)
                self._lanes["transition"].take(name, name.replace("_", " "), span, None)
        if found is None:
            return
        rank = {kind: at for at, kind in enumerate(_RANK)}
        ranked = sorted(found.changes, key=lambda one: rank.get(one.kind, len(rank)))
        added, changed, gone = found.counts.values()
        self._changes.append(
            CycleChange(
                cycle=cycle,
                counts=(added, changed, gone),
                main=tuple(ranked[:_MAIN]),
                grave=any(map(_is_grave, found.changes)),
            )
        )

    def since(self, kind: _Kind, thing: Any, cycle: int) -> int | None:
        """The first cycle looked at that began with a thing."""
        if kind.step is None:
            return None
        step, first = kind.step(thing), cycle
        for at, reached in zip(reversed(self._cycles), reversed(self._steps), strict=True):
            if at <= cycle and reached >= 0:
                if reached < step:
                    break
                first = at
        return first

    def view(self) -> ModuleHistory:
        """What was followed so far, as far as there is room for it."""
        last = self._cycles[-1] if self._cycles else 0
        return ModuleHistory(
            module=self._module,
            cycles=tuple(self._cycles),
            lanes=tuple(lane for lanes in self._lanes.values() for lane in lanes.drawn(last)),
            lanes_of=sum(map(len, self._lanes.values())),
            series=tuple(self._series())[:_SERIES],
            changes=tuple(self._changes),
        )

    def _series(self) -> Iterator[Series]:
        """Resources, then the counts that were not the same throughout."""
        for name in (*self._capacities, *(one for one in _COUNTS if one not in self._capacities)):
            values = tuple(self._values.get(name, {}).get(cycle) for cycle in self._cycles)
            if name in self._capacities or len(set(values) - {None}) > 1:
                capacity = self._capacities.get(name)
                yield Series(name=in_a_line(name, _NAME), values=values, capacity=capacity)


def _is_grave(change: StateChange) -> bool:
    if change.kind == "transition":
        return change.after.startswith(_GRAVE)
    came = change.kind == "attention" and change.move is Move.ADDED
    return came and change.after.startswith("threat")


# ---- All modules of a run ----


_LOOKS = 250
"""Cycles that are looked at over time."""
_BYTES = 1 << 24
"""Bytes of snapshots that are read to look over time."""
_STEPS = 120
"""Cycles that are offered to be shown."""
_MODULES = 4
"""Modules that are shown; more are only counted."""


class AwarenessReader:
    """The awareness modules of a run, over its cycles and as any one of them began.

    It reads the trace once; when that has grown, make another one.

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
        size = sum(index.length(position) for _, position in self._begun)
        self._every = max(1, math.ceil(len(self._begun) / looks), math.ceil(size / _BYTES))
        self._histories: dict[str, _History] = {}
        for cycle, position in (*self._begun[:: self._every], *self._last_one()):
            for name, saved in _saved_states(index, position).items():
                if name in self._histories or len(self._histories) < 4 * _MODULES:
                    self._histories.setdefault(name, _History(name)).take(cycle, saved)

    def _last_one(self) -> list[tuple[int, int]]:
        """The last cycle, if it is not looked at anyway."""
        return self._begun[-1:] if (len(self._begun) - 1) % self._every else []

    @property
    def aware(self) -> bool:
        """Whether there is any state of an awareness module."""
        return bool(self._histories)

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
        at = len(self._cycles) - 1
        if cycle is not None:
            if cycle not in self._cycles:
                known = [f"{self._cycles[0]} to {self._cycles[-1]}"]
                raise UnknownNameError("cycle with a kept state", str(cycle), known)
            at = self._cycles.index(cycle)
        here, position = self._begun[at]
        now = _saved_states(self._index, position)
        before = _saved_states(self._index, self._begun[at - 1][1]) if at else {}
        names = sorted(self._histories)
        steps = max(0, min(at - _STEPS // 2, len(self._cycles) - _STEPS))
        return AwarenessView(
            cycle=here,
            last=self._cycles[-1],
            modules=tuple(
                (self._state(name, at, now, before), self._histories[name].view())
                for name in names[:_MODULES]
            ),
            modules_of=len(names),
            every=self._every,
            steps=tuple(self._cycles[steps : steps + _STEPS]),
            steps_of=len(self._cycles),
            before=self._cycles[at - 1] if at else None,
            after=self._cycles[at + 1] if at + 1 < len(self._cycles) else None,
        )

    def _state(
        self, name: str, at: int, now: Mapping[str, SavedState], before: Mapping[str, SavedState]
    ) -> ModuleState:
        history, cycle = self._histories[name], self._cycles[at]
        earlier = (self._cycles[at - 1], before[name]) if name in before else None
        return _module_state(
            name,
            cycle,
            now.get(name),
            earlier,
            lambda kind, thing: history.since(kind, thing, cycle),
        )
