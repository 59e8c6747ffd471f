"""The tracks of beliefs over cycles."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from coag.inspector.views import Belief, BeliefPoint, BeliefTrack, ListChange, ListTrack
from coag.schema import Snapshot
from coag.tracing import RecordKind, TraceIndex

# ---- Where in a trace each cycle begins ----


def first_snapshots(index: TraceIndex) -> Iterator[tuple[int, int]]:
    """Of each cycle its number and the position of the first snapshot before it.

    Before the first cycle of a process that is the one with which the process began.
    """
    seen = -1
    for position in index.positions(RecordKind.SNAPSHOT):
        number = index.stretch_of(position)
        if number == seen:
            continue
        seen = number
        cycle = index.stretch(number).cycle
        if cycle:
            yield cycle, position


def cycle_snapshots(index: TraceIndex) -> list[tuple[int, int]]:
    """Of each cycle its number and the position of the snapshot that it began with, in order.

    What arrived before the cycle is in it. Of a cycle that was begun anew the last one counts.
    """
    found: dict[int, int] = {}
    for position in index.positions(RecordKind.SNAPSHOT):
        cycle = index.stretch(index.stretch_of(position)).cycle
        if cycle:
            found[cycle] = position
    return sorted(found.items(), key=lambda one: one[1])


FieldPath = tuple[str, ...]
"""The keys that lead to a field; within a list of objects `key[name]`."""

_FIELDS = 400
"""Fields of one state that are looked at."""
_DEEP = 12
_PARTS = 4
"""Numbers in the longest list that is a field, such as a position."""
_TEXT = 200
"""Characters of a text that are kept."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one state says of one field."""

    value: Any
    own: bool = False
    """True if it stands within what is said of the agent by its name."""


Fields = Mapping[FieldPath, Told]


def fields_of(state: object, agent: str = "") -> Fields:
    """The scalars and the short lists of numbers in a JSON state.

    Of a list of objects only the one is looked into whose `name` or `id` is the agent's.

    Args:
        state: Any JSON value.
        agent: The agent's name; empty to look into no list.
    """
    found: dict[FieldPath, Told] = {}
    for path, told in _walk(state, (), agent, own=False):
        found[path] = told
        if len(found) >= _FIELDS:
            break
    return found


