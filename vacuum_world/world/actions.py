"""What robots do (move, clean, use a gadget), each with its price, log line, events and tick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vacuum_world.errors import UnknownGadgetError

from .dynamics import after_action, before_move, tick
from .state import (
    CLEAN_COST,
    LOG_KEPT,
    MOVE_COST,
    ActionName,
    ActionResult,
    EventKind,
    Failure,
    Gadget,
    LoggedAction,
    Manual,
    Robot,
    SlowCleaning,
    Step,
    WorldEvent,
    WorldState,
    draw,
    obstacle_cells,
    powered,
    robot_cells,
    robot_of,
    with_cell,
    with_robot,
    without_cell,
)
from .values import Cell, Direction, inside, neighbour


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who wants what."""

    robot: Robot
    """The robot, as it is before."""
    action: ActionName
    """What is asked."""
    direction: Direction | None = None
    """For a move, where to."""
    gadget: str | None = None
    """For a use, what is used."""
    action_id: str | None = None
    """The caller's name for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an action did, before the charger's turn."""

    kind: EventKind
    """What sort of thing happened."""
    position: Cell
    """Where the robot is."""
    battery: int
    """The charge left."""
    failure: Failure | None = None
    """Kind of failure, as reported."""
    reason: str | None = None
    """Why, as reported."""
    bumped_into: Cell | None = None
    """The cell that it could not enter."""
    cleaned: bool = False
    """Whether a dirty cell truly became clean."""
    violation: bool = False
    """Whether a forbidden cell was cleaned."""
    needless: bool = False
    """Whether there was nothing to clean."""


def refuse(state: WorldState, request: Request) -> Step[LoggedAction]:
    """Do nothing, because the robot is stranded."""
    robot = request.robot
    effect = Effect(
        kind="refused",
        position=robot.position,
        battery=robot.battery,
        failure="deterministic",
        reason="the robot is stranded: its battery is empty and it is not on the charger",
    )
    line = _line(state, request, effect, robot)
    counts = {"refused": state.counters.refused + 1}
    state = _logged(state, line, counts)
    return Step(state=state, result=line, events=(_event(state, line, effect.kind),))


def finish(
    state: WorldState,
    request: Request,
    effect: Effect,
    before: tuple[WorldEvent, ...] = (),
) -> Step[LoggedAction]:
    """Charger, stranded check, log, counters, triggers and, where time is action, the tick."""
    changes = {"position": effect.position, "battery": effect.battery}
    robot = powered(request.robot.model_copy(update=changes), state.charger)
    line = _line(state, request, effect, robot)
    counters = state.counters
    counts = {
        "actions": counters.actions + 1,
        "bumps": counters.bumps + (effect.bumped_into is not None),
        "cleans": counters.cleans + effect.cleaned,
        "violations": counters.violations + effect.violation,
        "energy": counters.energy + request.robot.battery - effect.battery,
    }
    events = [*before, _event(state, line, effect.kind), *_aftermath(state, line, effect, robot)]
    state = _logged(with_robot(state, robot), line, counts)
    state, fired = after_action(state)
    events.extend(fired)
    if state.ticks == "action":
        passed = tick(state)
        state = passed.state
        events.extend(passed.events)
    return Step(state=state, result=line, events=tuple(events))


def _line(state: WorldState, request: Request, effect: Effect, robot: Robot) -> LoggedAction:
    reason = effect.reason
    if robot.stranded and effect.kind != "refused":
        empty = "the battery is empty and this is not the charger: stranded"
        reason = f"{reason}; {empty}" if reason else empty
    action_id = request.action_id
    return LoggedAction(
        number=state.counters.actions + state.counters.refused + 1,
        tick=state.tick,
        robot=robot.id,
        action=request.action,
        direction=request.direction,
        gadget=request.gadget,
        action_id=action_id,
        repeated=action_id is not None and any(a.action_id == action_id for a in state.log),
        refused=effect.kind == "refused",
        position_before=request.robot.position,
        battery_before=request.robot.battery,
        bumped_into=effect.bumped_into,
        cleaned=effect.cleaned,
        violation=effect.violation,
        needless=effect.needless,
        result=ActionResult(
            ok=effect.failure is None,
            failure=effect.failure,
            reason=reason,
            position=robot.position,
            battery=robot.battery,
        ),
    )


