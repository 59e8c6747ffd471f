"""`StructuredModel` on scripted models: every way in which an answer can be bad."""

from __future__ import annotations

import asyncio
import json
from enum import StrEnum
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    ModelInfo,
    RequestUsage,
)
from autogen_ext.models.cache import ChatCompletionCache
from pydantic import BaseModel, Field

from coag.errors import ModelAnswerError, ModelCallError
from coag.models import (
    AskSettings,
    CallContext,
    ScriptedModel,
    ScriptedReply,
    ScriptedRequest,
    StructuredModel,
    ask,
    message_text,
    scripted_answers,
    usage_of,
)
from coag.schema import (
    CountingIds,
    ModelCall,
    OutputMode,
    Phase,
    Prompt,
    PromptMessage,
    SteppingClock,
    TokenUsage,
)


class Goal(StrEnum):
    OPEN = "open"
    DONE = "done"


class View(BaseModel):
    situation: str = Field(max_length=60)
    risks: list[str] = Field(max_length=2)
    goal: Goal
    score: float = Field(ge=0, le=1)


GOOD: dict[str, Any] = {"situation": "calm", "risks": ["rain"], "goal": "open", "score": 0.5}
PROMPT: Prompt = (
    PromptMessage(role="system", content="You look."),
    PromptMessage(role="user", content="What do you see?"),
)


def info(*, structured_output: bool = False, json_output: bool = True) -> ModelInfo:
    return ModelInfo(
        vision=False,
        function_calling=True,
        json_output=json_output,
        family="scripted",
        structured_output=structured_output,
    )


def model_of(
    *answers: ScriptedReply | Exception, model_info: ModelInfo | None = None
) -> ScriptedModel:
    return ScriptedModel(scripted_answers(answers), model_info=model_info)


def result_of(content: str | list[FunctionCall], finish: Any = "stop") -> CreateResult:
    usage = RequestUsage(prompt_tokens=7, completion_tokens=3)
    return CreateResult(finish_reason=finish, content=content, usage=usage, cached=False)


def roles(request: ScriptedRequest) -> list[str]:
    return [type(message).__name__ for message in request.messages]


@pytest.mark.parametrize(
    ("able", "chosen", "mode"),
    [
        (("structured_output", "json_output"), None, OutputMode.JSON_SCHEMA),
        (("structured_output", "json_output"), OutputMode.PROMPT, OutputMode.PROMPT),
        (("json_output",), None, OutputMode.JSON_MODE),
        ((), None, OutputMode.PROMPT),
    ],
)
async def test_the_strictest_form_that_is_allowed_is_asked_for_and_tools_never(
    able: tuple[str, ...], chosen: OutputMode | None, mode: OutputMode
) -> None:
    abilities = {name: name in able for name in ("structured_output", "json_output")}
    model = model_of(GOOD, model_info=info(**abilities))
    answer = await ask(model, PROMPT, View, settings=AskSettings(mode=chosen))
    (request,) = model.requests
    assert answer.calls[0].rung is mode
    assert request.json_output == (mode is not OutputMode.PROMPT)
    assert (request.schema_name == "View") == (mode is OutputMode.JSON_SCHEMA)
    assert ("JSON Schema" in request.last_user_text) == (mode is not OutputMode.JSON_SCHEMA)
    assert request.tools == ()


async def test_good_answer_comes_back_typed_with_usage_and_raw_text() -> None:
    answer = await ask(model_of(result_of(View(**GOOD).model_dump_json())), PROMPT, View)
    assert answer.value == View(**GOOD)
    assert not answer.repaired
    assert answer.usage == TokenUsage(prompt_tokens=7, completion_tokens=3, calls=1)
    assert View.model_validate_json(answer.raw) == answer.value


@pytest.mark.parametrize(
    "raw",
    [
        "Here you are:\n```json\n{json}\n```\nGood luck {smile}!",
        "<think>maybe {x}</think>{json}",
        "I think {json} is right.",
        "{'situation': 'calm', risks: ['rain',], \"goal\": \"open\", \"score\": 0.5",
    ],
    ids=["fences", "thinking", "prose", "broken"],
)
async def test_json_within_other_text_is_repaired_without_asking_again(raw: str) -> None:
    model = model_of(raw.replace("{json}", View(**GOOD).model_dump_json()))
    answer = await ask(model, PROMPT, View)
    assert answer.value == View(**GOOD)
    assert answer.repaired
    assert answer.calls[0].repaired
    assert model.calls == 1


