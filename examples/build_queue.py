"""An agent that waits for a build queue, outlives being killed, and asks before it deploys.

The queue (`build_queue_tool.py`) and the agent (`build_queue_agent.py`) are processes of their own.
This one kills the agent while it waits, has a build fail meanwhile, and starts it again.
"""

import asyncio
import sys
import tempfile
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from pathlib import Path

from coag.mcp import StreamableHttpServerParams
from coag.situated import McpToolConnection


async def start(*arguments: str) -> Process:
    """A Python process whose output is read here."""
    here = Path(__file__).parent
    return await create_subprocess_exec(sys.executable, *arguments, cwd=here, stdout=PIPE)


async def said(process: Process, until: str = "") -> str:
    """Prints what a process says, to its end or to a line that has this; gives the last line."""
    line = ""
    assert process.stdout is not None
    while read := await process.stdout.readline():
        line = read.decode().strip()
        print(f"  {line}")
        if until and until in line:
            break
    return line


async def push(address: str, commit: str) -> None:
    """Pushes a commit, and waits until its first build has failed."""
    queue = McpToolConnection(StreamableHttpServerParams(url=address), "queue")
    done = await queue.invoke("build_queue", "push", {"commit": commit}, key=commit)
    await asyncio.sleep(1)  # nobody waits for the signal now: it stays in the queue's log
    print(f"Somebody pushed. {done.message}")
    await queue.close()


async def main() -> None:
    """The agent waits, is killed, misses nothing, and ends."""
    server = await start("-m", "coag.situated", "build_queue_tool:workspace", "--http", "0")
    address = await said(server, until="http")
    with tempfile.TemporaryDirectory() as folder:
        agent = await start("build_queue_agent.py", address, folder)
        await said(agent, until="waits")
        agent.kill()
        print("The agent was killed.")
        await push(address, "a1b2c3")
        await said(await start("build_queue_agent.py", address, folder))
    server.terminate()
    await server.wait()


if __name__ == "__main__":
    asyncio.run(main())
