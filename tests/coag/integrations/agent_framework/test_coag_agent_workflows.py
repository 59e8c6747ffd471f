"""Our agent in workflows of the Agent Framework: killed, restored, asked for approval."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_framework import FileCheckpointStorage, tool
from kits.killing import TESTS
from kits.maf_client import Answer, AnsweringClient, call

from coag.integrations.agent_framework import MafCoagAgent
from coag.proof import verify
from coag.tracing import list_runs

orchestrations = pytest.importorskip("agent_framework_orchestrations")


def process(folder: Path, when: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kits.killed_workflow", str(folder), when]
    return subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("when", "bought", "said"),
    [
        ("before", "", "It may be bought: please look."),
        ("after", "a lamp\n", "It may be bought: please look."),
        ("answered", "a lamp\n", "I bought a lamp."),
    ],
)
def test_after_a_kill_a_restored_workflow_does_nothing_twice(
    when: str, bought: str, said: str, tmp_path: Path
) -> None:
    assert process(tmp_path, when).returncode == -signal.SIGKILL

    restored = process(tmp_path, "restored")

    assert restored.stdout == said, restored.stderr
    file = tmp_path / "bought.txt"
    assert (file.read_text() if file.exists() else "") == bought
    (run,) = list_runs(tmp_path / "logs")
    assert verify(run.path) == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_workflow_waits_for_approval_over_a_restart(stream: bool, tmp_path: Path) -> None:
    bought: list[int] = []

    def buy(price: int) -> str:
        """Buys something."""
        bought.append(price)
        return json.dumps({"price": price})

    storage = FileCheckpointStorage(tmp_path / "checkpoints")

    def workflow(*answers: Answer) -> tuple[Any, MafCoagAgent]:
        agent = MafCoagAgent(
            AnsweringClient(*answers), name="buyer", depth="compact", logs=tmp_path / "logs",
            tools=[tool(buy, approval_mode="always_require")],
        )  # fmt: skip
        builder: Any = orchestrations.SequentialBuilder(
            participants=[agent], checkpoint_storage=storage, name="shop"
        )
        return builder.build(), agent

    async def run(shop: Any, *given: Any, **more: Any) -> Any:
        if not stream:
            return await shop.run(*given, **more)
        running = shop.run(*given, stream=True, **more)
        async for _ in running:
            pass
        return await running.get_final_response()

    shop, agent = workflow([call(1, "buy", price=3)])
    (asked,) = (await run(shop, "Buy.")).get_request_info_events()
    await agent.close()
    assert bought == []

    shop, agent = workflow("Bought.")
    last = await storage.get_latest(workflow_name="shop")
    assert last is not None
    answers = {asked.request_id: asked.data.to_function_approval_response(True)}
    result = await run(shop, checkpoint_id=last.checkpoint_id, responses=answers)
    texts = [getattr(one, "text", "") for one in result.get_outputs()]
    assert ("".join(texts), bought) == ("Bought.", [3])
    await agent.close()
    (folder,) = list_runs(tmp_path / "logs")
    assert verify(folder.path) == []


def test_handoffs_refuse_it() -> None:
    agent = MafCoagAgent(AnsweringClient("Fine."), name="buyer")
    with pytest.raises(TypeError):
        orchestrations.HandoffBuilder(participants=[agent]).build()
