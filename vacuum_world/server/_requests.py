"""Who is calling, and what they send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request

from vacuum_world.world import ActionId

from ._hub import WorldHub
from ._problems import Problem, forbidden, invalid, unauthorized

ModelT = TypeVar("ModelT", bound=BaseModel)

SMALL_BODY = 64 * 1024
"""Bytes that most bodies may have."""
LARGE_BODY = 16 * 1024 * 1024
"""Bytes that a whole world may have."""

_ACTION_ID: TypeAdapter[str] = TypeAdapter(ActionId)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whoever holds a token of this world."""

    robot: str | None
    """The id of the robot it drives; None for the experimenter."""


def hub_of(request: Request) -> WorldHub:
    """The world that this server serves."""
    return cast(WorldHub, request.app.state.hub)


def caller_of(request: Request) -> Caller | None:
    """Who is calling; None where no token was sent.

    Raises:
        Problem: 401, the token is not one of this world's.
    """
    header = request.headers.get("authorization")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise unauthorized("the Authorization header is not of the form 'Bearer TOKEN'")
    tokens = hub_of(request).tokens
    if tokens.is_control(token):
        return Caller(robot=None)
    robot = tokens.robot_of(token)
    if robot is None:
        raise unauthorized("this token is not (or no more) valid in this world")
    return Caller(robot=robot)


def known_caller(request: Request) -> Caller:
    """Who is calling.

    Raises:
        Problem: 401, without a valid token.
    """
    caller = caller_of(request)
    if caller is None:
        raise unauthorized("a token is needed: send 'Authorization: Bearer TOKEN'")
    return caller


def calling_robot(request: Request) -> str:
    """The id of the robot whose token was sent.

    Raises:
        Problem: 401 without a valid token, 403 with the control token.
    """
    robot = known_caller(request).robot
    if robot is None:
        raise forbidden("the control token drives no robot; join and use that robot's token")
    return robot


def need_control(request: Request) -> None:
    """Let only the experimenter pass.

    Raises:
        Problem: 401 without a valid token, 403 with a robot's.
    """
    if known_caller(request).robot is not None:
        raise forbidden("this is for the experimenter; a robot's token does not do")


def action_id_of(request: Request) -> str | None:
    """The caller's own name for this action, from `X-Action-Id`.

    Raises:
        Problem: 422, it is not 1 to 200 visible ASCII characters.
    """
    given = request.headers.get("x-action-id")
    if given is None:
        return None
    try:
        return _ACTION_ID.validate_python(given)
    except ValidationError as error:
        raise Problem(
            422, "invalid", f"X-Action-Id must be 1 to 200 visible ASCII characters, got {given!r}"
        ) from error


async def body_of(request: Request, model: type[ModelT], limit: int = SMALL_BODY) -> ModelT:
    """The body as a `model`; an empty body counts as `{}`.

    Raises:
        Problem: 413 where it is too long, 422 where it is not what it must be.
    """
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > limit:
            raise Problem(413, "too_long", f"the body has more than {limit} bytes")
    try:
        return model.model_validate_json(bytes(received) or b"{}")
    except ValidationError as error:
        raise invalid(error) from error
