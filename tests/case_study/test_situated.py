import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from case_study.situated import (
    even_odd_truth,
    make_even_odd,
    make_water_hammer,
    water_hammer_truth,
)
from case_study.situated.water_hammer import ACCESS_CODE
from coag.mcp import StreamableHttpServerParams
from coag.situated import Acknowledgement, McpToolConnection, VirtualClock, Workspace, serve_http
from coag.situated.manual import parse_manual

FLUSH = "button_1"


class Plant:
    """A plant that is operated by hand, in a time that is moved by hand."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = VirtualClock()
        self.workspace = make_water_hammer(seed, clock=self.clock)

    async def call(self, tool: str, operation: str, **arguments: Any) -> Acknowledgement:
        return await self.workspace.invoke(tool, operation, arguments)

    async def log_in(self) -> None:
        assert (await self.call("security_terminal", "login", access_code=ACCESS_CODE)).accepted

    async def pump_up(self) -> float:
        """Powers the pump on and waits for its signal; gives the seconds that it took."""
        await self.log_in()
        assert (await self.call("hydraulic_control", "power_on_pump")).accepted
        seconds = 0
        while "pump.pressure_nominal" not in self.signals("hydraulic_control"):
            await self.clock.advance(1)
            seconds += 1
        return seconds

    def signals(self, tool: str) -> list[str]:
        return [event.name for event in self.workspace.signals(tool).events]

    def read(self, tool: str) -> Mapping[str, Any]:
        return self.workspace.properties(tool).properties


@pytest.mark.parametrize("seed", range(20))
async def test_the_safe_procedure_stabilizes_the_core(seed: int) -> None:
    plant = Plant(seed)
    seconds = await plant.pump_up()
    assert 7 <= seconds <= 25
    assert (await plant.call("hydraulic_control", "open_valve")).accepted
    assert (await plant.call("reactor_core", FLUSH)).accepted
    assert not water_hammer_truth(plant.workspace).success

    await plant.clock.advance(11)

    [stabilized] = plant.workspace.signals("reactor_core").events
    assert (stabilized.name, stabilized.data["temp"]) == ("core.stabilized", 440)
    assert plant.read("reactor_core")["core_status"] == "STABLE"
    truth = water_hammer_truth(plant.workspace)
    assert (truth.success, truth.lockouts, truth.reason) == (True, 0, "")


async def test_a_seed_decides_how_long_pressure_builds_up() -> None:
    first, second = [[await Plant(seed).pump_up() for seed in range(8)] for _ in range(2)]

    assert first == second
    assert len(set(first)) > 1


async def test_a_valve_that_is_opened_while_pressure_builds_up_locks_the_plant() -> None:
    plant = Plant()
    await plant.log_in()
    await plant.call("hydraulic_control", "power_on_pump")
    await plant.clock.advance(3)

    ack = await plant.call("hydraulic_control", "open_valve")

    assert "CRITICAL FAILURE: Water hammer" in ack.message
    for tool in ("hydraulic_control", "reactor_core"):
        assert plant.signals(tool) == ["system.lockout"]
        assert plant.read(tool)["system_lockout"] is True
    await plant.clock.advance(60)
    assert plant.signals("hydraulic_control") == ["system.lockout"]
    assert water_hammer_truth(plant.workspace).lockouts == 1


@pytest.mark.parametrize("button", ["button_2", "button_3", "button_4"])
async def test_a_wrong_button_locks_the_plant_and_nothing_helps_any_more(button: str) -> None:
    plant = Plant()
    await plant.pump_up()
    await plant.call("hydraulic_control", "open_valve")
    await plant.call("reactor_core", button)

    refused = await plant.call("reactor_core", FLUSH)

    assert not refused.accepted
    assert "locked out" in refused.message
    truth = water_hammer_truth(plant.workspace)
    assert (truth.success, truth.lockouts) == (False, 1)


async def test_a_flush_without_a_flow_path_locks_the_plant() -> None:
    plant = Plant()
    await plant.pump_up()

    await plant.call("reactor_core", FLUSH)

    assert water_hammer_truth(plant.workspace).reason.startswith("Dry flush")


async def test_what_is_only_too_early_is_refused_and_can_be_made_good() -> None:
    plant = Plant()

    early = [
        await plant.call("hydraulic_control", "power_on_pump"),
        await plant.call("reactor_core", "button_3"),
        await plant.call("security_terminal", "login", access_code="1234"),
    ]
    await plant.log_in()
    early.append(await plant.call("hydraulic_control", "open_valve"))
    await plant.pump_up()
    early.append(await plant.call("hydraulic_control", "power_on_pump"))

    assert [ack.accepted for ack in early] == [False] * 5
    assert water_hammer_truth(plant.workspace).lockouts == 0


def test_the_catalogue_gives_no_hint_which_button_is_right() -> None:
    workspace = make_water_hammer()

    [core] = [tool for tool in workspace.catalogue() if tool.id == "reactor_core"]

    masked = {
        one.model_copy(update={"name": "", "description": ""}).model_dump_json()
        for one in core.operations
    }
    assert len(masked) == 1
    assert "flush" not in str(core.operations).lower()


@pytest.mark.parametrize("workspace", [make_water_hammer(), make_even_odd()])
def test_every_tool_has_a_manual_with_a_protocol_of_its_own(workspace: Workspace) -> None:
    for tool in workspace.catalogue():
        manual = parse_manual(workspace.manual(tool.id))

        assert manual.description == tool
        assert manual.protocol.count("\n") >= 1


async def test_a_served_plant_is_stabilized_over_mcp() -> None:
    workspace, hinted = make_water_hammer(3, speed=100), asyncio.Event()

    async def has_signalled(name: str, tool: str) -> None:
        while name not in [one.name for one in (await plant.read_signals(tool, None)).events]:
            await hinted.wait()
            hinted.clear()

    async with asyncio.timeout(30), serve_http(workspace) as address:
        plant = McpToolConnection(StreamableHttpServerParams(url=address), name="plant")
        plant.on_hint(lambda _: hinted.set())
        await plant.focus({"hydraulic_control", "reactor_core"})
        await plant.invoke("security_terminal", "login", {"access_code": ACCESS_CODE}, "k1")
        await plant.invoke("hydraulic_control", "power_on_pump", {}, "k2")
        await has_signalled("pump.pressure_nominal", "hydraulic_control")
        await plant.invoke("hydraulic_control", "open_valve", {}, "k3")
        await plant.invoke("reactor_core", FLUSH, {}, "k4")
        await has_signalled("core.stabilized", "reactor_core")
        await plant.close()

    assert water_hammer_truth(workspace).success
    await workspace.close()


# ---- Even/Odd ----


async def increments(workspace: Workspace, *whose: str) -> None:
    for by in whose:
        await workspace.invoke("shared_counter", "increment", {"by": by})


async def test_in_turns_the_counter_exceeds_5_at_6() -> None:
    workspace = make_even_odd()
    await increments(workspace, "ODD", "EVEN", "ODD", "EVEN")
    assert not even_odd_truth(workspace).success

    await increments(workspace, "ODD")

    assert workspace.properties("shared_counter").properties == {"value": 6}
    assert even_odd_truth(workspace).success
    signals = workspace.signals("shared_counter").events
    assert [event.data["value"] for event in signals] == [2, 3, 4, 5, 6]


async def test_increments_out_of_turn_and_beyond_the_end_are_counted() -> None:
    workspace = make_even_odd()

    await increments(workspace, "EVEN", "EVEN", "ODD", "EVEN", "ODD", "EVEN")

    truth = even_odd_truth(workspace)
    assert (truth.success, truth.wrong_increments) == (False, 2)
    assert truth.reason == "EVEN incremented 1."


async def test_an_agent_that_compares_and_sets_cannot_increment_out_of_turn() -> None:
    workspace = make_even_odd()
    arguments = {"by": "ODD", "if_value": {"value": 1}}

    acks = [await workspace.invoke("shared_counter", "increment", arguments) for _ in range(2)]

    assert [ack.accepted for ack in acks] == [True, False]
    assert even_odd_truth(workspace).wrong_increments == 0
