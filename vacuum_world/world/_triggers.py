"""Armed interventions that go off inside the rules, at the moment they wait for."""

from __future__ import annotations

from ._paths import steps_between
from ._record import WorldEvent
from ._state import (
    ForbidAfterActions,
    Obstacle,
    Robot,
    Trigger,
    WallOnApproach,
    WorldState,
    obstacle_cells,
    robot_cells,
    with_cell,
)
from ._values import Cell, distance, inside

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
    """Tells that cleaning `cell` is forbidden from now on."""
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
