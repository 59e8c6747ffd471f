"""A stock agent with a client whose model falters."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import (
    HandoffMessage,
    StructuredMessage,
    ToolCallExecutionEvent,
)
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import FunctionTool
from pydantic import BaseModel

from coag.compat import ResilientClient
from coag.errors import ModelAnswerError, ModelCallError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest, scripted_answers

ASKED: list[LLMMessage] = [UserMessage(content="How is it?", source="user")]
FORM = '{"title": "sun", "score": 0.5}'


class Report(BaseModel):
    title: str
    score: float


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def model(*answers: ScriptedReply | Exception, **info: Any) -> ScriptedModel:
    can = ModelInfo(
        vision=False,
        function_calling=True,
        json_output=True,
        family="scripted",
        structured_output=True,
    )
    can.update(info)  # pyright: ignore[reportCallIssue, reportArgumentType] - keys of ModelInfo
    return ScriptedModel(scripted_answers(answers), model_info=can)


def call(arguments: Any = '{"city": "Rome"}', name: str = "weather", id: str = "1") -> FunctionCall:
    return FunctionCall(id=id, name=name, arguments=arguments)


def calls_of(content: str | Sequence[FunctionCall]) -> list[FunctionCall]:
    assert not isinstance(content, str)
    return list(content)


WEATHER = FunctionTool(weather, description="The weather in a city.")


# ---- JSON of a type ----


@pytest.mark.parametrize(
    "answer", [FORM, f"```json\n{FORM}\n```", "Sure: {'title': 'sun', 'score': 0.5,}"]
)
async def test_content_is_valid_json_of_the_type(answer: str) -> None:
    result = await ResilientClient(model(answer)).create(ASKED, json_output=Report)
    assert isinstance(result.content, str)
    assert Report.model_validate_json(result.content) == Report(title="sun", score=0.5)


async def test_unusable_answer_is_asked_for_again_and_counted() -> None:
    inner = model("no idea", FORM)
    client = ResilientClient(inner)
    result = await client.create(ASKED, json_output=Report)
    assert result.content == FORM
    assert client.last is not None
    assert [bool(each.error) for each in client.last.calls] == [True, False]
    assert result.usage == inner.total_usage() == client.total_usage() == client.actual_usage()
    assert client.usage.calls == 2


async def test_answer_that_stays_unusable_is_an_error_that_keeps_it() -> None:
    client = ResilientClient(model("no", "never"))
    with pytest.raises(ModelAnswerError) as caught:
        await client.create(ASKED, json_output=Report)
    assert caught.value.raw == "never"
    assert client.usage.calls == 2


async def test_any_object_will_do_where_json_is_asked_for_without_a_type() -> None:
    result = await ResilientClient(model("Well: {'a': 1}")).create(ASKED, json_output=True)
    assert result.content == '{"a": 1}'


async def test_structured_answer_streams_in_one_valid_piece() -> None:
    client = ResilientClient(model("no idea", FORM))
    parts = [part async for part in client.create_stream(ASKED, json_output=Report)]
    assert parts[0] == FORM
    assert isinstance(parts[1], CreateResult)
    assert len(parts) == 2


# ---- tools and a schema ----


async def test_tools_and_schema_are_never_in_one_request() -> None:
    inner = model([call()], "It is sunny, 0.5.", FORM)
    agent = AssistantAgent(
        "a",
        ResilientClient(inner),
        tools=[weather],
        output_content_type=Report,
        max_tool_iterations=5,
    )
    result = await agent.run(task="How is it?")
    message = result.messages[-1]
    assert isinstance(message, StructuredMessage)
    assert message.content == Report(title="sun", score=0.5)  # pyright: ignore[reportUnknownMemberType] - generic over the type
    offered = [(bool(each.tools), each.schema is not None) for each in inner.requests]
    assert offered == [(True, False), (True, False), (False, True)]
    assert "It is sunny, 0.5." in inner.requests[-1].text
    used = [each.models_usage for each in result.messages if each.models_usage]
    assert sum(each.prompt_tokens for each in used) == inner.total_usage().prompt_tokens


# ---- faults of answers ----


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("```json\n{'city': 'Rome'}\n```", "sunny in Rome"),
        ('{"city": "Rome"', "sunny in Rome"),
        ('"{\\"city\\": \\"Rome\\"}"', "sunny in Rome"),
        ("[1]", "Error"),
        ("null", "city"),
        ("{" * 5_000, "Error"),
    ],
)
async def test_arguments_end_in_a_result_whatever_they_are(arguments: str, expected: str) -> None:
    agent = AssistantAgent("a", ResilientClient(model([call(arguments)])), tools=[weather])
    async with asyncio.timeout(5):
        result = await agent.run(task="go")
    (event,) = [each for each in result.messages if isinstance(each, ToolCallExecutionEvent)]
    assert expected in event.content[0].content


@pytest.mark.parametrize("arguments", ["[1]", "", "soon"])
async def test_handoff_goes_through_whatever_its_arguments_are(arguments: str) -> None:
    handoff = Handoff(target="bob", message="Over to bob.")
    inner = model([call(arguments, name="transfer_to_bob")])
    agent = AssistantAgent("a", ResilientClient(inner), handoffs=[handoff])
    async with asyncio.timeout(5):
        result = await agent.run(task="go")
    message = result.messages[-1]
    assert isinstance(message, HandoffMessage)
    assert (message.target, message.content) == ("bob", "Over to bob.")


async def test_every_call_gets_an_id_of_its_own() -> None:
    inner = model([call(id=""), call(id="x"), call(id="x")])
    dialogue = [*ASKED, AssistantMessage(content=[call(id="x-1")], source="a")]
    client = ResilientClient(inner)
    result = await client.create(dialogue, tools=[WEATHER])
    ids = [each.id for each in calls_of(result.content)]
    assert ids == ["call-1", "x", "x-2"]
    assert client.last is not None
    assert len(client.last.faults) == 2


# ---- the dialogue ----


async def test_system_messages_are_one_where_the_client_takes_one() -> None:
    several: list[LLMMessage] = [
        SystemMessage(content="One."),
        *ASKED,
        SystemMessage(content="Two."),
    ]
    for info, expected in [({}, 1), ({"multiple_system_messages": True}, 2)]:
        inner = model("Sunny.", **info)
        client = ResilientClient(inner)
        await client.create(several)
        (sent,) = inner.requests
        system = [each for each in sent.messages if isinstance(each, SystemMessage)]
        assert len(system) == expected
        assert client.model_info.get("multiple_system_messages") is True
    assert len(several) == 3


async def test_dialogue_that_was_interrupted_is_sent_complete() -> None:
    inner = model("Sunny.")
    broken: list[LLMMessage] = [
        *ASKED,
        AssistantMessage(content=[call("[1]", id="1"), call(id="2")], source="a"),
        *ASKED,
        AssistantMessage(content=[], thought="Hm.", source="a"),
    ]
    before = [message.model_copy(deep=True) for message in broken]
    await ResilientClient(inner).create(broken)
    (sent,) = inner.requests
    called, results = sent.messages[1], sent.messages[2]
    assert isinstance(called, AssistantMessage)
    assert json.loads(calls_of(called.content)[0].arguments) == {"unusable": "[1]"}
    assert isinstance(results, FunctionExecutionResultMessage)
    assert [each.call_id for each in results.content] == ["1", "2"]
    assert "may or may not" in results.content[0].content
    assert sent.messages[-1].content == "Hm."
    assert broken == before


# ---- streams, cancellation, errors ----


@pytest.mark.parametrize("output_type", [None, Report])
async def test_token_cancels_a_request(output_type: type[BaseModel] | None) -> None:
    requested = asyncio.Event()

    async def hang(_request: ScriptedRequest) -> str:
        requested.set()
        await asyncio.Event().wait()
        return ""

    client, token = ResilientClient(ScriptedModel(hang)), CancellationToken()
    async with asyncio.timeout(5):
        asking = asyncio.create_task(
            client.create(ASKED, json_output=output_type, cancellation_token=token)
        )
        await requested.wait()
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert client.last is not None
    assert client.last.calls[0].error == "cancelled"


async def test_stream_that_is_left_is_reported_as_cancelled() -> None:
    client = ResilientClient(model("It is sunny."))
    stream = client.create_stream(ASKED)
    await anext(stream)
    await stream.aclose()
    assert client.last is not None
    assert client.last.calls[0].error == "cancelled"


@pytest.mark.parametrize("streamed", [True, False])
async def test_error_is_ours_with_the_clients_as_its_cause(streamed: bool) -> None:
    client = ResilientClient(model(ConnectionError("no route")))
    asking = anext(client.create_stream(ASKED)) if streamed else client.create(ASKED)
    with pytest.raises(ModelCallError, match="no route") as caught:
        await asking
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert client.usage.calls == 1


async def test_late_answer_is_given_up() -> None:
    async def hang(_request: ScriptedRequest) -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(ModelCallError, match=r"no answer within 0\.01 s"):
        await ResilientClient(ScriptedModel(hang), timeout=0.01).create(ASKED)


class Endless(ScriptedModel):
    """Its streams end without a result."""

    async def create_stream(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[str, None]:
        yield "It is"


async def test_stream_without_a_result_is_an_error_and_reported() -> None:
    client = ResilientClient(Endless(scripted_answers([])))
    stream = client.create_stream(ASKED)
    assert await anext(stream) == "It is"
    with pytest.raises(ModelCallError, match="without a result"):
        await anext(stream)
    assert client.last is not None
    assert "without a result" in (client.last.calls[0].error or "")


class Silent(ScriptedModel):
    """Its streams bring empty pieces, and never wait."""

    async def create_stream(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[str, None]:
        while True:
            yield ""


class Talkative(ScriptedModel):
    """Its streams never end."""

    async def create_stream(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[str, None]:
        while True:
            yield "x" * 10_000


@pytest.mark.parametrize(
    ("client", "timeout", "why"),
    [
        (Silent, 600, "100,000 empty pieces"),
        (Silent, 0.01, "nothing but empty pieces"),
        (Talkative, 600, "more than 200,000 characters"),
    ],
)
async def test_a_stream_that_never_ends_is_an_error(
    client: type[ScriptedModel], timeout: float, why: str
) -> None:
    steady = ResilientClient(client(scripted_answers([])), timeout=timeout)
    with pytest.raises(ModelCallError, match=why):
        async for _ in steady.create_stream(ASKED):
            pass


async def test_a_stream_that_never_waits_can_be_cancelled() -> None:
    steady = ResilientClient(Silent(scripted_answers([])))

    async def read() -> None:
        async for _ in steady.create_stream(ASKED):
            pass

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_answer_that_a_filter_withheld_is_not_asked_for_again() -> None:
    withheld = CreateResult(
        finish_reason="content_filter",
        content="",
        usage=RequestUsage(prompt_tokens=7, completion_tokens=0),
        cached=False,
    )
    inner = model(withheld)
    result = await ResilientClient(inner).create(ASKED)
    assert (result.finish_reason, inner.calls) == ("content_filter", 1)


# ---- counts and components ----


class Countless(ScriptedModel):
    """Counts by way of a network that is not there."""

    def count_tokens(self, *_args: Any, **_kwargs: Any) -> int:
        raise ConnectionError("no route to the encodings")

    remaining_tokens = count_tokens


def test_tokens_are_estimated_where_the_client_cannot_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = ResilientClient(Countless(scripted_answers([])))
    with caplog.at_level(logging.WARNING):
        count = client.count_tokens(ASKED, tools=[WEATHER])
        assert client.remaining_tokens(ASKED, tools=[WEATHER]) == 8_192 - count
    assert count > 0
    assert [record.getMessage() for record in caplog.records] == [
        "Countless cannot count tokens (ConnectionError): they are estimated from now on."
    ]
    assert ResilientClient(model()).remaining_tokens(ASKED) == model().remaining_tokens(ASKED)


def test_client_is_not_asked_to_count_where_the_context_size_is_given() -> None:
    client = ResilientClient(Countless(scripted_answers([])), context_tokens=100)
    assert client.remaining_tokens(ASKED) == 100 - client.count_tokens(ASKED)


async def test_limit_and_extra_arguments_reach_the_client() -> None:
    inner = model("Sunny.", FORM)
    client = ResilientClient(inner, max_tokens=50)
    await client.create(ASKED, extra_create_args={"temperature": 0})
    await client.create(ASKED, json_output=Report, extra_create_args={"temperature": 0})
    for sent in inner.requests:
        assert (sent.extra["max_tokens"], sent.extra["temperature"]) == (50, 0)


# ---- what is passed on as it is ----


WRITTEN = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'


async def test_unknown_tools_calls_in_text_usage_and_thoughts_are_passed_on() -> None:
    result = await ResilientClient(model([call(name="fly")])).create(ASKED, tools=[WEATHER])
    assert calls_of(result.content)[0].name == "fly"
    result = await ResilientClient(model(WRITTEN)).create(ASKED, tools=[WEATHER])
    assert result.content == WRITTEN
    answer = CreateResult(
        finish_reason="stop",
        content="Sunny.",
        usage=RequestUsage(prompt_tokens=7, completion_tokens=3),
        cached=False,
        thought="Look up.",
    )
    result = await ResilientClient(model(answer)).create(ASKED)
    assert (result.usage, result.thought) == (answer.usage, "Look up.")


@pytest.mark.parametrize("empty", ["", "  ", []])
async def test_empty_answer_is_asked_for_again_and_at_last_an_empty_text(empty: Any) -> None:
    inner = model(empty, "Sunny.", [], [], [call()], [call()])
    client = ResilientClient(inner)
    result = await client.create(ASKED)
    assert result.content == "Sunny."
    assert result.usage == inner.total_usage()
    assert "empty" in inner.requests[-1].text
    assert (await client.create(ASKED, tools=[WEATHER])).content == ""
    assert client.last is not None
    assert client.last.faults == ("The answer was empty.",) * 2
    assert (await client.create(ASKED, tool_choice="none")).content == ""
