"""What the awareness modules of an agent held over the cycles of a run.

A state is read as things of a few kinds: goals, items that need attention, transitions, resources
and so on. `_KINDS` says for each kind how its things are identified, described and shown; the
tables of a state, the differences between two states, and the history over the cycles all follow
from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, cast

from coag.awareness import AwarenessState, load_state
from coag.errors import AwarenessError, ConfigurationError, UnknownNameError
from coag.tracing import RecordKind, TraceIndex

from .texts import in_a_line, object_of
from .trace_scan import snapshot_at
from .views import (
    AwarenessView,
    CycleChange,
    Lane,
    LaneSpan,
    ModuleHistory,
    ModuleState,
    Move,
    StateChange,
    StateRow,
    StateSeries,
    StateTable,
)

NOT_AWARE = "This run keeps no awareness state: its agent has no modules=[Awareness()]."
_PARTS = ("goals", "trajectory", "attention", "domain")
"""No state of another module has all of these."""
_NAME, _TEXT = 160, 240
_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _SavedState:
    """What a snapshot has of one awareness module; no state where it cannot be read."""

    state: AwarenessState | None
    json: _Json = field(default_factory=dict[str, Any])
    pursued: str = ""
    """Id of the open goal that the activity serves; empty for none."""
    trouble: str = ""


def is_aware(index: TraceIndex) -> bool:
    """Whether a run keeps the state of an awareness module: its first or last snapshot has one."""
    positions = list(index.positions(RecordKind.SNAPSHOT))
    ends = dict.fromkeys((*positions[:1], *positions[-1:]))
    return any(_saved_states(index, position) for position in ends)


def _saved_states(index: TraceIndex, position: int) -> dict[str, _SavedState]:
    """The states in the snapshot at a position, by the modules' names."""
    snapshot = snapshot_at(index, position)
    states: dict[str, _SavedState] = {}
    for name, value in (snapshot.modules if snapshot is not None else {}).items():
        saved = object_of(value)
        state = object_of(saved.get("state"))
        if not all(part in state for part in _PARTS):
            continue
        pursued = object_of(saved.get("standing")).get("goal")
        try:
            loaded = load_state(state)
        except (AwarenessError, RecursionError) as error:
            states[name] = _SavedState(None, trouble=in_a_line(str(error), _TEXT))
        else:
            is_open = any(goal.id == pursued and goal.is_open for goal in loaded.goals.goals)
            states[name] = _SavedState(loaded, _as_json(loaded), str(pursued) if is_open else "")
    return states


# ---- The kinds of things in a state ----


@dataclass(frozen=True, slots=True)
class _Kind:
    """A list of things in the JSON of a state, and how they are shown and compared."""

    kind: str
    path: str
    """Where in the state the list is, dotted."""
    title: str
    columns: tuple[str, ...]
    """Fields that are shown. The first names a thing, the others describe it."""
    keys: tuple[str, ...] = ()
    """Fields that identify a thing; none for the first column."""
    step: str = "step"
    """The field with the state's step at which a thing came."""
    compared: int | None = None
    """How many columns are compared; None for all."""
    only_added: bool = False
    """True where leaving things out, as compression does, is no change."""
    most: int = 50

    def things(self, state: _Json) -> list[_Json]:
        """All of this kind in a state."""
        value: Any = state
        for name in self.path.split("."):
            value = value[name]
        return value

    def key(self, thing: _Json) -> Hashable:
        """What identifies a thing."""
        return self.kind, *(str(thing[name]) for name in self.keys or self.columns[:1])

    def cells(self, thing: _Json) -> tuple[str, ...]:
        """A thing as texts, one a column."""
        return tuple(_cell(thing.get(name)) for name in self.columns)


