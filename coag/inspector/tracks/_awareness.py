"""Where the agent stood: what its awareness modules held as cycles began."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coag.errors import ConfigurationError, UnknownNameError
from coag.inspector.views import AwarenessView, Course, Stand
from coag.tracing import RecordKind, TraceIndex

from ._aware_course import CourseBuilder
from ._aware_read import Kept, KeptByName, is_awareness, kept_at, snapshot_at
from ._aware_stand import stand_of
from ._beginnings import cycle_snapshots

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
