"""What watchers of a world are shown."""

from __future__ import annotations

from vacuum_world.world import (
    Cell,
    Counters,
    Obstacle,
    Robot,
    TickMode,
    Value,
    WorldEvent,
    WorldState,
)


class WorldView(Value):
    """The world as an onlooker sees it; what is hidden is shown to the experimenter only."""

    tick: int
    """Ticks passed."""
    ticks: TickMode
    """When time passes."""
    grid: Cell
    """Width and height."""
    charger: Cell
    """The charger's cell."""
    dirty: tuple[Cell, ...]
    """Dirty cells."""
    obstacles: tuple[Obstacle, ...]
    """Obstacles; hidden ones for the experimenter only."""
    robots: tuple[Robot, ...]
    """Robots with their batteries."""
    forbidden: tuple[Cell, ...] | None
    """Forbidden cells, for the experimenter only."""
    counters: Counters | None
    """Totals, for the experimenter only."""


class Change(Value):
    """One message of the event stream."""

    number: int
    """Counts the changes since the server started."""
    view: WorldView
    """The world after the change."""
    events: tuple[WorldEvent, ...]
    """What happened."""


def view_of(state: WorldState, *, secrets: bool) -> WorldView:
    """The view for the experimenter (`secrets`) or for anybody."""
    return WorldView(
        tick=state.tick,
        ticks=state.ticks,
        grid=state.grid,
        charger=state.charger,
        dirty=state.dirty,
        obstacles=tuple(o for o in state.obstacles if o.visible or secrets),
        robots=state.robots,
        forbidden=state.forbidden if secrets else None,
        counters=state.counters if secrets else None,
    )
