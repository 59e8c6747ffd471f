"""Who is calling: bearer tokens of robots and of the experimenter, as FastAPI dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from .hub import WorldHub
from .problems import Problem

_ROBOT = HTTPBearer(
    scheme_name="robot", description="The token that joining gave.", auto_error=False
)
_CONTROL = HTTPBearer(
    scheme_name="control", description="The experimenter's token.", auto_error=False
)
# The schemes describe the API. The header is read below, where each fault has its own reason.


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The holder of a token of this world."""

    robot: str | None
    """The id of the robot it drives; None for the experimenter."""


def hub_of(request: Request) -> WorldHub:
    """The world that this server serves."""
    return cast(WorldHub, request.app.state.hub)


Hub = Annotated[WorldHub, Depends(hub_of)]


def _unauthorized(detail: str) -> Problem:
    return Problem(401, "unauthorized", detail)


def forbidden(detail: str) -> Problem:
    """403: the caller is known and may not."""
    return Problem(403, "forbidden", detail)


def _caller(request: Request, hub: Hub) -> Caller | None:
    """Who is calling; None where no token was sent."""
    header = request.headers.get("authorization")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise _unauthorized("the Authorization header is not of the form 'Bearer TOKEN'")
    if hub.tokens.is_control(token):
        return Caller(robot=None)
    robot = hub.tokens.robot_of(token)
    if robot is None:
        raise _unauthorized("this token is not (or no longer) valid in this world")
    return Caller(robot=robot)


def _known_caller(caller: Annotated[Caller | None, Depends(_caller)]) -> Caller:
    if caller is None:
        raise _unauthorized("a token is needed: send 'Authorization: Bearer TOKEN'")
    return caller


_KnownCaller = Annotated[Caller, Depends(_known_caller)]
_RobotScheme = Annotated[HTTPAuthorizationCredentials | None, Security(_ROBOT)]
_ControlScheme = Annotated[HTTPAuthorizationCredentials | None, Security(_CONTROL)]


def _calling_robot(caller: _KnownCaller, _: _RobotScheme) -> str:
    if caller.robot is None:
        raise forbidden("the control token drives no robot; join and use that robot's token")
    return caller.robot


def _owner_or_control(caller: _KnownCaller, _: _RobotScheme, __: _ControlScheme) -> Caller:
    return caller


def _control(caller: _KnownCaller, _: _ControlScheme) -> None:
    if caller.robot is not None:
        raise forbidden("this is for the experimenter; a robot's token does not do")


CallingRobot = Annotated[str, Depends(_calling_robot)]
"""The id of the robot whose token was sent; 401 without a token, 403 with the control token."""
OwnerOrControl = Annotated[Caller, Depends(_owner_or_control)]
"""The holder of the request's token; 401 without one."""
AnyCaller = Annotated[Caller | None, Depends(_caller)]
"""Anybody; None without a token."""
CONTROL_ONLY = [Depends(_control)]
"""Lets only the experimenter pass: 401 without a token, 403 with a robot's."""
