"""A chat client of the Agent Framework that gives fixed answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
)

Answer = str | Sequence[Content]


def call(number: int, name: str, **arguments: Any) -> Content:
    """A call of a tool, as a model makes it."""
    return Content.from_function_call(
        call_id=f"c{number}", name=name, arguments=json.dumps(arguments)
    )


class AnsweringClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Gives one answer after the other, and keeps what it was asked.

    With `conversation=True` it says that it keeps the conversation, as some services do.
    """

    def __init__(self, *answers: Answer, conversation: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.answers = list(answers)
        self.requests: list[list[Message]] = []
        self.options: list[dict[str, Any]] = []
        self.used: Any = None
        """What each answer says that it took."""
        self._conversation = conversation

    def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool,
        options: Mapping[str, Any],
        **kwargs: Any,
    ) -> Any:
        self.requests.append(list(messages))
        self.options.append(dict(options))
        number = len(self.requests)
        given = self.answers.pop(0)
        contents = [Content.from_text(given)] if isinstance(given, str) else list(given)
        kept_as = f"conversation-{number}" if self._conversation else None
        if stream:
            return self._build_response_stream(_pieces(contents, f"m{number}", kept_as))

        async def answer() -> ChatResponse[Any]:
            message = Message("assistant", contents, message_id=f"m{number}")
            return ChatResponse(
                messages=[message], conversation_id=kept_as, usage_details=self.used
            )

        return answer()


async def _pieces(
    contents: Sequence[Content], name: str, kept_as: str | None
) -> AsyncGenerator[ChatResponseUpdate]:
    for content in contents:
        yield ChatResponseUpdate(
            contents=[content], role="assistant", message_id=name, conversation_id=kept_as
        )
