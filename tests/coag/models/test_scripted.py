"""`ScriptedModel` as a client: alone, streamed, and in an agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from autogen_core import CancellationToken, ComponentModel, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import FunctionTool
from pydantic import BaseModel

from coag.errors import ConfigurationError
from coag.models import ScriptedModel, ScriptedRequest, response_format, scripted_answers


class Pair(BaseModel):
    left: int
    right: int


def said(text: str) -> list[LLMMessage]:
    return [UserMessage(content=text, source="user")]


async def test_values_and_mappings_are_sent_as_json() -> None:
    model = ScriptedModel(scripted_answers([Pair(left=1, right=2), {"left": 1, "right": 2}]))
    for _ in range(2):
        result = await model.create(said("a"))
        assert isinstance(result.content, str)
        assert Pair.model_validate_json(result.content) == Pair(left=1, right=2)


async def test_tool_calls_and_whole_results_are_passed_on() -> None:
    result = CreateResult(
        finish_reason="length",
        content="cut",
        usage=RequestUsage(prompt_tokens=5, completion_tokens=6),
        cached=False,
    )
    call = FunctionCall(id="1", name="add", arguments="{}")
    model = ScriptedModel(scripted_answers([[call], result]))
    first = await model.create(said("a"))
    assert first.content == [call]
    assert first.finish_reason == "function_calls"
    assert await model.create(said("b")) is result
    assert model.requests[0].tool_choice == "auto"


async def test_stream_ends_with_the_result_and_its_chunks_make_the_text() -> None:
    model = ScriptedModel(lambda _: " two\n words ")
    parts = [part async for part in model.create_stream(said("a"))]
    result = parts.pop()
    assert isinstance(result, CreateResult)
    assert "".join(str(part) for part in parts) == result.content
    assert len(parts) > 1


async def test_the_tool_to_call_is_named_and_streamed_calls_are_in_the_result() -> None:
    def add(left: int, right: int) -> int:
        return left + right

    def script(request: ScriptedRequest) -> list[FunctionCall]:
        return [FunctionCall(id="1", name=request.tool_choice, arguments="{}")]

    tool, model = FunctionTool(add, description="Adds."), ScriptedModel(script)
    stream = model.create_stream(said("a"), tools=[tool], tool_choice=tool)
    (result,) = [part async for part in stream]
    assert isinstance(result, CreateResult)
    assert result.content == [FunctionCall(id="1", name="add", arguments="{}")]
    assert model.count_tokens([], tools=[tool]) > 10


@pytest.mark.parametrize(
    "asked",
    [{"json_output": Pair}, {"extra_create_args": {"response_format": response_format(Pair)}}],
)
async def test_schema_is_seen_whichever_way_it_is_asked_for(asked: dict[str, Any]) -> None:
    model = ScriptedModel(lambda request: request.schema_name or "none")
    assert (await model.create(said("a"), **asked)).content == "Pair"
    schema = model.requests[0].schema
    assert schema is not None
    assert list(schema["properties"]) == ["left", "right"]
    assert model.requests[0].json_output


async def test_usage_is_estimated_and_summed() -> None:
    model = ScriptedModel(lambda _: "12345678")
    await model.create(said("1234"))
    await model.create(said("1234"))
    assert model.total_usage() == RequestUsage(prompt_tokens=2, completion_tokens=4)
    assert model.actual_usage() == model.total_usage()


@pytest.mark.parametrize(
    ("lacking", "asked"),
    [
        ("json_output", {"json_output": True}),
        ("json_output", {"extra_create_args": {"response_format": {"type": "json_object"}}}),
        ("structured_output", {"json_output": Pair}),
        ("function_calling", {"tools": [{"name": "add"}]}),
    ],
)
async def test_what_the_model_cannot_do_is_refused(lacking: str, asked: dict[str, Any]) -> None:
    info = ModelInfo(
        vision=False,
        function_calling=False,
        json_output=False,
        family="scripted",
        structured_output=False,
    )
    model = ScriptedModel(lambda _: "", model_info=info)
    with pytest.raises(ValueError, match=lacking):
        await model.create(said("a"), **asked)
    assert model.calls == 0
    assert model.model_info is model.capabilities


async def test_request_gathers_the_text_of_all_messages() -> None:
    call = FunctionCall(id="1", name="look", arguments='{"far": true}')
    done = FunctionExecutionResult(content="a wall", name="look", call_id="1")
    model = ScriptedModel(lambda _: "")
    await model.create(
        [
            SystemMessage(content="be brief"),
            UserMessage(content=["look", "again"], source="user"),
            AssistantMessage(content=[call], source="assistant"),
            FunctionExecutionResultMessage(content=[done]),
        ]
    )
    request = model.requests[0]
    assert request.text == 'be brief\nlook\nagain\nlook({"far": true})\na wall'
    assert request.system_text == "be brief"
    assert request.last_user_text == "look\nagain"


async def test_used_up_answers_say_what_was_asked() -> None:
    model = ScriptedModel(scripted_answers(["one"]))
    await model.create(said("a"))
    with pytest.raises(RuntimeError, match=r"All 1 .* asked for Pair with 'where to\?'"):
        await model.create(said("where to?"), json_output=Pair)


async def test_cancellation_token_ends_an_async_script() -> None:
    asked = asyncio.Event()

    async def hang(_request: ScriptedRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    token = CancellationToken()
    model = ScriptedModel(hang)
    task = asyncio.create_task(model.create(said("a"), cancellation_token=token))
    await asked.wait()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await model.close()


async def test_scripted_answers_are_written_down_and_a_loaded_model_begins_with_the_first() -> None:
    call = FunctionCall(id="1", name="add", arguments="{}")
    answers = ["one", {"at": [1, None]}, (call,), Pair(left=1, right=2)]
    model = ScriptedModel(scripted_answers(answers))
    said_before = [(await model.create(said("a"))).content for _ in answers]
    component = ComponentModel.model_validate_json(model.dump_component().model_dump_json())
    loaded = ScriptedModel.load_component(component)
    assert [(await loaded.create(said("a"))).content for _ in answers] == said_before
    assert loaded.dump_component() == component


def test_a_script_that_cannot_be_written_down_is_named() -> None:
    model = ScriptedModel(scripted_answers(["one", OSError("broken")]))
    with pytest.raises(ConfigurationError, match=r"'scripted'.* answer 2 is a OSError, and only"):
        model.dump_component()
    with pytest.raises(ConfigurationError, match="lambda"):
        ScriptedModel(lambda _: "").dump_component()


def test_a_script_that_is_no_function_is_refused_at_once() -> None:
    answers: Any = ["Noted."]
    with pytest.raises(TypeError, match=r"not \['Noted.'\].*scripted_answers"):
        ScriptedModel(answers)
