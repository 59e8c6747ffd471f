"""AgentChat's messages as JSON and back, by the name of their type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    CodeExecutionEvent,
    CodeGenerationEvent,
    HandoffMessage,
    MemoryQueryEvent,
    ModelClientStreamingChunkEvent,
    MultiModalMessage,
    SelectorEvent,
    SelectSpeakerEvent,
    StopMessage,
    StructuredMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
    ToolCallSummaryMessage,
    UserInputRequestedEvent,
)
from pydantic import BaseModel

from coag.errors import ConfigurationError

Message = BaseAgentEvent | BaseChatMessage
"""Anything that an agent yields or is given."""

_STOCK: tuple[type[Message], ...] = (
    TextMessage,
    MultiModalMessage,
    StopMessage,
    ToolCallSummaryMessage,
    HandoffMessage,
    ToolCallRequestEvent,
    ToolCallExecutionEvent,
    MemoryQueryEvent,
    UserInputRequestedEvent,
    ModelClientStreamingChunkEvent,
    ThoughtEvent,
    SelectSpeakerEvent,
    SelectorEvent,
    CodeGenerationEvent,
    CodeExecutionEvent,
)


def load_message_type(name: str) -> type[Message]:
    """The type of message called `module:name`; for a content model, `StructuredMessage` of it.

    Raises:
        ConfigurationError: There is none.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"The message type {name!r} (MODULE:NAME) cannot be imported: {error}."
        ) from error
    if isinstance(found, type) and issubclass(found, BaseAgentEvent | BaseChatMessage):
        return found
    if isinstance(found, type) and issubclass(found, BaseModel):
        return StructuredMessage[found]
    raise ConfigurationError(
        f"{name!r} is {found!r}: neither a type of message nor a pydantic model for its content."
    )


class MessageCodec:
    """Turns messages into JSON and back.

    Args:
        types: Types beyond AgentChat's own: `StructuredMessage[T]`, or classes of yours.
    """

    def __init__(self, types: Sequence[type[Message]] = ()) -> None:
        self._types: Mapping[str, type[Message]] = {
            kind.__name__: kind for kind in (*_STOCK, *types)
        }

    def extended(self, types: Sequence[type[Message]]) -> MessageCodec:
        """One that knows these types too."""
        return MessageCodec([*self._types.values(), *types])

    def dump(self, message: Message) -> dict[str, Any]:
        """A message as JSON, with the name of its type.

        Raises:
            ConfigurationError: Its type is not known here.
        """
        name = type(message).__name__
        self._known(name)
        return {"type": name, "message": dict(message.dump())}

    def load(self, dumped: Mapping[str, Any]) -> Message:
        """The message.

        Raises:
            ConfigurationError: Its type is not known here.
            ValueError: It is no such message.
        """
        return self._known(str(dumped["type"])).load(dumped["message"])

    def load_chat(self, dumped: Mapping[str, Any]) -> BaseChatMessage:
        """The message, which must be one that agents send each other.

        Raises:
            ConfigurationError: Its type is not known here.
            ValueError: It is an event, or no such message.
        """
        message = self.load(dumped)
        if not isinstance(message, BaseChatMessage):
            raise ValueError(f"{type(message).__name__} is an event, not a chat message.")
        return message

    def chat_types(self, names: Iterable[str]) -> tuple[type[BaseChatMessage], ...]:
        """The types of chat message with these names.

        Raises:
            ConfigurationError: One is not known here.
        """
        known = [self._known(name) for name in names]
        return tuple(kind for kind in known if issubclass(kind, BaseChatMessage))

    def _known(self, name: str) -> type[Message]:
        kind = self._types.get(name)
        if kind is None:
            raise ConfigurationError(
                f"Messages of type {name!r} are not known here. Give message_types=[{name}] "
                "both where the agent is served and where it is used."
            )
        return kind
