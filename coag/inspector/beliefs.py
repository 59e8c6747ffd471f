"""What the agent believed over the cycles, beside what was true."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from coag.tracing import RecordKind, TraceIndex

from .trace_scan import snapshot_at


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefPoint:
    """One field at the beginning of one cycle."""

    cycle: int
    believed: Any
    """A scalar, or a short list of numbers such as a position; None where it is not believed."""
    true: Any = None
    """The same of the environment; None where it does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefTrack:
    """One field of the perceptual state over time."""

    path: str
    """Dotted, within the perceptual state."""
    true_path: str
    """The field of the environment that it was paired with; empty for none."""
    points: tuple[BeliefPoint, ...]
    numeric: bool
    """True if it can be drawn as a line (for a position: a line for each part)."""
    wrong: int = 0
    """At how many points belief and truth differ."""

    @property
    def steady(self) -> bool:
        """True if it was the same throughout, and right as far as that is known."""
        return not self.wrong and all(
            point.believed == self.points[0].believed for point in self.points
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChange:
    """What was added to a list and removed from it since the cycle before."""

    cycle: int
    added: tuple[str, ...] = ()
    """Items as JSON."""
    removed: tuple[str, ...] = ()
    length: int = 0
    """How many items it has then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTrack:
    """A list of the perceptual state, such as the cells that are dirty, over time."""

    path: str
    """Dotted, within the perceptual state."""
    changes: tuple[ListChange, ...] = ()
    """Cycles in which it was another one than before; with the first that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefView:
    """All fields that can be followed."""

    tracks: tuple[BeliefTrack, ...] = ()
    """Those with a truth to compare first."""
    lists: tuple[ListTrack, ...] = ()
    """Those that changed."""
    has_truth: bool = False
    """True if the trace holds the state of the environment."""
    every: int = 1
    """Of a long run every how-many-eth cycle is shown."""


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

    What arrived before the cycle is in it. Of a repeated cycle the last one counts.
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
class FieldValue:
    """One field of a state."""

    value: Any
    own: bool = False
    """True if it is part of the object that has the agent's name."""


Fields = Mapping[FieldPath, FieldValue]


def fields_of(state: object, agent: str = "") -> Fields:
    """The scalars and the short lists of numbers in a JSON state.

    Of a list of objects only the one is looked into whose `name` or `id` is the agent's.

    Args:
        state: Any JSON value.
        agent: The agent's name; empty to look into no list.
    """
    found: dict[FieldPath, FieldValue] = {}
    for path, value in _walk(state, (), agent, own=False):
        found[path] = value
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

    They have the same last key and values of one sort wherever both are known. Of several the one
    under the same path is meant, or else the one that is said of the agent itself; if that
    decides nothing, none is.

    Args:
        believed: The fields of the belief, at several times.
        true: The fields of the truth, at the same times.
    """
    by_key: dict[str, dict[FieldPath, bool]] = {}
    for fields in true:
        for path, value in fields.items():
            by_key.setdefault(path[-1], {})[path] = value.own
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
    """Whether both are of one sort wherever both are known, and that is somewhere."""
    together = False
    for one, other in zip(believed, true, strict=True):
        if path in one and of in other:
            together = True
            if _sort(one[path].value) != _sort(other[of].value):
                return False
    return together


def _sort(value: object) -> object:
    if isinstance(value, list):
        return len(cast("list[object]", value))
    return "number" if is_number(value) else type(value)


def _walk(
    value: object, path: FieldPath, agent: str, *, own: bool
) -> Iterator[tuple[FieldPath, FieldValue]]:
    if len(path) > _DEEP:
        return
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _walk(item, (*path, key[:_TEXT]), agent, own=own)
    elif path and isinstance(value, list):
        yield from _walk_list(cast("list[object]", value), path, agent, own=own)
    elif path and isinstance(value, str):
        yield path, FieldValue(value[:_TEXT], own)
    elif path and (isinstance(value, bool) or is_number(value)):
        yield path, FieldValue(value, own)


def _walk_list(
    items: list[object], path: FieldPath, agent: str, *, own: bool
) -> Iterator[tuple[FieldPath, FieldValue]]:
    if is_point(items):
        yield path, FieldValue(items, own)
        return
    selves = [item for item in items if agent and _is_called(item, agent)]
    if len(selves) == 1:
        inside = (*path[:-1], f"{path[-1]}[{agent}]")
        yield from _walk(selves[0], inside, agent, own=True)


def _is_called(item: object, agent: str) -> bool:
    if not isinstance(item, dict):
        return False
    fields = cast("dict[str, object]", item)
    return agent in (fields.get("name"), fields.get("id"))


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
    """The lists of scalars and of positions in a JSON state; others are left out."""
    found: dict[str, tuple[str, ...]] = {}
    for path, items in _walk_lists(state, ()):
        found[".".join(path)] = items
        if len(found) >= _LISTS:
            break
    return found


def list_tracks(moments: Sequence[tuple[int, Lists]]) -> tuple[ListTrack, ...]:
    """The lists that changed.

    Args:
        moments: Cycles in order, each with the lists of the state at its beginning.
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
        if len(items) <= _ITEMS and all(map(_is_listed, items)):
            yield path, tuple(json.dumps(item, ensure_ascii=False)[:_ITEM] for item in items)


def _is_listed(item: object) -> bool:
    return is_point(item) or item is None or isinstance(item, str | int | float)


# ---- Over the cycles ----


POINTS = 500
"""Cycles that are looked at, at most."""
_TRACKS = 48
"""Fields that are given, at most."""
_LOOKED_BACK = 32
"""Snapshots in which the state of the environment is looked for."""
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class _Moment:
    """The beginning of one cycle."""

    cycle: int
    believed: Fields
    true: Fields
    lists: Lists


def read_beliefs(index: TraceIndex, agent_name: str, *, limit: int = POINTS) -> BeliefView:
    """The fields of the perceptual state over time, with the environment's that are the same.

    Which fields are the same is decided by their names and values alone: nothing that a log names
    is imported. An ambiguous field stays without a truth.

    Args:
        index: The run's trace, as far as it was scanned.
        agent_name: The agent's name, by which an environment with several agents names it.
        limit: Points of a track; of a longer run every so-many-eth cycle is looked at.

    Raises:
        TraceError: If the trace cannot be read.
    """
    begun = list(first_snapshots(index))
    every = max(1, math.ceil(len(begun) / limit))
    moments = list(_moments(index, begun[::every], agent_name))
    believed, true = [one.believed for one in moments], [one.true for one in moments]
    pairs = paired(believed, true)
    paths = dict.fromkeys(path for fields in believed for path in fields)
    tracks = [_track(path, pairs.get(path, ()), moments) for path in paths]
    tracks.sort(key=lambda track: (not track.true_path, not _has_changed(track)))
    lists = list_tracks([(moment.cycle, moment.lists) for moment in moments])
    return BeliefView(tracks=tuple(tracks[:_TRACKS]), lists=lists, has_truth=any(true), every=every)


def _moments(index: TraceIndex, begun: Sequence[tuple[int, int]], agent: str) -> Iterator[_Moment]:
    environments: dict[int, Fields] = {}
    """Those read so far by position; where the environment did not change, the last is current."""
    for cycle, position in begun:
        snapshot = snapshot_at(index, position)
        if snapshot is None:
            continue
        true: Fields = {}
        for at in islice(index.environments(position + 1), _LOOKED_BACK):
            if at not in environments:
                found = snapshot_at(index, at)
                environment = None if found is None else found.environment
                environments[at] = {} if environment is None else fields_of(environment, agent)
            true = environments[at]
            if true:
                break
        state = snapshot.working_memory.get("perceptual_state")
        yield _Moment(cycle, fields_of(state), true, lists_of(state))


def _track(path: FieldPath, true: FieldPath, moments: Sequence[_Moment]) -> BeliefTrack:
    points: list[BeliefPoint] = []
    for moment in moments:
        believed = moment.believed.get(path)
        actual = moment.true.get(true) if true else None
        points.append(
            BeliefPoint(
                cycle=moment.cycle,
                believed=believed and believed.value,
                true=actual and actual.value,
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
    """Whether both are known and differ; rounding is no difference."""
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
