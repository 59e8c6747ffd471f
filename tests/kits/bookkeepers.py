"""A stock agent whose runs are written down with a recipe, for tests of replays."""

from __future__ import annotations

from collections.abc import Callable

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench

from coag.compat import RecordedAgent, Recorder, RecordingClient, RecordingWorkbench, Tool
from coag.tracing import Rebuild, Recipe

RECIPE = Recipe(factory="kits.bookkeepers:bookkeeper_again")


class Bookkeeper:
    """AutoGen's `AssistantAgent` that looks things up, driven turn by turn."""

    def __init__(
        self,
        client: ChatCompletionClient,
        tools: list[Tool] | Workbench,
        recorder: Recorder,
    ) -> None:
        self.agent = RecordedAgent(
            AssistantAgent(
                "bookkeeper",
                RecordingClient(client, recorder),
                workbench=RecordingWorkbench(tools, recorder),
                reflect_on_tool_use=True,
            ),
            recorder,
        )

    async def say(self, text: str) -> object:
        messages = [TextMessage(content=text, source="user")]
        return await self.agent.on_messages(messages, CancellationToken())

    async def repeat(self, about: str, text: str) -> bool:
        del about, text
        return False


def bookkeeper_again(
    *, rebuild: Rebuild | None = None
) -> Callable[[ChatCompletionClient, Workbench, Recorder], Bookkeeper]:
    """What the recipe names."""
    assert rebuild is not None
    return Bookkeeper
