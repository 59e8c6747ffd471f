"""A team of stock agents with tools: recorded once, and replayed without model and tools."""

import asyncio
import tempfile

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench

from coag import ScriptedModel
from coag.compat import (
    Recorder,
    RecordingClient,
    RecordingWorkbench,
    ReplayingClient,
    ReplayingWorkbench,
)
from coag.models import ScriptedReply, ScriptedRequest


def stock(item: str) -> str:
    """How many pieces of an item are in stock."""
    return {"kettle": "3"}.get(item, "0")


def speak(request: ScriptedRequest) -> ScriptedReply:
    """Plays both agents: with a real model, give `open_model("openai:gpt-5-mini")` instead."""
    if "review" in request.system_text:
        return "APPROVED" if "3 kettles" in request.text else "How many are there?"
    if request.tools:
        return [FunctionCall(id="1", name="stock", arguments='{"item": "kettle"}')]
    return "3 kettles."


async def talk(client: ChatCompletionClient, workbench: Workbench) -> list[str]:
    """Lets the team work; gives what was said and done."""
    clerk = AssistantAgent("clerk", client, workbench=workbench, reflect_on_tool_use=True)
    reviewer = AssistantAgent("reviewer", client, system_message="You review what the clerk says.")
    done = TextMentionTermination("APPROVED") | MaxMessageTermination(20)
    team = RoundRobinGroupChat([clerk, reviewer], termination_condition=done)
    result = await team.run(task="How many do we have?")
    return [f"{message.source:>8}  {message.to_text()}" for message in result.messages]


async def main() -> None:
    """Records the team, then replays it."""
    recorder = Recorder(tempfile.mkdtemp(), agent="team")
    model = RecordingClient(ScriptedModel(speak), recorder)
    recorded = await talk(model, RecordingWorkbench([stock], recorder))
    recorder.close()
    async with ReplayingWorkbench(recorder.folder) as workbench:
        replayed = await talk(ReplayingClient(recorder.folder), workbench)
    print("\n".join(replayed), f"the same: {replayed == recorded}", sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
