"""Long-term memory across sessions: what one agent noted, a later one recalls.

Both agents are given the same folder, as two runs of a program would be. The first chooses to
remember a fact; the second, newly made and with an empty dialogue, recalls it and answers.

With a real model: `model = open_model("openai:gpt-5-mini")`, with `open_model` from `coag`.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from autogen_core import FunctionCall

from coag import CoagAgent, ScriptedModel
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import RetrievalOutcome

FACT = "The spare key of the workshop hangs behind the red cabinet."


def script(request: ScriptedRequest) -> ScriptedReply:
    """Notes what the user asks for; otherwise answers from what its prompt shows."""
    if "Remember:" not in request.last_user_text:
        known = "behind the red cabinet" in request.last_user_text
        return "Behind the red cabinet." if known else "I do not know."
    if request.number > 1:
        return "I will remember that."
    note = json.dumps({"fact": FACT})
    return [FunctionCall(id="1", name="tool_update_semantic_memory", arguments=note)]


async def session(memory: Path, task: str) -> None:
    """One run of a program: a new agent over the same memory."""
    agent = CoagAgent("caretaker", ScriptedModel(script), memory=memory, depth="compact")
    result = await agent.run(task=task)
    for record in agent.trace:
        if isinstance(record, RetrievalOutcome):
            for hit in record.records:
                print(f"  cycle {record.cycle} recalled ({hit.score:.2f}): {hit.record.text}")
    print(f"  {task}\n  -> {result.messages[-1].to_text()}")
    await agent.close()


async def main() -> None:
    """Runs two sessions on one folder."""
    with tempfile.TemporaryDirectory() as folder:
        print("first session")
        await session(Path(folder), f"Remember: {FACT}")
        print("second session")
        await session(Path(folder), "Where is the spare key of the workshop?")


if __name__ == "__main__":
    asyncio.run(main())