def is_number(value: object) -> bool:
    """Whether a JSON value is a number that can be drawn."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e15 and math.isfinite(value)


def is_point(value: object) -> bool:
    """Whether a JSON value is a short list of numbers, such as a position."""
    if not isinstance(value, list):
        return False
    items = cast("list[object]", value)
    return 0 < len(items) <= _PARTS and all(map(is_number, items))


def paired(believed: Sequence[Fields], true: Sequence[Fields]) -> dict[FieldPath, FieldPath]:
    """Which field of the truth each field of the belief is about, where that is plain.

    They have the same last key and values of one sort wherever both are told. Of several the one
    under the same path is meant, or else the one that is said of the agent itself; if that
    decides nothing, none is.

    Args:
        believed: The fields of the belief, at several times.
        true: The fields of the truth, at the same times.
    """
    by_key: dict[str, dict[FieldPath, bool]] = {}
    for fields in true:
        for path, told in fields.items():
            by_key.setdefault(path[-1], {})[path] = told.own
    pairs: dict[FieldPath, FieldPath] = {}
    for path in dict.fromkeys(path for fields in believed for path in fields):
        rivals = by_key.get(path[-1], {})
        fitting = {of: own for of, own in rivals.items() if _alike(path, of, believed, true)}
        chosen = _chosen(path, fitting)
        if chosen is not None:
            pairs[path] = chosen
    return pairs


def _chosen(path: FieldPath, fitting: Mapping[FieldPath, bool]) -> FieldPath | None:
    if path in fitting:
        return path
    own = [of for of, is_own in fitting.items() if is_own]
    if len(own) == 1:
        return own[0]
    return next(iter(fitting)) if len(fitting) == 1 else None


def _alike(
    path: FieldPath, of: FieldPath, believed: Iterable[Fields], true: Iterable[Fields]
) -> bool:
    """Whether both are of one sort wherever both are told, and they are told together."""
    together = False
    for held, so in zip(believed, true, strict=True):
        if path in held and of in so:
            together = True
            if _sort(held[path].value) != _sort(so[of].value):
                return False
    return together


def _sort(value: object) -> object:
    if isinstance(value, list):
        return len(cast("list[object]", value))
    return "number" if is_number(value) else type(value)


def _walk(
    value: object, path: FieldPath, agent: str, *, own: bool
) -> Iterator[tuple[FieldPath, Told]]:
    if len(path) > _DEEP:
        return
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _walk(item, (*path, key[:_TEXT]), agent, own=own)
    elif path and isinstance(value, list):
        yield from _walk_list(cast("list[object]", value), path, agent, own=own)
    elif path and isinstance(value, str):
        yield path, Told(value[:_TEXT], own)
    elif path and (isinstance(value, bool) or is_number(value)):
        yield path, Told(value, own)


def _walk_list(
    items: list[object], path: FieldPath, agent: str, *, own: bool
) -> Iterator[tuple[FieldPath, Told]]:
    if is_point(items):
        yield path, Told(items, own)
        return
    selves = [item for item in items if agent and _is_called(item, agent)]
    if len(selves) == 1:
        inside = (*path[:-1], f"{path[-1]}[{agent}]")
        yield from _walk(selves[0], inside, agent, own=True)


def _is_called(item: object, agent: str) -> bool:
    if not isinstance(item, dict):
        return False
    told = cast("dict[str, object]", item)
    return agent in (told.get("name"), told.get("id"))


# ---- The lists of a JSON state that can be followed over time, and what changed in them ----


Lists = Mapping[str, tuple[str, ...]]
"""The items of each list as JSON, by its dotted path."""

_LISTS = 16
"""Lists of one state that are looked at."""
_ITEMS = 400
"""Items of the longest list that is followed."""
_ITEM = 80
"""Characters of an item."""
_LISTS_DEEP = 6


def lists_of(state: object) -> Lists:
    """The lists of scalars and of positions in a JSON state; others are none that can be told."""
    found: dict[str, tuple[str, ...]] = {}
    for path, items in _walk_lists(state, ()):
        found[".".join(path)] = items
        if len(found) >= _LISTS:
            break
    return found


def list_tracks(moments: Sequence[tuple[int, Lists]]) -> tuple[ListTrack, ...]:
    """The lists that changed.

    Args:
        moments: Cycles in order, each with the lists that were held at its beginning.
    """
    paths = dict.fromkeys(path for _, lists in moments for path in lists)
    tracks = [ListTrack(path=path, changes=tuple(_list_changes(path, moments))) for path in paths]
    return tuple(track for track in tracks if len(track.changes) > 1)


def _list_changes(path: str, moments: Sequence[tuple[int, Lists]]) -> Iterator[ListChange]:
    before: Counter[str] | None = None
    for cycle, lists in moments:
        if path not in lists:
            continue
        now = Counter(lists[path])
        if now != before:
            yield ListChange(
                cycle=cycle,
                added=tuple((now - (before or Counter())).elements()),
                removed=tuple((before - now).elements()) if before else (),
                length=now.total(),
            )
        before = now


def _walk_lists(
    value: object, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    if isinstance(value, dict) and len(path) < _LISTS_DEEP:
        for key, item in cast("dict[str, object]", value).items():
            yield from _walk_lists(item, (*path, key[:_ITEM]))
    elif path and isinstance(value, list):
        items = cast("list[Any]", value)
        if is_point(items):
            return
        if len(items) <= _ITEMS and all(map(_is_told, items)):
            yield path, tuple(json.dumps(item, ensure_ascii=False)[:_ITEM] for item in items)


def _is_told(item: object) -> bool:
    return is_point(item) or item is None or isinstance(item, str | int | float)


# ---- What the agent held to be so over the cycles, beside what was so ----


POINTS = 500
"""Cycles that are looked at, at most."""
_TRACKS = 48
"""Fields that are given, at most."""
_LONGEST = 1 << 23
"""Bytes of a snapshot's line above which it is passed over."""
_LOOKED_BACK = 2_000
"""Further snapshots that are read to find where the environment was last told."""
_AT_ONCE = 16
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class _Moment:
    """The beginning of one cycle."""

    cycle: int
    held: Fields
    so: Fields
    lists: Lists


