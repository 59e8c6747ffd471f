"""What is found of servers that behave, and of servers that do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from autogen_ext.models.ollama import OllamaChatCompletionClient
from kits.fake_server import Behaviour, FakeServer, openai_text
from kits.model_servers import (
    INFO,
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
from coag.schema import OutputMode

Examined = Callable[..., Awaitable[Report]]
O, P = ProbeOutcome, Probe  # noqa: E741 - the table below reads by them

ALL_WELL = {
    **dict.fromkeys(Probe, O.YES),
    **dict.fromkeys((P.LIMIT, P.SCHEMA, P.JSON_MODE, P.REQUIRED, P.NONE), O.ENFORCED),
    P.TOOLS_WITH_SCHEMA: O.NO,
}


def found(report: Report) -> dict[Probe, ProbeOutcome]:
    return {finding.probe: finding.found for finding in report.findings}


async def test_a_server_that_does_all_is_found_to_do_all(
    ward: FakeServer, examined: Examined
) -> None:
    report = await examined(sound(), max_tokens=50)
    assert found(report) == ALL_WELL
    assert report.usable
    assert (report.model, report.usage.calls) == ("tiny", 16)
    advised = report.recommendation
    assert (advised.rung, advised.proposal) == (OutputMode.JSON_SCHEMA, "native")
    assert advised.parallel
    assert advised.model_info == {**INFO, "multiple_system_messages": True}
    assert advised.context_tokens > 2_500
    assert all(finding.advice == "" for finding in report.findings if finding.grade is Grade.GOOD)
    figures = report.finding(P.SPEED).figures
    rates = {"completion_tokens_per_second", "prompt_tokens_per_second"}
    assert set(figures) == {"first_piece_seconds", *rates}
    assert all(figure > 0 for figure in figures.values())
    assert max(body["max_tokens"] for body in ward.seen) == 50
    assert max(len(json.dumps(body["messages"])) for body in ward.seen) < 2_500 * 4 * 1.2
    assert Report.model_validate_json(report.model_dump_json()) == report


# ---- Servers that do one thing wrong ----


def asked(body: Body) -> str:
    return str(body["messages"][-1]["content"])


def has_system(body: Body) -> bool:
    return any(message["role"] == "system" for message in body["messages"])


def longer_than(characters: int) -> Callable[[Body], bool]:
    return lambda body: len(json.dumps(body["messages"])) > characters


def keeping_system(keep: Callable[[list[Message]], list[Message]]) -> Behaviour:

    def change(body: Body) -> Body:
        system = [message for message in body["messages"] if message["role"] == "system"]
        rest = [message for message in body["messages"] if message["role"] != "system"]
        return {**body, "messages": [*keep(system), *rest]}

    return with_body(sound(), change)


def with_calls(change: Callable[[Body], None]) -> Behaviour:

    def changed(message: Message) -> Message:
        for call in message.get("tool_calls") or ():
            change(call)
        return message

    return rewriting(sound(), changed)


def answering_when(when: Callable[[str], bool], content: str) -> Behaviour:
    """Gives another content where the right one is such."""
    return rewriting(
        sound(), lambda message: {"content": content} if when(str(message["content"])) else message
    )


def one_call(message: Message) -> Message:
    calls = message.get("tool_calls")
    return {**message, "tool_calls": calls[:1]} if calls else message


def forgetting_the_schema(body: Body) -> Body:
    ignored = asked(body).startswith("Answer with exactly") and "response_format" in body
    return {**body, "response_format": {"type": "json_object"}} if ignored else body


def with_usage(
    behave: Behaviour,
    prompt: Callable[[int], int] | None = None,
    *,
    cached: Callable[[int], int] = lambda sent: 0,
) -> Behaviour:
    """Counts the tokens of a prompt in another way; without `prompt` not at all."""

    async def counted(body: Body, request: Request) -> Response:
        response = await behave(body, request)
        if isinstance(response, StreamingResponse):
            return response
        answer = json.loads(bytes(response.body))
        if prompt is None:
            return JSONResponse({**answer, "usage": None})
        sent = answer["usage"]["prompt_tokens"]
        answer["usage"]["prompt_tokens"] = prompt(sent)
        answer["usage"]["prompt_tokens_details"] = {"cached_tokens": cached(sent)}
        return JSONResponse(answer)

    return counted


def refused_one_by_one(body: Body) -> object:
    if not body.get("tools"):
        return has_system(body)
    pair, form = "both cities" in asked(body), "response_format" in body
    return pair or form or body.get("tool_choice") in ("required", "none")


async def failing(_body: Body, _request: Request) -> Response:
    return status(500, "out of memory")


async def json_cut_off(body: Body, request: Request) -> Response:
    if body.get("response_format", {}).get("type") != "json_object":
        return await sound()(body, request)
    message = {"role": "assistant", "content": '{"fruit": "ban'}
    choice = {"index": 0, "message": message, "finish_reason": "length"}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny"}
    return JSONResponse({**whole, "choices": [choice], "usage": usage})


@dataclass(frozen=True, kw_only=True)
class Case:
    """A server, and what is found of it."""

    behave: Behaviour
    found: Mapping[Probe, ProbeOutcome | tuple[ProbeOutcome, Grade]]
    says: Mapping[Probe, str] = field(default_factory=dict[Probe, str])
    """What texts and advice hold."""
    advised: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is recommended, and claims of `model_info`."""
    usable: bool = True


