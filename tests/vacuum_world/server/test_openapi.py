from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema

from vacuum_world.server import WorldServer


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


def test_the_description_is_sound_in_itself(http: httpx.Client) -> None:
    described = http.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    for reference in references(described):
        assert reference.removeprefix("#/components/schemas/") in schemas
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    operations = [each for item in described["paths"].values() for each in item.values()]
    assert len(operations) == 21
    assert len({each["operationId"] for each in operations}) == len(operations)
    assert all(each["description"] for each in operations)


def test_who_may_ask_is_described(http: httpx.Client) -> None:
    paths = http.get("/openapi.json").json()["paths"]
    assert paths["/api/agent/move"]["post"]["security"] == [{"robot": []}]
    assert paths["/api/world"]["get"]["security"] == [{"control": []}]
    assert paths["/api/agents/{id}"]["delete"]["security"] == [{"robot": []}, {"control": []}]
    assert "security" not in paths["/api/pace"]["get"]


def test_answers_are_as_described(http: httpx.Client, served: WorldServer) -> None:
    api = http.get("/openapi.json").json()
    token = http.post("/api/agents", json={"name": "ann"}).json()["token"]
    answer = http.get("/api/sensor/all", headers={"Authorization": f"Bearer {token}"}).json()
    content = api["paths"]["/api/sensor/all"]["get"]["responses"]["200"]["content"]
    schema = {**content["application/json"]["schema"], "components": api["components"]}
    jsonschema.validate(answer, schema, cls=jsonschema.Draft202012Validator)
    world = http.get(
        "/api/world", headers={"Authorization": f"Bearer {served.control_token}"}
    ).json()
    content = api["paths"]["/api/world"]["get"]["responses"]["200"]["content"]
    schema = {**content["application/json"]["schema"], "components": api["components"]}
    jsonschema.validate(world, schema, cls=jsonschema.Draft202012Validator)