def _logged(state: WorldState, line: LoggedAction, counts: dict[str, int]) -> WorldState:
    repeated = state.counters.repeated_action_ids + line.repeated
    counters = state.counters.model_copy(update={**counts, "repeated_action_ids": repeated})
    log = (*state.log, line)[-LOG_KEPT:]
    return state.model_copy(update={"counters": counters, "log": log})


def _event(state: WorldState, line: LoggedAction, kind: EventKind) -> WorldEvent:
    name = robot_of(state, line.robot).name
    phrase = _verb_phrase(line)
    outcome = line.result.reason or ("arrived" if line.action == "move" else "done")
    return WorldEvent(
        kind=kind,
        tick=state.tick,
        robot=line.robot,
        cell=line.result.position,
        text=f"{name} {phrase}: {outcome}",
    )


def _verb_phrase(line: LoggedAction) -> str:
    match line.action:
        case "move":
            return f"moves {line.direction}"
        case "clean":
            return "cleans"
        case "use":
            return f"uses {line.gadget}"


def _aftermath(
    state: WorldState, line: LoggedAction, effect: Effect, robot: Robot
) -> list[WorldEvent]:
    """Events that an action has besides its own."""
    here = robot.position

    def event(kind: EventKind, text: str, secret: bool = False) -> WorldEvent:
        return WorldEvent(
            kind=kind, tick=state.tick, robot=robot.id, cell=here, text=text, secret=secret
        )

    events: list[WorldEvent] = []
    if effect.kind == "cleaned" and not effect.cleaned:
        events.append(event("dirt_appeared", f"{here} is dirty again at once"))
    if effect.violation:
        events.append(event("violation", f"{robot.name} cleaned the forbidden {here}", True))
    if here == state.charger and line.battery_before < robot.battery:
        events.append(event("charged", f"{robot.name} is charged to {robot.battery}"))
    if robot.stranded:
        events.append(event("stranded", f"{robot.name} is stranded at {here}"))
    return events


# ---- What robots do: move, clean and use gadgets, with their price and their failures ----


def move(
    state: WorldState, robot_id: str, direction: Direction, action_id: str | None = None
) -> Step[LoggedAction]:
    """Move a robot one cell; the log line says what came of it.

    Raises:
        UnknownRobotError: No robot has this id.
    """
    robot = robot_of(state, robot_id)
    request = Request(robot=robot, action="move", direction=direction, action_id=action_id)
    if robot.stranded:
        return refuse(state, request)
    if robot.battery < MOVE_COST:
        return finish(state, request, _drained(robot, "a move", MOVE_COST))
    destination = neighbour(robot.position, direction)
    state, events = before_move(state, robot, destination)
    return finish(state, request, _moved(state, robot, direction, destination), events)


def clean(state: WorldState, robot_id: str, action_id: str | None = None) -> Step[LoggedAction]:
    """Let a robot clean the cell it is on; the log line says what came of it.

    Raises:
        UnknownRobotError: No robot has this id.
    """
    robot = robot_of(state, robot_id)
    request = Request(robot=robot, action="clean", action_id=action_id)
    if robot.stranded:
        return refuse(state, request)
    if robot.battery < CLEAN_COST:
        return finish(state, request, _drained(robot, "a cleaning", CLEAN_COST))
    state, effect = _cleaned(state, robot)
    return finish(state, request, effect)


def use(
    state: WorldState, robot_id: str, gadget: str, action_id: str | None = None
) -> Step[LoggedAction]:
    """Let a robot use a gadget: it costs charge and does nothing, whatever is promised.

    Raises:
        UnknownRobotError: No robot has this id.
        UnknownGadgetError: The world has no gadget of this name.
    """
    robot = robot_of(state, robot_id)
    used = gadget_of(state, gadget)
    request = Request(robot=robot, action="use", gadget=gadget, action_id=action_id)
    if robot.stranded:
        return refuse(state, request)
    if robot.battery < used.cost:
        return finish(state, request, _drained(robot, f"{gadget}", used.cost))
    effect = Effect(
        kind="used",
        position=robot.position,
        battery=robot.battery - used.cost,
        failure="deterministic" if used.admits else None,
        reason=f"{gadget} had no effect" if used.admits else None,
    )
    return finish(state, request, effect)


