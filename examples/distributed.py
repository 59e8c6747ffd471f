"""A team whose agents work in processes of their own, with a Chroma server as shared memory.

Starts AutoGen's gRPC host, two workers and a Chroma server on free ports, runs a team through
them, then the same team in this process. The scout notes where the key is and does not say; the
guide recalls it from the shared memory.
"""

import asyncio
import tempfile
from pathlib import Path

from autogen_agentchat.base import ChatAgent, Team
from autogen_agentchat.messages import BaseChatMessage
from autogen_agentchat.teams import RoundRobinGroupChat

from coag import CoagAgent, LongTermMemory, ScriptedModel
from coag.distributed import AgentPlace, connect, processes
from coag.models import ScriptedReply, ScriptedRequest
from coag.store import open_store

FACT = "The spare key hangs behind the red cabinet."
AGENTS = {"scout": "distributed:member", "guide": "distributed:member"}


def think(who: str, request: ScriptedRequest) -> ScriptedReply:
    """The scout notes what it knows and keeps it to itself; the guide says what it recalls."""
    wish = {"action": "respond", "arguments": {"text": "I have noted it."}}
    if who == "guide":
        wish["arguments"] = {"text": FACT if FACT in request.text else "I do not know."}
    elif "Remembered (" not in request.text:
        wish = {"action": "tool_update_semantic_memory", "arguments": {"fact": FACT}}
    return {"situation": "", "candidates": [wish]}


def member(place: AgentPlace) -> CoagAgent:
    """The agent of a place, on a worker or here; they share the memory that `options` names."""
    memory = LongTermMemory(open_store(place.options["memory"]), scope="office")
    model = ScriptedModel(lambda request: think(place.type, request))
    return CoagAgent(place.type, model, memory=memory, depth="compact", proposal="json")


async def said_by(team: list[ChatAgent | Team]) -> list[str]:
    """What the members say, one after the other."""
    result = await RoundRobinGroupChat(team, max_turns=2).run(task="Where is the spare key?")
    return [f"{m.source}: {m.to_text()}" for m in result.messages if isinstance(m, BaseChatMessage)]


async def main() -> None:
    """Runs the team in five processes, then in one."""
    with tempfile.TemporaryDirectory() as folder:
        starting = processes(folder, AGENTS, chroma=True, path=[Path(__file__).parent])
        async with starting as running, connect(running.address) as remote:
            remotely = await said_by([await remote.agent(name) for name in AGENTS])
        places = [AgentPlace(type=t, key="", options={"memory": f"{folder}/here"}) for t in AGENTS]
        locally = await said_by([member(place) for place in places])
    print(*remotely, f"The same as in one process: {locally == remotely}", sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