def belief(index: TraceIndex, agent_name: str, *, limit: int = POINTS) -> Belief:
    """The fields of the perceptual state over time, with the environment's that are the same.

    Which fields are the same is told by their names and values alone: nothing that a log names
    is imported. What is not plain stays without a truth.

    Args:
        index: The run's trace, as far as it was scanned.
        agent_name: The agent's name, by which an environment with several agents tells of it.
        limit: Points of a track; of a longer run every so-many-eth cycle is looked at.

    Raises:
        TraceError: If the trace cannot be read.
    """
    begun = list(first_snapshots(index))
    every = max(1, math.ceil(len(begun) / limit))
    moments = list(_moments(index, begun[::every], agent_name))
    held, so = [moment.held for moment in moments], [moment.so for moment in moments]
    pairs = paired(held, so)
    paths = dict.fromkeys(path for fields in held for path in fields)
    tracks = [_track(path, pairs.get(path, ()), moments) for path in paths]
    tracks.sort(key=lambda track: (not track.true_path, not _has_changed(track)))
    lists = list_tracks([(moment.cycle, moment.lists) for moment in moments])
    return Belief(tracks=tuple(tracks[:_TRACKS]), lists=lists, told=any(so), every=every)


def _moments(index: TraceIndex, begun: Sequence[tuple[int, int]], agent: str) -> Iterator[_Moment]:
    past = _Past(index, agent)
    for start in range(0, len(begun), _AT_ONCE):
        few = [one for one in begun[start : start + _AT_ONCE] if index.length(one[1]) <= _LONGEST]
        for (cycle, position), snapshot in zip(
            few, _snapshots(index, [position for _, position in few]), strict=True
        ):
            if snapshot is None:
                continue
            state = snapshot.working_memory.get("perceptual_state")
            so = past.environment(position, snapshot)
            yield _Moment(cycle, fields_of(state), so, lists_of(state))


class _Past:
    """What the environment was last told to be, as one goes on through the trace."""

    def __init__(self, index: TraceIndex, agent: str) -> None:
        self._index = index
        self._agent = agent
        self._known: Fields = {}
        self._at = -1
        """The snapshot up to which that is known."""
        self._left = _LOOKED_BACK
        self._all = list(index.positions(RecordKind.SNAPSHOT))
        self._next = 0
        """The first of them behind what is known."""

    def environment(self, position: int, snapshot: Snapshot) -> Fields:
        """The environment's fields when a snapshot was written; none where that is not known."""
        between: list[int] = []
        while self._next < len(self._all) and self._all[self._next] <= position:
            if self._all[self._next] < position:
                between.append(self._all[self._next])
            self._next += 1
        if snapshot.environment is not None:
            self._known = fields_of(snapshot.environment, self._agent)
            return self._known
        for back in reversed(between):
            if not self._left or self._index.length(back) > _LONGEST:
                self._known = {}
                break
            self._left -= 1
            (found,) = _snapshots(self._index, [back])
            if found is not None and found.environment is not None:
                self._known = fields_of(found.environment, self._agent)
                break
        return self._known


def _snapshots(index: TraceIndex, positions: Sequence[int]) -> list[Snapshot | None]:
    bodies = [line.entry and line.entry.body for line in index.read(positions)]
    return [body if isinstance(body, Snapshot) else None for body in bodies]


def _track(path: FieldPath, true: FieldPath, moments: Sequence[_Moment]) -> BeliefTrack:
    points: list[BeliefPoint] = []
    for moment in moments:
        held, so = moment.held.get(path), moment.so.get(true) if true else None
        points.append(
            BeliefPoint(
                cycle=moment.cycle, believed=held and held.value, true=so.value if so else None
            )
        )
    return BeliefTrack(
        path=".".join(path),
        true_path=".".join(true),
        points=tuple(points),
        numeric=_is_numeric([point.believed for point in points]),
        wrong=sum(_differ(point) for point in points),
    )


def _is_numeric(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    if all(map(is_number, known)):
        return bool(known)
    return all(map(is_point, known)) and len(set(map(len, known))) == 1


def _differ(point: BeliefPoint) -> bool:
    """Whether both are told and are not the same; a rounded number is."""
    one, other = point.believed, point.true
    if one is None or other is None:
        return False
    if is_point(one) and is_point(other):
        ones, others = cast("list[float]", one), cast("list[float]", other)
        return len(ones) != len(others) or any(map(_apart, ones, others))
    if is_number(one) and is_number(other):
        return _apart(one, other)
    return one != other


def _apart(one: float, other: float) -> bool:
    return not math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)


def _has_changed(track: BeliefTrack) -> bool:
    return any(point.believed != track.points[0].believed for point in track.points)
