from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema

from vacuum_world.server import ENDPOINTS, WorldServer, openapi


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        fields: dict[str, Any] = node  # pyright: ignore[reportUnknownVariableType]  JSON
        if isinstance(fields.get("$ref"), str):
            yield fields["$ref"]
        for value in fields.values():
            yield from references(value)
    elif isinstance(node, list):
        items: list[Any] = node  # pyright: ignore[reportUnknownVariableType]  JSON
        for value in items:
            yield from references(value)


def test_every_route_is_described(http: httpx.Client) -> None:
    told = http.get("/openapi.json").json()
    described = {(method, path) for path, item in told["paths"].items() for method in item}
    routes = {(row.method.lower(), row.path) for row in ENDPOINTS}
    assert described == routes | {("get", "/openapi.json")}


def test_the_description_is_sound_in_itself() -> None:
    told = openapi()
    schemas = told["components"]["schemas"]
    for reference in references(told):
        assert reference.removeprefix("#/components/schemas/") in schemas
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = [op["operationId"] for item in told["paths"].values() for op in item.values()]
    assert len(set(names)) == len(names)
    assert all(op["summary"] for item in told["paths"].values() for op in item.values())


def test_answers_are_as_described(http: httpx.Client, served: WorldServer) -> None:
    told = openapi()
    token = http.post("/api/agents", json={"name": "ann"}).json()["token"]
    answer = http.get("/api/sensor/all", headers={"Authorization": f"Bearer {token}"}).json()
    content = told["paths"]["/api/sensor/all"]["get"]["responses"]["200"]["content"]
    schema = {**content["application/json"]["schema"], "components": told["components"]}
    jsonschema.validate(answer, schema, cls=jsonschema.Draft202012Validator)
    world = http.get(
        "/api/world", headers={"Authorization": f"Bearer {served.control_token}"}
    ).json()
    content = told["paths"]["/api/world"]["get"]["responses"]["200"]["content"]
    schema = {**content["application/json"]["schema"], "components": told["components"]}
    jsonschema.validate(world, schema, cls=jsonschema.Draft202012Validator)