BAD: dict[str, tuple[ScriptedReply, str]] = {
    "prose": ("I would rather not say.", "Invalid JSON"),
    "wrong type": ({**GOOD, "risks": "rain"}, "risks"),
    "missing field": ({"situation": "calm"}, "goal: Field required"),
    "unknown enum value": ({**GOOD, "goal": "maybe"}, "goal"),
    "out of range": ({**GOOD, "score": -1201201201201201}, "score"),
    "too long a list": ({**GOOD, "risks": ["a", "b", "c"]}, "risks"),
    "too long a text": ({**GOOD, "situation": "x" * 61}, "situation"),
    "empty": (result_of(""), "empty"),
    "blank": (result_of(" \n"), "empty"),
    "withheld": (result_of("", "content_filter"), "content filter"),
    "truncated": (result_of('{"situation": "calm", "risks": ["ra', "length"), "shorter"),
    "tool call": ([FunctionCall(id="1", name="move", arguments="{}")], "'move'"),
    "a list": ("[1, 2]", "whole answer"),
    "no content at all": (
        CreateResult.model_construct(
            finish_reason="stop",
            content=None,  # pyright: ignore[reportArgumentType] - what a careless client does
            usage=RequestUsage(prompt_tokens=1, completion_tokens=0),
            cached=False,
        ),
        "empty",
    ),
}


@pytest.mark.parametrize(("bad", "error"), BAD.values(), ids=BAD.keys())
async def test_unusable_answer_is_asked_for_once_more_with_the_error_and_then_is_one(
    bad: ScriptedReply, error: str
) -> None:
    model = model_of(bad, GOOD)
    answer = await ask(model, PROMPT, View)
    assert answer.value == View(**GOOD)
    assert [call.attempt for call in answer.calls] == [1, 2]
    assert error in (answer.calls[0].error or "")
    assert error in model.requests[1].last_user_text
    assert answer.calls[1].error is None
    assert answer.usage.calls == 2
    assert roles(model.requests[1])[:2] == ["SystemMessage", "UserMessage"]
    shown = ["AssistantMessage", "UserMessage"] if answer.calls[0].raw else []
    assert roles(model.requests[1])[2:] == shown
    calls: list[ModelCall] = []
    with pytest.raises(ModelAnswerError) as caught:
        await ask(model_of(bad, bad), PROMPT, View, context=CallContext(on_call=calls.append))
    assert error in caught.value.problem
    assert (caught.value.attempts, caught.value.raw) == (2, calls[-1].raw)
    assert usage_of(calls).calls == 2


async def test_answer_that_is_complete_at_the_token_limit_counts() -> None:
    answer = await ask(model_of(result_of(View(**GOOD).model_dump_json(), "length")), PROMPT, View)
    assert answer.value == View(**GOOD)


async def test_repeated_question_shows_the_bad_answer_cut_to_a_bound() -> None:
    model = model_of("no " * 5000, GOOD)
    await ask(model, PROMPT, View)
    shown = model.requests[1].messages[2]
    assert isinstance(shown, AssistantMessage)
    assert len(message_text(shown)) < 2_000


async def test_refused_schema_climbs_down_and_the_rung_is_remembered() -> None:
    model = model_of(ValueError("no schemas here"), GOOD, GOOD)
    asker = StructuredModel(model)
    answer = await asker.ask(PROMPT, View)
    assert [call.rung for call in answer.calls] == [OutputMode.JSON_SCHEMA, OutputMode.JSON_MODE]
    assert [call.attempt for call in answer.calls] == [1, 1]
    assert "no schemas here" in (answer.calls[0].error or "")
    assert asker.modes == (OutputMode.JSON_MODE, OutputMode.PROMPT)
    assert (await asker.ask(PROMPT, View)).calls[0].rung is OutputMode.JSON_MODE


async def test_everything_refused_is_a_call_error_and_nothing_is_remembered() -> None:
    asker = StructuredModel(model_of(*(ValueError("no") for _ in range(3))))
    with pytest.raises(ModelCallError, match="no"):
        await asker.ask(PROMPT, View)
    assert asker.modes == (OutputMode.JSON_SCHEMA, OutputMode.JSON_MODE, OutputMode.PROMPT)


async def test_server_that_ignores_the_schema_is_not_trusted_with_it_again() -> None:
    model = model_of("I see a room.", GOOD, GOOD)
    asker = StructuredModel(model)
    answer = await asker.ask(PROMPT, View)
    assert [call.rung for call in answer.calls] == [OutputMode.JSON_SCHEMA, OutputMode.JSON_MODE]
    assert asker.modes[0] is OutputMode.JSON_MODE


