"""What the agent believed over the cycles, beside what was true."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from coag.tracing import RecordKind, TraceIndex

from .texts import object_of
from .trace_scan import LOOKED_BACK, snapshot_at


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefPoint:
    """One field at the beginning of one cycle; None for what is not known."""

    cycle: int
    believed: Any
    """A scalar, or a short list of numbers such as a position."""
    true: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefTrack:
    """One field of the perceptual state over time; paths are dotted."""

    path: str
    true_path: str
    """The field of the environment that it was paired with; empty for none."""
    points: tuple[BeliefPoint, ...]
    numeric: bool
    """True if it can be drawn as a line (for a position: a line for each part)."""
    wrong: int = 0

    @property
    def steady(self) -> bool:
        """True if it was the same throughout, and right as far as that is known."""
        return not self.wrong and not self.changed

    @property
    def changed(self) -> bool:
        """True if it was not the same throughout."""
        return any(point.believed != self.points[0].believed for point in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChange:
    """What was added to a list and removed from it since the cycle before; items are JSON."""

    cycle: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    length: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTrack:
    """A list of the perceptual state, such as the cells that are dirty, over time."""

    path: str
    changes: tuple[ListChange, ...] = ()
    """Cycles in which it was another one than before; with the first that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefView:
    """All fields that can be followed, those with a truth first, and the lists that changed."""

    tracks: tuple[BeliefTrack, ...] = ()
    lists: tuple[ListTrack, ...] = ()
    has_truth: bool = False
    """True if the trace holds the state of the environment."""
    every: int = 1
    """Of a long run every how-many-eth cycle is shown."""


# ---- The fields and lists of a JSON state that can be followed ----


_Path = tuple[str, ...]
"""The keys that lead to a field; within a list of objects `key[name]`."""
_Fields = Mapping[_Path, Any]
_Lists = Mapping[str, tuple[str, ...]]
"""The items of each list as JSON, by its dotted path."""
_FIELDS, _LISTS = 400, 16
"""Fields and lists of one state that are looked at."""
_DEEP, _LISTS_DEEP = 12, 6
_PARTS = 4
"""Numbers in the longest list that is a field, such as a position."""
_TEXT = 200
"""Characters of a text that are kept."""
_ITEMS, _ITEM = 400, 80
"""Items of the longest list that is followed, and characters of one."""


def _fields_of(state: object, agent: str = "") -> _Fields:
    """The scalars and the short lists of numbers in a JSON state.

    Of a list of objects only the one is looked into whose `name` or `id` is the agent's.
    """
    return dict(islice(_walk(state, (), agent), _FIELDS))


def _walk(value: Any, path: _Path, agent: str) -> Iterator[tuple[_Path, Any]]:
    if len(path) > _DEEP:
        return
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _walk(item, (*path, key[:_TEXT]), agent)
    elif path and isinstance(value, str):
        yield path, value[:_TEXT]
    elif path and (isinstance(value, bool) or _is_number(value) or _is_point(value)):
        yield path, value
    elif path and isinstance(value, list) and agent:
        objects = map(object_of, cast("list[Any]", value))
        selves = [one for one in objects if agent in (one.get("name"), one.get("id"))]
        if len(selves) == 1:
            yield from _walk(selves[0], (*path[:-1], f"{path[-1]}[{agent}]"), agent)


def _is_number(value: Any) -> bool:
    """Whether a JSON value is a number that can be drawn."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) < 1e15


def _is_point(value: Any) -> bool:
    """Whether a JSON value is a short list of numbers, such as a position."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return 0 < len(items) <= _PARTS and all(map(_is_number, items))


