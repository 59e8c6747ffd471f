"""A team: a CoagAgent and a stock AssistantAgent take turns in a RoundRobinGroupChat.

The clerk deliberates and uses a tool; the reviewer is AutoGen's own agent and approves. What the
reviewer says reaches the clerk as quoted dialogue, never as an instruction of the developer.

With a real model: `open_model("openai:gpt-5-mini")` for each, with `open_model` from `coag`.
"""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall

from coag import CoagAgent, ScriptedModel
from coag.models import ScriptedRequest, scripted_answers


def stock(item: str) -> str:
    """How many pieces of an item are in stock."""
    return {"kettle": "3"}.get(item, "0")


CLERK = [
    [FunctionCall(id="1", name="stock", arguments='{"item": "kettle"}')],
    "3 kettles.",
    "3 kettles, says the stock list.",
]


def review(request: ScriptedRequest) -> str:
    """Approves an answer that names its source."""
    return "APPROVED" if "stock list" in request.text else "Where do you have that from?"


async def main() -> None:
    """Runs the team until the reviewer approves."""
    model = ScriptedModel(scripted_answers(CLERK))
    clerk = CoagAgent("clerk", model, tools=[stock], depth="compact")
    reviewer = AssistantAgent("reviewer", model_client=ScriptedModel(review))
    done = TextMentionTermination("APPROVED") | MaxMessageTermination(30)
    team = RoundRobinGroupChat([clerk, reviewer], termination_condition=done)
    result = await team.run(task="How many kettles do we have?")
    for message in result.messages:
        print(f"{message.source:>8}  {message.to_text()}")
    print("ended because:", result.stop_reason)


if __name__ == "__main__":
    asyncio.run(main())
