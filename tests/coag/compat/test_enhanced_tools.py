"""Enhanced tools for stock agents: operations, reading, and a bounded wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Literal

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken, FunctionCall

from coag import ScriptedModel
from coag.compat import EnhancedToolWorkbench, OperationsWorkbench
from coag.models import scripted_answers
from coag.schema import UnsettledAction
from coag.situated import (
    EnhancedTool,
    InProcessConnection,
    ToolDescription,
    Workspace,
    internal_operation,
    observable,
    operation,
    signal,
)


class Kettle(EnhancedTool):
    """Boils water."""

    protocol = "Wait for `kettle.boiled` before you pour."
    status = observable(Literal["OFF", "HEATING", "HOT"], "OFF", description="What it does.")
    boiled = signal("kettle.boiled", "The water is hot.", payload={"celsius": int})

    @operation(
        preconditions="`status` is `OFF`",
        check=lambda kettle: kettle.status == "OFF",
        completed_by="kettle.boiled",
    )
    async def switch_on(self) -> str:
        """Starts heating."""
        self.status = "HEATING"
        self.heat()
        return "Heating."

    @internal_operation
    async def heat(self) -> None:
        await self.sleep(0.01)
        self.status = "HOT"
        self.boiled.emit(celsius=100)


@pytest.fixture
async def bench() -> AsyncIterator[EnhancedToolWorkbench]:
    """The operations of one kettle, and the ways to read and to wait."""
    workspace = Workspace()
    workspace.add(Kettle("kettle"))
    yield EnhancedToolWorkbench([InProcessConnection(workspace)])
    await workspace.close()


async def test_a_signal_between_a_reading_and_a_wait_ends_one_wait() -> None:
    workspace = Workspace()
    workspace.add(Kettle("kettle"))
    mine, others = (EnhancedToolWorkbench([InProcessConnection(workspace)]) for _ in range(2))
    wait = {"tool": "kettle", "signal": "kettle.boiled"}
    await mine.call_tool("read_properties", {"tool": "kettle"})
    await others.call_tool("kettle__switch_on", {})
    await others.call_tool("wait_for_signal", wait)

    waited = await mine.call_tool("wait_for_signal", wait)
    again = await mine.call_tool("wait_for_signal", {**wait, "timeout_seconds": 0.01})

    assert json.loads(waited.to_text())["data"] == {"celsius": 100}
    assert again.to_text().startswith("No signal")
    await workspace.close()


async def test_a_refused_operation_is_an_error_that_says_why(bench: EnhancedToolWorkbench) -> None:
    await bench.call_tool("kettle__switch_on", {}, call_id="call-1")

    again = await bench.call_tool("kettle__switch_on", {}, call_id="call-2")

    assert again.is_error
    assert "`status` is `OFF`" in again.to_text()


async def test_a_key_is_run_once_and_can_be_asked_about() -> None:
    workspace = Workspace()
    workspace.add(Kettle("kettle"))
    here = InProcessConnection(workspace)

    async def catalogue() -> dict[str, ToolDescription]:
        return {tool.id: tool for tool in await here.catalogue()}

    def asked(key: str) -> UnsettledAction:
        return UnsettledAction(intent_id=key, action="kettle__switch_on", arguments={}, cycle=1)

    bench = OperationsWorkbench(catalogue, here.invoke, here.became_of)

    first = await bench.call_tool("kettle__switch_on", {}, call_id="intent-1")
    second = await bench.call_tool("kettle__switch_on", {}, call_id="intent-1")

    assert second.to_text() == first.to_text() == "Heating."
    assert await bench.reconcile(asked("intent-1")) == "happened"
    assert await bench.reconcile(asked("intent-9")) == "did_not_happen"
    await workspace.close()


async def test_a_wait_ends_in_time_and_says_how_to_wait_again(
    bench: EnhancedToolWorkbench,
) -> None:
    arguments = {"tool": "kettle", "signal": "kettle.boiled", "timeout_seconds": 0.01}

    waited = await bench.call_tool("wait_for_signal", arguments)

    assert not waited.is_error
    assert waited.to_text().startswith("No signal 'kettle.boiled' of 'kettle' within 0.01 s.")


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("read_manual", {"tool": "oven"}, "There is no tool 'oven'. There are: kettle."),
        ("read_manual", {}, "'tool' is a required property"),
        ("oven__heat", {}, "There is no tool 'oven'"),
        ("heat", {}, "There is no operation 'heat'."),
    ],
)
async def test_what_is_wrong_is_an_error_that_says_what_there_is(
    bench: EnhancedToolWorkbench, name: str, arguments: dict[str, str], problem: str
) -> None:
    result = await bench.call_tool(name, arguments)

    assert result.is_error
    assert problem in result.to_text()


async def test_a_cancelled_token_ends_a_wait(bench: EnhancedToolWorkbench) -> None:
    token = CancellationToken()
    arguments = {"tool": "kettle", "signal": "kettle.boiled"}
    waiting = asyncio.create_task(bench.call_tool("wait_for_signal", arguments, token))
    await asyncio.sleep(0)

    token.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_stock_agent_boils_water_in_one_wait(bench: EnhancedToolWorkbench) -> None:
    wait = '{"tool": "kettle", "signal": "kettle.boiled"}'
    answers = scripted_answers(
        [
            [FunctionCall(id="1", name="kettle__switch_on", arguments="{}")],
            [FunctionCall(id="2", name="wait_for_signal", arguments=wait)],
            "It is hot.",
        ]
    )
    agent = AssistantAgent("cook", ScriptedModel(answers), workbench=bench, max_tool_iterations=4)

    result = await agent.run(task="Boil water.")

    assert result.messages[-1].to_text() == "It is hot."


async def test_signals_are_read_from_a_cursor_on(bench: EnhancedToolWorkbench) -> None:
    await bench.call_tool("kettle__switch_on", {})
    await bench.call_tool("wait_for_signal", {"tool": "kettle", "signal": "kettle.boiled"})

    page = json.loads((await bench.call_tool("read_signals", {"tool": "kettle"})).to_text())
    rest = await bench.call_tool("read_signals", {"tool": "kettle", "after": page["cursor"]})

    assert [one["name"] for one in page["events"]] == ["kettle.boiled"]
    assert json.loads(rest.to_text())["events"] == []


async def test_a_signal_that_no_tool_declares_is_not_waited_for(
    bench: EnhancedToolWorkbench,
) -> None:
    waited = await bench.call_tool("wait_for_signal", {"tool": "kettle", "signal": "kettle.cold"})

    assert waited.is_error
    assert (
        "no signal of tool 'kettle' named 'kettle.cold'. Known: kettle.boiled" in waited.to_text()
    )


async def test_of_two_servers_with_a_tool_of_one_name_the_first_has_it() -> None:
    first, second = Workspace(), Workspace()
    mine, other = Kettle("kettle"), Kettle("kettle")
    first.add(mine)
    second.add(other)
    bench = EnhancedToolWorkbench(
        [InProcessConnection(first, "one"), InProcessConnection(second, "two")]
    )

    await bench.list_tools()
    await bench.call_tool("kettle__switch_on", {})

    assert mine.status in {"HEATING", "HOT"}
    assert other.status == "OFF"
    foreign = UnsettledAction(intent_id="1", action="refund", arguments={}, cycle=1)
    assert await bench.reconcile(foreign) == "unknown"
    for workspace in (first, second):
        await workspace.close()


@pytest.mark.timeout(20)
async def test_an_operation_that_is_cancelled_by_itself_leaves_no_stock_agent_waiting() -> None:
    class Lock(EnhancedTool):
        """Locks a door."""

        @operation
        async def close(self) -> str:
            """Closes it."""
            other = asyncio.ensure_future(asyncio.Event().wait())
            other.cancel()
            await other
            return "closed"

    workspace = Workspace()
    workspace.add(Lock())
    answers = [[FunctionCall(id="c1", name="lock__close", arguments="{}")], "It is not known."]
    model = ScriptedModel(scripted_answers(answers))
    async with EnhancedToolWorkbench([InProcessConnection(workspace)]) as bench:
        result = await AssistantAgent("stock", model, workbench=bench, max_tool_iterations=2).run(
            task="Lock up."
        )
    assert result.messages[-1].to_text() == "It is not known."
    assert "it was cancelled" in model.requests[-1].text
    await workspace.close()
