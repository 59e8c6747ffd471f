"""Two workers of one situated agent over AutoGen's gRPC runtime; one is killed, one continues.

Needs a Postgres database of its own, and `pip install "coag[grpc,mcp,postgres]"`:
`python several_workers.py postgresql://HOST/DATABASE`
"""

import asyncio
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from coag import ScriptedModel, SituatedAgent
from coag.distributed import AgentPlace, connect, processes
from coag.mcp import StreamableHttpServerParams
from coag.situated import Activity, ActivityState, ActivityStore, McpToolConnection, serve_http

WORKERS = {"one": "several_workers:keeper", "two": "several_workers:keeper"}


async def keeper(place: AgentPlace) -> SituatedAgent:
    """The same agent on each worker: they share its store and its folder."""
    queue = McpToolConnection(StreamableHttpServerParams(url=place.options["queue"]), "queue")
    model = ScriptedModel(import_module("build_queue_agent").think)
    agent = SituatedAgent(
        "keeper", model, [queue], folder=place.options["folder"], store=place.options["store"],
        answer="id", depth="compact", proposal="native",
    )  # fmt: skip
    await agent.start()
    return agent


async def until(store: ActivityStore, state: ActivityState) -> Activity:
    """Waits until the newest activity is in a state."""
    while True:
        if (newest := store.find()[-1]).state == state:
            return newest
        await asyncio.sleep(0.1)


async def main(address: str) -> None:
    """Gives a goal to one worker, and kills it while the goal waits."""
    queue = import_module("build_queue_tool").workspace()
    with tempfile.TemporaryDirectory() as folder:
        async with serve_http(queue) as url:
            options = {"queue": url, "folder": f"{folder}/keeper", "store": address}
            starting = processes(folder, WORKERS, options=options, path=[Path(__file__).parent])
            async with starting as running, connect(running.address) as remote:
                one, _ = [await remote.agent(name) for name in WORKERS]
                print((await one.run(task="Save the next build.")).messages[-1].to_text())
                store = ActivityStore(address, owner=False)
                await until(store, ActivityState.BLOCKED)
                await running.kill("one")
                await queue.invoke("build_queue", "push", {"commit": "a1b2c3"})
                print("It waited when its worker was killed; a build failed. The other takes over.")
                print((await until(store, ActivityState.TERMINATED)).result)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1])) if sys.argv[1:] else print(__doc__)
