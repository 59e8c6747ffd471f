"""A stock AssistantAgent whose model falters, made steady in one line.

The scripted model does what small models and their servers do: arguments in a code fence, two
calls with the same id, prose where JSON was asked for. Without `ResilientClient` the tool calls
fail and the prose ends the turn with an exception.

With a real model: `model = open_model("http://127.0.0.1:8080/v1#qwen")`, with `open_model` from
`coag`.
"""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.ui import Console
from autogen_core import FunctionCall
from pydantic import BaseModel

from coag import ScriptedModel
from coag.compat import ResilientClient
from coag.models import scripted_answers


class Report(BaseModel):
    """What the agent is to answer with."""

    warmer: str
    difference: int


def temperature(city: str) -> int:
    """The temperature in a city, in degrees Celsius."""
    return {"Rome": 24, "Oslo": 9}.get(city, 15)


rome = FunctionCall(id="1", name="temperature", arguments="```json\n{'city': 'Rome'}\n```")
oslo = FunctionCall(id="1", name="temperature", arguments='{"city": "Oslo"')
model = ScriptedModel(
    scripted_answers(
        [
            [rome, oslo],
            "Rome is much warmer than Oslo.",
            "Sure! {'warmer': 'Rome', 'difference': 15,}",
        ]
    )
)


async def main() -> None:
    """Asks for a report, and shows what had to be repaired for the last answer."""
    client = ResilientClient(model)
    agent = AssistantAgent("clerk", client, tools=[temperature], output_content_type=Report)
    await Console(agent.run_stream(task="Which of the two is warmer, Rome or Oslo?"))
    assert client.last is not None
    print("repaired:", *client.last.faults)
    print("used:", client.usage)


if __name__ == "__main__":
    asyncio.run(main())
