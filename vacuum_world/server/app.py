"""The ASGI application around one world: its routes, its clock and its live page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Request, Response
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent

from vacuum_world.showing import Pace, PaceChange, Report
from vacuum_world.world import (
    ActionId,
    ActionResult,
    BatteryReading,
    DirtReading,
    LoggedAction,
    PositionReading,
    ProximityReading,
    Reading,
    WorldState,
    manuals,
    sense,
    sense_battery,
    sense_dirty,
    sense_position,
    sense_proximity,
)

from .auth import CONTROL_ONLY, AnyCaller, CallingRobot, Hub, OwnerOrControl, forbidden
from .gate import Act, wait_of
from .hub import WorldHub
from .messages import (
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
from .problems import LARGE_BODY, BodyLimit, Problem, answer_problems, described
from .views import Change, Reported, view_of

_log = logging.getLogger("vacuum_world.server")

ActionName = Annotated[
    ActionId | None,
    Header(
        alias="X-Action-Id",
        description="The caller's own name for this action; a repeated one is logged as such (the "
        "action is carried out all the same).",
    ),
]
Patience = Annotated[
    str | None,
    Header(
        alias="Prefer",
        description="`wait=SECONDS`: how long to wait where the world is paused (5 without it); "
        "after that it is 503 `paused`, and nothing was done.",
    ),
]


# ---- Robots ----

robots = APIRouter()
_ROBOT = described(401, 403)
_ACTING: dict[int | str, dict[str, Any]] = {
    **described(401, 403, 404, 422, 503),
    409: {"model": StrandedBody, "description": "Stranded"},
}


@robots.post(
    "/api/agents",
    status_code=201,
    response_model=Joined,
    responses={200: {"model": Joined, "description": "Handed over"}, **described(401, 409, 503)},
)
async def join_world(hub: Hub, caller: AnyCaller, wish: JoinRequest, response: Response) -> Joined:
    """Joins; with the control token, takes over the robot of that name if there is one."""
    taken = hub.hand_over(wish.name) if caller and caller.robot is None else None
    robot, token = taken or hub.join(wish.name)
    response.status_code = 200 if taken else 201
    return Joined(
        id=robot.id,
        name=robot.name,
        token=token,
        position=robot.position,
        battery=robot.battery,
    )


@robots.delete(
    "/api/agents/{id}",
    status_code=204,
    response_model=None,
    responses=described(401, 403, 404, 503),
)
async def leave_world(hub: Hub, caller: OwnerOrControl, id: str) -> None:
    """Leaves; the experimenter may remove any robot."""
    if caller.robot not in (None, id):
        raise forbidden(f"robot {id!r} is somebody else's")
    hub.leave(id)


@robots.post("/api/agent/move", response_model=ActionResult, responses=_ACTING)
async def move_robot(
    request: Request,
    hub: Hub,
    robot: CallingRobot,
    wish: MoveRequest,
    action_id: ActionName = None,
    prefer: Patience = None,
) -> Response:
    """Moves one cell."""
    return await _act(request, hub, robot, partial(hub.move, robot, wish.direction, action_id))


@robots.post("/api/env/clean", response_model=ActionResult, responses=_ACTING)
async def clean_cell(
    request: Request,
    hub: Hub,
    robot: CallingRobot,
    action_id: ActionName = None,
    prefer: Patience = None,
) -> Response:
    """Cleans the robot's cell."""
    return await _act(request, hub, robot, partial(hub.clean, robot, action_id))


@robots.post("/api/agent/use", response_model=ActionResult, responses=_ACTING)
async def use_gadget(
    request: Request,
    hub: Hub,
    robot: CallingRobot,
    wish: UseRequest,
    action_id: ActionName = None,
    prefer: Patience = None,
) -> Response:
    """Uses a gadget."""
    return await _act(request, hub, robot, partial(hub.use, robot, wish.gadget, action_id))


