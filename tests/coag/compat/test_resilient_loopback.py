"""The real OpenAI and Ollama clients, made steady, against servers on this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    RequestUsage,
    UserMessage,
)
from autogen_ext.models.ollama import OllamaChatCompletionClient
from kits.fake_server import FakeServer, openai_text
from kits.model_servers import INFO, openai_client
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from coag.compat import ResilientClient
from coag.models import StructuredModel
from coag.schema import PromptMessage

ASKED: list[LLMMessage] = [UserMessage(content="Say hi.", source="user")]
GOOD = '{"say": "hi"}'


class Word(BaseModel):
    say: str


@pytest.fixture
def served() -> Iterator[FakeServer]:
    with FakeServer(openai_text(GOOD)) as fake:
        yield fake


@pytest.fixture
async def bare(served: FakeServer) -> AsyncIterator[ChatCompletionClient]:
    opened = openai_client(served)
    yield opened
    await opened.close()


def sse(*chunks: dict[str, Any]) -> Response:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Response("".join([*lines, "data: [DONE]\n\n"]), media_type="text/event-stream")


def piece(text: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
    return {**head, "choices": [choice]}


async def stream(body: dict[str, Any], _request: Request) -> Response:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    last: dict[str, Any] = {**piece(""), "choices": [], "usage": usage}
    ends = [piece("", "stop"), *([last] if "stream_options" in body else [])]
    return sse(piece("Hel"), piece("lo."), *ends)


async def refuse_stream_options(body: dict[str, Any], request: Request) -> Response:
    if "stream_options" in body:
        return JSONResponse({"error": {"message": "unknown: stream_options"}}, status_code=400)
    return await stream(body, request)


async def streamed(client: ChatCompletionClient) -> tuple[list[str], CreateResult]:
    parts = [part async for part in client.create_stream(ASKED)]
    (result,) = [part for part in parts if isinstance(part, CreateResult)]
    return [part for part in parts if isinstance(part, str)], result


async def test_schema_is_enforced_by_the_server_and_cached_tokens_are_kept(
    served: FakeServer, bare: ChatCompletionClient
) -> None:
    served.behave = openai_text(GOOD, cached=64)
    client = ResilientClient(bare)
    result = await client.create(ASKED, json_output=Word)
    assert result.content == GOOD
    (sent,) = served.seen
    assert sent["response_format"]["json_schema"]["strict"] is True
    assert client.usage.cached_tokens == 64
    assert client.last is not None
    assert client.last.usage.cached_tokens == 64


async def test_streams_usage_is_asked_for(served: FakeServer, bare: ChatCompletionClient) -> None:
    served.behave = stream
    pieces, result = await streamed(ResilientClient(bare))
    assert pieces == ["Hel", "lo."]
    assert result.content == "Hello."
    assert result.usage == RequestUsage(prompt_tokens=9, completion_tokens=2)


async def test_stream_continues_without_usage_where_the_server_refuses_to_report_it(
    served: FakeServer, bare: ChatCompletionClient
) -> None:
    served.behave = refuse_stream_options
    client = ResilientClient(bare)
    for _ in range(2):
        _, result = await streamed(client)
        assert result.content == "Hello."
    assert ["stream_options" in sent for sent in served.seen] == [True, False, False]


async def test_text_is_kept_that_ollamas_client_loses(served: FakeServer) -> None:
    async def one_piece(_body: dict[str, Any], _request: Request) -> Response:
        line = {"model": "tiny", "message": {"role": "assistant", "content": "Hello there."}}
        ended = {"done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 3}
        return Response(
            json.dumps({**line, **ended}) + "\n",
            media_type="application/x-ndjson",
            headers={"connection": "close"},
        )

    served.behave = one_piece
    inner = OllamaChatCompletionClient(model="tiny", host=served.url, model_info=INFO)
    pieces, result = await streamed(ResilientClient(inner))
    assert pieces == ["Hello there."]
    assert result.content == "Hello there."
    assert result.usage.completion_tokens > 0


async def refuse_forms(body: dict[str, Any], request: Request) -> Response:
    if "response_format" in body:
        return JSONResponse({"error": {"message": "unknown: response_format"}}, status_code=400)
    return await openai_text(GOOD)(body, request)


async def test_ladder_of_modes_still_leads_down_with_a_resilient_client(
    served: FakeServer, bare: ChatCompletionClient
) -> None:
    served.behave = refuse_forms
    asker = StructuredModel(ResilientClient(bare))
    prompt = (PromptMessage(role="user", content="Say hi."),)
    answer = await asker.ask(prompt, Word)
    assert answer.value == Word(say="hi")
    assert asker.name == "tiny"


async def test_component_comes_back_with_the_client_within(bare: ChatCompletionClient) -> None:
    for client in (
        ResilientClient(bare),
        ResilientClient(bare, max_tokens=9, timeout=5.0, reasks=0, context_tokens=100),
    ):
        dumped = client.dump_component()
        text = dumped.model_dump_json()
        assert dumped.provider == "coag.compat.ResilientClient"
        assert "sk-local-secret" not in text
        assert '"model":"tiny"' in text
        loaded = ChatCompletionClient.load_component(json.loads(text))
        assert isinstance(loaded, ResilientClient)
        assert loaded.dump_component().model_dump_json() == text
        await loaded.close()


async def test_component_saved_under_the_former_name_still_loads(
    bare: ChatCompletionClient,
) -> None:
    dumped = ResilientClient(bare).dump_component()
    former = dumped.model_copy(update={"provider": "coag.compat.SteadyClient"})
    with pytest.warns(DeprecationWarning, match="ResilientClient"):
        loaded = ChatCompletionClient.load_component(former)
    assert isinstance(loaded, ResilientClient)
