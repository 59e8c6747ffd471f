"""What the agent held to be so over the cycles, beside what was so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from coag.inspector.views import Belief, BeliefPoint, BeliefTrack
from coag.schema import Snapshot
from coag.tracing import RecordKind, TraceIndex

from ._beginnings import first_snapshots
from ._fields import FieldPath, Fields, fields_of, is_number, is_point, paired
from ._lists import Lists, list_tracks, lists_of

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
    tracks.sort(key=lambda track: (not track.true_path, not _changes(track)))
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


def _changes(track: BeliefTrack) -> bool:
    return any(point.believed != track.points[0].believed for point in track.points)
