"""What agents report of themselves: shown to watchers, and no part of the world."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from vacuum_world.client import WorldClient
from vacuum_world.server import WorldServer
from vacuum_world.showing import Belief, Option, Report

REPORT = Report(
    phase="Selection",
    phases=("Proposal", "Selection"),
    about="clean, because it is dirty here",
    options=(Option(text="clean", state="chosen", note="0.9"), Option(text="wait")),
    cycle=3,
    belief=Belief(position=(0, 0), battery=95, dirty=((0, 1),), clean=((0, 0),)),
)


def joined(http: httpx.Client, name: str = "ann") -> dict[str, str]:
    token = http.post("/api/agents", json={"name": name}).json()["token"]
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def robot(shared: tuple[WorldServer, httpx.Client]) -> dict[str, str]:
    """Robot `r1` of the world that all tests of this file share."""
    return joined(shared[1])


def shown(served: WorldServer) -> list[dict[str, Any]]:
    url = f"{served.url}/api/events"
    with httpx.stream("GET", url, trust_env=False) as response:
        line = next(line for line in response.iter_lines() if line.startswith("data:"))
    return json.loads(line.removeprefix("data:"))["reports"]


async def test_a_report_is_shown_and_leaves_the_world_as_it_is(served: WorldServer) -> None:
    async with await WorldClient.join(served.url, "ann") as ann:
        before = served.world
        await ann.report(REPORT)
        assert served.world is before
        assert shown(served) == [{"robot": "r1", "report": REPORT.model_dump(mode="json")}]
        await ann.report(Report(phase="Proposal"))
        (entry,) = shown(served)
        assert (entry["report"]["phase"], entry["report"]["belief"]) == ("Proposal", None)
        await ann.leave()
    assert shown(served) == []


def test_another_robots_report_is_out_of_reach(http: httpx.Client, served: WorldServer) -> None:
    joined(http)
    other = joined(http, "bob")
    response = http.put("/api/agents/r1/report", json={"phase": "x"}, headers=other)
    assert response.status_code == 403
    assert shown(served) == []


def test_a_restored_world_begins_without_reports(http: httpx.Client, served: WorldServer) -> None:
    robot = joined(http)
    control = {"Authorization": f"Bearer {served.control_token}"}
    snapshot = http.post("/api/world/snapshot", headers=control)
    http.put("/api/agents/r1/report", json={"phase": "x"}, headers=robot)
    http.post("/api/world/restore", json=snapshot.json(), headers=control)
    assert shown(served) == []


@pytest.mark.parametrize(
    ("report", "error"),
    [
        ({}, "phase: Field required"),
        ({"phase": ""}, "phase: String should have at least 1"),
        ({"phase": "x" * 41}, "phase: String should have at most 40"),
        ({"phase": 5}, "phase: Input should be a valid string"),
        ({"phase": "x", "mood": "good"}, "mood: Extra inputs"),
        ({"phase": "x", "about": "x" * 601}, "about: String should have at most 600"),
        ({"phase": "x", "cycle": "3"}, "cycle: Input should be a valid integer"),
        ({"phase": "x", "options": [{"text": "x"}] * 13}, "options: Tuple should have at most 12"),
        ({"phase": "x", "options": [{"text": "x", "state": "odd"}]}, "options.0.state: Input"),
        ({"phase": "x", "belief": {"battery": 101}}, "belief.battery: Input should be less"),
        ({"phase": "x", "belief": {"position": [0]}}, "belief.position"),
        ({"phase": "x", "belief": {"dirty": [[0, 0]] * 2501}}, "belief.dirty: Tuple should have"),
        (
            {"phase": "x", "belief": {"dirty": [[1, 1]], "clean": [[1, 1]]}},
            "cell (1, 1) is believed both dirty and clean",
        ),
        ({"phase": "x", "belief": {"obstacles": [[5, 0]]}}, "cell (5, 0) lies outside the grid"),
    ],
)
def test_a_malformed_report_is_refused_with_the_reason(
    shared: tuple[WorldServer, httpx.Client],
    robot: dict[str, str],
    report: dict[str, Any],
    error: str,
) -> None:
    served, http = shared
    response = http.put("/api/agents/r1/report", json=report, headers=robot)
    assert (response.status_code, response.json()["error"]) == (422, "invalid")
    assert error in response.json()["detail"]
    assert shown(served) == []


def test_a_report_that_is_too_long_is_refused(http: httpx.Client) -> None:
    robot = joined(http)
    response = http.put("/api/agents/r1/report", content=b" " * 70_000, headers=robot)
    assert response.status_code == 413


def test_watchers_see_the_way_that_a_robot_went(http: httpx.Client, served: WorldServer) -> None:
    robot = joined(http)
    for direction in ("south", "east", "north"):
        http.post("/api/agent/move", json={"direction": direction}, headers=robot)
    url = f"{served.url}/api/events"

    def trail() -> list[list[int]]:
        with httpx.stream("GET", url, trust_env=False) as response:
            line = next(line for line in response.iter_lines() if line.startswith("data:"))
        return json.loads(line.removeprefix("data:"))["view"]["trails"][0]["cells"]

    assert trail() == [[0, 0], [0, 1], [1, 1], [1, 0]]
    placed = {"kind": "place_robot", "robot": "r1", "cell": [4, 4]}
    control = {"Authorization": f"Bearer {served.control_token}"}
    http.post("/api/world/interventions", json=placed, headers=control)
    assert trail() == [[4, 4]]
