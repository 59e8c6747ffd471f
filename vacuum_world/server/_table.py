"""The table of all requests, from which both the routes and `/openapi.json` are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from vacuum_world.showing import Pace, PaceChange, Report
from vacuum_world.world import (
    ActionResult,
    BatteryReading,
    DirtReading,
    PositionReading,
    ProximityReading,
    Reading,
    WorldState,
)

from . import _endpoints as do
from ._messages import (
    Happened,
    InterventionRequest,
    Joined,
    JoinRequest,
    Manuals,
    MoveRequest,
    StepRequest,
    TickRequest,
    UseRequest,
)
from ._page import page_part, page_script, page_style, show_page
from ._views import Change

Access = Literal["open", "robot", "control", "robot or control", "open or control"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One kind of request."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    """HTTP method."""
    path: str
    """Path, parameters in braces."""
    run: Callable[[Request], Awaitable[Response]]
    """What is done; its docstring is the summary."""
    access: Access
    """Whose token is needed."""
    takes: type[BaseModel] | None = None
    """The body."""
    gives: type[BaseModel] | None = None
    """The answer; None where it has none or is not JSON."""
    media: str = "application/json"
    """Media type of the answer."""
    status: int = 200
    """Status of success."""
    errors: tuple[int, ...] = ()
    """Statuses of failure, those of access not counted."""
    action: bool = False
    """Whether `X-Action-Id` is heeded."""


def _sensor(name: str, run: Callable[[Request], Awaitable[Response]], gives: type[BaseModel]):
    path = f"/api/sensor/{name}"
    return Endpoint(method="GET", path=path, run=run, access="robot", gives=gives, errors=(404,))


def _control(
    name: str,
    run: Callable[[Request], Awaitable[Response]],
    takes: type[BaseModel] | None,
    gives: type[BaseModel],
    errors: tuple[int, ...] = (422, 503),
) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"/api/world/{name}",
        run=run,
        access="control",
        takes=takes,
        gives=gives,
        errors=errors,
    )


def _asset(
    path: str,
    run: Callable[[Request], Awaitable[Response]],
    media: str,
    errors: tuple[int, ...] = (),
) -> Endpoint:
    return Endpoint(method="GET", path=path, run=run, access="open", media=media, errors=errors)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/api/agents",
        run=do.join_world,
        access="open or control",
        takes=JoinRequest,
        gives=Joined,
        status=201,
        errors=(409, 422, 503),
    ),
    Endpoint(
        method="DELETE",
        path="/api/agents/{id}",
        run=do.leave_world,
        access="robot or control",
        status=204,
        errors=(404, 503),
    ),
    Endpoint(
        method="POST",
        path="/api/agent/move",
        run=do.move_robot,
        access="robot",
        takes=MoveRequest,
        gives=ActionResult,
        errors=(404, 409, 422, 503),
        action=True,
    ),
    Endpoint(
        method="POST",
        path="/api/env/clean",
        run=do.clean_cell,
        access="robot",
        gives=ActionResult,
        errors=(404, 409, 422, 503),
        action=True,
    ),
    Endpoint(
        method="POST",
        path="/api/agent/use",
        run=do.use_gadget,
        access="robot",
        takes=UseRequest,
        gives=ActionResult,
        errors=(404, 409, 422, 503),
        action=True,
    ),
    Endpoint(
        method="GET",
        path="/api/agent/gadgets",
        run=do.read_manuals,
        access="robot",
        gives=Manuals,
    ),
    Endpoint(
        method="PUT",
        path="/api/agents/{id}/report",
        run=do.report_mind,
        access="robot",
        takes=Report,
        status=204,
        errors=(404, 413, 422),
    ),
    _sensor("position", do.read_position, PositionReading),
    _sensor("dirty", do.read_dirty, DirtReading),
    _sensor("proximity", do.read_proximity, ProximityReading),
    _sensor("battery", do.read_battery, BatteryReading),
    _sensor("all", do.read_all, Reading),
    Endpoint(
        method="GET",
        path="/api/world",
        run=do.show_world,
        access="control",
        gives=WorldState,
    ),
    _control("tick", do.let_time_pass, TickRequest, Happened),
    _control("interventions", do.change_world, InterventionRequest, Happened, (404, 409, 422, 503)),
    _control("snapshot", do.take_snapshot, None, WorldState, ()),
    _control("restore", do.restore_snapshot, WorldState, Happened),
    Endpoint(method="GET", path="/api/pace", run=do.show_pace, access="open", gives=Pace),
    Endpoint(
        method="PUT",
        path="/api/pace",
        run=do.change_pace,
        access="control",
        takes=PaceChange,
        gives=Pace,
        errors=(422,),
    ),
    Endpoint(
        method="POST",
        path="/api/pace/step",
        run=do.step_world,
        access="control",
        takes=StepRequest,
        gives=Pace,
        errors=(409, 422, 503),
    ),
    Endpoint(
        method="GET",
        path="/api/events",
        run=do.stream_events,
        access="open or control",
        gives=Change,
        media="text/event-stream",
    ),
    _asset("/", show_page, "text/html"),
    _asset("/page.css", page_style, "text/css"),
    _asset("/page.js", page_script, "text/javascript"),
    _asset("/page/{name}", page_part, "text/javascript", (404,)),
)
"""Every request but `/openapi.json` itself."""
