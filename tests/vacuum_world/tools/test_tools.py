from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, StaticWorkbench
from pydantic import ValidationError

from vacuum_world import last_state_line, state_line
from vacuum_world.client import WorldClient, WorldControl, WorldUnreachableError
from vacuum_world.errors import WorldError
from vacuum_world.server import WorldServer
from vacuum_world.tools import world_tools
from vacuum_world.world import SetBattery, sense

Tools = dict[str, BaseTool[Any, Any]]


@pytest.fixture
async def client(served: WorldServer) -> AsyncIterator[WorldClient]:
    async with await WorldClient.join(served.url, "ann") as client:
        yield client


@pytest.fixture
def tools(client: WorldClient) -> Tools:
    return {tool.name: tool for tool in world_tools(client)}


async def text_of(tool: BaseTool[Any, Any], call_id: str | None = None, **arguments: Any) -> str:
    value = await tool.run_json(arguments, CancellationToken(), call_id)
    return tool.return_value_as_string(value)


async def test_an_action_gives_the_outcome_and_then_the_state(
    tools: Tools, served: WorldServer
) -> None:
    outcome, state = (await text_of(tools["move_agent"], direction="north")).splitlines()
    assert outcome == (
        '{"ok": false, "failure": "deterministic", '
        '"reason": "blocked by the edge of the grid to the north", '
        '"position": [0, 0], "battery": 100}'
    )
    assert state == state_line(sense(served.world, "r1"))


async def test_cleaning_and_sensing_give_the_state(tools: Tools, served: WorldServer) -> None:
    await text_of(tools["move_agent"], direction="south")
    outcome, _ = (await text_of(tools["clean_current_cell"])).splitlines()
    assert json.loads(outcome)["ok"]
    text = await text_of(tools["sense"])
    assert last_state_line(text) == sense(served.world, "r1")
    assert len(text.splitlines()) == 1


async def test_the_call_id_of_autogen_reaches_the_action_log(
    client: WorldClient, served: WorldServer
) -> None:
    bench = StaticWorkbench(world_tools(client))
    for call_id in ("call-1", "call-2"):
        await bench.call_tool("clean_current_cell", {}, CancellationToken(), call_id)
    assert [line.action_id for line in served.world.log] == ["call-1", "call-2"]


async def test_without_a_call_id_the_log_has_none(tools: Tools, served: WorldServer) -> None:
    await text_of(tools["clean_current_cell"], "first")
    await text_of(tools["clean_current_cell"])
    assert [line.action_id for line in served.world.log] == ["first", None]


async def test_a_stranded_robot_gets_a_failure_as_its_outcome(
    tools: Tools, client: WorldClient, served: WorldServer
) -> None:
    await client.move("south")
    async with WorldControl(served.url, served.control_token) as control:
        await control.intervene(SetBattery(robot=client.robot_id, battery=0))
    outcome, state = (await text_of(tools["clean_current_cell"])).splitlines()
    assert json.loads(outcome)["failure"] == "deterministic"
    assert "stranded" in json.loads(outcome)["reason"]
    reading = last_state_line(state)
    assert reading is not None
    assert reading.stranded


async def test_the_outcome_is_kept_where_the_sensing_after_it_fails(
    served: WorldServer, client: WorldClient
) -> None:
    class Vanishing(WorldClient):
        """A client whose world is gone as soon as the action is done."""

        async def clean(self, action_id: str | None = None) -> Any:
            try:
                return await client.clean(action_id)
            finally:
                served.stop()

    async with Vanishing(served.url, "r1", "token") as vanishing:
        tools = {tool.name: tool for tool in world_tools(vanishing)}
        outcome, state = (await text_of(tools["clean_current_cell"])).splitlines()
    assert json.loads(outcome)["reason"] == "the cell is already clean"
    assert state.startswith("SENSING FAILED: GET /api/sensor/all was not sent")


async def test_a_world_that_is_not_there_is_an_error_that_says_nothing_happened(
    tools: Tools, served: WorldServer
) -> None:
    served.stop()
    with pytest.raises(WorldUnreachableError, match="nothing happened"):
        await text_of(tools["move_agent"], direction="east")


async def test_a_cancelled_call_sends_nothing(tools: Tools, served: WorldServer) -> None:
    token = CancellationToken()
    token.cancel()
    with pytest.raises(WorldError, match="cancelled before anything was sent"):
        await tools["clean_current_cell"].run_json({}, token, "c-1")
    assert served.world.log == ()


async def test_arguments_that_fail_the_schema_send_nothing(
    tools: Tools, served: WorldServer
) -> None:
    with pytest.raises(ValidationError, match="direction"):
        await text_of(tools["move_agent"], direction="up")
    assert served.world.log == ()


async def test_the_schemas_name_the_directions_and_allow_nothing_else(tools: Tools) -> None:
    parameters = tools["move_agent"].schema.get("parameters")
    assert parameters is not None
    assert parameters["properties"]["direction"]["enum"] == ["north", "east", "south", "west"]
    for tool in tools.values():
        assert tool.schema.get("description")
        assert (tool.schema.get("parameters") or {}).get("additionalProperties") is False
