"""A chat client of the Agent Framework as a model of ours."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, cast

from agent_framework import (
    ChatResponse,
    Content,
    FunctionTool,
    Message,
    ResponseStream,
    SupportsChatGetResponse,
)
from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema

from coag.errors import ConfigurationError
from coag.models import ModelClient, ModelRequest, cancellable, capable_info, token_usage

ChatClient = SupportsChatGetResponse[Any]
_FINISHED: Mapping[str, Literal["stop", "length", "function_calls", "content_filter"]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "function_calls",
    "content_filter": "content_filter",
}
_NO_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}


class ChatClientModel(ModelClient):
    """Asks a chat client, and never lets it run a tool.

    Tools are only declared to it, so that what it calls comes back as it is. A client that answers
    a call of an unknown tool itself, as the framework's do, asks its model again with the error.

    Args:
        client: Any chat client of the framework.
        info: What its model can do, where that is not all: `{"vision": False}`.

    Raises:
        ConfigurationError: It is no chat client.
    """

    def __init__(self, client: ChatClient, info: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if not callable(getattr(client, "get_response", None)):
            raise ConfigurationError(
                f"client={client!r:.80} has no get_response: give a chat client of the Agent "
                "Framework, e.g. OpenAIChatClient()."
            )
        self._client = client
        assumed = {**capable_info(ModelFamily.UNKNOWN), "vision": True}
        self._info = cast("ModelInfo", assumed | dict(info or {}))
        self.streams = False
        """Whether the client is asked for pieces of the answer."""
        self.client_kwargs: Mapping[str, Any] = {}
        """What the client gets besides, e.g. chat middleware of the run."""
        self._tools: dict[str, tuple[ToolSchema, FunctionTool]] = {}

    @property
    def name(self) -> str:
        """What the client calls its model; else its class."""
        own = getattr(self._client, "model", None)
        return own if isinstance(own, str) and own else type(self._client).__name__

    @property
    def model_info(self) -> ModelInfo:
        """What the model can do."""
        return self._info

    async def answer(self, request: ModelRequest) -> CreateResult:
        """The whole answer."""
        return self._result(await cancellable(self._ask(request, stream=False), request.token))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """The pieces of its text and the result last, where pieces are asked for."""
        if not self.streams:
            yield await self.answer(request)
            return
        answer = cast("ResponseStream[Any, ChatResponse[Any]]", self._ask(request, stream=True))
        async with answer:
            updates, written = aiter(answer), ""
            while True:
                try:
                    update = await cancellable(anext(updates), request.token)
                except StopAsyncIteration:
                    break
                if update.text:
                    begun = update.message_id or written
                    yield f"\n{update.text}" if written and begun != written else update.text
                    written = begun
            yield self._result(await answer.get_final_response())

    def _ask(self, request: ModelRequest, *, stream: bool) -> Any:
        options: dict[str, Any] = dict(request.arguments)
        if request.tools:
            options["tools"] = [self._declared(schema) for schema in request.schemas]
            options["tool_choice"] = _choice(request.tool_choice)
        if request.json_output is True:
            options["response_format"] = {"type": "json_object"}
        elif isinstance(request.json_output, type):
            options["response_format"] = request.json_output
        messages = [one for message in request.messages for one in _sent(message)]
        ask: Any = self._client.get_response
        more = {"client_kwargs": dict(self.client_kwargs)} if self.client_kwargs else {}
        return ask(messages, stream=stream, options=options, **more)

    def _declared(self, schema: ToolSchema) -> FunctionTool:
        """A tool that nobody can run: without a function; made again only if it has changed."""
        name, text = schema["name"], schema.get("description") or ""
        known = self._tools.get(name)
        if known is None or known[0] != schema:
            form = dict(schema.get("parameters") or _NO_SCHEMA)
            made = FunctionTool(name=name, description=text, func=None, input_model=form)
            known = self._tools[name] = deepcopy(schema), made
        return known[1]

    def _result(self, response: ChatResponse[Any]) -> CreateResult:
        contents = [one for message in response.messages for one in message.contents]
        answered = {one.call_id for one in contents if one.type == "function_result"}
        calls = [
            FunctionCall(id=one.call_id or "", name=one.name or "", arguments=_text(one.arguments))
            for one in contents
            if one.type == "function_call" and one.call_id not in answered
        ]
        details: Mapping[str, Any] = response.usage_details or {}
        sent, written = details.get("input_token_count"), details.get("output_token_count")
        usage = RequestUsage(prompt_tokens=sent or 0, completion_tokens=written or 0)
        self.used += token_usage(usage, calls=1)
        thought = "".join(one.text or "" for one in contents if one.type == "text_reasoning")
        text = _said(response.messages)
        return CreateResult(
            content=calls or text,
            thought=(thought or text or None) if calls else thought or None,
            finish_reason=_FINISHED.get(str(response.finish_reason or "stop"), "unknown"),
            usage=usage,
            cached=False,
        )


def _said(messages: Sequence[Message]) -> str:
    """The answer: what is said behind the last result of a tool that the client ran itself."""
    texts: list[str] = []
    for message in messages:
        if any(one.type == "function_result" for one in message.contents):
            texts.clear()
        elif message.text:
            texts.append(message.text)
    return "\n".join(texts)


def _choice(choice: Tool | Literal["auto", "required", "none"]) -> Any:
    if isinstance(choice, str):
        return choice
    return {"mode": "required", "required_function_name": choice.name}


def _text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {})


def _sent(message: LLMMessage) -> Sequence[Message]:
    """A message as the client takes it."""
    match message:
        case SystemMessage():
            return [Message("system", [message.content])]
        case UserMessage() | AssistantMessage():
            role = "user" if isinstance(message, UserMessage) else "assistant"
            parts = [message.content] if isinstance(message.content, str) else message.content
            return [Message(role, [_part(part) for part in parts])]
        case FunctionExecutionResultMessage():
            results = [
                Content.from_function_result(call_id=one.call_id, result=one.content)
                for one in message.content
            ]
            return [Message("tool", results)]


def _part(part: str | Image | FunctionCall) -> Content:
    if isinstance(part, FunctionCall):
        return Content.from_function_call(call_id=part.id, name=part.name, arguments=part.arguments)
    if isinstance(part, Image):
        media_type = part.data_uri.removeprefix("data:").partition(";")[0]
        return Content.from_uri(part.data_uri, media_type=media_type)
    return Content.from_text(part)
