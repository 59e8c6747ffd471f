"""The plain agent, driven turn by turn and written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import BaseTool, Workbench

from coag.compat import Recorder
from coag.errors import ModelCallError
from coag.schema import ReceiptStatus, parsed_arguments

from ._client import OneActionClient
from ._workbench import WorldWorkbench

_CHANGED = "The system prompt was changed: "


class PlainAgent:
    """AutoGen's `AssistantAgent` with one action a turn and its default context.

    Args:
        name: The agent's name.
        client: Its model.
        tools: Its tools, or a workbench, such as one that replays a run.
        system_message: Its one prompt.
        recorder: Who writes.
    """

    def __init__(
        self,
        name: str,
        client: ChatCompletionClient,
        *,
        tools: Sequence[BaseTool[Any, Any]] | Workbench,
        system_message: str,
        recorder: Recorder,
    ) -> None:
        self._name = name
        self._recorder = recorder
        self._client = OneActionClient(client, recorder)
        self._workbench = WorldWorkbench(tools, recorder)
        self._system_message = system_message
        self._agent = self._made()

    @property
    def recorder(self) -> Recorder:
        """Who writes this agent's trace."""
        return self._recorder

    async def say(self, text: str) -> list[str]:
        """Says something to it; gives the results of the tool calls that it made.

        Raises:
            ModelCallError: The model could not be asked.
            TraceError: The trace could not be written.
        """
        self._recorder.begin_turn()
        try:
            results, answer = await self._turn(text)
        except ModelCallError as error:
            self._recorder.end_turn("error", str(error))
            raise
        if self._workbench.problem is not None:
            raise self._workbench.problem
        self._workbench.ran.clear()
        self._recorder.end_turn("actions" if results else "respond", answer)
        return results

    async def _turn(self, text: str) -> tuple[list[str], str]:
        """Lets the agent act; gives the results of its tool calls, and its answer."""
        results: list[str] = []
        answer = ""
        message = TextMessage(content=text, source="user")
        requests: dict[str, tuple[str, str]] = {}
        async for item in self._agent.on_messages_stream([message], CancellationToken()):
            if isinstance(item, ToolCallRequestEvent):
                requests |= {call.id: (call.name, call.arguments) for call in item.content}
            elif isinstance(item, ToolCallExecutionEvent):
                for result in item.content:
                    results.append(result.content)
                    self._record_unrun(result.call_id, result.content, requests)
            elif isinstance(item, Response):
                answer = item.chat_message.to_model_text()
        return results, answer

    async def change_prompt(self, addition: str) -> None:
        """Changes the requirements: a new agent with another prompt takes the dialogue over."""
        state = await self._agent.save_state()
        self._system_message = f"{self._system_message}\n{addition}"
        self._agent = self._made()
        await self._agent.load_state(state)
        self._recorder.note("prompt", f"{_CHANGED}{addition}")

    async def repeat(self, about: str, text: str) -> bool:
        """Does once more, in a replay, what was noted between turns; False if it cannot."""
        if about != "prompt" or not text.startswith(_CHANGED):
            return False
        await self.change_prompt(text.removeprefix(_CHANGED))
        return True

    async def close(self) -> None:
        """Closes the model; the recorder stays open."""
        await self._client.close()

    def _made(self) -> AssistantAgent:
        return AssistantAgent(
            self._name,
            self._client,
            workbench=self._workbench,
            system_message=self._system_message,
            max_tool_iterations=1,
            reflect_on_tool_use=False,
        )

    def _record_unrun(
        self, call_id: str, content: str, requests: dict[str, tuple[str, str]]
    ) -> None:
        """Writes down a call that AutoGen answered itself, such as that of an unknown tool."""
        if call_id in self._workbench.ran:
            return
        name, written = requests.get(call_id, ("", ""))
        attempt = self._recorder.begin(name, parsed_arguments(written))
        self._recorder.end(attempt, ReceiptStatus.FAILED, content)