def _walk_lists(value: Any, path: _Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lists of scalars and of positions in a JSON state; others are left out."""
    if isinstance(value, dict) and len(path) < _LISTS_DEEP:
        for key, item in cast("dict[str, Any]", value).items():
            yield from _walk_lists(item, (*path, key[:_ITEM]))
    elif path and isinstance(value, list) and not _is_point(value):
        items = cast("list[Any]", value)
        plain = (isinstance(one, str | int | float | None) or _is_point(one) for one in items)
        if len(items) <= _ITEMS and all(plain):
            texts = (json.dumps(item, ensure_ascii=False)[:_ITEM] for item in items)
            yield ".".join(path), tuple(texts)


# ---- Which field of the truth a field of the belief is about ----


def _paired(believed: Sequence[_Fields], true: Sequence[_Fields], agent: str) -> dict[_Path, _Path]:
    """Where that is plain.

    They have the same last key and values of one sort wherever both are known. Of several the one
    under the same path is meant, or else the one that is said of the agent itself; if that
    decides nothing, none is.
    """
    by_key: dict[str, dict[_Path, None]] = {}
    for path in (path for fields in true for path in fields):
        by_key.setdefault(path[-1], {})[path] = None
    pairs: dict[_Path, _Path] = {}
    for path in dict.fromkeys(path for fields in believed for path in fields):
        fitting = [of for of in by_key.get(path[-1], ()) if _alike(path, of, believed, true)]
        own = [of for of in fitting if any(key.endswith(f"[{agent}]") for key in of)]
        for rivals in ([path] if path in fitting else [], own, fitting):
            if len(rivals) == 1:
                pairs.setdefault(path, rivals[0])
    return pairs


def _alike(path: _Path, of: _Path, believed: Sequence[_Fields], true: Sequence[_Fields]) -> bool:
    """Whether both are of one sort wherever both are known, and that is somewhere."""
    moments = zip(believed, true, strict=True)
    known = [(one[path], other[of]) for one, other in moments if path in one and of in other]
    return bool(known) and all(_sort(one) == _sort(other) for one, other in known)


def _sort(value: Any) -> object:
    if isinstance(value, list):
        return len(cast("list[Any]", value))
    return "number" if _is_number(value) else type(cast("object", value))


# ---- Over the cycles ----


_POINTS = 500
"""Cycles that are looked at, at most."""
_TRACKS = 48
"""Fields that are given, at most."""
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class _Moment:
    """The beginning of one cycle."""

    cycle: int
    believed: _Fields
    true: _Fields
    lists: _Lists


def read_beliefs(index: TraceIndex, agent_name: str, *, limit: int = _POINTS) -> BeliefView:
    """The fields of the perceptual state over time, with the environment's that are the same.

    Which fields are the same is decided by their names and values alone: nothing that a log names
    is imported. An ambiguous field stays without a truth. An environment with several agents names
    this one by its name. Of a run with more than `limit` cycles every so-many-eth is looked at.
    """
    begun: dict[int, tuple[int, int]] = {}
    """Of each stretch of a cycle its number and the first snapshot, with which it began."""
    for position in index.positions(RecordKind.SNAPSHOT):
        stretch = index.stretch_of(position)
        begun.setdefault(stretch, (index.stretch(stretch).cycle, position))
    cycles = [one for one in begun.values() if one[0]]
    every = max(1, math.ceil(len(cycles) / limit))
    moments = list(_moments(index, cycles[::every], agent_name))
    believed, true = [one.believed for one in moments], [one.true for one in moments]
    pairs = _paired(believed, true, agent_name)
    paths = dict.fromkeys(path for fields in believed for path in fields)
    tracks = [_track(path, pairs.get(path, ()), moments) for path in paths]
    tracks.sort(key=lambda track: (not track.true_path, not track.changed))
    names = dict.fromkeys(path for moment in moments for path in moment.lists)
    lists = [ListTrack(path=name, changes=tuple(_list_changes(name, moments))) for name in names]
    return BeliefView(
        tracks=tuple(tracks[:_TRACKS]),
        lists=tuple(track for track in lists if len(track.changes) > 1),
        has_truth=any(true),
        every=every,
    )


def _moments(index: TraceIndex, begun: Sequence[tuple[int, int]], agent: str) -> Iterator[_Moment]:
    environments: dict[int, _Fields] = {}

    def truth(at: int) -> _Fields:
        if at not in environments:
            snapshot = snapshot_at(index, at)
            environments[at] = _fields_of(snapshot.environment if snapshot else None, agent)
        return environments[at]

    for cycle, position in begun:
        snapshot = snapshot_at(index, position)
        if snapshot is not None:
            latest = map(truth, islice(index.environments(position + 1), LOOKED_BACK))
            true = next((fields for fields in latest if fields), dict[_Path, Any]())
            state = snapshot.working_memory.get("perceptual_state")
            lists = dict(islice(_walk_lists(state, ()), _LISTS))
            yield _Moment(cycle, _fields_of(state), true, lists)


def _track(path: _Path, true: _Path, moments: Sequence[_Moment]) -> BeliefTrack:
    points = tuple(
        BeliefPoint(cycle=one.cycle, believed=one.believed.get(path), true=one.true.get(true))
        for one in moments
    )
    known = [point.believed for point in points if point.believed is not None]
    points_of = all(map(_is_point, known)) and len(set(map(len, known))) == 1
    return BeliefTrack(
        path=".".join(path),
        true_path=".".join(true),
        points=points,
        numeric=bool(known) and (all(map(_is_number, known)) or points_of),
        wrong=sum(_differ(point.believed, point.true) for point in points),
    )


def _differ(believed: Any, true: Any) -> bool:
    """Whether both are known and differ; rounding is no difference."""
    if believed is None or true is None:
        return False
    if _is_point(believed) and _is_point(true):
        return len(believed) != len(true) or any(map(_differ, believed, true))
    if _is_number(believed) and _is_number(true):
        return not math.isclose(believed, true, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return believed != true


def _list_changes(path: str, moments: Sequence[_Moment]) -> Iterator[ListChange]:
    before: Counter[str] | None = None
    for moment in moments:
        if path not in moment.lists:
            continue
        now, was = Counter(moment.lists[path]), before or Counter[str]()
        if now != before:
            added, removed = tuple((now - was).elements()), tuple((was - now).elements())
            cycle, length = moment.cycle, now.total()
            yield ListChange(cycle=cycle, added=added, removed=removed, length=length)
        before = now
