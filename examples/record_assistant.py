"""A stock AssistantAgent whose run is written down: what it heard, asked, did and answered.

Look at the run afterwards with `coag log`, which is what this script does at its end.
"""

import asyncio
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall

from coag import ScriptedModel
from coag.cli import main as show
from coag.compat import record
from coag.models import scripted_answers


def send_letter(to: str, text: str) -> str:
    """Sends a letter."""
    return f"sent to {to}: {len(text)} characters"


letter = FunctionCall(
    id="1", name="send_letter", arguments='{"to": "Ann", "text": "It rains. Stay where you are."}'
)
model = ScriptedModel(scripted_answers([[letter], "The letter to Ann is on its way."]))


async def main() -> Path:
    """Has a letter sent; gives the folder of the run."""
    agent = record(
        AssistantAgent,
        "clerk",
        model,
        logs="logs",
        tools=[send_letter],
        reflect_on_tool_use=True,
    )
    result = await agent.run(task="Tell Ann that it rains.")
    print(result.messages[-1].to_text())
    await agent.close()
    return agent.recorder.folder.path


if __name__ == "__main__":
    show(["log", str(asyncio.run(main()))])