async def _act(request: Request, hub: WorldHub, robot: str, act: Act) -> Response:
    line: LoggedAction | None = await hub.gate.wait_for(request, robot, act)
    if line is None:
        raise Problem(
            503,
            "paused",
            f"the world is paused, and stayed so for the {wait_of(request)} s that the request "
            "waits; nothing was done and nothing will be: ask again",
        )
    result = line.result.model_dump(mode="json")
    if not line.refused:
        return JSONResponse(result)
    stranded = StrandedBody(**line.result.model_dump(), detail=line.result.reason or "")
    return JSONResponse(stranded.model_dump(mode="json"), 409)


@robots.get("/api/agent/gadgets", responses=_ROBOT)
async def read_manuals(hub: Hub, robot: CallingRobot) -> Manuals:
    """What the world's gadgets claim."""
    return Manuals(gadgets=manuals(hub.state))


@robots.get("/api/sensor/position", responses=described(401, 403, 404))
async def read_position(hub: Hub, robot: CallingRobot) -> PositionReading:
    """Where the robot, the charger and the grid's bounds are."""
    return sense_position(hub.state, robot)


@robots.get("/api/sensor/dirty", responses=described(401, 403, 404))
async def read_dirty(hub: Hub, robot: CallingRobot) -> DirtReading:
    """Dirt on the robot's cell and its four neighbours."""
    return sense_dirty(hub.state, robot)


@robots.get("/api/sensor/proximity", responses=described(401, 403, 404))
async def read_proximity(hub: Hub, robot: CallingRobot) -> ProximityReading:
    """Which of the four ways are blocked."""
    return sense_proximity(hub.state, robot)


@robots.get("/api/sensor/battery", responses=described(401, 403, 404))
async def read_battery(hub: Hub, robot: CallingRobot) -> BatteryReading:
    """The robot's charge."""
    return sense_battery(hub.state, robot)


@robots.get("/api/sensor/all", responses=described(401, 403, 404))
async def read_all(hub: Hub, robot: CallingRobot) -> Reading:
    """All four sensors at one moment."""
    return sense(hub.state, robot)


@robots.put(
    "/api/agents/{id}/report",
    status_code=204,
    response_model=None,
    responses=described(401, 403, 404, 413, 422),
)
async def report_mind(hub: Hub, robot: CallingRobot, id: str, report: Report) -> None:
    """Shows watchers what the robot's agent thinks and believes; the world stays as it is."""
    if id != robot:
        raise forbidden(f"robot {id!r} is somebody else's")
    hub.report(robot, report)


# ---- The experimenter ----

_ONE_TICK, _ONE_STEP = TickRequest(), StepRequest()
control = APIRouter(dependencies=CONTROL_ONLY, responses=described(401, 403))


@control.get("/api/world")
async def show_world(hub: Hub) -> WorldState:
    """The whole world, hidden things included."""
    return hub.state


@control.post("/api/world/snapshot")
async def take_snapshot(hub: Hub) -> WorldState:
    """The whole world, to be restored later."""
    return hub.state


@control.post("/api/world/tick", responses=described(422, 503))
async def let_time_pass(hub: Hub, wish: TickRequest = _ONE_TICK) -> Happened:
    """Lets ticks pass."""
    return Happened(events=hub.tick(wish.count), tick=hub.state.tick)


@control.post("/api/world/interventions", responses=described(404, 409, 422, 503))
async def change_world(hub: Hub, wish: InterventionRequest) -> Happened:
    """Applies an intervention."""
    return Happened(events=hub.intervene(wish.root), tick=hub.state.tick)


@control.post("/api/world/restore", responses=described(413, 422, 503))
async def restore_snapshot(hub: Hub, state: WorldState) -> Happened:
    """Puts a snapshot in place of the world."""
    hub.restore(state)
    return Happened(events=(), tick=hub.state.tick)


@control.put("/api/pace", responses=described(422))
async def change_pace(hub: Hub, wish: PaceChange) -> Pace:
    """Pauses, resumes, or changes the clock's speed."""
    hub.gate.change(wish)
    return hub.gate.pace


@control.post("/api/pace/step", responses=described(409, 422, 503))
async def step_world(hub: Hub, wish: StepRequest = _ONE_STEP) -> Pace:
    """While paused, lets the next action through; by the clock, a tick passes too."""
    hub.step(wish.count)
    return hub.gate.pace