def share(call: Body) -> None:
    call["id"] = "0"


def spoil(call: Body) -> None:
    call["function"]["arguments"] = '{"city": "Lisbon", "celsius": "warm"}'


def rename(call: Body) -> None:
    call["function"]["name"] = "weather"


REFUSED = (P.SYSTEM, P.SYSTEMS, P.PARALLEL, P.REQUIRED, P.NONE, P.TOOLS_WITH_SCHEMA)
CASES: Mapping[str, Case] = {
    "a schema is ignored": Case(
        behave=with_body(sound(), forgetting_the_schema),
        found={P.SCHEMA: (O.IGNORED, Grade.POOR)},
        says={P.SCHEMA: "banana"},
        advised={"rung": OutputMode.JSON_MODE, "structured_output": False},
    ),
    "all forms are ignored": Case(
        behave=without(sound(), "response_format"),
        found={P.SCHEMA: O.IGNORED, P.JSON_MODE: O.IGNORED, P.TOOLS_WITH_SCHEMA: O.YES},
        advised={"rung": OutputMode.PROMPT},
    ),
    "all forms are refused": Case(
        behave=refusing(sound(), lambda body: "response_format" in body),
        found=dict.fromkeys((P.SCHEMA, P.JSON_MODE, P.TOOLS_WITH_SCHEMA), O.REFUSED),
        says={P.SCHEMA: "not here", P.JSON_MODE: "not here"},
        advised={"rung": OutputMode.PROMPT, "json_output": False},
    ),
    "answers to forms are empty": Case(
        behave=answering_when(lambda content: content.startswith("{"), ""),
        found={P.SCHEMA: O.NO, P.JSON_MODE: O.IGNORED},
        usable=False,
    ),
    "JSON is cut off": Case(
        behave=json_cut_off,
        found={P.JSON_MODE: (O.UNCLEAR, Grade.UNKNOWN)},
        says={P.JSON_MODE: "cut off at its limit"},
    ),
    "no typed answer": Case(
        behave=answering_when(lambda content: "tint" in content, "Well, well."),
        found={P.TYPED: (O.NO, Grade.BAD)},
        usable=False,
    ),
    "calls come as text": Case(
        behave=rewriting(sound(), calls_as_text),
        found={P.TOOLS: O.AS_TEXT, P.PARALLEL: O.SKIPPED, P.REQUIRED: O.IGNORED},
        says={P.TOOLS: "note_weather"},
        advised={"proposal": "json", "function_calling": False},
    ),
    "arguments do not fit": Case(
        behave=with_calls(spoil),
        found={P.TOOLS: O.INVALID},
        says={P.TOOLS: "celsius"},
        advised={"proposal": "json"},
    ),
    "an unknown tool is called": Case(
        behave=with_calls(rename),
        found={P.TOOLS: O.INVALID},
        says={P.TOOLS: "there is no tool 'weather'"},
    ),
    "calls share an id": Case(
        behave=with_calls(share),
        found={P.PARALLEL: O.INVALID},
        advised={"parallel": False, "proposal": "native"},
    ),
    "one call at a time": Case(
        behave=rewriting(sound(), one_call),
        found={P.PARALLEL: O.NO},
        advised={"parallel": False},
    ),
    "tools are refused": Case(
        behave=refusing(sound(), lambda body: body.get("tools"), 422),
        found={P.TOOLS: O.REFUSED, P.TOOLS_WITH_SCHEMA: O.SKIPPED},
        advised={"proposal": "json"},
    ),
    "a tool choice is ignored": Case(
        behave=without(sound(), "tool_choice"),
        found={P.REQUIRED: O.IGNORED, P.NONE: O.IGNORED},
    ),
    "refusals one by one": Case(
        behave=refusing(sound(), refused_one_by_one),
        found=dict.fromkeys(REFUSED, O.REFUSED) | {P.TOOLS: O.YES},
        says={
            P.SYSTEM: "Put instructions into the first message of the user.",
            P.PARALLEL: "two actions take two cycles",
            P.REQUIRED: "do not rely on it in agents of your own",
            P.NONE: "Send no tools instead.",
            P.TOOLS_WITH_SCHEMA: "ask in two requests",
        },
        advised={"parallel": False},
    ),
    "system messages are dropped": Case(
        behave=keeping_system(lambda system: []),
        found={P.SYSTEM: O.IGNORED, P.SYSTEMS: O.IGNORED},
    ),
    "only the last system message counts": Case(
        behave=keeping_system(lambda system: system[-1:]),
        found={P.SYSTEM: O.YES, P.SYSTEMS: O.IGNORED},
        advised={"multiple_system_messages": False},
    ),
    "a long context is cut": Case(
        behave=cutting(sound(), 1_500),
        found={P.CONTEXT: (O.CUT, Grade.POOR)},
        says={P.CONTEXT: "below 1,200 tokens"},
    ),
    "the first prompt is cut": Case(
        behave=with_usage(sound(), lambda sent: sent // 4),
        found={P.CONTEXT: (O.CUT, Grade.POOR)},
        says={P.CONTEXT: "Keep prompts short, or give the server a larger context"},
        advised={"context_tokens": 0},
    ),
    "a long prompt is refused": Case(
        behave=refusing(sound(), longer_than(7_000)),
        found={P.CONTEXT: (O.REFUSED, Grade.GOOD)},
    ),
    "long prompts fail": Case(
        behave=refusing(sound(), longer_than(3_000), 413),
        found={P.CONTEXT: O.FAILED, P.CACHE: O.UNCLEAR},
        says={P.CONTEXT: "--seconds"},
        advised={"context_tokens": 0},
    ),
    "the model loses the beginning": Case(
        behave=answering_when(lambda content: content.startswith("HX"), "Sorry?"),
        found={P.CONTEXT: O.NO},
        says={P.CONTEXT: "nothing was cut"},
    ),
    "the beginning is lost and nothing counted": Case(
        behave=with_usage(cutting(sound(), 600), lambda sent: 0),
        found={P.CONTEXT: (O.NO, Grade.POOR)},
        says={P.CONTEXT: "the model did not know the beginning: 'I do not know.'"},
    ),
    "no cached tokens are counted": Case(
        behave=with_usage(sound(), lambda sent: sent),
        found={P.CACHE: O.NO},
    ),
    "no tokens are counted": Case(
        behave=with_usage(sound()),
        found={P.ANSWER: (O.YES, Grade.POOR), P.CONTEXT: O.YES},
    ),
    "streams have no usage": Case(
        behave=without(sound(), "stream_options"),
        found={P.STREAM_USAGE: (O.NO, Grade.POOR), P.STREAM: O.YES},
    ),
    "a stream is endless": Case(
        behave=endless(sound()),
        found={P.LIMIT: O.IGNORED, P.STREAM_USAGE: O.UNCLEAR},
    ),
    "streams are refused": Case(
        behave=refusing(sound(), lambda body: body.get("stream")),
        found={P.STREAM: O.REFUSED, P.LIMIT: O.UNCLEAR},
    ),
    "answers are empty": Case(
        behave=openai_text(None),
        found={P.ANSWER: (O.NO, Grade.BAD), P.CONTEXT: O.SKIPPED},
        usable=False,
    ),
    "everything fails": Case(
        behave=failing,
        found={P.ANSWER: (O.FAILED, Grade.BAD)},
        says={P.ANSWER: "out of memory"},
        usable=False,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_what_a_server_does_wrong_is_found_out(case: Case, examined: Examined) -> None:
    report = await examined(case.behave)
    for probe, wanted in case.found.items():
        finding = report.finding(probe)
        seen = (finding.found, finding.grade) if isinstance(wanted, tuple) else finding.found
        assert seen == wanted, finding
    for probe, text in case.says.items():
        finding = report.finding(probe)
        assert text in f"{finding.text} {finding.advice}"
    advised = {**report.recommendation.model_dump(), **report.recommendation.model_info}
    assert {name: advised[name] for name in case.advised} == case.advised
    assert report.usable is case.usable


async def test_after_a_bad_answer_or_a_refused_key_nothing_more_is_asked(
    ward: FakeServer, examined: Examined
) -> None:
    await examined(openai_text(None))
    assert len(ward.seen) == 1
    ward.seen.clear()
    report = await examined(refusing(sound(), lambda body: body.get("tools"), 422))
    assert report.usable
    assert len([body for body in ward.seen if body.get("tools")]) == 1
    ward.seen.clear()
    ward.list_status = 401
    listed = (await examined(sound())).finding(P.LISTED)
    assert (listed.found, listed.grade) == (O.REFUSED, Grade.BAD)
    assert ward.seen == []


async def test_a_server_that_never_answers_is_given_up() -> None:
    async def wait(_request: ScriptedRequest) -> str:
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel(wait)
    answer = (await examine(model, limits=ProbeLimits(seconds=0.05))).finding(P.ANSWER)
    assert (answer.found, answer.grade) == (O.LATE, Grade.BAD)
    assert "no answer within 0.05 s" in answer.text
    assert model.calls == 1


async def test_a_late_answer_says_nothing_about_the_form(examined: Examined) -> None:
    async def slow_with_forms(body: Body, request: Request) -> Response:
        late = body.get("response_format", {}).get("type") == "json_schema"
        late = late or "Choose a tint" in json.dumps(body["messages"])
        return await (hang if late else sound())(body, request)

    report = await examined(slow_with_forms, seconds=1.0)
    schema, typed = report.finding(P.SCHEMA), report.finding(P.TYPED)
    assert (schema.found, schema.grade) == (O.LATE, Grade.UNKNOWN)
    assert (typed.found, typed.grade) == (O.LATE, Grade.BAD)
    assert "--seconds" in typed.advice
    assert report.recommendation.model_info["structured_output"] is True
    assert report.recommendation.rung is OutputMode.JSON_MODE
    assert not report.usable


@pytest.mark.parametrize(
    ("models", "verdict"),
    [(["big"], O.NO), (None, O.UNCLEAR), ([], O.UNCLEAR), (["tiny"], O.YES)],
)
async def test_the_list_of_models_is_looked_at(
    ward: FakeServer, examined: Examined, models: list[str] | None, verdict: ProbeOutcome
) -> None:
    ward.models = models
    assert (await examined(openai_text(None))).finding(P.LISTED).found is verdict


async def test_a_model_of_ollama_is_looked_for_in_its_list(ward: FakeServer) -> None:
    async def fail(_body: Body, _request: Request) -> Response:
        response = status(500)
        response.headers["connection"] = "close"  # AutoGen's Ollama client never closes it
        return response

    ward.models, ward.behave = ["tiny:latest"], fail
    client = OllamaChatCompletionClient(model="tiny", host=ward.url, model_info=INFO)
    report = await examine(client)
    assert report.finding(P.LISTED).found is O.YES
    assert report.finding(P.ANSWER).found is O.FAILED


async def test_a_server_that_is_not_there_is_not_asked_on() -> None:
    client = open_model("http://127.0.0.1:9/v1#tiny")
    report = await examine(client)
    await client.close()
    listed = report.finding(P.LISTED)
    assert (listed.found, listed.grade) == (O.FAILED, Grade.BAD)
    assert report.usage.calls == 0
    assert not report.usable


async def test_progress_is_reported_as_it_comes(ward: FakeServer) -> None:
    begun: list[Probe] = []
    findings: list[ProbeFinding] = []
    ward.behave = openai_text(None)
    client = open_model(f"{ward.url}/v1#tiny")
    report = await examine(client, on_probe=begun.append, on_finding=findings.append)
    await client.close()
    assert begun[:2] == [P.LISTED, P.ANSWER]
    assert tuple(findings) == report.findings


async def test_a_client_that_is_no_component_is_examined_as_it_is() -> None:
    def script(request: ScriptedRequest) -> Any:
        return {"tint": "teal"} if request.schema else "Water."

    report = await examine(ScriptedModel(script), limits=ProbeLimits(context=256))
    assert report.finding(P.LISTED).found is O.SKIPPED
    assert report.finding(P.SCHEMA).found is O.ENFORCED
    assert report.finding(P.TOOLS).found is O.IGNORED
    assert report.usable


async def test_speed_is_only_reported_where_it_can_be_measured(examined: Examined) -> None:
    behave = with_usage(sound(), lambda sent: sent, cached=lambda sent: sent)

    async def brief(body: Body, request: Request) -> Response:
        if not body.get("stream"):
            return await behave(body, request)
        return streamed("one", body, {"prompt_tokens": 9, "completion_tokens": 1})

    report = await examined(brief)
    figures = report.finding(P.CONTEXT).figures
    assert set(figures) == {"estimated_tokens", "counted_tokens"}
    assert report.finding(P.SPEED).found is O.UNCLEAR


def test_bad_limits_and_missing_probes_are_named() -> None:
    for limits in ({"context": 100}, {"max_tokens": 0}, {"seconds": 0}):
        with pytest.raises(ValueError, match=next(iter(limits))):
            ProbeLimits(**limits)
    with pytest.raises(KeyError, match="'cache'"):
        Report.model_construct(findings=()).finding(P.CACHE)
