"""A CoagAgent in place of an AssistantAgent: the same arguments, deliberation before every action.

The scripted model calls two tools at once, one of which does not exist. That one is rejected in
Evaluation, and the events show it; the other one runs, and the agent answers from what it returned.

With a real model: `model = open_model("openai:gpt-5-mini")`, with `open_model` from `coag`.
"""

import asyncio

from autogen_agentchat.ui import Console
from autogen_core import FunctionCall

from coag import CoagAgent, ScriptedModel
from coag.models import scripted_answers

HOURS = {"monday": "closed", "saturday": "10:00 to 18:00"}


def opening_hours(day: str) -> str:
    """When the museum is open on a day of the week."""
    return HOURS.get(day.lower(), "9:00 to 17:00")


model = ScriptedModel(
    scripted_answers(
        [
            [
                FunctionCall(id="1", name="search_the_web", arguments='{"query": "museum"}'),
                FunctionCall(id="2", name="opening_hours", arguments='{"day": "Monday"}'),
            ],
            "It is closed on Mondays.",
        ]
    )
)


async def main() -> None:
    """Asks the guide one question and shows what it does."""
    agent = CoagAgent(  # AssistantAgent( ... would take all of this but `depth`
        "guide",
        model_client=model,
        tools=[opening_hours],
        system_message="You answer visitors of a museum.",
        depth="compact",
    )
    await Console(agent.run_stream(task="Can I visit on Monday?"))


if __name__ == "__main__":
    asyncio.run(main())