# ---- Anybody: the pace, the changes, the live page ----

anybody = APIRouter()
_PARTS = ("board.js", "control.js", "dom.js", "mind.js", "picture.js", "shapes.js", "stream.js")
"""Modules that `page.js` imports; nothing else is served from their folder."""
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@anybody.get("/api/pace")
async def show_pace(hub: Hub) -> Pace:
    """Whether the world is paused, who waits, and how fast its clock goes."""
    return hub.gate.pace


@anybody.get("/api/events", response_class=EventSourceResponse, responses=described(401))
async def stream_events(hub: Hub, caller: AnyCaller) -> EventSourceResponse:
    """Every change as it happens; with the control token, hidden things too."""
    secrets = caller is not None and caller.robot is None
    return EventSourceResponse(
        _changes(hub, secrets), ping=15, headers={"Cache-Control": "no-store"}
    )


async def _changes(hub: WorldHub, secrets: bool) -> AsyncIterator[ServerSentEvent]:
    async for moment in hub.watchers.watch(hub.scene):
        scene = moment.scene
        change = Change(
            number=moment.number,
            view=view_of(scene.state, secrets=secrets),
            events=tuple(event for event in moment.events if secrets or not event.secret),
            pace=scene.pace,
            reports=tuple(
                Reported(robot=robot, report=report) for robot, report in scene.reports.items()
            ),
        )
        yield ServerSentEvent(change.model_dump_json(), event="world", id=str(moment.number))


@anybody.get("/", include_in_schema=False)
async def show_page() -> Response:
    """The live page."""
    return _page_file("index.html", "text/html")


@anybody.get("/page.css", include_in_schema=False)
async def show_style() -> Response:
    """The live page's style."""
    return _page_file("page.css", "text/css")


@anybody.get("/page.js", include_in_schema=False)
@anybody.get("/page/{name}", include_in_schema=False)
async def show_script(name: str = "page.js") -> Response:
    """The live page's script, or a module of it."""
    if name not in (*_PARTS, "page.js"):
        raise Problem(404, "not_found", f"the page has no part {name!r}; see /")
    return _page_file(name, "text/javascript")


def _page_file(name: str, media: str) -> Response:
    content = files("vacuum_world.server").joinpath("page", name).read_bytes()
    return Response(content, media_type=f"{media}; charset=utf-8", headers=_PAGE_HEADERS)


# ---- The application ----


def create_app(
    hub: WorldHub,
    *,
    interval: float = 1.0,
    host: str = "127.0.0.1",
    on_start: Callable[[], None] | None = None,
) -> FastAPI:
    """The application that serves `hub`.

    Args:
        hub: The world.
        interval: Seconds between ticks where time passes by the clock.
        host: The address served; on a loopback address only requests that name it are heeded.
        on_start: Called once in the server's event loop, before the first request.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        if on_start:
            on_start()
        clock = asyncio.ensure_future(_tick_by_clock(hub))
        try:
            yield
        finally:
            clock.cancel()
            await asyncio.wait([clock])

    hub.gate.interval = interval
    loopback = host in ("127.0.0.1", "::1", "localhost")
    allowed = ["127.0.0.1", "localhost", "[::1]"] if loopback else ["*"]
    # The interactive pages of FastAPI load scripts from another host: they are left out.
    app = FastAPI(
        title="Dynamic Vacuum World",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    for router in (robots, control, anybody):
        app.include_router(router)
    app.add_middleware(BodyLimit, limits={"/api/world/restore": LARGE_BODY})
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=allowed)
    answer_problems(app)
    app.state.hub = hub
    return app


async def _tick_by_clock(hub: WorldHub) -> None:
    """Lets ticks pass where time passes by the clock, at the current pace; never ends."""
    while True:
        try:
            async with asyncio.timeout(hub.gate.pace.interval):
                await hub.gate.next_change()
        except TimeoutError:
            _tick(hub)


def _tick(hub: WorldHub) -> None:
    if hub.state.ticks != "clock" or hub.gate.pace.paused:
        return
    try:
        hub.tick()
    except OSError as error:
        _log.warning("a tick was left out, the world could not be written to disk: %s", error)