_GOAL_COLUMNS = ("description", "status", "source", "priority", "serves", "waits for")
_GOAL = _Kind(
    "goal",
    "goals.goals",
    "Goals",
    (*_GOAL_COLUMNS, "reached when"),
    ("id",),
    "created_step",
    most=200,
)
_TRANSITION = _Kind(
    "transition",
    "trajectory.transitions",
    "How it came about, the newest first",
    ("description", "type"),
    ("step", "type", "description"),
    only_added=True,
    most=60,
)
_ENDS = ("source", "type", "target")
_MISTAKE = ("action", "reason", "lesson")
_KINDS = (
    _GOAL,
    _Kind(
        "attention",
        "attention.items",
        "Attention, the most urgent first",
        ("description", "type", "urgency", "suppressed", "steps left"),
        ("id",),
        "created_step",
        compared=4,
        most=60,
    ),
    _TRANSITION,
    _Kind("resource", "self_model.resources", "Resources", ("name", "left")),
    _Kind("unknown", "world.unknowns", "Not known", ("text", "state")),
    _Kind("assumption", "world.assumptions", "Assumed", ("text", "state")),
    _Kind(
        "failure", "self_model.failures", "Mistakes and lessons", _MISTAKE, ("step", *_MISTAKE[:2])
    ),
    _Kind("thing", "world.entities", "Things", ("name", "type", "state"), step="first_step"),
    _Kind("relationship", "world.relationships", "How things hang together", _ENDS, _ENDS),
    _Kind("rule", "rules", "What it can and may do, and how it works together", ("rule", "text")),
)
_RULES = ("capabilities", "limitations", "allowed", "forbidden", "needs")


def _as_json(state: AwarenessState) -> _Json:
    """The state as JSON, with the columns that are made of other fields."""
    fields: _Json = state.model_dump(mode="json")
    names = {goal.id: goal.description[:60] for goal in state.goals.goals}
    for goal in fields["goals"]["goals"]:
        goal["serves"] = names.get(goal["parent_id"] or "", "")
        goal["waits for"] = [names.get(one, one) for one in goal["depends_on"][:8]]
        goal["reached when"] = goal["completion_criteria"]
    suppressed = frozenset(state.attention.suppressed)
    items: list[_Json] = fields["attention"]["items"]
    for item in items:
        ttl, came = item["ttl"], item["created_step"]
        left = "until removed" if ttl is None else f"{max(0, came + ttl - state.step)} of {ttl}"
        item["steps left"] = left
        item["suppressed"] = "suppressed" if item["id"] in suppressed else ""
    items.sort(key=lambda one: (bool(one["suppressed"]), -float(one["urgency"])))
    for one in fields["self_model"]["resources"]:
        one["left"] = f"{one['remaining']:g} of {one['capacity']:g}"
    for one in (*fields["world"]["unknowns"], *fields["world"]["assumptions"]):
        one["state"] = "open" if one["resolved"] is None else "settled"
    for part in (fields["trajectory"]["transitions"], fields["self_model"]["failures"]):
        part.reverse()
    rules = {name: fields["self_model"][name] for name in _RULES} | fields["protocol"]
    rules["watches for"] = fields["attention"]["scan_patterns"]
    fields["rules"] = [{"rule": name, "text": value} for name, value in rules.items() if value]
    return fields


