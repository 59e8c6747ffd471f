"""Armed interventions that go off inside the rules, at the moment they wait for."""

from __future__ import annotations

from .state import (
    ForbidAfterActions,
    Obstacle,
    Robot,
    Step,
    Stream,
    Trigger,
    WallOnApproach,
    WorldEvent,
    WorldState,
    draw,
    obstacle_cells,
    pick,
    robot_cells,
    with_cell,
    without_cell,
)
from .values import Cell, cells_of, distance, inside, steps_between

Fired = tuple[WorldState, tuple[WorldEvent, ...]]


def before_move(state: WorldState, robot: Robot, destination: Cell) -> Fired:
    """Let a wall that waits for this move rise in front of it."""
    for trigger in state.triggers:
        if isinstance(trigger, WallOnApproach) and _rises(trigger, state, robot, destination):
            wall = Obstacle(cell=destination, visible=False)
            changes = {
                "obstacles": (*state.obstacles, wall),
                "triggers": _without(state.triggers, trigger),
            }
            event = WorldEvent(
                kind="obstacle_appeared",
                tick=state.tick,
                cell=destination,
                text=f"a hidden obstacle appeared at {destination}",
                secret=True,
            )
            return state.model_copy(update=changes), (event,)
    return state, ()


def after_action(state: WorldState) -> Fired:
    """Let rules that wait for a number of actions come into force."""
    events: list[WorldEvent] = []
    for trigger in state.triggers:
        due = isinstance(trigger, ForbidAfterActions) and state.counters.actions >= trigger.actions
        if isinstance(trigger, ForbidAfterActions) and due:
            changes = {
                "forbidden": with_cell(state.forbidden, trigger.cell),
                "triggers": _without(state.triggers, trigger),
            }
            state = state.model_copy(update=changes)
            events.append(forbidden_event(state, trigger.cell))
    return state, tuple(events)


def forbidden_event(state: WorldState, cell: Cell) -> WorldEvent:
    """Announces that cleaning `cell` is forbidden from now on."""
    text = f"cleaning {cell} is forbidden from now on"
    return WorldEvent(kind="cell_forbidden", tick=state.tick, cell=cell, text=text, secret=True)


def _without(triggers: tuple[Trigger, ...], gone: Trigger) -> tuple[Trigger, ...]:
    index = triggers.index(gone)
    return (*triggers[:index], *triggers[index + 1 :])


def _rises(trigger: WallOnApproach, state: WorldState, robot: Robot, destination: Cell) -> bool:
    target = trigger.target
    nears = distance(destination, target) < distance(robot.position, target)
    taken = obstacle_cells(state) | robot_cells(state) | {state.charger, target}
    if state.spawn:
        taken |= {state.spawn.position}
    if not nears or destination in taken or not inside(destination, state.grid):
        return False
    blocked = obstacle_cells(state) | {destination}
    return steps_between(robot.position, target, state.grid, blocked) is not None


# ---- What happens by itself when time passes ----


def tick(state: WorldState) -> Step[int]:
    """One tick: slow cleanings show, obstacles move, cleaned cells turn dirty.

    The result is the number of ticks.
    """
    state = state.model_copy(update={"tick": state.tick + 1})
    state, shown_events = _cleanings_show(state)
    state, moved = _obstacles_move(state)
    state, dirtied = _dirt_returns(state)
    clean = state.grid[0] * state.grid[1] - len(state.dirty)
    counts = {"clean_ticks": state.counters.clean_ticks + clean}
    state = state.model_copy(update={"counters": state.counters.model_copy(update=counts)})
    clock = WorldEvent(kind="ticked", tick=state.tick, text=f"tick {state.tick}")
    return Step(state=state, result=state.tick, events=(clock, *shown_events, *moved, *dirtied))


def _cleanings_show(state: WorldState) -> tuple[WorldState, tuple[WorldEvent, ...]]:
    """Lets the cleanings show that are due."""
    due = [begun.cell for begun in state.under_way if begun.due <= state.tick]
    if not due:
        return state, ()
    dirty, cleaned, cleans = state.dirty, state.cleaned, state.counters.cleans
    for cell in due:
        cleans += cell in dirty
        dirty, cleaned = without_cell(dirty, cell), with_cell(cleaned, cell)
    changes = {
        "dirty": dirty,
        "cleaned": cleaned,
        "under_way": tuple(begun for begun in state.under_way if begun.due > state.tick),
        "counters": state.counters.model_copy(update={"cleans": cleans}),
    }
    events = (
        WorldEvent(kind="cleaned", tick=state.tick, cell=cell, text=f"{cell} is clean now")
        for cell in due
    )
    return state.model_copy(update=changes), tuple(events)


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
        text = f"an obstacle moved from {obstacle.cell} to {cell}"
        secret = not obstacle.visible
        events.append(
            WorldEvent(kind="obstacle_moved", tick=state.tick, cell=cell, text=text, secret=secret)
        )
    streams = state.streams.model_copy(update={"obstacles": stream})
    return state.model_copy(update={"streams": streams}), tuple(events)


def _free_cell(state: WorldState, stream: Stream) -> tuple[Cell | None, Stream]:
    taken = obstacle_cells(state) | robot_cells(state) | {state.charger}
    free = [cell for cell in cells_of(state.grid) if cell not in taken]
    return pick(stream, free) if free else (None, stream)


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
