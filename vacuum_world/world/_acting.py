"""What every action has in common: its price paid, its log line, its events, its tick."""

from __future__ import annotations

from dataclasses import dataclass

from ._dynamics import tick
from ._record import ActionName, ActionResult, EventKind, Failure, LoggedAction, WorldEvent
from ._state import LOG_KEPT, Robot, Step, WorldState, powered, robot_of, with_robot
from ._triggers import after_action
from ._values import Cell, Direction


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
    """Kind of failure, as it is told."""
    reason: str | None = None
    """Why, as it is told."""
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
    asked = _asked(line)
    outcome = line.result.reason or ("arrived" if line.action == "move" else "done")
    return WorldEvent(
        kind=kind,
        tick=state.tick,
        robot=line.robot,
        cell=line.result.position,
        text=f"{name} {asked}: {outcome}",
    )


def _asked(line: LoggedAction) -> str:
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
