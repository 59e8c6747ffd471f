from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from case_study.robot import CONSTRAINTS, VacuumContext
from case_study.tasks import CONTINUE, task_text
from case_study.temperaments import open_temperament
from coag import CoagAgent
from coag._util.sockets import reserved_port
from coag.schema import Receipt, ReceiptStatus
from vacuum_world.client import WorldClient
from vacuum_world.scenarios import build_scenario
from vacuum_world.server import WorldServer
from vacuum_world.tools import world_tools


@pytest.fixture
def port() -> Generator[int]:
    with reserved_port() as number:  # the world leaves it, and comes back
        yield number


async def test_a_world_that_dies_is_perceived_and_one_that_comes_back_is_used_again(
    tmp_path: Path, port: int
) -> None:
    setup = build_scenario("evolution", 3)
    server = WorldServer(setup.world, state_file=tmp_path / "world.json", port=port).start()
    robot = await WorldClient.join(server.url, "robot")
    reading = await robot.sense()
    agent = CoagAgent(
        "robot",
        open_temperament("sound"),
        tools=world_tools(robot),
        model_context=VacuumContext(reading=reading),
        constraints=list(CONSTRAINTS.values()),
        max_tool_iterations=1,
        depth="compact",
        recall_k=0,
        proposal="json",
    )

    await agent.run(task=task_text(setup, reading))
    before = agent.context.state
    server.stop()
    lost = (await agent.run(task=CONTINUE)).messages[-1].to_text()
    stayed = agent.context.state
    server.start()
    await agent.run(task=CONTINUE)
    await agent.close()
    await robot.close()
    server.stop()

    assert "was not sent: no world answers" in lost
    assert "nothing happened" in lost
    assert (stayed.position, stayed.battery) == (before.position, before.battery)
    receipts = [record for record in agent.trace if isinstance(record, Receipt)]
    assert [receipt.status for receipt in receipts] == [
        ReceiptStatus.DONE,
        ReceiptStatus.FAILED,
        ReceiptStatus.DONE,
    ]
    assert agent.context.state.battery < before.battery
