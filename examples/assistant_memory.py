"""A stock AssistantAgent with our long-term memory: shown once, as data, and kept on disk.

AutoGen's own memories add their text again every turn, each time as a further system message. Here
it takes the place of the last turn's, in one message that is marked as data.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import MemoryContent, MemoryMimeType

from coag import LongTermMemory, ScriptedModel
from coag.compat import AutoGenMemory
from coag.store import open_store

FACT = "The harbour crane is out of service until Friday."


async def session(folder: Path, *questions: str) -> str:
    """Asks a new agent over the same memory; returns all that its model was sent at last."""
    memory = AutoGenMemory(LongTermMemory(open_store(folder), scope="harbour"), min_score=0.0)
    if not (await memory.query("crane")).results:
        await memory.add(MemoryContent(content=FACT, mime_type=MemoryMimeType.TEXT))
    model = ScriptedModel(lambda request: "It works again on Saturday.")
    agent = AssistantAgent("clerk", model, memory=[memory])
    for question in questions:
        await agent.run(task=question)
    await memory.close()
    return model.requests[-1].text


async def main() -> None:
    """Two sessions over one folder; the second one knows what the first one noted."""
    with TemporaryDirectory() as folder:
        await session(Path(folder), "When can I use the crane?")
        sent = await session(Path(folder), "Is the crane working?", "And on Saturday?")
    print(sent)
    assert sent.count(FACT) == 1


if __name__ == "__main__":
    asyncio.run(main())
