"""Servers that are not enhanced: tools as operations, resources as properties."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from coag.mcp import (
    McpAnswer,
    McpResource,
    McpServing,
    McpText,
    McpTool,
    NoSuchResourceError,
    StreamableHttpServerParams,
    http_server,
    sdk,
)
from coag.situated import (
    Activity,
    ActivityStore,
    McpToolConnection,
    ToolConnectionError,
    ToolPerception,
    VirtualClock,
)

NUMBER = {"type": "object", "properties": {"degrees": {"type": "number"}}}


class Heating:
    """A server of somebody else: one tool that sets a temperature, and resources that tell it."""

    name, version, instructions = "heating", "1", ""

    def __init__(self) -> None:
        self.degrees = 18.0

    def tools(self) -> list[McpTool]:
        return [
            McpTool("set-temperature", "Sets it.", NUMBER, {}),
            McpTool("set.temperature", "Sets it, too.", NUMBER, {}),
            McpTool("7up", "Fails.", {"type": "object"}, {"read_only": True}),
        ]

    def resources(self) -> list[McpResource]:
        text = McpResource("heating://manual", "notes", mime_type="text/plain")
        return [McpResource("heating://room/1", "room 1"), text]

    def templates(self) -> list[McpResource]:
        return []

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> McpAnswer:
        if name == "7up":
            return McpAnswer("out of order", is_error=True)
        self.degrees = arguments["degrees"]
        return McpAnswer(f"set by {name}", {"degrees": self.degrees})

    async def read(self, uri: str) -> McpText:
        if uri == "heating://room/1":
            return McpText(json.dumps({"degrees": self.degrees}), "application/json")
        if uri == "heating://manual":
            return McpText("Keep it warm.", "text/plain")
        raise NoSuchResourceError(f"There is no resource {uri!r}.")


@pytest.fixture
async def heating() -> AsyncGenerator[tuple[Heating, McpServing, McpToolConnection]]:
    offer = Heating()
    serving = sdk().make_server(offer)
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(http_server(serving))
        connection = McpToolConnection(StreamableHttpServerParams(url=address), "heating")
        yield offer, serving, connection
        await connection.close()


Heated = tuple[Heating, McpServing, McpToolConnection]


async def test_a_plain_server_is_one_tool_without_a_manual(heating: Heated) -> None:
    _, _, connection = heating
    (tool,) = await connection.catalogue()
    assert (tool.id, tool.has_manual, tool.signals) == ("heating", False, ())
    names = ["set_temperature", "set_temperature_2", "x_7up"]
    assert [operation.name for operation in tool.operations] == names
    assert [operation.read_only for operation in tool.operations] == [False, False, True]
    assert tool.operations[0].parameters == NUMBER
    assert [prop.name for prop in tool.properties] == ["room_1", "notes"]
    with pytest.raises(ToolConnectionError, match="has no manual"):
        await connection.manual("heating")


async def test_its_tools_are_called_by_their_own_names(heating: Heated) -> None:
    _, _, connection = heating
    done = await connection.invoke("heating", "set_temperature_2", {"degrees": 21}, "k")
    assert (done.accepted, done.data) == (True, {"degrees": 21})
    assert done.message == "set by set.temperature"
    failed = await connection.invoke("heating", "x_7up", {}, "l")
    assert (failed.accepted, failed.message) == (False, "out of order")
    assert await connection.became_of("heating", "k") == "unknown"


async def test_its_resources_are_properties_whose_revision_rises_when_they_change(
    heating: Heated,
) -> None:
    offer, _, connection = heating
    first = await connection.read_properties("heating")
    assert first.properties == {"room_1": {"degrees": 18.0}, "notes": "Keep it warm."}
    assert (await connection.read_properties("heating")).rev == first.rev
    offer.degrees = 25.0
    second = await connection.read_properties("heating")
    assert second.rev > first.rev
    assert second.epoch == first.epoch
    assert (await connection.read_signals("heating", first.cursor)).events == ()


async def test_what_changed_while_no_process_ran_is_perceived_although_the_clock_was_set_back(
    heating: Heated, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer, _, first = heating
    clock, store = VirtualClock(), ActivityStore()
    now = clock.now()
    store.add(Activity(id="a", agent="x", goal="g", created=now, updated=now))
    for seconds, degrees in ((2_000_000_000, 18.0), (1_000_000_000, 25.0)):
        monkeypatch.setattr(time, "time_ns", lambda now=seconds: now * 10**9)
        offer.degrees = degrees
        line = McpToolConnection(first.params, "heating")
        perception = ToolPerception([line], store, arrived=lambda _: None)
        await perception.start()
        await perception.focus("a", "heating")
        await perception.stop()
    (one,) = store.inbox("a")
    assert one.percept.data["properties"]["room_1"] == {"degrees": 25.0}


async def test_an_update_of_a_resource_is_a_hint(heating: Heated) -> None:
    offer, serving, connection = heating
    hints: asyncio.Queue[str | None] = asyncio.Queue()
    connection.on_hint(hints.put_nowait)
    await connection.focus({"heating"})
    offer.degrees = 30.0
    serving.updated("heating://room/1")
    async with asyncio.timeout(30):
        while await hints.get() != "heating":
            pass
    await connection.focus(frozenset())
