"""What happens by itself when time passes."""

from __future__ import annotations

from ._chance import Stream, draw, pick
from ._record import WorldEvent
from ._state import Obstacle, Step, WorldState, obstacle_cells, robot_cells, with_cell
from ._values import Cell, cells_of


def tick(state: WorldState) -> Step[int]:
    """One tick: obstacles move, cleaned cells turn dirty. The result is the number of ticks."""
    state = state.model_copy(update={"tick": state.tick + 1})
    state, moved = _obstacles_move(state)
    state, dirtied = _dirt_returns(state)
    clock = WorldEvent(kind="ticked", tick=state.tick, text=f"tick {state.tick}")
    return Step(state=state, result=state.tick, events=(clock, *moved, *dirtied))


def _obstacles_move(state: WorldState) -> tuple[WorldState, tuple[WorldEvent, ...]]:
    events: list[WorldEvent] = []
    stream = state.streams.obstacles
    for index, obstacle in enumerate(state.obstacles):
        number, stream = draw(stream)
        if number >= state.dynamics.obstacle_mobility:
            continue
        cell, stream = _free_cell(state, stream)
        if cell is None:
            continue
        moved = Obstacle(cell=cell, visible=obstacle.visible)
        obstacles = (*state.obstacles[:index], moved, *state.obstacles[index + 1 :])
        state = state.model_copy(update={"obstacles": obstacles})
        events.append(_moved_event(state, obstacle, moved))
    streams = state.streams.model_copy(update={"obstacles": stream})
    return state.model_copy(update={"streams": streams}), tuple(events)


def _free_cell(state: WorldState, stream: Stream) -> tuple[Cell | None, Stream]:
    taken = obstacle_cells(state) | robot_cells(state) | {state.charger}
    free = [cell for cell in cells_of(state.grid) if cell not in taken]
    return pick(stream, free) if free else (None, stream)


def _moved_event(state: WorldState, before: Obstacle, after: Obstacle) -> WorldEvent:
    return WorldEvent(
        kind="obstacle_moved",
        tick=state.tick,
        cell=after.cell,
        text=f"an obstacle moved from {before.cell} to {after.cell}",
        secret=not after.visible,
    )


def _dirt_returns(state: WorldState) -> tuple[WorldState, tuple[WorldEvent, ...]]:
    events: list[WorldEvent] = []
    stream, dirty = state.streams.dirt, state.dirty
    for cell in state.cleaned:
        if cell in state.dirty:
            continue
        number, stream = draw(stream)
        if number < state.dynamics.dirt_entropy:
            dirty = with_cell(dirty, cell)
            text = f"{cell} turned dirty again"
            event = WorldEvent(kind="dirt_appeared", tick=state.tick, cell=cell, text=text)
            events.append(event)
    streams = state.streams.model_copy(update={"dirt": stream})
    return state.model_copy(update={"streams": streams, "dirty": dirty}), tuple(events)