def _cell(value: Any) -> str:
    """A value of a thing as text; empty for none."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        fields = cast("_Json", value).items()
        return ", ".join(f"{name} {_cell(one)}" for name, one in list(fields)[:12])
    if isinstance(value, list):
        return "; ".join(_cell(one) for one in cast("list[Any]", value)[:50])
    return "" if value is None else str(value)


# ---- The difference between two states ----


def _differences(
    before: _Json | None, after: _Json | None
) -> Iterator[tuple[Hashable, StateChange]]:
    """What is different, with the keys of the things; none where a state is missing.

    That something was noticed again, as it was, is no change.
    """
    for kind in _KINDS if before and after else ():
        was, now = (
            {kind.key(one): kind.cells(one)[: kind.compared] for one in kind.things(state or {})}
            for state in (before, after)
        )
        for key, cells in now.items():
            earlier = was.get(key)
            if earlier is None:
                yield key, _change(kind, Move.ADDED, cells[0], (), cells[1:])
            elif earlier != cells:
                apart = [one for one in zip(earlier, cells, strict=True) if one[0] != one[1]]
                yield key, _change(kind, Move.CHANGED, cells[0], *zip(*apart, strict=True))
        for key, cells in was.items() if not kind.only_added else ():
            if key not in now:
                yield key, _change(kind, Move.GONE, cells[0], cells[1:], ())


def _change(kind: _Kind, move: Move, name: str, *texts: Iterable[str]) -> StateChange:
    before, after = (in_a_line(", ".join(filter(None, cells)), _TEXT) for cells in texts)
    name = in_a_line(name, _TEXT)
    return StateChange(kind=kind.kind, name=name, move=move, before=before, after=after)


# ---- One state ----


_CHANGES = 60


def _module_state(
    module: str,
    cycle: int,
    saved: _SavedState | None,
    before: tuple[int, _SavedState] | None,
    since: Callable[[int], int],
) -> ModuleState:
    """What a module held; `since` gives the first cycle that began after a step of the state."""
    if saved is None or saved.state is None:
        why = saved.trouble if saved else "The trace holds no state of it as this cycle began."
        return ModuleState(module=module, cycle=cycle, trouble=why)
    compared = before[0] if before and before[1].state else None
    changes = list(_differences(before[1].json if before else None, saved.json))
    moves = {key: change.move for key, change in changes if change.move is not Move.GONE}
    tables = [_table(kind, saved, moves, since) for kind in _KINDS]
    facts = dict(_facts(saved.state, saved.pursued))
    facts |= {f"Changed since cycle {compared}": str(len(changes))} if compared is not None else {}
    return ModuleState(
        module=module,
        cycle=cycle,
        domain=in_a_line(saved.state.domain, _NAME),
        mode=saved.state.protocol.mode.value,
        facts=tuple(facts.items()),
        tables=tuple(table for table in tables if table.of),
        changes=tuple(change for _, change in changes[:_CHANGES]),
        changes_of=len(changes),
        before=compared,
    )


def _facts(state: AwarenessState, pursued: str) -> Iterator[tuple[str, str]]:
    goals = state.goals.goals
    named = [goal.description for goal in goals if goal.id == pursued]
    yield "Pursued now", in_a_line(named[0], _NAME) if named else "no open goal"
    open_goals = sum(goal.is_open for goal in goals)
    yield "Goals", f"{open_goals} open, {len(goals) - open_goals} closed"
    hidden = sum(one.id in state.attention.suppressed for one in state.attention.items)
    visible = len(state.attention.items) - hidden
    yield "Attention", f"{visible}, {hidden} suppressed" if hidden else str(visible)
    for one in state.self_model.resources[:4]:
        yield in_a_line(one.name, 40), f"{one.remaining:g} of {one.capacity:g}"


def _table(
    kind: _Kind,
    saved: _SavedState,
    moves: Mapping[Hashable, Move],
    since: Callable[[int], int],
) -> StateTable:
    things = kind.things(saved.json)
    goals = things if kind is _GOAL else []
    placed = _goal_tree(goals, saved.pursued) if goals else [(one, 0) for one in things]
    awaited = {on for goal in goals if _is_open(goal) for on in goal["depends_on"]}
    rows: list[StateRow] = []
    for one, depth in placed[: kind.most]:
        move = moves.get(kind.key(one))
        row = StateRow(
            cells=tuple(in_a_line(cell, _TEXT) for cell in kind.cells(one)),
            since=since(one[kind.step]) if kind.step in one else None,
            move=move,
            depth=depth,
            strong=bool(goals) and one["id"] == saved.pursued,
            closed=bool(goals) and not (_is_open(one) or move or one["id"] in awaited),
        )
        rows.append(row)
    return StateTable(
        kind=kind.kind, title=kind.title, heads=kind.columns, rows=tuple(rows), of=len(things)
    )


def _is_open(goal: _Json) -> bool:
    return goal["status"] not in ("completed", "abandoned")


def _goal_tree(goals: Sequence[_Json], pursued: str) -> list[tuple[_Json, int]]:
    """Goals, each below the one that it serves; of many the open ones.

    A log may say that goals serve each other in a circle: those come last.
    """
    best = sorted(goals, key=lambda goal: (goal["id"] != pursued, not _is_open(goal)))
    ids = {goal["id"] for goal in best[: _GOAL.most]}
    goals = [goal for goal in goals if goal["id"] in ids]
    children: dict[str, list[_Json]] = {}
    for goal in goals:
        parent = goal["parent_id"] if goal["parent_id"] in ids else ""
        children.setdefault(parent, []).append(goal)
    placed: dict[str, tuple[_Json, int]] = {}
    waiting = [(goal, 0) for goal in reversed(children.get("", []))]
    while waiting:
        goal, depth = waiting.pop()
        placed[goal["id"]] = (goal, depth)
        waiting += [(one, depth + 1) for one in reversed(children.get(goal["id"], []))]
    return [*placed.values(), *((goal, 0) for goal in goals if goal["id"] not in placed)]


# ---- The history over the cycles ----


_DRAWN = 24
"""Lanes of each kind that are drawn."""
_SERIES = 8
_MAIN, _COMPARED = 5, 40
"""Changes of a cycle that are named, and those from which they are chosen."""
_RANK = ("goal", "failure", "transition", "attention", "resource", "unknown", "assumption")
_COUNTS: Mapping[str, Callable[[AwarenessState], int]] = {
    "open goals": lambda state: sum(goal.is_open for goal in state.goals.goals),
    "attention": lambda state: len(state.attention.visible),
    "open questions": lambda state: len(state.world.open_unknowns),
    "things known": lambda state: len(state.world.entities),
}


class _History:
    """Follows one module from cycle to cycle."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._steps: dict[int, int] = {}
        """The state's step as each cycle began; -1 where it cannot be read."""
        self._lanes: dict[tuple[str, Hashable], tuple[str, dict[int, LaneSpan]]] = {}
        """By kind and key: a label, and each cycle that began with it."""
        self._values: dict[str, dict[int, float]] = {}
        self._capacities: dict[str, float] = {}
        self._changes: list[CycleChange] = []
        self._before: _Json | None = None

    def take(self, cycle: int, saved: _SavedState) -> None:
        """What it held as the next cycle began."""
        state = saved.state
        self._steps[cycle] = -1 if state is None else state.step
        if state is None:
            return
        for goal in state.goals.goals:
            look = {"state": goal.status.value, "strong": goal.id == saved.pursued}
            self._note(cycle, "goal", goal.id, goal.description, weight=goal.priority, **look)
        for item in state.attention.items:
            visibility = "suppressed" if item.id in state.attention.suppressed else "visible"
            label = f"{item.type.value}: {item.description}"
            self._note(cycle, "attention", item.id, label, state=visibility, weight=item.urgency)
        for one in state.self_model.resources[:_SERIES]:
            self._capacities[one.name] = one.capacity
            self._values.setdefault(one.name, {})[cycle] = one.remaining
        for name, count in _COUNTS.items():
            self._values.setdefault(name, {})[cycle] = float(count(state))
        self._compare(cycle, saved.json)
        self._before = saved.json

    def _note(self, cycle: int, kind: str, key: Hashable, label: str, **look: Any) -> None:
        _, spans = self._lanes.setdefault((kind, key), (in_a_line(label, _NAME), {}))
        spans[cycle] = LaneSpan(first=cycle, last=cycle, **look)

    def _compare(self, cycle: int, state: _Json) -> None:
        """Counts what changed since the cycle before, and marks the transitions that came."""
        found = list(_differences(self._before, state))
        came = {key for key, change in found if change.move is not Move.GONE}
        for one in _TRANSITION.things(state)[::-1]:
            if self._before is None or _TRANSITION.key(one) in came:
                name: str = one["type"]
                strong = name in state["trajectory"]["sticky"]
                self._note(cycle, "transition", name, name.replace("_", " "), strong=strong)
        if self._before is not None:
            changes = [change for _, change in found]
            ranked = sorted(changes[:_COMPARED], key=lambda one: (*_RANK, one.kind).index(one.kind))
            added, changed, gone = (sum(one.move is move for one in changes) for move in Move)
            self._changes.append(
                CycleChange(
                    cycle=cycle,
                    counts=(added, changed, gone),
                    main=tuple(ranked[:_MAIN]),
                    grave=any(map(_is_grave, changes)),
                )
            )

    def since(self, step: int, cycle: int) -> int:
        """The first cycle looked at that began after a step of the state."""
        first = cycle
        for at, reached in reversed(self._steps.items()):
            if at <= cycle and reached >= 0:
                if reached < step:
                    break
                first = at
        return first

    def view(self) -> ModuleHistory:
        """What was followed so far, as far as there is room for it."""
        lanes: list[Lane] = []
        for kind in ("goal", "transition", "attention"):
            of_kind = [lane for (of, _), lane in self._lanes.items() if of == kind]
            best = {id(lane) for lane in sorted(of_kind, key=self._rank)[:_DRAWN]}
            lanes += [
                Lane(kind=kind, label=label, spans=tuple(self._spans(spans, kind)))
                for label, spans in (lane for lane in of_kind if id(lane) in best)
            ]
        return ModuleHistory(
            module=self._module,
            cycles=tuple(self._steps),
            lanes=tuple(lanes),
            lanes_of=len(self._lanes),
            series=tuple(self._series())[:_SERIES],
            changes=tuple(self._changes),
        )

    def _rank(self, lane: tuple[str, dict[int, LaneSpan]]) -> tuple[bool, bool, float]:
        """The lanes that last to the end and weigh most come first."""
        _, spans = lane
        latest = next(reversed(spans.values()))
        closed = latest.state in ("completed", "abandoned")
        lasts = latest.last == next(reversed(self._steps))
        return not lasts, closed, -max(span.weight for span in spans.values())

    def _spans(self, spans: Mapping[int, LaneSpan], kind: str) -> Iterator[LaneSpan]:
        """Neighbouring cycles in which it was the same are one; transitions stay single."""

        def same(cycle: int) -> tuple[object, ...] | None:
            span = spans.get(cycle)
            alone = cycle if kind == "transition" else 0
            return None if span is None else (span.state, span.strong, alone)

        for known, run in groupby(self._steps, same):
            if known is not None:
                members = [spans[cycle] for cycle in run]
                weight = max(span.weight for span in members)
                yield replace(members[0], last=members[-1].last, weight=weight)

    def _series(self) -> Iterator[StateSeries]:
        """Resources, then the counts that were not the same throughout."""
        for name in dict.fromkeys((*self._capacities, *_COUNTS)):
            values = tuple(self._values.get(name, {}).get(cycle) for cycle in self._steps)
            if name in self._capacities or len(set(values) - {None}) > 1:
                capacity = self._capacities.get(name)
                yield StateSeries(name=in_a_line(name, _NAME), values=values, capacity=capacity)


