"""The plain agent, driven turn by turn and written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.memory import Memory
from autogen_core.models import ChatCompletionClient, FunctionExecutionResult
from autogen_core.tools import BaseTool, Workbench

from coag.compat import Recorder
from coag.errors import ModelCallError
from coag.schema import ReceiptStatus, parsed_arguments

from ._client import OneActionClient
from ._guard import Guard, GuardedWorkbench
from ._recall import done
from ._workbench import WorldWorkbench

_CHANGED = "The system prompt was changed: "


class PlainAgent:
    """AutoGen's `AssistantAgent` with its default context, and one action a turn if not told else.

    Args:
        name: The agent's name.
        client: Its model.
        tools: Its tools, or a workbench, such as one that replays a run.
        system_message: Its one prompt.
        recorder: Who writes.
        iterations: How often a turn may go from the model to the tools and back.
        guard: Rules for its tools; None for none.
        memory: AutoGen's memory, which gets what it does; whoever opened it closes it.
    """

    def __init__(
        self,
        name: str,
        client: ChatCompletionClient,
        *,
        tools: Sequence[BaseTool[Any, Any]] | Workbench,
        system_message: str,
        recorder: Recorder,
        iterations: int = 1,
        guard: Guard | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._name = name
        self._recorder = recorder
        self._client = OneActionClient(client, recorder)
        self._workbench = WorldWorkbench(tools, recorder)
        self._system_message = system_message
        self._iterations = iterations
        self._guard = guard
        self._guarded = None if guard is None else GuardedWorkbench(self._workbench, guard)
        self._memory = memory
        self.refused = 0
        """Calls of the latest turn that its guard refused."""
        self._agent = self._made()

    @property
    def recorder(self) -> Recorder:
        """Who writes this agent's trace."""
        return self._recorder

    async def say(self, text: str, *, allowance: int | None = None) -> list[str]:
        """Says something to it; gives the results of its actions, futile attempts included.

        Args:
            text: What is said.
            allowance: How many actions it may still take; None for no bound.

        Raises:
            ModelCallError: The model could not be asked.
            TraceError: The trace could not be written.
        """
        self._recorder.begin_turn()
        self._workbench.left, self.refused = allowance, 0
        try:
            results, answer = await self._turn(text)
        except ModelCallError as error:
            self._recorder.end_turn("error", str(error))
            raise
        if self._workbench.problem is not None:
            raise self._workbench.problem
        acted = bool(results or self.refused)
        self._recorder.end_turn("actions" if acted else "respond", answer)
        return results

    async def _turn(self, text: str) -> tuple[list[str], str]:
        """Lets the agent act; gives the results of its actions, and its answer."""
        results: list[str] = []
        answer = ""
        message = TextMessage(content=text, source="user")
        requests: dict[str, FunctionCall] = {}
        async for item in self._agent.on_messages_stream([message], CancellationToken()):
            if isinstance(item, ToolCallRequestEvent):
                requests |= {call.id: call for call in item.content}
            elif isinstance(item, ToolCallExecutionEvent):
                for result in item.content:
                    if await self._take(result, requests.get(result.call_id)):
                        results.append(result.content)
            elif isinstance(item, Response):
                answer = item.chat_message.to_model_text()
        return results, answer

    async def _take(self, result: FunctionExecutionResult, call: FunctionCall | None) -> bool:
        """Takes the result of a call; whether it was an action, or the futile attempt at one."""
        tools, guarded, call_id = self._workbench, self._guarded, result.call_id
        judged = guarded is not None and call_id in guarded.judged
        ran, spared = call_id in tools.ran, call_id in tools.spared
        for ids in (tools.ran, tools.spared, *([guarded.judged] if guarded else [])):
            ids.discard(call_id)
        if spared:
            return False
        if judged and not ran:
            self.refused += 1
            self._recorder.note("refused", result.content)
            return False
        name, written = (call.name, call.arguments) if call else ("", "")
        arguments = parsed_arguments(written)
        if not ran:
            self._record_unrun(name, arguments, result.content)
        if self._memory is not None:
            await self._memory.add(done(name, arguments, result.content, self._recorder.turn))
        return True

    async def change_prompt(self, addition: str) -> None:
        """Changes the requirements: a new agent with another prompt takes the dialogue over.

        Where the guard knows a rule for it, that is in force from now on.
        """
        state = await self._agent.save_state()
        self._system_message = f"{self._system_message}\n{addition}"
        await self._change_guard(addition)
        self._agent = self._made()
        await self._agent.load_state(state)
        self._recorder.note("prompt", f"{_CHANGED}{addition}")

    async def _change_guard(self, addition: str) -> None:
        guard, guarded = self._guard, self._guarded
        if guard is None or guarded is None or addition not in guard.later:
            return
        rules = (*guard.constraints, guard.later[addition])
        self._guard = replace(guard, constraints=rules)
        self._guarded = GuardedWorkbench(self._workbench, self._guard)
        await self._guarded.load_state(await guarded.save_state())

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
            workbench=self._guarded or self._workbench,
            system_message=self._system_message,
            max_tool_iterations=self._iterations,
            reflect_on_tool_use=False,
            memory=None if self._memory is None else [self._memory],
        )

    def _record_unrun(self, name: str, arguments: dict[str, Any], content: str) -> None:
        """Writes down a call that AutoGen answered itself, such as that of an unknown tool."""
        attempt = self._recorder.begin(name, arguments)
        self._recorder.end(attempt, ReceiptStatus.FAILED, content)
        if self._workbench.left:
            self._workbench.left -= 1
