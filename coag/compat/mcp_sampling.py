"""Requests of MCP servers for sampling, answered by a model client of AutoGen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from autogen_core import Image
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from coag.errors import CoagError
from coag.mcp import Sampler


def sampler(client: ChatCompletionClient) -> Sampler:
    """Answers requests for sampling by a model client."""

    async def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        system = request.get("systemPrompt")
        messages: list[LLMMessage] = [SystemMessage(content=system)] if system else []
        messages += [_message(message) for message in request.get("messages", ())]
        result = await client.create(messages)
        text = result.content if isinstance(result.content, str) else str(result.content)
        return {
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": client.model_info["family"],
            "stopReason": result.finish_reason,
        }

    return answer


def _message(message: Mapping[str, Any]) -> LLMMessage:
    given: Any = message["content"]
    contents = cast("list[Mapping[str, Any]]", given if isinstance(given, list) else [given])
    parts = [_part(content) for content in contents]
    if message["role"] == "user":
        return UserMessage(content=parts, source="user")
    return AssistantMessage(content="\n".join(map(str, parts)), source="assistant")


def _part(content: Mapping[str, Any]) -> str | Image:
    match content.get("type"):
        case "text":
            return str(content["text"])
        case "image":
            return Image.from_base64(content["data"])
        case other:
            raise CoagError(f"A model cannot be shown content of type {other!r}.")