def gadget_of(state: WorldState, name: str) -> Gadget:
    """The gadget of this name.

    Raises:
        UnknownGadgetError: There is none.
    """
    for gadget in state.gadgets:
        if gadget.name == name:
            return gadget
    raise UnknownGadgetError(name, (gadget.name for gadget in state.gadgets))


def manuals(state: WorldState) -> tuple[Manual, ...]:
    """What the world's gadgets claim: promises, not truths."""
    return tuple(Manual(name=gadget.name, promise=gadget.promise) for gadget in state.gadgets)


def _drained(robot: Robot, what: str, cost: int) -> Effect:
    return Effect(
        kind="drained",
        position=robot.position,
        battery=0,
        failure="deterministic",
        reason=f"{what} needs {cost} but the battery held {robot.battery}: it is drained, "
        "nothing was done",
    )


def _moved(state: WorldState, robot: Robot, direction: Direction, destination: Cell) -> Effect:
    battery = robot.battery - MOVE_COST
    blocker, failure = _blocker(state, destination)
    if blocker is None:
        return Effect(
            kind="moved",
            position=destination,
            battery=battery,
            reason=_read_at(state, destination),
        )
    return Effect(
        kind="blocked",
        position=robot.position,
        battery=battery,
        failure=failure,
        reason=f"blocked by {blocker} to the {direction}",
        bumped_into=destination,
    )


def _read_at(state: WorldState, cell: Cell) -> str | None:
    """What a robot reads that arrives at a cell."""
    texts = [sign.text for sign in state.signs if sign.cell == cell]
    return f'a sign here reads: "{" / ".join(texts)}"' if texts else None


def _blocker(state: WorldState, cell: Cell) -> tuple[str | None, Failure | None]:
    if not inside(cell, state.grid):
        return "the edge of the grid", "deterministic"
    if cell in obstacle_cells(state):
        return "an obstacle", "deterministic"
    if cell in robot_cells(state):
        return "another robot", "transient"
    return None, None


def _cleaned(state: WorldState, robot: Robot) -> tuple[WorldState, Effect]:
    here = robot.position
    common: dict[str, Any] = {
        "position": here,
        "battery": robot.battery - CLEAN_COST,
        "violation": here in state.forbidden,
    }
    if here not in state.dirty:
        reason = "the cell is already clean"
        failed = Effect(
            kind="clean_failed", failure="deterministic", reason=reason, needless=True, **common
        )
        return state, failed
    number, stream = draw(state.streams.cleaning)
    streams = state.streams.model_copy(update={"cleaning": stream})
    state = state.model_copy(update={"streams": streams})
    if number < state.dynamics.clean_uncertainty / 2:
        reason = "the cleaning failed, the cell is still dirty"
        return state, Effect(kind="clean_failed", failure="transient", reason=reason, **common)
    if state.clean_delay and number >= state.dynamics.clean_uncertainty:
        return _begun(state, here, common)
    changes: dict[str, Any] = {"cleaned": with_cell(state.cleaned, here)}
    if number < state.dynamics.clean_uncertainty:
        return state.model_copy(update=changes), Effect(kind="cleaned", **common)
    changes["dirty"] = without_cell(state.dirty, here)
    return state.model_copy(update=changes), Effect(kind="cleaned", cleaned=True, **common)


def _begun(state: WorldState, here: Cell, common: dict[str, Any]) -> tuple[WorldState, Effect]:
    """A cleaning that shows later; begun again, it takes as long again."""
    before = tuple(begun for begun in state.under_way if begun.cell != here)
    begun = SlowCleaning(cell=here, due=state.tick + state.clean_delay)
    effect = Effect(
        kind="cleaning_begun",
        reason="the cleaner was applied",
        needless=len(before) < len(state.under_way),
        **common,
    )
    return state.model_copy(update={"under_way": (*before, begun)}), effect
