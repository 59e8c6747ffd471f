"""The private names of AssistantAgent that notebooks, samples and tests read.

They are read only: an agent's parts are wired when it is made. Give its constructor what you want.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage
from autogen_agentchat.utils import remove_images
from autogen_core import FunctionCall
from autogen_core.memory import Memory
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import (
    ChatCompletionClient,
    FunctionExecutionResult,
    LLMMessage,
    SystemMessage,
)
from autogen_core.tools import BaseTool, StaticStreamWorkbench, Workbench
from pydantic import BaseModel

from ._making import Arguments, Made


class AssistantNames:
    """What AssistantAgent keeps in private fields, as this agent was given it."""

    _given: Arguments
    _made: Made

    @property
    def _model_client(self) -> ChatCompletionClient:
        return self._given.model_client

    @property
    def _model_client_stream(self) -> bool:
        return self._given.model_client_stream

    @property
    def _model_context(self) -> ChatCompletionContext:
        return self._given.model_context or self._made.context

    @property
    def _system_messages(self) -> list[SystemMessage]:
        told = self._given.system_message
        return [] if told is None else [SystemMessage(content=told)]

    @property
    def _tools(self) -> list[BaseTool[Any, Any]]:
        return list(self._made.parts.tools.tools)

    @property
    def _workbench(self) -> list[Workbench]:
        benches = self._made.parts.tools.workbenches
        return list(benches) if benches else [StaticStreamWorkbench(self._tools)]

    @property
    def _handoffs(self) -> dict[str, Handoff]:
        return dict(self._made.parts.handoffs.by_name)

    @property
    def _handoff_tools(self) -> list[BaseTool[Any, Any]]:
        return [handoff.handoff_tool for handoff in self._handoffs.values()]

    @property
    def _memory(self) -> Sequence[Memory] | None:
        given = self._given.memory
        if given is None or not isinstance(given, Sequence) or isinstance(given, str):
            return None
        return given

    @property
    def _metadata(self) -> Mapping[str, str]:
        return dict(self._given.metadata or {})

    @property
    def _output_content_type(self) -> type[BaseModel] | None:
        return self._given.output_content_type

    @property
    def _output_content_type_format(self) -> str | None:
        return self._given.output_content_type_format

    @property
    def _reflect_on_tool_use(self) -> bool:
        return self._made.parts.settings.reflect

    @property
    def _max_tool_iterations(self) -> int | None:
        return self._made.parts.settings.bounds.actions

    @property
    def _tool_call_summary_format(self) -> str:
        return self._given.tool_call_summary_format

    @property
    def _tool_call_summary_formatter(
        self,
    ) -> Callable[[FunctionCall, FunctionExecutionResult], str] | None:
        return self._given.tool_call_summary_formatter

    @staticmethod
    def _get_compatible_context(
        model_client: ChatCompletionClient, messages: list[LLMMessage]
    ) -> Sequence[LLMMessage]:
        return messages if model_client.model_info["vision"] else remove_images(messages)

    @staticmethod
    async def _add_messages_to_context(
        model_context: ChatCompletionContext, messages: Sequence[BaseChatMessage]
    ) -> None:
        for message in messages:
            if isinstance(message, HandoffMessage):
                for carried in message.context:
                    await model_context.add_message(carried)
            await model_context.add_message(message.to_model_message())
