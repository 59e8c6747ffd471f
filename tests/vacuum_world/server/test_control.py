from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from coag._util.sockets import reserved_port
from vacuum_world.errors import ControlTokenError, StateFileError
from vacuum_world.server import WorldServer, running
from vacuum_world.world import WorldState, create_world


@pytest.fixture
def control(served: WorldServer) -> dict[str, str]:
    return {"Authorization": f"Bearer {served.control_token}"}


def test_the_experimenter_sees_the_whole_world(
    http: httpx.Client, served: WorldServer, control: dict[str, str]
) -> None:
    response = http.get("/api/world", headers=control)
    assert WorldState.model_validate_json(response.content) == served.world


def test_ticks_by_hand_are_counted(http: httpx.Client, control: dict[str, str]) -> None:
    passed = http.post("/api/world/tick", headers=control).json()
    assert (passed["tick"], [event["kind"] for event in passed["events"]]) == (1, ["ticked"])
    assert http.post("/api/world/tick", json={"count": 4}, headers=control).json()["tick"] == 5
    too_many = http.post("/api/world/tick", json={"count": 0}, headers=control)
    assert too_many.status_code == 422


def test_an_intervention_is_applied_or_refused_with_the_reason(
    http: httpx.Client, served: WorldServer, control: dict[str, str]
) -> None:
    wall = {"kind": "add_obstacle", "cell": [3, 3], "visible": False}
    assert http.post("/api/world/interventions", json=wall, headers=control).status_code == 200
    assert served.world.obstacles[-1].cell == (3, 3)
    again = http.post("/api/world/interventions", json=wall, headers=control)
    assert again.status_code == 409
    assert "an obstacle stands on (3, 3)" in again.json()["detail"]
    unknown = http.post("/api/world/interventions", json={"kind": "flood"}, headers=control)
    assert unknown.status_code == 422
    assert "add_obstacle" in unknown.json()["detail"]
    nobody = {"kind": "set_battery", "robot": "r7", "battery": 5}
    assert http.post("/api/world/interventions", json=nobody, headers=control).status_code == 404


def test_a_restored_snapshot_is_the_same_world_and_keeps_its_robots_tokens(
    http: httpx.Client, served: WorldServer, control: dict[str, str]
) -> None:
    member = http.post("/api/agents", json={"name": "ann"}).json()
    robot = {"Authorization": f"Bearer {member['token']}"}
    snapshot = http.post("/api/world/snapshot", headers=control)
    http.post("/api/agent/move", json={"direction": "south"}, headers=robot)
    late = http.post("/api/agents", json={"name": "bob"}).json()
    restored = http.post("/api/world/restore", json=snapshot.json(), headers=control)
    assert restored.status_code == 200
    assert served.world.model_dump_json().encode() == snapshot.content
    assert http.get("/api/sensor/all", headers=robot).json()["position"] == [0, 0]
    gone = {"Authorization": f"Bearer {late['token']}"}
    assert http.get("/api/sensor/all", headers=gone).status_code == 401


def test_an_impossible_snapshot_is_refused(
    http: httpx.Client, served: WorldServer, control: dict[str, str]
) -> None:
    before = served.world
    impossible = before.model_dump(mode="json") | {"dirty": [[9, 9]]}
    response = http.post("/api/world/restore", json=impossible, headers=control)
    assert response.status_code == 422
    assert "outside the grid" in response.json()["detail"]
    assert served.world == before


def test_no_change_counts_that_cannot_be_kept(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    with WorldServer(create_world(0), state_file=folder / "world.json") as server:
        (folder / "world.json").unlink()
        folder.rmdir()
        response = httpx.post(f"{server.url}/api/agents", json={"name": "ann"}, trust_env=False)
        assert (response.status_code, response.json()["error"]) == (503, "not_kept")
        assert server.world.robots == ()


def test_a_file_that_holds_no_world_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    path.write_text("{}")
    with pytest.raises(StateFileError, match="does not hold a world"):
        WorldServer(create_world(0), state_file=path)
    assert path.read_text() == "{}"


def test_no_token_is_in_the_state_file(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    with WorldServer(create_world(0), state_file=path) as server:
        answer = httpx.post(f"{server.url}/api/agents", json={"name": "ann"}, trust_env=False)
    content = path.read_text()
    assert answer.json()["token"] not in content
    assert server.control_token not in content


@pytest.mark.parametrize("token", ["short", "with a space", "ünsichtbar"])
def test_a_control_token_that_is_easily_guessed_or_garbled_is_refused(token: str) -> None:
    with pytest.raises(ControlTokenError, match="at least 8 visible ASCII characters"):
        WorldServer(create_world(0), control_token=token)


@pytest.fixture
def free_ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever takes a free port takes one that nobody else is given, each time another."""
    listen = running.listen
    with reserved_port() as one, reserved_port() as other:
        ports = iter((one, other))

        def taken(host: str, port: int) -> socket.socket:
            return listen(host, port or next(ports))

        monkeypatch.setattr(running, "listen", taken)
        yield


@pytest.mark.usefixtures("free_ports")
def test_a_stopped_world_can_be_started_again_where_it_was() -> None:
    server = WorldServer(create_world(0))
    with server:
        url = server.url
        httpx.post(f"{url}/api/agents", json={"name": "ann"}, trust_env=False)
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)
    with server:
        assert server.url == url
        assert httpx.get(url, trust_env=False).status_code == 200
        assert [robot.name for robot in server.world.robots] == ["ann"]
