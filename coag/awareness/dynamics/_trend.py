"""How fast a resource runs low: readings of earlier steps, and the trend that they show.

The trend is the median of the slopes between all pairs of readings (Sen 1968, "Estimates of the
regression coefficient based on Kendall's tau"), which single odd readings hardly move; a fall that
happened only once is no trend. Only readings since the last rise count: what was filled up begins
anew.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from statistics import median

from coag.awareness.state import AwarenessState, Reading, Resource, folded
from coag.schema import Value

from ._settings import ProjectionSettings

_FALLS = 2
"""How often a resource falls before that is a trend."""


class Trend(Value):
    """How a resource went lately."""

    resource: Resource
    per_step: float | None = None
    """Change in a step, negative while it runs low; None where too little is known."""
    grows: bool = False
    """Whether it rose, and did not fall since."""

    def steps_until(self, amount: float) -> float | None:
        """Steps until so much is left, if it goes on like this; None if that is not to be seen.

        0 where there is no more than that already.
        """
        if self.grows or self.per_step is None:
            return None
        above = self.resource.remaining - amount
        if above <= 0:
            return 0.0
        return above / -self.per_step if self.per_step < 0 else None


def with_readings(state: AwarenessState, settings: ProjectionSettings) -> AwarenessState:
    """The state with its resources read at its step; the latest readings of each are kept."""
    own = state.self_model
    read = [
        Reading(resource=one.name, step=state.step, remaining=one.remaining)
        for one in own.resources
        if one.depletable
    ]
    if not read and not own.readings:
        return state
    by_name: dict[str, list[Reading]] = {folded(one.resource): [] for one in read}
    for one in (*own.readings, *read):
        kept = by_name.get(folded(one.resource))
        if kept is not None:
            kept[:] = [*(each for each in kept if each.step != one.step), one]
    readings = [one for kept in by_name.values() for one in kept[-settings.readings :]]
    readings.sort(key=lambda one: one.step)
    changed = own.model_copy(update={"readings": tuple(readings)})
    return state.model_copy(update={"self_model": changed})


def trends(state: AwarenessState, settings: ProjectionSettings) -> tuple[Trend, ...]:
    """The trend of each resource that can run out."""
    return tuple(
        _trend(one, state.self_model.readings, settings)
        for one in state.self_model.resources
        if one.depletable
    )


def _trend(
    resource: Resource, readings: tuple[Reading, ...], settings: ProjectionSettings
) -> Trend:
    name = folded(resource.name)
    own = [one for one in readings if folded(one.resource) == name][-settings.readings :]
    start = 0
    for place, (earlier, later) in enumerate(pairwise(own), 1):
        if later.remaining > earlier.remaining:
            start = place
    since = own[start:]
    grows = start > 0 and own[-1].remaining == own[start].remaining
    if len(since) < settings.least_readings:
        return Trend(resource=resource, grows=grows)
    if sum(later.remaining < earlier.remaining for earlier, later in pairwise(since)) < _FALLS:
        return Trend(resource=resource, per_step=0.0, grows=grows)
    slopes = [
        (later.remaining - earlier.remaining) / (later.step - earlier.step)
        for earlier, later in combinations(since, 2)
        if later.step > earlier.step
    ]
    return Trend(resource=resource, per_step=median(slopes) if slopes else None, grows=grows)
