"""A workflow of the Agent Framework that kills itself while our agent acts in it.

`python -m kits.killed_workflow FOLDER WHEN`: the buyer writes a line to `bought.txt`, and the
process is killed `before` that, `after` it, or once the buyer has `answered`, and before the
checkpoint behind it. `restored` continues from the last checkpoint and prints what comes out.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_framework import (
    Agent,
    AgentContext,
    AgentMiddleware,
    FileCheckpointStorage,
    Workflow,
)
from agent_framework.orchestrations import SequentialBuilder

from coag.integrations.agent_framework import MafCoagAgent

from .killing import die
from .maf_client import Answer, AnsweringClient, call


class Killer(AgentMiddleware):
    async def process(
        self, context: AgentContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        await call_next()
        die()


def workflow(folder: Path, when: str, storage: FileCheckpointStorage) -> Workflow:
    def buy(thing: str) -> str:
        """Buys a thing."""
        if when == "before":
            die()
        with (folder / "bought.txt").open("a") as file:
            file.write(f"{thing}\n")
        if when == "after":
            die()
        return f"bought {thing}"

    restored = when == "restored"
    answers: list[Answer] = [[call(1, "buy", thing="a lamp")], "I bought a lamp."]
    buyer = MafCoagAgent(
        AnsweringClient(*(["It may be bought: please look."] if restored else answers)),
        name="buyer",
        tools=[buy],
        depth="compact",
        logs=folder / "logs",
        middleware=[Killer()] if when == "answered" else [],
    )
    asker = Agent(AnsweringClient("Buy a lamp, please."), name="asker")
    return SequentialBuilder(
        participants=[asker, buyer], checkpoint_storage=storage, name="shop"
    ).build()


async def main(folder: Path, when: str) -> None:
    storage = FileCheckpointStorage(folder / "checkpoints")
    shop = workflow(folder, when, storage)
    if when != "restored":
        await shop.run("We need light.")
        return
    last = await storage.get_latest(workflow_name="shop")
    assert last is not None
    result = await shop.run(checkpoint_id=last.checkpoint_id)
    texts = [message.text for one in result.get_outputs() for message in one.messages]
    sys.stdout.write("\n".join(filter(None, texts)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
