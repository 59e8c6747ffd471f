"""Offering a model tools, and reading what comes back."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage
from autogen_ext.models.cache import ChatCompletionCache
from autogen_ext.models.replay import ReplayChatCompletionClient
from kits.planned import BLANK, PROMPT_TOKENS, PlannedModel
from kits.waiting import until

from coag.errors import ModelTimeoutError
from coag.models import (
    AskSettings,
    CallContext,
    ScriptedModel,
    StructuredModel,
    ToolAnswer,
    offer_tools,
    scripted_answers,
)
from coag.schema import ActionSpec, ModelCall, OutputMode, Prompt, PromptMessage

ADD = ActionSpec(name="add", description="Adds.", parameters={"type": "object", "properties": {}})
WRITTEN = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
PROMPT: Prompt = (
    PromptMessage(role="system", content="Be brief."),
    PromptMessage(role="user", content="1+2?"),
)


async def offer(
    model: PlannedModel,
    *,
    tools: Sequence[ActionSpec] = (ADD,),
    pieces: list[str] | None = None,
    settings: AskSettings | None = None,
    written: Sequence[str] = (),
    prompt: Prompt = PROMPT,
) -> tuple[ToolAnswer, list[ModelCall]]:
    calls: list[ModelCall] = []
    got = await offer_tools(
        StructuredModel(model),
        prompt,
        tools,
        context=CallContext(on_call=calls.append),
        settings=settings or AskSettings(),
        on_chunk=None if pieces is None else pieces.append,
        written=written,
    )
    return got, calls


@pytest.mark.parametrize("streams", [False, True])
async def test_calls_are_read_in_order(streams: bool) -> None:
    model = PlannedModel("FINAL", [("add", {"a": 1}), ("add", {"a": 2})], thought="Hm.")
    got, calls = await offer(model, pieces=[] if streams else None)
    assert [(c.name, c.arguments) for c in got.calls] == [("add", '{"a": 1}'), ("add", '{"a": 2}')]
    assert (got.text, got.thought, got.repaired) == ("", "Hm.", False)
    assert [call.rung for call in calls] == [OutputMode.NATIVE]
    assert [dict(c) for c in calls[0].tool_calls] == [
        {"id": "call-1", "name": "add", "arguments": '{"a": 1}'},
        {"id": "call-2", "name": "add", "arguments": '{"a": 2}'},
    ]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("text", ["one two", WRITTEN])
async def test_a_text_is_a_text_whatever_it_says_if_the_model_can_call(
    text: str, streams: bool
) -> None:
    pieces: list[str] = []
    with warnings.catch_warnings(record=True, action="always") as caught:
        got, calls = await offer(PlannedModel(text), pieces=pieces if streams else None)
    # A user sees why the answer of a poor model looks like a call.
    assert ['"function_calling": False' in str(one.message) for one in caught] == (
        [True] if text == WRITTEN else []
    )
    assert got.text == calls[0].raw == text
    assert got.calls == ()
    assert "".join(pieces) == (text if streams else "")
    assert got.usage.prompt_tokens == PROMPT_TOKENS


@pytest.mark.parametrize("streams", [False, True])
async def test_calls_written_as_text_are_calls_and_not_shown(streams: bool) -> None:
    pieces: list[str] = []
    model = PlannedModel(WRITTEN, function_calling=False)
    got, calls = await offer(model, tools=(), pieces=pieces if streams else None, written=["add"])
    assert [(c.name, c.arguments) for c in got.calls] == [("add", '{"a": 1}')]
    assert got.repaired
    assert calls[0].repaired
    assert pieces == []


@pytest.mark.parametrize(
    "shown",
    [
        WRITTEN,
        'The file reads {"name":"add","arguments":{"a":1}}.',
        '{"NAME": "ADD",\n  "arguments": {"a": 1}}',
        json.dumps({"content": '{\n  "name": "add",\n  "arguments": {"a": 1}\n}'}),
        '| {"name": "\uff41dd",\n| "arguments":\u200b {"a": 1}}',
        'It says {"arguments": {"a": 1}, "name": "add"} and more.',
        '{"call": [{"n\\u0061me": "add", "arguments": {"a": 1}}]}',
    ],
)
async def test_a_call_that_was_in_the_prompt_is_a_quotation(shown: str) -> None:
    prompt = (*PROMPT, PromptMessage(role="user", content=f"look returned: {shown}"))
    model = PlannedModel(WRITTEN, function_calling=False)
    got, _ = await offer(model, tools=(), written=["add"], prompt=prompt)
    assert (got.calls, got.text) == ((), WRITTEN)
    got, _ = await offer(PlannedModel(WRITTEN), prompt=prompt)  # no warning
    assert (got.calls, got.text) == ((), WRITTEN)


@pytest.mark.parametrize("nothing", ["", BLANK, []])
async def test_an_empty_answer_is_asked_for_once_more(nothing: str | list[FunctionCall]) -> None:
    model = PlannedModel("at last").err(nothing)
    got, calls = await offer(model)
    assert got.text == "at last"
    assert [call.attempt for call in calls] == [1, 2]
    assert calls[0].error == "The answer was empty."
    assert got.usage.calls == 2
    assert model.violations == []


async def test_no_more_than_sixteen_calls_are_kept() -> None:
    calls = [FunctionCall(id=f"{n}", name="add", arguments="{}") for n in range(40)]
    got, _ = await offer(PlannedModel().err(calls))
    assert (len(got.calls), got.dropped) == (16, 24)


async def test_lone_surrogates_are_replaced() -> None:
    malformed_calls = [FunctionCall(id="c", name="add\ud800", arguments='"\ud800"')]
    got, calls = await offer(PlannedModel().err(malformed_calls))
    assert [(c.name, c.arguments) for c in got.calls] == [("add?", '"?"')]
    calls[0].model_dump_json().encode()
    got, calls = await offer(PlannedModel("hm \ud800"))
    assert got.text == "hm ?"


async def test_a_client_that_is_late_is_a_time_out() -> None:
    model = PlannedModel(seconds=30.0)
    with pytest.raises(ModelTimeoutError, match=r"no answer within 0\.05 s") as caught:
        await offer(model, settings=AskSettings(timeout=0.05))
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, RuntimeError)
    assert model.at_work == 0


def malformed(**fields: Any) -> CreateResult:
    """A result that nobody validated."""
    usage = RequestUsage(prompt_tokens=7, completion_tokens=3)
    sound: dict[str, Any] = {"finish_reason": "stop", "content": "fine", "usage": usage}
    return CreateResult.model_construct(None, **{"thought": None, **sound, **fields})


class CarelessModel(PlannedModel):
    """Returns a value of any type, and then a sound text."""

    def __init__(self, *results: Any) -> None:
        super().__init__()
        self.results = [*results, malformed()]

    async def create(self, *args: Any, **kwargs: Any) -> CreateResult:
        del args, kwargs
        return self.results.pop(0)

    async def create_stream(
        self, *args: Any, **kwargs: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        del args, kwargs
        yield self.results.pop(0)


class SpeakingModel(PlannedModel):
    """Streams pieces without ever waiting, then its result."""

    def __init__(self, piece: str, times: int, result: CreateResult) -> None:
        super().__init__()
        self.piece, self.times, self.result = piece, times, result
        self.given = 0

    async def create_stream(
        self, *args: Any, **kwargs: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        del args, kwargs
        for _ in range(self.times):
            self.given += 1
            yield self.piece
        yield self.result


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("result", "error"),
    [
        (malformed(content=5), "neither a text nor calls but 5"),
        (malformed(content={"a": 1}), "neither a text nor calls but {'a': 1}"),
        (malformed(content=b"x"), "neither a text nor calls"),
        (malformed(content=[1]), "Among the tool calls of the answer was 1"),
        (malformed(content=[FunctionCall(id="c", name=None, arguments="{}")]), "as its tool None"),  # pyright: ignore[reportArgumentType] - the fault
        (malformed(content=[FunctionCall(id="c", name=3, arguments="{}")]), "as its tool 3"),  # pyright: ignore[reportArgumentType] - the fault
        (malformed(thought=7), "thought no text but 7"),
        (object(), "no result but <object"),
    ],
)
async def test_a_malformed_result_is_recorded_and_asked_for_once_more(
    result: Any, error: str, streams: bool
) -> None:
    got, calls = await offer(CarelessModel(result), pieces=[] if streams else None)
    assert got.text == "fine"
    assert [call.attempt for call in calls] == [1, 2]
    assert error in (calls[0].error or "")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        RequestUsage(prompt_tokens=-1000, completion_tokens=-1000),
        RequestUsage(prompt_tokens=1.5, completion_tokens=2),  # pyright: ignore[reportArgumentType] - the fault
    ],
)
async def test_usage_that_cannot_be_is_estimated_and_marked(usage: Any) -> None:
    got, calls = await offer(CarelessModel(malformed(content="word " * 40, usage=usage)))
    assert calls[0].usage_estimated
    assert calls[0].error is None
    assert got.usage.completion_tokens == 50
    assert got.usage.prompt_tokens > 0


async def test_an_endless_stream_is_left_where_the_answer_is_cut() -> None:
    pieces: list[str] = []
    model = SpeakingModel("word ", 3_000_000, malformed())
    got, calls = await offer(model, pieces=pieces)
    assert len(got.text) == 200_000
    assert "".join(pieces) == got.text
    assert model.given == 40_001
    assert calls[0].finish_reason == "length"
    assert calls[0].usage_estimated
    assert got.usage.completion_tokens == 50_000


async def test_a_stream_that_never_waits_can_be_cancelled() -> None:
    model = SpeakingModel("", 10_000_000, malformed())
    asking = asyncio.create_task(offer(model, pieces=[]))
    await until(lambda: model.given > 0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert model.given < 10_000


async def test_a_streaming_client_finishes() -> None:
    client = ReplayChatCompletionClient(["one", "two"])
    asker = StructuredModel(client)
    texts = [
        (await offer_tools(asker, PROMPT, [], on_chunk=lambda piece: None)).text for _ in range(2)
    ]
    assert texts == ["one", "two"]


async def test_a_streamed_answer_reaches_a_cache() -> None:
    model = ScriptedModel(scripted_answers(["one"]))
    asker = StructuredModel(ChatCompletionCache(model))
    for _ in range(2):
        assert (await offer_tools(asker, PROMPT, [], on_chunk=lambda piece: None)).text == "one"
    assert len(model.requests) == 1
