"""What is found of servers that behave, and of servers that do not."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from autogen_core.models import ModelInfo
from autogen_ext.models.ollama import OllamaChatCompletionClient
from kits.fake_server import Behaviour, FakeServer, openai_text
from kits.model_servers import (
    Body,
    Message,
    calls_as_text,
    cutting,
    endless,
    hang,
    refusing,
    rewriting,
    sound,
    status,
    streamed,
    with_body,
    without,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from coag.doctor import Grade, Probe, ProbeFinding, ProbeLimits, ProbeOutcome, Report, examine
from coag.models import ScriptedModel, ScriptedRequest, open_model
from coag.schema import Rung

Examined = Callable[..., Awaitable[Report]]

INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=True,
    family="unknown",
    structured_output=True,
    multiple_system_messages=False,
)


def found(report: Report) -> dict[Probe, ProbeOutcome]:
    return {finding.probe: finding.found for finding in report.findings}


ALL_WELL = {
    Probe.LISTED: ProbeOutcome.YES,
    Probe.ANSWER: ProbeOutcome.YES,
    Probe.SYSTEM: ProbeOutcome.YES,
    Probe.SYSTEMS: ProbeOutcome.YES,
    Probe.STREAM: ProbeOutcome.YES,
    Probe.STREAM_USAGE: ProbeOutcome.YES,
    Probe.LIMIT: ProbeOutcome.ENFORCED,
    Probe.SCHEMA: ProbeOutcome.ENFORCED,
    Probe.JSON_MODE: ProbeOutcome.ENFORCED,
    Probe.TYPED: ProbeOutcome.YES,
    Probe.TOOLS: ProbeOutcome.YES,
    Probe.PARALLEL: ProbeOutcome.YES,
    Probe.REQUIRED: ProbeOutcome.ENFORCED,
    Probe.NONE: ProbeOutcome.ENFORCED,
    Probe.TOOLS_WITH_SCHEMA: ProbeOutcome.NO,
    Probe.CONTEXT: ProbeOutcome.YES,
    Probe.CACHE: ProbeOutcome.YES,
    Probe.SPEED: ProbeOutcome.YES,
}


async def test_a_server_that_does_all_is_found_to_do_all(examined: Examined) -> None:
    report = await examined(sound())
    assert found(report) == ALL_WELL
    assert report.usable
    assert (report.model, report.usage.calls) == ("tiny", 16)
    advised = report.recommendation
    assert (advised.rung, advised.proposal, advised.parallel) == (
        Rung.JSON_SCHEMA,
        "native",
        True,
    )
    assert advised.model_info == {
        "vision": False,
        "function_calling": True,
        "json_output": True,
        "family": "unknown",
        "structured_output": True,
        "multiple_system_messages": True,
    }
    assert advised.context_tokens > 2_500
    assert all(finding.advice == "" for finding in report.findings if finding.grade is Grade.GOOD)


async def test_speed_is_told_in_tokens_a_second(examined: Examined) -> None:
    figures = (await examined(sound())).finding(Probe.SPEED).figures
    assert set(figures) == {
        "first_piece_seconds",
        "completion_tokens_per_second",
        "prompt_tokens_per_second",
    }
    assert all(figure > 0 for figure in figures.values())


async def test_no_request_goes_beyond_the_limits(ward: FakeServer, examined: Examined) -> None:
    await examined(sound(), max_tokens=50)
    assert max(body["max_tokens"] for body in ward.seen) == 50
    assert max(len(json.dumps(body["messages"])) for body in ward.seen) < 2_500 * 4 * 1.2


async def test_a_schema_that_is_taken_and_ignored_is_found_out(examined: Examined) -> None:
    def forget(body: Body) -> Body:
        asked = body["messages"][-1]["content"]
        ignored = "Answer with exactly this JSON object" in asked and "response_format" in body
        return {**body, "response_format": {"type": "json_object"}} if ignored else body

    report = await examined(with_body(sound(), forget))
    schema = report.finding(Probe.SCHEMA)
    assert (schema.found, schema.grade) == (ProbeOutcome.IGNORED, Grade.POOR)
    assert "banana" in schema.text
    assert '"structured_output": False' in schema.advice
    assert report.recommendation.rung is Rung.JSON_MODE
    assert report.recommendation.model_info["structured_output"] is False
    assert report.usable


async def test_forms_that_are_ignored_altogether_leave_the_prompt(examined: Examined) -> None:
    report = await examined(without(sound(), "response_format"))
    assert found(report)[Probe.SCHEMA] is ProbeOutcome.IGNORED
    assert found(report)[Probe.JSON_MODE] is ProbeOutcome.IGNORED
    assert found(report)[Probe.TOOLS_WITH_SCHEMA] is ProbeOutcome.YES
    assert report.recommendation.rung is Rung.PROMPT
    assert report.usable


async def test_forms_that_are_refused_leave_the_prompt(examined: Examined) -> None:
    report = await examined(refusing(sound(), lambda body: "response_format" in body))
    for probe in (Probe.SCHEMA, Probe.JSON_MODE, Probe.TOOLS_WITH_SCHEMA):
        assert report.finding(probe).found is ProbeOutcome.REFUSED
        assert "not here" in report.finding(probe).text
    assert report.recommendation.rung is Rung.PROMPT
    assert report.recommendation.model_info["json_output"] is False
    assert report.usable


async def test_calls_written_as_text_advise_json_proposals(examined: Examined) -> None:
    report = await examined(rewriting(sound(), calls_as_text))
    tools = report.finding(Probe.TOOLS)
    assert tools.found is ProbeOutcome.AS_TEXT
    assert "note_weather" in tools.text
    assert found(report)[Probe.PARALLEL] is ProbeOutcome.SKIPPED
    assert found(report)[Probe.REQUIRED] is ProbeOutcome.IGNORED
    assert report.recommendation.proposal == "json"
    assert report.recommendation.model_info["function_calling"] is False
    assert report.usable


async def test_arguments_that_do_not_fit_advise_json_proposals(examined: Examined) -> None:
    def spoil(message: Message) -> Message:
        for call in message.get("tool_calls") or ():
            call["function"]["arguments"] = '{"city": "Lisbon", "celsius": "warm"}'
        return message

    report = await examined(rewriting(sound(), spoil))
    assert report.finding(Probe.TOOLS).found is ProbeOutcome.INVALID
    assert "celsius" in report.finding(Probe.TOOLS).text
    assert report.recommendation.proposal == "json"


async def test_tools_that_are_refused_are_not_asked_about_again(
    ward: FakeServer, examined: Examined
) -> None:
    report = await examined(refusing(sound(), lambda body: body.get("tools"), 422))
    assert found(report)[Probe.TOOLS] is ProbeOutcome.REFUSED
    assert found(report)[Probe.TOOLS_WITH_SCHEMA] is ProbeOutcome.SKIPPED
    assert len([body for body in ward.seen if body.get("tools")]) == 1
    assert report.recommendation.proposal == "json"


async def test_calls_that_share_an_id_are_not_taken_for_parallel_ones(examined: Examined) -> None:
    def share(message: Message) -> Message:
        for call in message.get("tool_calls") or ():
            call["id"] = "0"
        return message

    report = await examined(rewriting(sound(), share))
    assert report.finding(Probe.PARALLEL).found is ProbeOutcome.INVALID
    assert report.recommendation.parallel is False
    assert report.recommendation.proposal == "native"


async def test_a_tool_choice_that_is_ignored_is_found_out(examined: Examined) -> None:
    report = await examined(without(sound(), "tool_choice"))
    assert found(report)[Probe.REQUIRED] is ProbeOutcome.IGNORED
    assert found(report)[Probe.NONE] is ProbeOutcome.IGNORED


async def test_a_context_that_is_cut_silently_is_found_out(examined: Examined) -> None:
    report = await examined(cutting(sound(), 1_500))
    context = report.finding(Probe.CONTEXT)
    assert (context.found, context.grade) == (ProbeOutcome.CUT, Grade.POOR)
    assert "without a word" in context.text
    assert "below 1,200 tokens" in context.advice
    assert 1_000 < report.recommendation.context_tokens < 1_500


async def test_a_context_that_is_too_long_and_refused_is_no_fault(examined: Examined) -> None:
    def long(body: Body) -> bool:
        return len(json.dumps(body["messages"])) > 7_000

    context = (await examined(refusing(sound(), long))).finding(Probe.CONTEXT)
    assert (context.found, context.grade) == (ProbeOutcome.REFUSED, Grade.GOOD)


async def test_a_model_that_loses_the_beginning_is_told_from_a_cut(examined: Examined) -> None:
    def blank(message: Message) -> Message:
        code = str(message["content"]).startswith("HX")
        return {"content": "Sorry?"} if code else message

    context = (await examined(rewriting(sound(), blank))).finding(Probe.CONTEXT)
    assert context.found is ProbeOutcome.NO
    assert "nothing was cut" in context.text


async def test_streams_without_usage_are_told(examined: Examined) -> None:
    report = await examined(without(sound(), "stream_options"))
    usage = report.finding(Probe.STREAM_USAGE)
    assert (usage.found, usage.grade) == (ProbeOutcome.NO, Grade.POOR)
    assert found(report)[Probe.STREAM] is ProbeOutcome.YES
    assert report.usable


async def test_an_endless_stream_is_broken_off(examined: Examined) -> None:
    report = await examined(endless(sound()))
    assert report.finding(Probe.LIMIT).found is ProbeOutcome.IGNORED
    assert report.finding(Probe.STREAM_USAGE).found is ProbeOutcome.UNCLEAR
    assert report.usable


async def test_a_server_that_cannot_stream_is_usable_without(examined: Examined) -> None:
    report = await examined(refusing(sound(), lambda body: body.get("stream")))
    assert report.finding(Probe.STREAM).found is ProbeOutcome.REFUSED
    assert report.finding(Probe.LIMIT).found is ProbeOutcome.UNCLEAR
    assert report.usable


async def test_system_messages_that_are_dropped_are_found_out(examined: Examined) -> None:
    def drop(body: Body) -> Body:
        kept = [message for message in body["messages"] if message["role"] != "system"]
        return {**body, "messages": kept}

    report = await examined(with_body(sound(), drop))
    assert found(report)[Probe.SYSTEM] is ProbeOutcome.IGNORED
    assert found(report)[Probe.SYSTEMS] is ProbeOutcome.IGNORED


async def test_of_several_system_messages_a_server_may_take_only_the_last(
    examined: Examined,
) -> None:
    def last(body: Body) -> Body:
        system = [message for message in body["messages"] if message["role"] == "system"]
        rest = [message for message in body["messages"] if message["role"] != "system"]
        return {**body, "messages": [*system[-1:], *rest]}

    report = await examined(with_body(sound(), last))
    assert found(report)[Probe.SYSTEM] is ProbeOutcome.YES
    assert found(report)[Probe.SYSTEMS] is ProbeOutcome.IGNORED
    assert report.recommendation.model_info["multiple_system_messages"] is False


async def test_a_server_that_tells_no_cached_tokens_is_told(examined: Examined) -> None:
    behave = sound()

    async def untold(body: Body, request: Request) -> Response:
        if "harbour" in json.dumps(body["messages"]):
            return await sound()(body, request)
        return await behave(body, request)

    cache = (await examined(untold)).finding(Probe.CACHE)
    assert (cache.found, cache.figures["cached_tokens"]) == (ProbeOutcome.NO, 0)


async def test_empty_answers_are_not_usable(ward: FakeServer, examined: Examined) -> None:
    report = await examined(openai_text(None))
    answer = report.finding(Probe.ANSWER)
    assert (answer.found, answer.grade) == (ProbeOutcome.NO, Grade.BAD)
    assert not report.usable
    assert len(ward.seen) == 1
    assert found(report)[Probe.CONTEXT] is ProbeOutcome.SKIPPED


async def test_a_server_that_only_fails_is_not_usable(examined: Examined) -> None:
    async def fail(_body: Body, _request: Request) -> Response:
        return status(500, "out of memory")

    report = await examined(fail)
    answer = report.finding(Probe.ANSWER)
    assert (answer.found, answer.grade) == (ProbeOutcome.FAILED, Grade.BAD)
    assert "out of memory" in answer.text
    assert not report.usable


async def test_a_server_that_never_answers_is_given_up(
    ward: FakeServer, examined: Examined
) -> None:
    report = await examined(hang, seconds=0.2)
    answer = report.finding(Probe.ANSWER)
    assert (answer.found, answer.grade) == (ProbeOutcome.LATE, Grade.BAD)
    assert "no answer within 0.2 s" in answer.text
    assert len(ward.seen) == 1


async def test_a_late_answer_says_nothing_about_the_form(examined: Examined) -> None:
    async def slow_with_schemas(body: Body, request: Request) -> Response:
        if body.get("response_format", {}).get("type") == "json_schema":
            return await hang(body, request)
        return await sound()(body, request)

    report = await examined(slow_with_schemas, seconds=2.0)
    schema = report.finding(Probe.SCHEMA)
    assert (schema.found, schema.grade) == (ProbeOutcome.LATE, Grade.UNKNOWN)
    assert report.recommendation.model_info["structured_output"] is True
    assert report.recommendation.rung is Rung.JSON_MODE


async def test_no_typed_answer_makes_a_model_unusable(examined: Examined) -> None:
    def prose(message: Message) -> Message:
        content = message["content"]
        return {"content": "Well, well."} if content and "tint" in content else message

    report = await examined(rewriting(sound(), prose))
    assert report.finding(Probe.TYPED).grade is Grade.BAD
    assert not report.usable


@pytest.mark.parametrize(
    ("models", "verdict"),
    [
        (["big"], ProbeOutcome.NO),
        (None, ProbeOutcome.UNCLEAR),
        ([], ProbeOutcome.UNCLEAR),
        (["tiny"], ProbeOutcome.YES),
    ],
)
async def test_the_list_of_models_is_looked_at(
    ward: FakeServer, examined: Examined, models: list[str] | None, verdict: ProbeOutcome
) -> None:
    ward.models = models
    report = await examined(sound())
    assert report.finding(Probe.LISTED).found is verdict
    assert report.usable


async def test_a_server_that_is_not_there_is_not_asked_on() -> None:
    client = open_model("http://127.0.0.1:9/v1#tiny")
    report = await examine(client)
    await client.close()
    listed = report.finding(Probe.LISTED)
    assert (listed.found, listed.grade) == (ProbeOutcome.FAILED, Grade.BAD)
    assert report.usage.calls == 0
    assert not report.usable


async def test_progress_is_told_as_it_comes(ward: FakeServer) -> None:
    begun: list[Probe] = []
    heard: list[ProbeFinding] = []
    client = open_model(f"{ward.url}/v1#tiny")
    report = await examine(client, on_probe=begun.append, on_finding=heard.append)
    await client.close()
    assert begun[:2] == [Probe.LISTED, Probe.ANSWER]
    assert tuple(heard) == report.findings


async def test_a_client_that_is_no_component_is_examined_as_it_is() -> None:
    def script(request: ScriptedRequest) -> Any:
        return {"tint": "teal"} if request.schema else "Water."

    report = await examine(ScriptedModel(script), limits=ProbeLimits(context=256))
    assert report.finding(Probe.LISTED).found is ProbeOutcome.SKIPPED
    assert report.finding(Probe.SCHEMA).found is ProbeOutcome.ENFORCED
    assert report.finding(Probe.TOOLS).found is ProbeOutcome.IGNORED
    assert report.usable


async def test_a_report_survives_json(examined: Examined) -> None:
    report = await examined(sound())
    assert Report.model_validate_json(report.model_dump_json()) == report


async def test_a_system_message_that_is_refused_is_told(examined: Examined) -> None:
    def has_system(body: Body) -> bool:
        return any(message["role"] == "system" for message in body["messages"])

    report = await examined(refusing(sound(), has_system))
    assert found(report)[Probe.SYSTEM] is ProbeOutcome.REFUSED
    assert found(report)[Probe.SYSTEMS] is ProbeOutcome.REFUSED
    assert report.usable


async def test_a_tool_choice_that_is_refused_is_told(examined: Examined) -> None:
    def forced(body: Body) -> bool:
        return body.get("tool_choice", "auto") != "auto"

    report = await examined(refusing(sound(), forced, 501))
    assert found(report)[Probe.REQUIRED] is ProbeOutcome.REFUSED
    assert found(report)[Probe.NONE] is ProbeOutcome.REFUSED


async def test_a_tool_that_does_not_exist_is_an_invalid_call(examined: Examined) -> None:
    def rename(message: Message) -> Message:
        for call in message.get("tool_calls") or ():
            call["function"]["name"] = "weather"
        return message

    tools = (await examined(rewriting(sound(), rename))).finding(Probe.TOOLS)
    assert tools.found is ProbeOutcome.INVALID
    assert "there is no tool 'weather'" in tools.text


async def test_one_call_at_a_time_is_no_batch(examined: Examined) -> None:
    def first(message: Message) -> Message:
        calls = message.get("tool_calls")
        return {**message, "tool_calls": calls[:1]} if calls else message

    report = await examined(rewriting(sound(), first))
    assert report.finding(Probe.PARALLEL).found is ProbeOutcome.NO
    assert report.recommendation.parallel is False


async def test_empty_answers_to_forms_are_told(examined: Examined) -> None:
    def blank(message: Message) -> Message:
        asked = str(message["content"]).startswith("{")
        return {"content": ""} if asked else message

    report = await examined(rewriting(sound(), blank))
    assert found(report)[Probe.SCHEMA] is ProbeOutcome.NO
    assert found(report)[Probe.JSON_MODE] is ProbeOutcome.IGNORED
    assert not report.usable


async def test_long_prompts_that_fail_name_the_way_out(examined: Examined) -> None:
    def long(body: Body) -> bool:
        return len(json.dumps(body["messages"])) > 3_000

    report = await examined(refusing(sound(), long, 413))
    assert found(report)[Probe.CONTEXT] is ProbeOutcome.FAILED
    assert "--seconds" in report.finding(Probe.CONTEXT).advice
    assert found(report)[Probe.CACHE] is ProbeOutcome.UNCLEAR
    assert report.recommendation.context_tokens == 0


async def test_a_server_that_counts_no_tokens_is_told(examined: Examined) -> None:
    behave = sound()

    async def uncounted(body: Body, request: Request) -> Response:
        response = await behave(body, request)
        if body.get("stream"):
            return response
        whole = json.loads(bytes(response.body))
        return JSONResponse({**whole, "usage": None})

    report = await examined(uncounted)
    assert report.finding(Probe.ANSWER).grade is Grade.POOR
    assert found(report)[Probe.CONTEXT] is ProbeOutcome.YES
    assert report.usable


async def test_a_server_that_is_too_slow_for_a_typed_answer_may_be_asked_again(
    examined: Examined,
) -> None:
    async def slow_to_choose(body: Body, request: Request) -> Response:
        if "Choose a tint" in json.dumps(body["messages"]):
            return await hang(body, request)
        return await sound()(body, request)

    report = await examined(slow_to_choose, seconds=2.0)
    assert report.finding(Probe.TYPED).found is ProbeOutcome.LATE
    assert "--seconds" in report.finding(Probe.TYPED).advice
    assert not report.usable


async def test_a_key_that_is_refused_is_told_before_anything_is_asked(
    ward: FakeServer, examined: Examined
) -> None:
    ward.list_status = 401
    report = await examined(sound())
    listed = report.finding(Probe.LISTED)
    assert (listed.found, listed.grade) == (ProbeOutcome.REFUSED, Grade.BAD)
    assert ward.seen == []


async def test_a_model_of_ollama_is_looked_for_in_its_list(ward: FakeServer) -> None:
    async def fail(_body: Body, _request: Request) -> Response:
        response = status(500)
        response.headers["connection"] = "close"  # AutoGen's Ollama client never closes it
        return response

    ward.models, ward.behave = ["tiny:latest"], fail
    client = OllamaChatCompletionClient(model="tiny", host=ward.url, model_info=INFO)
    report = await examine(client)
    assert report.finding(Probe.LISTED).found is ProbeOutcome.YES
    assert report.finding(Probe.ANSWER).found is ProbeOutcome.FAILED


def test_a_probe_that_a_report_lacks_is_named() -> None:
    report = Report.model_construct(findings=())
    with pytest.raises(KeyError, match="'cache'"):
        report.finding(Probe.CACHE)


@pytest.mark.parametrize("limits", [{"context": 100}, {"max_tokens": 0}, {"seconds": 0}])
def test_limits_that_make_no_sense_are_refused(limits: dict[str, int]) -> None:
    (name,) = limits
    with pytest.raises(ValueError, match=name):
        ProbeLimits(**limits)


def _asked(body: Body) -> str:
    return str(body["messages"][-1]["content"])


async def test_requests_that_are_refused_one_by_one_are_told_one_by_one(
    examined: Examined,
) -> None:
    def wrong(body: Body) -> object:
        if not body.get("tools"):
            return any(message["role"] == "system" for message in body["messages"])
        pair, form = "both cities" in _asked(body), "response_format" in body
        return pair or form or body.get("tool_choice") in ("required", "none")

    report = await examined(refusing(sound(), wrong))
    for probe, advice in (
        (Probe.SYSTEM, "Put instructions into the first message of the user."),
        (Probe.PARALLEL, "two actions take two cycles"),
        (Probe.REQUIRED, "do not rely on it in agents of your own"),
        (Probe.NONE, "Send no tools instead."),
        (Probe.TOOLS_WITH_SCHEMA, "ask in two requests"),
    ):
        finding = report.finding(probe)
        assert finding.found is ProbeOutcome.REFUSED, finding
        assert "not here" in finding.text
        assert advice in finding.advice
    assert report.finding(Probe.TOOLS).found is ProbeOutcome.YES
    assert not report.recommendation.parallel


async def test_json_that_is_cut_off_says_nothing_about_json_mode(examined: Examined) -> None:
    behave = sound()

    async def short(body: Body, request: Request) -> Response:
        if body.get("response_format", {}).get("type") != "json_object":
            return await behave(body, request)
        message = {"role": "assistant", "content": '{"fruit": "ban'}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
        whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny"}
        return JSONResponse({**whole, "choices": [choice], "usage": usage})

    finding = (await examined(short)).finding(Probe.JSON_MODE)
    assert (finding.found, finding.grade) == (ProbeOutcome.UNCLEAR, Grade.UNKNOWN)
    assert "cut off at its limit" in finding.text


def counting(
    behave: Behaviour, prompt: Callable[[int], int], *, cached: Callable[[int], int] = lambda _: 0
) -> Behaviour:
    """Counts the tokens of a prompt in another way."""

    async def counted(body: Body, request: Request) -> Response:
        response = await behave(body, request)
        if isinstance(response, StreamingResponse):
            return response
        whole = json.loads(bytes(response.body))
        sent = whole["usage"]["prompt_tokens"]
        whole["usage"]["prompt_tokens"] = prompt(sent)
        whole["usage"]["prompt_tokens_details"] = {"cached_tokens": cached(sent)}
        return JSONResponse(whole)

    return counted


async def test_a_server_that_counts_far_too_few_tokens_at_once_has_cut_the_prompt(
    examined: Examined,
) -> None:
    finding = (await examined(counting(sound(), lambda sent: sent // 4))).finding(Probe.CONTEXT)
    assert (finding.found, finding.grade) == (ProbeOutcome.CUT, Grade.POOR)
    assert finding.advice.startswith("Keep prompts short, or give the server a larger context")
    assert finding.figures == {}


async def test_where_nothing_is_counted_a_lost_beginning_is_told_as_what_it_is(
    examined: Examined,
) -> None:
    finding = (await examined(counting(cutting(sound(), 600), lambda sent: 0))).finding(
        Probe.CONTEXT
    )
    assert (finding.found, finding.grade) == (ProbeOutcome.NO, Grade.POOR)
    assert "the model did not know the beginning: 'I do not know.'" in finding.text


async def test_a_prompt_that_was_all_in_a_cache_tells_nothing_of_reading_speed(
    examined: Examined,
) -> None:
    behave = counting(sound(), lambda sent: sent, cached=lambda sent: sent)
    figures = (await examined(behave)).finding(Probe.CONTEXT).figures
    assert set(figures) == {"estimated_tokens", "counted_tokens"}


async def test_an_answer_of_one_token_tells_no_speed(examined: Examined) -> None:
    behave = sound()

    async def brief(body: Body, request: Request) -> Response:
        if not body.get("stream"):
            return await behave(body, request)
        return streamed("one", body, {"prompt_tokens": 9, "completion_tokens": 1})

    figures = (await examined(brief)).finding(Probe.SPEED).figures
    assert "completion_tokens_per_second" not in figures
