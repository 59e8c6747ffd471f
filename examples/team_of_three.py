"""A team of three: one CoagAgent that looks things up, and two stock AssistantAgents.

python examples/team_of_three.py                                  # a scripted model
python examples/team_of_three.py openai:gpt-5-mini                # a real one
python examples/team_of_three.py http://127.0.0.1:8080/v1#NAME    # one on this machine
"""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ChatCompletionClient

from coag import CoagAgent, ScriptedModel, open_model
from coag.models import ScriptedReply, ScriptedRequest

TIDES = {"monday": "low water at 06:10", "tuesday": "low water at 07:05"}


def tide(day: str) -> str:
    """Tells when low water is on a day of the week."""
    return TIDES.get(day.strip().lower(), f"no table for {day}")


def script(request: ScriptedRequest) -> ScriptedReply:
    """What the scripted model answers: by turns the scout, the critic and the writer."""
    if "critic" in request.system_text:
        return "Say from when to when the flats can be crossed."
    if "writer" in request.system_text:
        return "On Tuesday the flats can be crossed from 05:30 to 08:40; low water is at 07:05."
    known = TIDES["tuesday"] in request.text
    wish = ("respond", {"text": "Tuesday: low water at 07:05."})
    action, arguments = wish if known else ("tide", {"day": "Tuesday"})
    candidates = [{"action": action, "arguments": arguments, "score": 0.9}]
    return {"situation": "The tide on Tuesday is asked for.", "candidates": candidates}


async def main(model: ChatCompletionClient) -> None:
    """One round: the scout looks it up, the critic asks for more, the writer sums up."""
    scout = CoagAgent(
        "scout", model, tools=[tide], depth="compact", proposal="json", max_tool_iterations=3
    )
    critic = AssistantAgent(
        "critic", model, system_message="You are a critic. Name one thing missing, in a sentence."
    )
    writer = AssistantAgent(
        "writer", model, system_message="You are a writer. Sum up what is known in two sentences."
    )
    team = RoundRobinGroupChat([scout, critic, writer], max_turns=3)
    async for message in team.run_stream(task="When is low water on Tuesday?"):
        if isinstance(message, TaskResult):
            print("ended because:", message.stop_reason)
        else:
            print(f"{message.source:>7}  {message.to_text()}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(open_model(sys.argv[1]) if sys.argv[1:] else ScriptedModel(script)))
