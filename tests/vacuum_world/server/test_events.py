from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx

from vacuum_world.server import WorldServer
from vacuum_world.world import create_world


def changes(response: httpx.Response) -> Iterator[dict[str, Any]]:
    assert response.headers["content-type"].startswith("text/event-stream")
    for line in response.iter_lines():
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


def test_watchers_get_the_present_and_then_every_change(
    http: httpx.Client, served: WorldServer
) -> None:
    with httpx.stream("GET", f"{served.url}/api/events", trust_env=False) as response:
        moments = changes(response)
        assert next(moments)["view"]["robots"] == []
        http.post("/api/agents", json={"name": "ann"})
        joined = next(moments)
        assert joined["view"]["robots"][0]["name"] == "ann"
        assert [event["kind"] for event in joined["events"]] == ["joined"]
        assert joined["number"] == 1


def test_only_the_experimenter_is_shown_hidden_things(
    http: httpx.Client, served: WorldServer
) -> None:
    control = {"Authorization": f"Bearer {served.control_token}"}
    wall = {"kind": "add_obstacle", "cell": [3, 3], "visible": False}
    http.post("/api/world/interventions", json=wall, headers=control)
    url = f"{served.url}/api/events"
    with httpx.stream("GET", url, trust_env=False) as response:
        moment = next(changes(response))
        assert [o["cell"] for o in moment["view"]["obstacles"]] == [[2, 0]]
        assert moment["view"]["forbidden"] is None
        assert moment["events"] == []
    with httpx.stream("GET", url, headers=control, trust_env=False) as response:
        moment = next(changes(response))
        assert [o["cell"] for o in moment["view"]["obstacles"]] == [[2, 0], [3, 3]]
        assert [event["kind"] for event in moment["events"]] == ["obstacle_appeared"]


def test_a_wrong_token_watches_nothing(http: httpx.Client) -> None:
    wrong = {"Authorization": "Bearer wrong-token"}
    assert http.get("/api/events", headers=wrong).status_code == 401


def test_stopping_the_world_ends_the_stream() -> None:
    server = WorldServer(create_world(0)).start()
    with httpx.stream("GET", f"{server.url}/api/events", trust_env=False) as response:
        moments = changes(response)
        next(moments)
        server.stop()
        assert list(moments) == []


def test_time_passes_by_the_clock() -> None:
    world = create_world(0, ticks="clock")
    with (
        WorldServer(world, interval=0.01) as server,
        httpx.stream("GET", f"{server.url}/api/events", trust_env=False) as response,
    ):
        moments = changes(response)
        first = next(moments)["view"]["tick"]
        assert next(moments)["view"]["tick"] == first + 1