def _is_grave(change: StateChange) -> bool:
    if change.kind == "transition":
        return change.after.startswith(("failure", "reversal"))
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

    It reads the trace once; when that has grown, make another one. Of a run with more than so many
    cycles to look at over time every so-many-eth is looked at.
    """

    def __init__(self, index: TraceIndex, *, looks: int = _LOOKS) -> None:
        self._index = index
        self.lines = index.lines
        """How many lines the trace had."""
        begun: dict[int, int] = {}
        for position in index.positions(RecordKind.SNAPSHOT):
            cycle = index.stretch(index.stretch_of(position)).cycle
            if cycle:  # the last one before it, with what arrived; also of a repeated cycle
                begun[cycle] = position
        self._begun = sorted(begun.items(), key=lambda one: one[1])
        self._cycles = [cycle for cycle, _ in self._begun]
        size = sum(map(index.length, begun.values()))
        self._every = max(1, math.ceil(len(begun) / looks), math.ceil(size / _BYTES))
        self._histories: dict[str, _History] = {}
        for cycle, position in dict([*self._begun[:: self._every], *self._begun[-1:]]).items():
            for name, saved in _saved_states(index, position).items():
                if name in self._histories or len(self._histories) < 4 * _MODULES:
                    self._histories.setdefault(name, _History(name)).take(cycle, saved)

    @property
    def aware(self) -> bool:
        """Whether there is any state of an awareness module."""
        return bool(self._histories)

    def view(self, cycle: int | None = None) -> AwarenessView:
        """The agent's awareness as a cycle began, or the last one; an error where there is none."""
        if not self.aware:
            raise ConfigurationError(NOT_AWARE)
        cycles = self._cycles
        cycle = cycles[-1] if cycle is None else cycle
        if cycle not in cycles:
            known = [f"{cycles[0]} to {cycles[-1]}"]
            raise UnknownNameError("cycle with a kept state", str(cycle), known)
        at = cycles.index(cycle)
        now, before = (
            _saved_states(self._index, self._begun[place][1]) if place >= 0 else {}
            for place in (at, at - 1)
        )
        modules: list[tuple[ModuleState, ModuleHistory]] = []
        for name, history in sorted(self._histories.items())[:_MODULES]:
            earlier = (cycles[at - 1], before[name]) if name in before else None
            state = _module_state(
                name, cycle, now.get(name), earlier, lambda step, of=history: of.since(step, cycle)
            )
            modules.append((state, history.view()))
        steps = max(0, min(at - _STEPS // 2, len(cycles) - _STEPS))
        return AwarenessView(
            cycle=cycle,
            last=cycles[-1],
            modules=tuple(modules),
            modules_of=len(self._histories),
            every=self._every,
            steps=tuple(cycles[steps : steps + _STEPS]),
            steps_of=len(cycles),
            before=cycles[at - 1] if at else None,
            after=cycles[at + 1] if at + 1 < len(cycles) else None,
        )
