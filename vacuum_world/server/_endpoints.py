"""What the server does, one function per request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from vacuum_world.showing import PaceChange, Report
from vacuum_world.world import (
    LoggedAction,
    WorldState,
    manuals,
    sense,
    sense_battery,
    sense_dirty,
    sense_position,
    sense_proximity,
)

from ._holding import pass_gate
from ._hub import WorldHub
from ._messages import (
    Happened,
    InterventionRequest,
    Joined,
    JoinRequest,
    Manuals,
    MoveRequest,
    StepRequest,
    StrandedBody,
    TickRequest,
    UseRequest,
)
from ._problems import forbidden
from ._requests import (
    LARGE_BODY,
    action_id_of,
    body_of,
    caller_of,
    calling_robot,
    hub_of,
    known_caller,
    need_control,
)
from ._views import Change, Reported, view_of


def answer(value: BaseModel, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(value.model_dump_json(), status, media_type="application/json")


async def join_world(request: Request) -> Response:
    """Join; with the control token, take over the robot of that name if there is one."""
    hub = hub_of(request)
    caller = caller_of(request)
    wish = await body_of(request, JoinRequest)
    taken = hub.hand_over(wish.name) if caller and caller.robot is None else None
    robot, token = taken or hub.join(wish.name)
    joined = Joined(
        id=robot.id,
        name=robot.name,
        token=token,
        position=robot.position,
        battery=robot.battery,
    )
    return answer(joined, 200 if taken else 201)


async def leave_world(request: Request) -> Response:
    """Leave; the experimenter may remove any robot."""
    caller = known_caller(request)
    robot = request.path_params["id"]
    if caller.robot not in (None, robot):
        raise forbidden(f"robot {robot!r} is somebody else's")
    hub_of(request).leave(robot)
    return Response(status_code=204)


async def move_robot(request: Request) -> Response:
    """Move one cell."""
    robot = calling_robot(request)
    action_id = action_id_of(request)
    wish = await body_of(request, MoveRequest)
    hub = hub_of(request)
    act = partial(hub.move, robot, wish.direction, action_id)
    return _outcome(await pass_gate(request, robot, act))


async def clean_cell(request: Request) -> Response:
    """Clean the robot's cell."""
    robot = calling_robot(request)
    act = partial(hub_of(request).clean, robot, action_id_of(request))
    return _outcome(await pass_gate(request, robot, act))


async def use_gadget(request: Request) -> Response:
    """Use a gadget."""
    robot = calling_robot(request)
    action_id = action_id_of(request)
    wish = await body_of(request, UseRequest)
    act = partial(hub_of(request).use, robot, wish.gadget, action_id)
    return _outcome(await pass_gate(request, robot, act))


async def read_manuals(request: Request) -> Response:
    """What robots are told of the gadgets that there are."""
    calling_robot(request)
    return answer(Manuals(gadgets=manuals(hub_of(request).state)))


def _outcome(line: LoggedAction) -> Response:
    if not line.refused:
        return answer(line.result)
    reason = line.result.reason or ""
    return answer(StrandedBody(**line.result.model_dump(), detail=reason), 409)


async def read_position(request: Request) -> Response:
    """Where the robot, the charger and the grid's bounds are."""
    return answer(sense_position(hub_of(request).state, calling_robot(request)))


async def read_dirty(request: Request) -> Response:
    """Dirt on the robot's cell and its four neighbours."""
    return answer(sense_dirty(hub_of(request).state, calling_robot(request)))


async def read_proximity(request: Request) -> Response:
    """Which of the four ways are blocked."""
    return answer(sense_proximity(hub_of(request).state, calling_robot(request)))


async def read_battery(request: Request) -> Response:
    """The robot's charge."""
    return answer(sense_battery(hub_of(request).state, calling_robot(request)))


async def read_all(request: Request) -> Response:
    """All four sensors at one moment."""
    return answer(sense(hub_of(request).state, calling_robot(request)))


async def show_world(request: Request) -> Response:
    """The whole world, hidden things included."""
    need_control(request)
    return answer(hub_of(request).state)


async def let_time_pass(request: Request) -> Response:
    """Let ticks pass."""
    need_control(request)
    wish = await body_of(request, TickRequest)
    hub = hub_of(request)
    return answer(Happened(events=hub.tick(wish.count), tick=hub.state.tick))


async def change_world(request: Request) -> Response:
    """Apply an intervention."""
    need_control(request)
    wish = await body_of(request, InterventionRequest)
    hub = hub_of(request)
    return answer(Happened(events=hub.intervene(wish.root), tick=hub.state.tick))


async def take_snapshot(request: Request) -> Response:
    """The whole world, to be restored later."""
    return await show_world(request)


async def restore_snapshot(request: Request) -> Response:
    """Put a snapshot in place of the world."""
    need_control(request)
    state = await body_of(request, WorldState, LARGE_BODY)
    hub = hub_of(request)
    hub.restore(state)
    return answer(Happened(events=(), tick=hub.state.tick))


async def report_mind(request: Request) -> Response:
    """Show watchers what the robot's agent thinks and believes; changes nothing in the world."""
    robot = calling_robot(request)
    if request.path_params["id"] != robot:
        raise forbidden(f"robot {request.path_params['id']!r} is somebody else's")
    hub_of(request).report(robot, await body_of(request, Report))
    return Response(status_code=204)


async def show_pace(request: Request) -> Response:
    """Whether the world is paused, who waits, and how fast its clock goes."""
    return answer(hub_of(request).gate.pace)


async def change_pace(request: Request) -> Response:
    """Pause, go on, or change the clock's speed."""
    need_control(request)
    wish = await body_of(request, PaceChange)
    gate = hub_of(request).gate
    gate.change(wish)
    return answer(gate.pace)


async def step_world(request: Request) -> Response:
    """While paused, let the next action through; by the clock, a tick passes too."""
    need_control(request)
    wish = await body_of(request, StepRequest)
    hub = hub_of(request)
    hub.step(wish.count)
    return answer(hub.gate.pace)


async def stream_events(request: Request) -> Response:
    """Every change as it happens; with the control token, hidden things too."""
    caller = caller_of(request)
    hub = hub_of(request)
    secrets = caller is not None and caller.robot is None
    return EventSourceResponse(
        _changes(hub, secrets), ping=15, headers={"Cache-Control": "no-store"}
    )


async def _changes(hub: WorldHub, secrets: bool) -> AsyncIterator[ServerSentEvent]:
    async for moment in hub.watchers.watch(hub.scene):
        events = tuple(event for event in moment.events if secrets or not event.secret)
        scene = moment.scene
        told = (Reported(robot=robot, report=each) for robot, each in scene.reports.items())
        change = Change(
            number=moment.number,
            view=view_of(scene.state, secrets=secrets),
            events=events,
            pace=scene.pace,
            reports=tuple(told),
        )
        yield ServerSentEvent(change.model_dump_json(), event="world", id=str(moment.number))
