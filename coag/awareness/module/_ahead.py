"""What lies ahead of an agent, in cycles."""

from __future__ import annotations

from coag.awareness.dynamics import (
    Ahead,
    ProjectionSettings,
    project,
    with_readings,
    with_warnings,
)
from coag.awareness.state import AwarenessState

from ._standing import Standing

_LOOKED_FOR = (Ahead.RESOURCES, Ahead.DEADLINES)
"""The module tells by itself of the goal that makes no progress and of the action that fails."""


def looked_ahead(
    state: AwarenessState, standing: Standing, settings: ProjectionSettings
) -> tuple[AwarenessState, Standing]:
    """The state with what is to be seen ahead in its attention, and the standing with readings.

    Resources are read once a cycle, and a step of projection is a cycle: what a state counts as
    steps are two or three a cycle, and nothing that an agent can plan by.
    """
    kinds = tuple(one for one in settings.of if one in _LOOKED_FOR)
    chosen = settings.model_copy(update={"of": kinds})
    own = state.self_model.model_copy(update={"readings": standing.readings})
    view = state.model_copy(update={"step": standing.cycles, "self_model": own})
    view = with_readings(view, chosen)
    warnings = (
        item.model_copy(update={"created_step": state.step}) for item in project(view, chosen)
    )
    readings = view.self_model.readings
    return with_warnings(state, warnings), standing.model_copy(update={"readings": readings})
