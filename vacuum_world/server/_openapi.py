"""The description of the server for machines, made from the table of requests."""

from __future__ import annotations

import re
from functools import cache
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ._messages import ProblemBody, StrandedBody
from ._table import ENDPOINTS, Endpoint

_REF = "#/components/schemas/{model}"

_SECURITY: dict[str, list[dict[str, list[str]]]] = {
    "open": [],
    "robot": [{"robot": []}],
    "control": [{"control": []}],
    "robot or control": [{"robot": []}, {"control": []}],
    "open or control": [{}, {"control": []}],
}

_ACCESS_ERRORS: dict[str, tuple[int, ...]] = {
    "open": (),
    "robot": (401, 403),
    "control": (401, 403),
    "robot or control": (401, 403),
    "open or control": (401,),
}


def _content(model: type[BaseModel], media: str = "application/json") -> dict[str, Any]:
    return {media: {"schema": {"$ref": _REF.format(model=model.__name__)}}}


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    success: dict[str, Any] = {"description": HTTPStatus(endpoint.status).phrase}
    if endpoint.gives:
        success["content"] = _content(endpoint.gives, endpoint.media)
    elif endpoint.status != 204:
        success["content"] = {endpoint.media: {"schema": {"type": "string"}}}
    responses: dict[str, Any] = {str(endpoint.status): success}
    for status in (*_ACCESS_ERRORS[endpoint.access], *endpoint.errors):
        stranded = endpoint.action and status == 409
        responses[str(status)] = {
            "description": "Stranded" if stranded else HTTPStatus(status).phrase,
            "content": _content(StrandedBody if stranded else ProblemBody),
        }
    if endpoint.path == "/api/agents":
        handed = {"description": "Handed over", "content": success["content"]}
        responses["200"] = handed
    return responses


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = []
    for name in re.findall(r"{(\w+)}", endpoint.path):
        schema = {"type": "string"}
        parameters.append({"name": name, "in": "path", "required": True, "schema": schema})
    if endpoint.action:
        parameters.append(
            {
                "name": "X-Action-Id",
                "in": "header",
                "description": "The caller's own name for this action; a repeated one is logged "
                "as such (the action is carried out all the same).",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            }
        )
        parameters.append(
            {
                "name": "Prefer",
                "in": "header",
                "description": "`wait=SECONDS`: how long to wait where the world is paused (5 "
                "unless told); after that it is 503 `paused`, and nothing was done.",
                "schema": {"type": "string"},
            }
        )
    return parameters


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": getattr(endpoint.run, "__name__", endpoint.path),
        "summary": (endpoint.run.__doc__ or "").strip(),
        "security": _SECURITY[endpoint.access],
        "responses": _responses(endpoint),
    }
    if parameters := _parameters(endpoint):
        operation["parameters"] = parameters
    if endpoint.takes:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.takes)}
    return operation


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document of this server."""
    models = {ProblemBody, StrandedBody}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        models |= {model for model in (endpoint.takes, endpoint.gives) if model}
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    paths["/openapi.json"] = {"get": _own_operation()}
    inputs = sorted(models, key=lambda model: model.__name__)
    _, schemas = models_json_schema([(m, "validation") for m in inputs], ref_template=_REF)
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dynamic Vacuum World", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "robot": {**bearer, "description": "The token that joining gave."},
                "control": {**bearer, "description": "The experimenter's token."},
            },
        },
    }


def _own_operation() -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": "show_openapi",
        "summary": "This description.",
        "security": [],
        "responses": {"200": {"description": "OK", "content": content}},
    }


async def show_openapi(request: Request) -> Response:
    """This description."""
    return JSONResponse(openapi())
