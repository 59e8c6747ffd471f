"""Pausing, stepping and the clock's speed, over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from vacuum_world.client import CallError, WorldClient, WorldControl, WorldRefusedError
from vacuum_world.server import WorldServer
from vacuum_world.showing import Pace
from vacuum_world.world import create_world


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def until_waiting(served: WorldServer, count: int = 1) -> None:
    """Reads the event stream until so many actions wait."""
    async with (
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("GET", f"{served.url}/api/events") as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith("data:"):
                pace: dict[str, Any] = json.loads(line.removeprefix("data:"))["pace"]
                if len(pace["waiting"]) == count:
                    return


async def test_a_paused_action_waits_and_is_done_once(served: WorldServer) -> None:
    async with (
        await WorldClient.join(served.url, "ann") as ann,
        WorldControl(served.url, served.control_token) as control,
    ):
        assert (await control.change_pace(paused=True)).paused
        moving = asyncio.create_task(ann.move("south", "m-1"))
        await until_waiting(served)
        assert served.world.log == ()
        assert (await ann.sense()).position == (0, 0)
        assert await control.change_pace(paused=False) == Pace()
        assert (await moving).position == (0, 1)
    assert [line.action_id for line in served.world.log] == ["m-1"]


async def test_a_step_lets_one_action_through_in_the_order_of_arrival(served: WorldServer) -> None:
    async with (
        await WorldClient.join(served.url, "ann") as ann,
        await WorldClient.join(served.url, "bob") as bob,
        WorldControl(served.url, served.control_token) as control,
    ):
        await control.change_pace(paused=True)
        first = asyncio.create_task(bob.clean("b-1"))
        await until_waiting(served)
        second = asyncio.create_task(ann.clean("a-1"))
        await until_waiting(served, 2)
        assert (await control.pace()).waiting == ("r2", "r1")
        assert (await control.step()).waiting == ("r1",)
        await first
        assert not second.done()
        assert (await control.step(2)).steps == 1
        await second
        await ann.clean("a-2")
        assert (await control.pace()).steps == 0
    assert [line.action_id for line in served.world.log] == ["b-1", "a-1", "a-2"]


async def test_a_client_outlasts_a_pause_that_is_longer_than_its_patience(
    served: WorldServer,
) -> None:
    async with (
        await WorldClient.join(served.url, "ann", timeout=1.9) as ann,  # below 2 it waits for none
        WorldControl(served.url, served.control_token) as control,
    ):
        await control.change_pace(paused=True)
        cleaning = asyncio.create_task(ann.clean("c-1"))
        for _ in range(2):
            await until_waiting(served)
            await until_waiting(served, 0)
        await control.change_pace(paused=False)
        await cleaning
    assert [(line.action_id, line.repeated) for line in served.world.log] == [("c-1", False)]


def test_a_caller_that_will_not_wait_learns_that_nothing_was_done(
    http: httpx.Client, served: WorldServer
) -> None:
    token = bearer(http.post("/api/agents", json={"name": "ann"}).json()["token"])
    http.put("/api/pace", json={"paused": True}, headers=bearer(served.control_token))
    response = http.post("/api/env/clean", headers=token | {"Prefer": "wait=0"})
    assert (response.status_code, response.json()["error"]) == (503, "paused")
    assert "nothing was done" in response.json()["detail"]
    http.put("/api/pace", json={"paused": False}, headers=bearer(served.control_token))
    assert served.world.log == ()
    assert http.get("/api/pace").json()["waiting"] == []


async def test_an_action_whose_caller_has_gone_is_never_done(served: WorldServer) -> None:
    async with (
        await WorldClient.join(served.url, "ann", timeout=3) as ann,
        WorldControl(served.url, served.control_token) as control,
    ):
        await control.change_pace(paused=True)
        cleaning = asyncio.create_task(ann.clean("c-1"))
        await until_waiting(served)
        cleaning.cancel()
        await until_waiting(served, 0)
        assert (await control.change_pace(paused=False)).waiting == ()
        await ann.clean("c-2")
    assert [line.action_id for line in served.world.log] == ["c-2"]


async def test_a_robot_that_is_removed_while_it_waits_gets_an_error(served: WorldServer) -> None:
    async with (
        await WorldClient.join(served.url, "ann") as ann,
        WorldControl(served.url, served.control_token) as control,
    ):
        await control.change_pace(paused=True)
        cleaning = asyncio.create_task(ann.clean())
        await until_waiting(served)
        await control.remove("r1")
        await control.change_pace(paused=False)
        with pytest.raises(WorldRefusedError, match="no robot 'r1'"):
            await cleaning


async def test_a_world_that_stops_does_not_wait_for_a_pause(served: WorldServer) -> None:
    async with (
        await WorldClient.join(served.url, "ann") as ann,
        WorldControl(served.url, served.control_token) as control,
    ):
        await control.change_pace(paused=True)
        cleaning = asyncio.create_task(ann.clean())
        await until_waiting(served)
        await asyncio.to_thread(served.stop)
        with pytest.raises(CallError, match="clean"):
            await cleaning
    assert served.world.log == ()


def test_a_clock_that_is_paused_stops_and_advances_by_steps(http: httpx.Client) -> None:
    with (
        WorldServer(create_world(0, ticks="clock"), interval=0.01) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
    ):
        control = bearer(server.control_token)
        client.put("/api/pace", json={"paused": True, "interval": 0.02}, headers=control)
        before = server.world.tick
        pace = client.post("/api/pace/step", json={"count": 3}, headers=control).json()
        assert (server.world.tick, pace["interval"]) == (before + 3, 0.02)
        with client.stream("GET", "/api/events") as response:
            client.put("/api/pace", json={"paused": False}, headers=control)
            ticks = (
                json.loads(line.removeprefix("data:"))["view"]["tick"]
                for line in response.iter_lines()
                if line.startswith("data:")
            )
            assert next(tick for tick in ticks if tick > before + 3)


def test_a_step_of_a_world_that_is_not_paused_is_a_conflict(
    http: httpx.Client, served: WorldServer
) -> None:
    response = http.post("/api/pace/step", headers=bearer(served.control_token))
    assert response.status_code == 409
    assert "pause it first" in response.json()["detail"]


@pytest.mark.parametrize("body", [{"interval": 0}, {"interval": 61}, {"paused": "yes"}, {"x": 1}])
def test_a_pace_that_cannot_be_one_is_refused(
    shared: tuple[WorldServer, httpx.Client], body: dict[str, Any]
) -> None:
    served, http = shared
    response = http.put("/api/pace", json=body, headers=bearer(served.control_token))
    assert response.status_code == 422
    assert http.get("/api/pace").json()["interval"] == 1.0


@pytest.mark.parametrize("count", [True, "2", 2.5, 2.0, 0, 1001, None])
@pytest.mark.parametrize("path", ["/api/pace/step", "/api/world/tick"])
def test_a_count_that_is_no_number_of_steps_is_refused(
    shared: tuple[WorldServer, httpx.Client], path: str, count: object
) -> None:
    served, http = shared
    control = bearer(served.control_token)
    http.put("/api/pace", json={"paused": True}, headers=control)
    response = http.post(path, json={"count": count}, headers=control)
    assert response.status_code == 422
    assert response.json()["detail"].startswith("count: ")
    assert (http.get("/api/pace").json()["steps"], served.world.tick) == (0, 0)
