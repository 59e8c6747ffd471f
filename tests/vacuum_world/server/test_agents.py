from __future__ import annotations

from typing import Any

import httpx
import pytest

from vacuum_world.server import WorldServer


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def joined(http: httpx.Client, name: str = "ann") -> dict[str, Any]:
    response = http.post("/api/agents", json={"name": name})
    assert response.status_code == 201
    return response.json()


def test_joining_gives_an_id_a_token_and_a_position(http: httpx.Client) -> None:
    member = joined(http)
    assert member.keys() == {"id", "name", "token", "position", "battery"}
    assert (member["id"], member["position"], member["battery"]) == ("r1", [0, 0], 100)


def test_a_taken_name_is_a_conflict(http: httpx.Client) -> None:
    joined(http)
    response = http.post("/api/agents", json={"name": "ann"})
    assert response.status_code == 409
    assert response.json()["error"] == "conflict"
    assert "'ann' is already in this world" in response.json()["detail"]


@pytest.mark.parametrize("mark", ["\x1b", "\x00", "\n", "\x9b", "\u202e", "\u2066", "\u2028"])
def test_a_name_that_can_steer_a_screen_is_refused(
    shared: tuple[WorldServer, httpx.Client], mark: str
) -> None:
    served, http = shared
    response = http.post("/api/agents", json={"name": f"an{mark}n"})
    assert response.status_code == 422
    assert f"U+{ord(mark):04X}" in response.json()["detail"]
    assert served.world.robots == ()


@pytest.mark.parametrize("name", ["Zoë", "مكنسة", "掃除機", "robot 🧹", "vacuum 2"])
def test_a_name_may_be_of_any_language(http: httpx.Client, name: str) -> None:
    assert joined(http, name)["name"] == name


def test_the_control_token_hands_a_robot_over(http: httpx.Client, served: WorldServer) -> None:
    before = joined(http)
    control = bearer(served.control_token)
    response = http.post("/api/agents", json={"name": "ann"}, headers=control)
    after = response.json()
    assert (response.status_code, after["id"]) == (200, before["id"])
    assert http.get("/api/sensor/all", headers=bearer(before["token"])).status_code == 401
    assert http.get("/api/sensor/all", headers=bearer(after["token"])).status_code == 200


def test_the_control_token_lets_a_new_robot_in_too(http: httpx.Client, served: WorldServer) -> None:
    control = bearer(served.control_token)
    assert http.post("/api/agents", json={"name": "new"}, headers=control).status_code == 201


def test_a_robot_moves_cleans_and_senses(http: httpx.Client) -> None:
    token = bearer(joined(http)["token"])
    moved = http.post("/api/agent/move", json={"direction": "east"}, headers=token)
    assert moved.json() == {
        "ok": True,
        "failure": None,
        "reason": None,
        "position": [1, 0],
        "battery": 95,
    }
    assert http.get("/api/sensor/dirty", headers=token).json() == {
        "here": True,
        "north": None,
        "east": False,
        "south": False,
        "west": False,
    }
    assert http.post("/api/env/clean", headers=token).json()["battery"] == 85
    assert http.get("/api/sensor/proximity", headers=token).json() == {
        "north": True,
        "east": True,
        "south": False,
        "west": False,
    }
    assert http.get("/api/sensor/battery", headers=token).json() == {
        "battery": 85,
        "stranded": False,
    }
    assert http.get("/api/sensor/position", headers=token).json()["position"] == [1, 0]


def test_a_blocked_move_is_answered_not_refused(http: httpx.Client) -> None:
    token = bearer(joined(http)["token"])
    response = http.post("/api/agent/move", json={"direction": "north"}, headers=token)
    assert response.status_code == 200
    assert response.json()["failure"] == "deterministic"


