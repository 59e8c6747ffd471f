"""The agent of `build_queue.py`: started with an address and a folder, it pursues one goal.

With a real model: `open_model("openai:gpt-5-mini")`, with `open_model` from `coag`.
"""

import asyncio
import json
import sys
from collections.abc import Mapping

from autogen_core import FunctionCall

from coag import ScriptedModel, SituatedAgent
from coag.compat import ScriptedApprover
from coag.cycle import ApprovalPolicy
from coag.mcp import StreamableHttpServerParams
from coag.models import ScriptedReply, ScriptedRequest
from coag.situated import Activity, McpToolConnection

TOOL = {"tool": "build_queue"}
STEPS: Mapping[str, tuple[str, dict[str, str]]] = {  # what shows that a step is done, and the step
    "Manual of build_queue": ("mount_manual", TOOL),
    "Signal build.failed": ("wait_for_signal", {**TOOL, "signal": "build.failed"}),
    "runs again": ("build_queue__retry", {}),
    "Signal build.passed": ("wait_for_signal", {**TOOL, "signal": "build.passed"}),
    "is deployed": ("build_queue__deploy", {}),
}


def think(request: ScriptedRequest) -> ScriptedReply:
    """The first step that is not done."""
    for shown, (name, arguments) in STEPS.items():
        if shown not in request.text:
            return [FunctionCall(id=name, name=name, arguments=json.dumps(arguments))]
    return "The build passed, and the users have it."


def show(activity: Activity) -> None:
    """Says what the activity waits for."""
    if activity.wait is not None:
        print(f"waits for {activity.wait.condition}", flush=True)


async def live(address: str, folder: str) -> None:
    """Runs the agent until its goal is reached, from where it ended before."""
    ann = ScriptedApprover([True], by="Ann")
    queue = McpToolConnection(StreamableHttpServerParams(url=address), "queue")
    async with SituatedAgent(
        "keeper", ScriptedModel(think), [queue], folder=folder, depth="compact", proposal="native",
        approval=ApprovalPolicy(actions=["build_queue__deploy"]), approve=ann,
    ) as agent:  # fmt: skip
        agent.scheduler.watch(show)
        agent.add_goal("Save the next build that fails.", activity_id="watch")  # or it continues
        print((await agent.ended("watch")).result)
    print("Ann was asked about:", *(request.action for request in ann.requests))


if __name__ == "__main__" and sys.argv[1:]:
    asyncio.run(live(*sys.argv[1:]))
