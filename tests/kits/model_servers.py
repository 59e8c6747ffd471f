"""A model server that does everything right, and ways to make it do one thing wrong."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

from autogen_core.models import ChatCompletionClient
from autogen_ext.models.openai import OpenAIChatCompletionClient
from kits.fake_server import Behaviour, FakeServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from coag.models import capable_info
from coag.schema import estimate_tokens

Body: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]
INFO = capable_info("unknown")


def openai_client(server: FakeServer, **options: Any) -> ChatCompletionClient:
    """AutoGen's own client of a server, which asks once."""
    given: dict[str, Any] = {"api_key": "sk-local-secret", "model_info": INFO, "max_retries": 0}
    given |= options
    return OpenAIChatCompletionClient(model="tiny", base_url=f"{server.url}/v1", **given)


def sound() -> Behaviour:
    """Does all that `coag doctor` looks for; cached are the tokens of a prompt that it knows."""
    known: set[str] = set()

    async def behave(body: Body, _request: Request) -> Response:
        prompt = json.dumps(body["messages"])
        sent = estimate_tokens(prompt)
        message = limited(message_for(body), body.get("max_tokens", 10_000))
        usage = {
            "prompt_tokens": sent,
            "completion_tokens": estimate_tokens(json.dumps(message)),
            "total_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": sent - 1 if prompt in known else 0},
        }
        known.add(prompt)
        if body.get("stream"):
            return streamed(message["content"], body, usage)
        return completed(message, usage)

    return behave


def message_for(body: Body) -> Message:
    last: str = body["messages"][-1]["content"]
    form = body.get("response_format", {}).get("type")
    choice = body.get("tool_choice", "auto") if body.get("tools") else "none"
    if form == "json_schema":
        return {"content": '{"tint": "teal"}'}
    if choice == "required" or (choice != "none" and last.startswith("Note the weather")):
        places = [("Lisbon", 21, "sunny"), ("Oslo", 9, "rainy")]
        calls = places if "both cities" in last else places[:1]
        return {"content": None, "tool_calls": [weather_call(*place) for place in calls]}
    if form == "json_object" and "Choose" not in last:
        return {"content": '{"fruit": "banana"}'}
    return {"content": text_for(body, last)}


def text_for(body: Body, last: str) -> str:
    messages = body["messages"]
    if "Choose a tint" in last:
        return '{"tint": "ochre"}'
    if "harbour code" in last:
        codes = re.findall(r"HX\d+", json.dumps(messages))
        return codes[0] if codes else "I do not know."
    if last.startswith("Count"):
        return "one " * 300
    system = " ".join(m["content"] for m in messages if m["role"] == "system")
    names = [name for name in ("Heron", "Walnut") if name in system]
    return " and ".join(names) or "Water is a liquid."


def weather_call(city: str, celsius: int, sky: str) -> Message:
    arguments = json.dumps({"city": city, "celsius": celsius, "sky": sky})
    function = {"name": "note_weather", "arguments": arguments}
    return {"id": f"call-{city}", "type": "function", "function": function}


def limited(message: Message, max_tokens: int) -> Message:
    content = message["content"]
    return message if content is None else {**message, "content": content[: max_tokens * 4]}


def completed(message: Message, usage: Body) -> Response:
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": finish,
    }
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny"}
    return JSONResponse({**body, "choices": [choice], "usage": usage})


def streamed(content: str, body: Body, usage: Body) -> Response:
    async def events() -> AsyncIterator[str]:
        for word in content.split():
            yield chunk(f"{word} ")
        yield chunk("", "length")
        if body.get("stream_options", {}).get("include_usage"):
            counted: Body = {**CHUNK, "choices": [], "usage": usage}
            yield f"data: {json.dumps(counted)}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


CHUNK = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}


def chunk(text: str, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return f"data: {json.dumps({**CHUNK, 'choices': [choice]})}\n\n"


def status(code: int, text: str = "no") -> Response:
    return JSONResponse({"error": {"message": text}}, code)


def with_body(behave: Behaviour, change: Callable[[Body], Body]) -> Behaviour:
    """Serves as if something else had been asked."""

    async def changed(body: Body, request: Request) -> Response:
        return await behave(change(body), request)

    return changed


def without(behave: Behaviour, *keys: str) -> Behaviour:
    """Ignores these parts of a request."""
    return with_body(behave, lambda body: {k: v for k, v in body.items() if k not in keys})


def refusing(behave: Behaviour, wrong: Callable[[Body], object], code: int = 400) -> Behaviour:
    """Answers some requests with a status."""

    async def refused(body: Body, request: Request) -> Response:
        return status(code, "not here") if wrong(body) else await behave(body, request)

    return refused


def rewriting(behave: Behaviour, change: Callable[[Message], Message]) -> Behaviour:
    """Changes the message of each answer that is not streamed."""

    async def rewritten(body: Body, request: Request) -> Response:
        response = await behave(body, request)
        if isinstance(response, StreamingResponse):
            return response
        answer = json.loads(bytes(response.body))
        if "choices" not in answer:
            return response
        message = change(answer["choices"][0]["message"])
        return completed(message, answer["usage"])

    return rewritten


def calls_as_text(message: Message) -> Message:
    """The calls as Qwen's models write them where the server leaves them in the text."""
    if not message.get("tool_calls"):
        return message
    called = [call["function"] for call in message["tool_calls"]]
    written = [{"name": c["name"], "arguments": json.loads(c["arguments"])} for c in called]
    return {"content": "\n".join(json.dumps(call) for call in written)}


def cutting(behave: Behaviour, tokens: int) -> Behaviour:
    """Forgets all but the last tokens of a prompt, without a word."""

    def cut(body: Body) -> Body:
        text = "\n".join(message["content"] or "" for message in body["messages"])
        if estimate_tokens(text) <= tokens:
            return body
        return {**body, "messages": [{"role": "user", "content": text[-tokens * 4 :]}]}

    return with_body(behave, cut)


async def hang(_body: Body, request: Request) -> Response:
    """Never answers."""
    await request.receive()
    return Response()


def endless(behave: Behaviour) -> Behaviour:
    """Streams without an end."""

    async def stream(body: Body, request: Request) -> Response:
        if not body.get("stream"):
            return await behave(body, request)

        async def events() -> AsyncIterator[str]:
            while not await request.is_disconnected():
                yield chunk("one ")

        return StreamingResponse(events(), media_type="text/event-stream")

    return stream
