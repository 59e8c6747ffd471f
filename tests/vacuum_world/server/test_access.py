"""Who may do what: every endpoint against every kind of token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import httpx
import pytest

from vacuum_world.server import WorldServer, create_app, open_world
from vacuum_world.world import create_world


class Row(NamedTuple):
    """One request of the API, as `/openapi.json` describes it."""

    method: str
    path: str
    access: frozenset[str]


def _rows() -> list[Row]:
    described = create_app(open_world(create_world(0), None, None)[0]).openapi()
    return [
        Row(method.upper(), path, frozenset(name for one in operation["security"] for name in one))
        for path, item in described["paths"].items()
        for method, operation in item.items()
        if "security" in operation
    ]


GUARDED = _rows()
Tokens = Mapping[str, str]


def joined(http: httpx.Client, served: WorldServer) -> Tokens:
    robots = [http.post("/api/agents", json={"name": name}).json() for name in ("ann", "bob")]
    return {
        "own": robots[0]["token"],
        "other": robots[1]["token"],
        "control": served.control_token,
    }


@pytest.fixture
def tokens(http: httpx.Client, served: WorldServer) -> Tokens:
    return joined(http, served)


@pytest.fixture(scope="module")
def refusing(shared: tuple[WorldServer, httpx.Client]) -> Iterator[tuple[httpx.Client, Tokens]]:
    """A world for requests that are refused: none of them changes it."""
    server, client = shared
    tokens = joined(client, server)
    before = server.world
    yield client, tokens
    assert server.world == before


def ask(http: httpx.Client, row: Row, header: str | None) -> httpx.Response:
    body = {
        "/api/agent/move": {"direction": "south"},
        "/api/agent/use": {"gadget": "quick_charge"},
        "/api/world/restore": {},
        "/api/agents/{id}/report": {"phase": "Reasoning"},
    }.get(row.path)
    path = row.path.replace("{id}", "r1")
    headers = {"Authorization": header} if header is not None else {}
    return http.request(row.method, path, json=body, headers=headers)


@pytest.mark.parametrize("header", [None, "Bearer", "Basic abc", "Bearer wrong-token"])
@pytest.mark.parametrize("row", GUARDED, ids=lambda row: f"{row.method} {row.path}")
def test_without_a_valid_token_it_is_401_and_changes_nothing(
    refusing: tuple[httpx.Client, Tokens], row: Row, header: str | None
) -> None:
    response = ask(refusing[0], row, header)
    assert (response.status_code, response.json()["error"]) == (401, "unauthorized")
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "row",
    [row for row in GUARDED if row.access == frozenset({"control"})],
    ids=lambda row: f"{row.method} {row.path}",
)
def test_a_robot_is_no_experimenter(refusing: tuple[httpx.Client, Tokens], row: Row) -> None:
    http, tokens = refusing
    response = ask(http, row, f"Bearer {tokens['own']}")
    assert (response.status_code, response.json()["error"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "row",
    [row for row in GUARDED if row.access == frozenset({"robot"})],
    ids=lambda row: f"{row.method} {row.path}",
)
def test_the_control_token_drives_no_robot(http: httpx.Client, tokens: Tokens, row: Row) -> None:
    assert ask(http, row, f"Bearer {tokens['control']}").status_code == 403
    assert ask(http, row, f"Bearer {tokens['own']}").is_success


def test_somebody_elses_robot_is_out_of_reach(http: httpx.Client, tokens: Tokens) -> None:
    response = http.delete("/api/agents/r1", headers={"Authorization": f"Bearer {tokens['other']}"})
    assert response.status_code == 403
    assert "somebody else's" in response.json()["detail"]


def test_the_experimenter_may_remove_any_robot(http: httpx.Client, tokens: Tokens) -> None:
    control = {"Authorization": f"Bearer {tokens['control']}"}
    assert http.delete("/api/agents/r1", headers=control).status_code == 204
    assert http.delete("/api/agents/r1", headers=control).status_code == 404


def test_a_wrong_token_does_not_join(http: httpx.Client) -> None:
    wrong = {"Authorization": "Bearer wrong-token"}
    assert http.post("/api/agents", json={"name": "eve"}, headers=wrong).status_code == 401
