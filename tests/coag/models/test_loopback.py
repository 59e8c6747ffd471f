"""The real OpenAI and Ollama clients against servers on this machine that misbehave."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from autogen_core import EVENT_LOGGER_NAME
from autogen_core.models import ChatCompletionClient
from autogen_ext.models.ollama import OllamaChatCompletionClient
from kits.fake_server import Behaviour, FakeServer, openai_body, openai_text
from kits.model_servers import INFO, openai_client
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from coag.errors import ModelCallError
from coag.models import AskSettings, CallContext, StructuredModel, ask
from coag.schema import ModelCall, OutputMode, Prompt, PromptMessage, TokenUsage

GOOD = '{"say": "hi", "score": 0.5}'
PROMPT: Prompt = (
    PromptMessage(role="system", content="Be brief."),
    PromptMessage(role="user", content="Say something."),
)


class Word(BaseModel):
    say: str
    score: float = Field(ge=0, le=1)


def ollama_response(body: dict[str, Any], code: int = 200) -> Response:
    """Closes the connection, because AutoGen's Ollama client never does."""
    return JSONResponse(body, code, headers={"connection": "close"})


def status(code: int, text: str = "no") -> Behaviour:
    async def behave(_body: dict[str, Any], _request: Request) -> Response:
        return JSONResponse({"error": {"message": text}}, status_code=code)

    return behave


async def refuse_formats(body: dict[str, Any], request: Request) -> Response:
    kind = body.get("response_format", {}).get("type")
    if kind:
        return await status(400, f"response_format {kind} is not supported")(body, request)
    return await openai_text(GOOD)(body, request)


async def drop(_body: dict[str, Any], _request: Request) -> Response:
    return Response("{", headers={"content-length": "1000"})


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(openai_text(GOOD)) as fake:
        yield fake


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[ChatCompletionClient]:
    opened = openai_client(server)
    yield opened
    await opened.close()


async def test_schema_goes_out_strict_and_usage_with_cached_tokens_comes_back(
    server: FakeServer, client: ChatCompletionClient
) -> None:
    server.behave = openai_text(GOOD, cached=64)
    answer = await ask(client, PROMPT, Word, settings=AskSettings(max_tokens=33))
    assert answer.value == Word(say="hi", score=0.5)
    assert answer.usage == TokenUsage(
        prompt_tokens=100, completion_tokens=10, cached_tokens=64, calls=1
    )
    (sent,) = server.seen
    assert sent["response_format"]["json_schema"]["strict"] is True
    assert sent["max_tokens"] == 33
    assert "tools" not in sent
    assert answer.calls[0].model == "tiny"


async def test_refused_response_formats_lead_down_to_the_prompt_and_are_remembered(
    server: FakeServer, client: ChatCompletionClient
) -> None:
    server.behave = refuse_formats
    asker = StructuredModel(client)
    answer = await asker.ask(PROMPT, Word)
    assert [call.rung for call in answer.calls] == [
        OutputMode.JSON_SCHEMA,
        OutputMode.JSON_MODE,
        OutputMode.PROMPT,
    ]
    assert "response_format json_schema is not supported" in (answer.calls[0].error or "")
    assert "JSON Schema" in server.seen[-1]["messages"][-1]["content"]
    assert len((await asker.ask(PROMPT, Word)).calls) == 1


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (status(500, "out of memory"), "out of memory"),
        (status(401, "wrong key sk-local-secret"), "AuthenticationError"),
        (drop, "APIConnectionError"),
    ],
    ids=["500", "401", "drop"],
)
async def test_failing_server_is_a_call_error_with_a_record_without_keys(
    server: FakeServer, client: ChatCompletionClient, behaviour: Behaviour, message: str
) -> None:
    server.behave = behaviour
    calls: list[ModelCall] = []
    with pytest.raises(ModelCallError, match=message):
        await ask(client, PROMPT, Word, context=CallContext(on_call=calls.append))
    (call,) = calls
    assert message in (call.error or "")
    assert "local-secret" not in call.model_dump_json()


async def test_answer_without_choices_is_a_call_error_that_keeps_the_usage(
    server: FakeServer, client: ChatCompletionClient
) -> None:
    async def empty(_body: dict[str, Any], _request: Request) -> Response:
        return JSONResponse({**openai_body({}), "choices": []})

    server.behave = empty
    calls: list[ModelCall] = []
    with pytest.raises(ModelCallError):
        await ask(client, PROMPT, Word, context=CallContext(on_call=calls.append))
    assert calls[0].usage.prompt_tokens == 100


async def test_cached_tokens_of_calls_at_the_same_time_do_not_mix(
    server: FakeServer, client: ChatCompletionClient
) -> None:
    last_here = asyncio.Event()

    async def by_number(body: dict[str, Any], _request: Request) -> Response:
        number = int(body["messages"][-1]["content"])
        if len(server.seen) == 9:
            last_here.set()
        await last_here.wait()
        return JSONResponse(openai_body({"content": GOOD}, cached=number))

    server.behave = by_number
    asker = StructuredModel(client)
    prompts = [(PromptMessage(role="user", content=str(number)),) for number in range(1, 10)]
    answers = await asyncio.gather(*(asker.ask(prompt, Word) for prompt in prompts))
    assert [answer.usage.cached_tokens for answer in answers] == list(range(1, 10))


async def test_listening_changes_nobodys_log(
    server: FakeServer, client: ChatCompletionClient, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger(EVENT_LOGGER_NAME)
    before = logger.level
    await ask(client, PROMPT, Word)
    assert caplog.records == []
    assert logger.level == before
    assert logger.filters == []
    with caplog.at_level(logging.INFO, logger=EVENT_LOGGER_NAME):
        await ask(client, PROMPT, Word)
    assert [record.name for record in caplog.records if record.name == EVENT_LOGGER_NAME] == [
        EVENT_LOGGER_NAME
    ]


async def test_ollama_gets_the_schema_as_its_format_and_the_limit_as_an_option(
    server: FakeServer,
) -> None:
    async def chat(body: dict[str, Any], _request: Request) -> Response:
        message = {"role": "assistant", "content": GOOD}
        done = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 4}
        return ollama_response({"model": body["model"], "message": message, **done})

    server.behave = chat
    opened = OllamaChatCompletionClient(
        model="tiny", host=server.url, model_info=INFO, options={"seed": 7}
    )
    answer = await ask(opened, PROMPT, Word, settings=AskSettings(max_tokens=33))
    await opened.close()
    assert answer.value.say == "hi"
    assert answer.usage == TokenUsage(prompt_tokens=9, completion_tokens=4, calls=1)
    (sent,) = server.seen
    assert sent["format"]["required"] == ["say", "score"]
    assert sent["options"] == {"seed": 7, "num_predict": 33}
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
