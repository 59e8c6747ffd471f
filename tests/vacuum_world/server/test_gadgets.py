"""Gadgets, signs and sensors that fail, over HTTP."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from vacuum_world.client import WorldClient, WorldControl, WorldRefusedError
from vacuum_world.scenarios import build_scenario
from vacuum_world.server import WorldServer
from vacuum_world.world import SensorFault, WorldState


async def joined(server: WorldServer) -> WorldClient:
    return await WorldClient.join(server.url, "ann")


async def test_a_gadget_costs_charge_and_is_known_by_its_promise(served: WorldServer) -> None:
    async with await joined(served) as ann:
        await ann.move("east")
        manuals = await ann.gadgets()
        assert [(each.name, each.promise) for each in manuals] == [
            ("quick_charge", "Restores 40 battery at once.")
        ]
        result = await ann.use("quick_charge", "call-1")
        assert (result.ok, result.battery) == (True, 85)
        line = served.world.log[-1]
        assert (line.action, line.gadget, line.action_id) == ("use", "quick_charge", "call-1")


async def test_an_unknown_gadget_is_answered_with_those_that_exist(served: WorldServer) -> None:
    async with await joined(served) as ann:
        with pytest.raises(WorldRefusedError, match="'teleport' in this world; there are: quick"):
            await ann.use("teleport")
    assert served.world.counters.actions == 0


@pytest.mark.parametrize("gadget", ["", "Quick Charge", "x" * 60, 7])
def test_what_cannot_be_a_name_is_422(
    http: httpx.Client, served: WorldServer, gadget: object
) -> None:
    token = http.post("/api/agents", json={"name": "ann"}).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    answer = http.post("/api/agent/use", json={"gadget": gadget}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid")


def test_robots_do_not_see_the_truth_about_a_gadget(http: httpx.Client) -> None:
    token = http.post("/api/agents", json={"name": "ann"}).json()["token"]
    manuals = http.get("/api/agent/gadgets", headers={"Authorization": f"Bearer {token}"}).json()
    assert manuals["gadgets"][0].keys() == {"name", "promise"}


async def test_a_silent_sensor_is_null_and_the_world_is_as_it_was(served: WorldServer) -> None:
    fault = SensorFault(sensor="dirt", kind="silent", since=0, until=5)
    async with (
        await joined(served) as ann,
        WorldControl(served.url, served.control_token) as control,
    ):
        world = await control.world()
        await control.restore(world.model_copy(update={"faults": (fault,)}))
        reading = await ann.sense()
        assert set(reading.dirty.model_dump().values()) == {None}
        assert (await ann.dirty()).here is None
        assert (await control.snapshot()).faults == (fault,)
        assert served.world.dirty == world.dirty


async def test_what_is_hidden_is_for_the_experimenter_only(served: WorldServer) -> None:
    setup = build_scenario("poisoned-memory", 1)

    async def view(token: str | None) -> str:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx.AsyncClient(base_url=served.url, trust_env=False, headers=headers) as http,
            http.stream("GET", "/api/events") as stream,
        ):
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    return line
        raise AssertionError("the stream ended")

    fault = SensorFault(sensor="dirt", kind="stuck", since=0, until=5)
    async with WorldControl(served.url, served.control_token) as control:
        await control.restore(
            WorldState.model_validate(
                {**setup.world.model_dump(), "faults": [fault], "gadgets": served.world.gadgets}
            )
        )
    async with asyncio.timeout(30):
        public, trusted = await view(None), await view(served.control_token)
    assert '"signs":[{' in public
    assert '"faults":null,"gadgets":null,"under_way":null' in public
    assert '"kind":"stuck"' in trusted
    assert '"cost":10' in trusted