def test_a_stranded_robot_gets_409_with_a_result_and_still_senses(
    http: httpx.Client, served: WorldServer
) -> None:
    token = bearer(joined(http)["token"])
    http.post("/api/agent/move", json={"direction": "east"}, headers=token)
    http.post(
        "/api/world/interventions",
        json={"kind": "set_battery", "robot": "r1", "battery": 0},
        headers=bearer(served.control_token),
    )
    response = http.post("/api/env/clean", headers=token)
    assert response.status_code == 409
    assert response.json() == {
        "error": "stranded",
        "detail": "the robot is stranded: its battery is empty and it is not on the charger",
        "ok": False,
        "failure": "deterministic",
        "reason": "the robot is stranded: its battery is empty and it is not on the charger",
        "position": [1, 0],
        "battery": 0,
    }
    assert http.get("/api/sensor/battery", headers=token).json()["stranded"]


def test_action_ids_reach_the_log_and_repeats_are_visible(
    http: httpx.Client, served: WorldServer
) -> None:
    token = bearer(joined(http)["token"])
    for _ in range(2):
        http.post("/api/env/clean", headers=token | {"X-Action-Id": "c-1"})
    assert [(line.action_id, line.repeated) for line in served.world.log] == [
        ("c-1", False),
        ("c-1", True),
    ]


def test_robots_block_one_another(http: httpx.Client) -> None:
    first, second = joined(http, "ann"), joined(http, "bob")
    assert second["position"] == [0, 1]
    response = http.post(
        "/api/agent/move", json={"direction": "south"}, headers=bearer(first["token"])
    )
    assert "another robot" in response.json()["reason"]


def test_leaving_takes_robot_and_token_away(http: httpx.Client, served: WorldServer) -> None:
    member = joined(http)
    token = bearer(member["token"])
    assert http.delete(f"/api/agents/{member['id']}", headers=token).status_code == 204
    assert http.get("/api/sensor/all", headers=token).status_code == 401
    assert served.world.robots == ()


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/api/agent/move", '{"direction": "up"}', "direction: Input should be 'north'"),
        ("/api/agent/move", '{"direction": "north", "by": 2}', "by: Extra inputs"),
        ("/api/agent/move", "{", "JSON decode error"),
        ("/api/agent/move", "", "body: Field required"),
        ("/api/agents", '{"name": ""}', "name: String should have at least 1"),
        ("/api/agents", '{"name": 5}', "name: Input should be a valid string"),
        ("/api/agents", "[]", "body: Input should be"),
    ],
)
def test_a_malformed_request_is_refused_with_the_reason(
    http: httpx.Client, path: str, body: str, error: str
) -> None:
    token = bearer(joined(http)["token"]) if "agents" not in path else {}
    response = http.post(path, content=body, headers=token | {"Content-Type": "application/json"})
    assert (response.status_code, response.json()["error"]) == (422, "invalid")
    assert error in response.json()["detail"]


@pytest.mark.parametrize("action_id", ["", "a b", "x" * 201])
def test_an_action_id_that_cannot_be_one_is_refused_before_anything_happens(
    http: httpx.Client, served: WorldServer, action_id: str
) -> None:
    token = bearer(joined(http)["token"])
    response = http.post("/api/env/clean", headers=token | {"X-Action-Id": action_id})
    assert response.status_code == 422
    assert served.world.log == ()


def test_a_body_that_is_too_long_is_refused(http: httpx.Client) -> None:
    response = http.post("/api/agents", content=b" " * 70_000)
    assert (response.status_code, response.json()["error"]) == (413, "too_long")


def test_unknown_paths_and_methods_are_answered_in_json(http: httpx.Client) -> None:
    assert http.get("/api/nothing").json()["error"] == "not_found"
    assert http.get("/api/agent/move").json()["error"] == "method_not_allowed"


def test_a_request_that_names_a_foreign_host_is_not_heeded(http: httpx.Client) -> None:
    assert http.get("/", headers={"Host": "evil.example"}).status_code == 400
