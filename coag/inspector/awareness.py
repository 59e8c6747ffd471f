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

from coag.awareness import AwarenessState, load_state
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
    StateChange,
    StateRow,
    StateSeries,
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
    json: dict[str, Any] = field(default_factory=dict[str, Any])
    """The same as JSON, see `_as_json`."""
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
            named = pursued if isinstance(pursued, str) else ""
            found[name] = SavedState(loaded, _as_json(loaded), named)
    return found


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


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
    key: tuple[str, ...] = ()
    """Fields that tell the things apart; none for the first column."""
    step: str = "step"
    """The field with the state's step at which a thing came."""
    compared: int | None = None
    """How many columns are compared; None for all."""
    only_added: bool = False
    """True where leaving things out, as compression does, is no change."""


_GOAL_COLUMNS = ("description", "status", "source", "priority", "serves", "waits for")
_GOAL = _Kind(
    "goal", "goals.goals", "Goals", (*_GOAL_COLUMNS, "reached when"), ("id",), "created_step"
)
_ATTENTION = _Kind(
    "attention",
    "attention.items",
    "Attention, the most urgent first",
    ("description", "type", "urgency", "suppressed", "steps left"),
    ("id",),
    "created_step",
    compared=4,
)
_TRANSITION = _Kind(
    "transition",
    "trajectory.transitions",
    "How it came about, the newest first",
    ("description", "type"),
    ("step", "type", "description"),
    only_added=True,
)
_ENDS = ("source", "type", "target")
_MISTAKE = ("action", "reason", "lesson")
_KINDS = (
    _GOAL,
    _ATTENTION,
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
Json = dict[str, Any]


def _as_json(state: AwarenessState) -> Json:
    """The state as JSON, with the columns that are made of other fields."""
    whole: Json = state.model_dump(mode="json")
    names = {goal.id: goal.description[:60] for goal in state.goals.goals}
    for goal in whole["goals"]["goals"]:
        goal["serves"] = names.get(goal["parent_id"] or "", "")
        goal["waits for"] = [names.get(one, one) for one in goal["depends_on"][:8]]
        goal["reached when"] = goal["completion_criteria"]
    suppressed = frozenset(state.attention.suppressed)
    items: list[Json] = whole["attention"]["items"]
    for item in items:
        ttl, came = item["ttl"], item["created_step"]
        left = "until removed" if ttl is None else f"{max(0, came + ttl - state.step)} of {ttl}"
        item["steps left"] = left
        item["suppressed"] = "suppressed" if item["id"] in suppressed else ""
    items.sort(key=lambda one: (bool(one["suppressed"]), -float(one["urgency"])))
    for one in whole["self_model"]["resources"]:
        one["left"] = f"{one['remaining']:g} of {one['capacity']:g}"
    for one in (*whole["world"]["unknowns"], *whole["world"]["assumptions"]):
        one["state"] = "open" if one["resolved"] is None else "settled"
    for part in (whole["trajectory"]["transitions"], whole["self_model"]["failures"]):
        part.reverse()
    rules = {name: whole["self_model"][name] for name in _RULES} | whole["protocol"]
    rules["watches for"] = whole["attention"]["scan_patterns"]
    whole["rules"] = [{"rule": name, "text": value} for name, value in rules.items() if value]
    return whole


def _things(state: Json, kind: _Kind) -> list[Json]:
    found: Any = state
    for name in kind.path.split("."):
        found = found[name]
    return found


def _key(kind: _Kind, thing: Json) -> Hashable:
    return tuple(str(thing[name]) for name in kind.key or kind.columns[:1])


def _cells(kind: _Kind, thing: Json) -> tuple[str, ...]:
    return tuple(_cell(thing.get(name)) for name in kind.columns)


def _cell(value: Any) -> str:
    """A value of a thing as text; empty for none."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        fields = cast("Json", value).items()
        return ", ".join(f"{name} {_cell(one)}" for name, one in list(fields)[:12])
    if isinstance(value, list):
        return "; ".join(_cell(one) for one in cast("list[Any]", value)[:50])
    return "" if value is None else str(value)


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


def difference(before: Json, after: Json, limit: int) -> StateDifference:
    """What is different, what counts most first; both states are given by `_as_json`.

    That something was noticed again, as it was, is no change.
    """
    found = StateDifference(limit)
    for kind in _KINDS:
        was, now = (
            {_key(kind, one): _cells(kind, one)[: kind.compared] for one in _things(state, kind)}
            for state in (before, after)
        )
        for key, cells in now.items():
            earlier = was.get(key)
            if earlier is None:
                found.take(kind, key, cells[0], Move.ADDED, "", _joined(cells[1:]))
            elif earlier != cells:
                pairs = [one for one in zip(earlier, cells, strict=True) if one[0] != one[1]]
                texts = (_joined(part) for part in zip(*pairs, strict=True))
                found.take(kind, key, cells[0], Move.CHANGED, *texts)
        for key, cells in was.items() if not kind.only_added else ():
            if key not in now:
                found.take(kind, key, cells[0], Move.GONE, _joined(cells[1:]), "")
    return found


def _joined(cells: Iterable[str]) -> str:
    return ", ".join(cell for cell in cells if cell)


# ---- One state ----


_ROWS = {"goal": 200, "attention": 60, "transition": 60}
"""Rows of a table; of others `_OTHERS`."""
_OTHERS = 50
_CHANGES = 60
Since = Callable[[int], int]
"""The first cycle looked at that began after a step of the state."""


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
    changed = StateDifference(0)
    if before is not None and was is not None:
        changed = difference(before[1].json, saved.json, _CHANGES)
    tables = [_table(kind, saved, changed, since) for kind in _KINDS]
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


def _table(kind: _Kind, saved: SavedState, changed: StateDifference, since: Since) -> StateTable:
    things = _things(saved.json, kind)
    placed = _goal_tree(things, saved.pursued) if kind is _GOAL else [(one, 0) for one in things]
    awaited = {
        on for goal in things if kind is _GOAL and _is_open(goal) for on in goal["depends_on"]
    }
    rows: list[StateRow] = []
    for one, depth in placed[: _ROWS.get(kind.kind, _OTHERS)]:
        move = changed.moves.get((kind.kind, _key(kind, one)))
        is_open = kind is not _GOAL or _is_open(one)
        row = StateRow(
            cells=tuple(in_a_line(cell, _TEXT) for cell in _cells(kind, one)),
            since=since(one[kind.step]) if kind.step in one else None,
            move=move,
            depth=depth,
            strong=kind is _GOAL and one["id"] == saved.pursued and is_open,
            closed=not (is_open or move or one["id"] in awaited),
        )
        rows.append(row)
    return StateTable(
        kind=kind.kind, title=kind.title, heads=kind.columns, rows=tuple(rows), of=len(things)
    )


def _is_open(goal: Json) -> bool:
    return goal["status"] not in ("completed", "abandoned")


def _goal_tree(goals: Sequence[Json], pursued: str) -> list[tuple[Json, int]]:
    """Goals, each below the one that it serves; of many the open ones.

    A log may say that goals serve each other in a circle: those come last.
    """
    limit = _ROWS["goal"]
    if len(goals) > limit:
        best = sorted(goals, key=lambda goal: (goal["id"] != pursued, not _is_open(goal)))[:limit]
        names = {goal["id"] for goal in best}
        goals = [goal for goal in goals if goal["id"] in names]
    ids = {goal["id"] for goal in goals}
    children: dict[str, list[Json]] = {}
    for goal in goals:
        parent = goal["parent_id"] if goal["parent_id"] in ids else ""
        children.setdefault(parent, []).append(goal)
    placed: dict[str, tuple[Json, int]] = {}
    waiting = [(goal, 0) for goal in reversed(children.get("", []))]
    while waiting:
        goal, depth = waiting.pop()
        placed[goal["id"]] = (goal, depth)
        waiting += [(one, depth + 1) for one in reversed(children.get(goal["id"], []))]
    return [*placed.values(), *((goal, 0) for goal in goals if goal["id"] not in placed)]


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
        self._before: Json | None = None

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
        self._compare(cycle, saved)
        self._before = saved.json

    def _compare(self, cycle: int, saved: SavedState) -> None:
        """Counts what changed since the cycle before, and marks the transitions that came."""
        found = difference(self._before, saved.json, _COMPARED) if self._before else None
        for one in _things(saved.json, _TRANSITION)[::-1]:
            key = (_TRANSITION.kind, _key(_TRANSITION, one))
            if found is None or key in found.moves:
                name: str = one["type"]
                strong = name in saved.json["trajectory"]["sticky"]
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

    def since(self, step: int, cycle: int) -> int:
        """The first cycle looked at that began after a step of the state."""
        first = cycle
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

    def _series(self) -> Iterator[StateSeries]:
        """Resources, then the counts that were not the same throughout."""
        for name in (*self._capacities, *(one for one in _COUNTS if one not in self._capacities)):
            values = tuple(self._values.get(name, {}).get(cycle) for cycle in self._cycles)
            if name in self._capacities or len(set(values) - {None}) > 1:
                capacity = self._capacities.get(name)
                yield StateSeries(name=in_a_line(name, _NAME), values=values, capacity=capacity)


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
            lambda step: history.since(step, cycle),
        )