async def test_bounds_that_no_grammar_enforces_do_not_cost_the_rung() -> None:
    asker = StructuredModel(model_of({**GOOD, "score": 7}, GOOD))
    answer = await asker.ask(PROMPT, View)
    assert [call.rung for call in answer.calls] == [OutputMode.JSON_SCHEMA, OutputMode.JSON_SCHEMA]
    assert asker.modes[0] is OutputMode.JSON_SCHEMA


async def test_failing_model_is_a_call_error_with_its_cause_and_a_record() -> None:
    calls: list[ModelCall] = []
    failure = ConnectionError("nobody there")
    with pytest.raises(ModelCallError, match="nobody there") as caught:
        await ask(model_of(failure), PROMPT, View, context=CallContext(on_call=calls.append))
    assert caught.value.__cause__ is failure
    assert [call.error for call in calls] == ["ConnectionError: nobody there"]
    assert calls[0].usage.calls == 1


async def test_answer_that_is_no_http_json_is_not_taken_for_a_refusal() -> None:
    model = model_of(json.JSONDecodeError("Expecting value", "<html>", 0), GOOD)
    with pytest.raises(ModelCallError, match="Expecting value"):
        await ask(model, PROMPT, View)
    assert model.calls == 1


async def test_keys_do_not_reach_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "local-key-12345")
    calls: list[ModelCall] = []
    failure = ConnectionError("key sk-proj-abcdef123456 or local-key-12345 at http://u:pw@host/v1")
    with pytest.raises(ModelCallError) as caught:
        await ask(model_of(failure), PROMPT, View, context=CallContext(on_call=calls.append))
    for text in (calls[0].model_dump_json(), str(caught.value)):
        assert "sk-proj" not in text
        assert "local-key" not in text
        assert "pw@" not in text


async def test_cancelled_call_is_recorded_and_passes_through() -> None:
    asked = asyncio.Event()

    async def hang(_request: ScriptedRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    calls: list[ModelCall] = []
    context = CallContext(on_call=calls.append)
    task = asyncio.create_task(ask(ScriptedModel(hang), PROMPT, View, context=context))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.error for call in calls] == ["cancelled"]


async def test_call_that_takes_too_long_is_given_up() -> None:
    async def hang(_request: ScriptedRequest) -> str:
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(ModelCallError, match=r"no answer within 0\.01 s"):
        await ask(ScriptedModel(hang), PROMPT, View, settings=AskSettings(timeout=0.01))


async def test_record_says_who_asked_what_and_when() -> None:
    context = CallContext(clock=SteppingClock(), ids=CountingIds(), cycle=3, phase=Phase.REASONING)
    model = ScriptedModel(scripted_answers([GOOD]), name="scripted:calm")
    (call,) = (await ask(model, PROMPT, View, context=context)).calls
    assert (call.id, call.cycle, call.phase) == ("call-000001", 3, Phase.REASONING)
    assert (call.model, call.expected) == ("scripted:calm", "View")
    assert call.messages[1] == {"role": "user", "content": "What do you see?"}
    assert call.seconds > 0
    assert ModelCall.model_validate_json(call.model_dump_json()) == call


async def test_scattered_system_messages_are_sent_as_one_at_the_front() -> None:
    model = model_of(GOOD)
    prompt = (*PROMPT, PromptMessage(role="system", content="And be brief."))
    await ask(model, prompt, View)
    assert roles(model.requests[0]) == ["SystemMessage", "UserMessage"]
    assert model.requests[0].system_text == "You look.\n\nAnd be brief."


async def test_token_limit_reaches_the_model_under_its_name() -> None:
    model = model_of(GOOD, GOOD)
    await ask(model, PROMPT, View, settings=AskSettings(max_tokens=50))
    named = StructuredModel(model, limit_name="options.num_predict")
    await named.ask(PROMPT, View, settings=AskSettings(max_tokens=60))
    assert model.requests[0].extra["max_tokens"] == 50
    assert model.requests[1].extra["options"] == {"num_predict": 60}


async def test_client_of_unknown_kind_is_given_the_type_itself() -> None:
    model = model_of(GOOD)
    answer = await ask(ChatCompletionCache(model), PROMPT, View)
    assert answer.value == View(**GOOD)
    assert model.requests[0].schema_name == "View"
    assert "response_format" not in model.requests[0].extra
    assert answer.calls[0].model == "ChatCompletionCache"


@pytest.mark.parametrize(
    "wrong", [{"max_tokens": 0}, {"timeout": 0}, {"reasks": -1}, {"mode": OutputMode.TEXT}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AskSettings(**wrong)
