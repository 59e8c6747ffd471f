"""Model clients that answer out of a recorded run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken, FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    ChatCompletionTokenLogprob,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    TopLogprob,
    UserMessage,
)
from autogen_core.tools import FunctionTool
from hypothesis import given
from hypothesis import strategies as st
from PIL.Image import new as new_image
from pydantic import BaseModel

from coag.compat import Recorder, RecordingClient, ReplayingClient, ResilientClient
from coag.errors import (
    ConfigurationError,
    ModelCallError,
    ModelTimeoutError,
    ReplayDivergenceError,
    TraceError,
)
from coag.models import (
    ScriptedModel,
    ScriptedRequest,
    is_refusal,
    publish_usage,
    scripted_answers,
)
from coag.schema import ENTRY, Entry, ModelCall, SteppingClock, TokenUsage, TraceRecord

Part = str | CreateResult


class Word(BaseModel):
    say: str


class LouderWord(BaseModel):
    say: str
    loud: bool


def nod(deep: bool) -> str:
    """Nods."""
    return "nodded"


NOD = FunctionTool(nod, description="Nods.")
HI: list[LLMMessage] = [SystemMessage(content="Be kind."), UserMessage(content="Hi.", source="ann")]


def said(content: Any, **given: Any) -> CreateResult:
    usage = RequestUsage(prompt_tokens=7, completion_tokens=3)
    finish = "stop" if isinstance(content, str) else "function_calls"
    told = {"finish_reason": finish, "usage": usage, "cached": False, "content": content}
    return CreateResult.model_validate({**told, **given})


class Streaming(ScriptedModel):
    """Streams what it is told to, and raises what it is told to raise."""

    def __init__(self, *parts: Part | BaseException) -> None:
        super().__init__(scripted_answers([]), name="streaming")
        self._parts = parts

    async def create_stream(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[Part, None]:
        for part in self._parts:
            if isinstance(part, BaseException):
                raise part
            yield part


def recorder(logs: Path | None = None) -> Recorder:
    return Recorder(logs, agent="clerk", clock=SteppingClock())


def written(recorded: Recorder) -> list[TraceRecord]:
    """The records as a file would give them back."""
    lines = [Entry(seq=0, body=record).model_dump_json() for record in recorded.records]
    return [ENTRY.validate_json(line).body for line in lines]


async def stream_of(client: ChatCompletionClient, **given: Any) -> list[Part]:
    return [part async for part in client.create_stream(HI, **given)]


# ---- the same answers ----

TEXTS = st.text(max_size=8) | st.text("\ud800\udfff\ud83d\ude00\\u", max_size=6)
CALLS = st.lists(st.builds(FunctionCall, id=TEXTS, name=TEXTS, arguments=TEXTS), max_size=2)
LOGPROBS = st.lists(
    st.builds(
        ChatCompletionTokenLogprob,
        token=TEXTS,
        logprob=st.floats(max_value=0, allow_nan=False),
        top_logprobs=st.none() | st.just([TopLogprob(logprob=-1.0, bytes=[65])]),
        bytes=st.none() | st.just([1, 255]),
    ),
    max_size=2,
)
RESULTS = st.builds(
    CreateResult,
    finish_reason=st.sampled_from(["stop", "length", "function_calls", "content_filter"]),
    content=TEXTS | CALLS,
    usage=st.builds(
        RequestUsage,
        prompt_tokens=st.integers(0, 2**31),
        completion_tokens=st.integers(0, 2**31),
    ),
    cached=st.booleans(),
    logprobs=st.none() | LOGPROBS,
    thought=st.none() | TEXTS,
)


@given(result=RESULTS)
async def test_any_answer_comes_back_equal(result: CreateResult) -> None:
    recorded = recorder()
    client = RecordingClient(ScriptedModel(lambda _request: result), recorded)
    assert await client.create(HI) == result
    replayed = ReplayingClient(written(recorded))
    assert await replayed.create(HI) == result
    assert replayed.unused == ()
    assert replayed.total_usage() == replayed.actual_usage() == result.usage


@given(result=RESULTS, pieces=st.lists(TEXTS, max_size=4), whole=st.booleans())
async def test_any_stream_comes_back_in_its_pieces(
    result: CreateResult, pieces: list[str], whole: bool
) -> None:
    if whole:
        result = result.model_copy(update={"content": "".join(pieces)})
    recorded = recorder()
    parts = await stream_of(RecordingClient(Streaming(*pieces, result), recorded))
    assert parts == [*pieces, result]
    assert await stream_of(ReplayingClient(written(recorded))) == parts


async def test_text_of_a_stream_is_written_once() -> None:
    recorded = recorder()
    await stream_of(RecordingClient(Streaming("It ", "is.", said("It is.")), recorded))
    (call,) = recorded.records
    assert isinstance(call, ModelCall)
    assert call.given is not None
    assert (call.given.pieces, call.given.stream, call.raw) == ((3, 3), None, "It is.")


async def test_model_is_described_once_and_in_every_replay() -> None:
    info = ModelInfo(
        vision=True, function_calling=False, json_output=False, family="x", structured_output=False
    )
    recorded = recorder()
    client = RecordingClient(ScriptedModel(scripted_answers(["a", "b"]), model_info=info), recorded)
    await client.create(HI)
    await client.create(HI)
    told = [call.asked.model_info for call in replayed_calls(recorded) if call.asked]
    assert told == [info, None]
    replayed = ReplayingClient(written(recorded))
    assert replayed.model_info == replayed.capabilities == info
    assert replayed.remaining_tokens(HI) == 128_000 - replayed.count_tokens(HI) > 0
    await replayed.close()


def replayed_calls(recorded: Recorder) -> list[ModelCall]:
    return [record for record in recorded.records if isinstance(record, ModelCall)]


async def test_tokens_from_the_servers_cache_are_told_again() -> None:
    def answer(request: ScriptedRequest) -> str:
        publish_usage(TokenUsage(prompt_tokens=7, completion_tokens=3, cached_tokens=5))
        return "said"

    first, second = recorder(), recorder()
    await RecordingClient(ScriptedModel(answer), first).create(HI)
    await RecordingClient(ReplayingClient(written(first)), second).create(HI)

    assert [call.usage.cached_tokens for call in replayed_calls(first)] == [5]
    assert [call.usage for call in replayed_calls(second)] == [
        call.usage for call in replayed_calls(first)
    ]


async def test_tokens_of_a_call_that_failed_are_told_again() -> None:
    def answer(request: ScriptedRequest) -> str:
        publish_usage(TokenUsage(prompt_tokens=7, completion_tokens=3), failed=True)
        raise RuntimeError("cut off")

    first, second = recorder(), recorder()
    with pytest.raises(RuntimeError):
        await RecordingClient(ScriptedModel(answer), first).create(HI)
    with pytest.raises(ModelCallError):
        await RecordingClient(ReplayingClient(written(first)), second).create(HI)

    assert [call.usage.prompt_tokens for call in replayed_calls(first)] == [7]
    assert [call.usage for call in replayed_calls(second)] == [
        call.usage for call in replayed_calls(first)
    ]


# ---- the same request ----


async def ask(client: ChatCompletionClient, text: str = "Hi.", **given: Any) -> Any:
    messages: list[LLMMessage] = [HI[0], UserMessage(content=text, source="ann")]
    result = await client.create(messages, **given)
    return result.content


async def test_equal_requests_are_answered_in_their_order_and_others_in_any() -> None:
    recorded = recorder()
    client = RecordingClient(ScriptedModel(scripted_answers(["1", "2", "3"])), recorded)
    assert [await ask(client, text) for text in ("a", "b", "a")] == ["1", "2", "3"]
    replayed = ReplayingClient(written(recorded))
    assert [await ask(replayed, text) for text in ("b", "a", "a")] == ["2", "1", "3"]


async def test_equal_requests_at_once_are_answered_as_they_were_asked() -> None:
    first = asyncio.Event()

    async def late_first(request: ScriptedRequest) -> str:
        if request.number == 1:
            await first.wait()
        first.set()
        return str(request.number)

    recorded = recorder()
    client = RecordingClient(ScriptedModel(late_first), recorded)
    assert await asyncio.gather(ask(client), ask(client)) == ["1", "2"]
    assert [call.raw for call in replayed_calls(recorded)] == ["2", "1"]
    replayed = ReplayingClient(written(recorded))
    assert await asyncio.gather(ask(replayed), ask(replayed)) == ["1", "2"]


async def test_two_agents_at_once_on_one_client_get_their_own_answers() -> None:
    def echo(request: ScriptedRequest) -> str:
        return f"{request.system_text} {request.last_user_text}"

    async def both(client: ChatCompletionClient) -> list[str]:
        agents = [AssistantAgent(n, client, system_message=f"I am {n}.") for n in ("ann", "bob")]
        results = await asyncio.gather(*(agent.run(task="Who?") for agent in agents))
        return [result.messages[-1].to_text() for result in results]

    recorded = recorder()
    wanted = await both(RecordingClient(ScriptedModel(echo), recorded))
    assert wanted == ["I am ann. Who?", "I am bob. Who?"]
    replayed = ReplayingClient(written(recorded))
    assert await both(replayed) == wanted
    assert replayed.unused == ()


PLAIN: dict[str, Any] = {"tools": [NOD], "extra_create_args": {"temperature": 0}}


@pytest.mark.parametrize(
    ("changed", "where", "recorded_value", "now"),
    [
        ({"tools": []}, "tools.nod", "of hash", "nothing"),
        (
            {"tools": [FunctionTool(nod, description="Bows.")]},
            "tools.nod.schema",
            "of hash",
            "of hash",
        ),
        ({"tool_choice": "required"}, "tool_choice", '"auto"', '"required"'),
        ({"tool_choice": NOD}, "tool_choice", '"auto"', '"tool nod"'),
        ({"json_output": True}, "json_output[1]", "null", "true"),
        ({"json_output": Word}, "json_output[0]", "null", '"Word"'),
        ({"extra_create_args": {"temperature": 1}}, "extra_create_args.temperature", "0", "1"),
        ({"extra_create_args": {}}, "extra_create_args.temperature", "0", "nothing"),
    ],
)
async def test_request_that_differs_is_refused_and_told(
    changed: dict[str, Any], where: str, recorded_value: str, now: str
) -> None:
    recorded = recorder()
    await ask(RecordingClient(ScriptedModel(scripted_answers(["a"])), recorded), **PLAIN)
    replayed = ReplayingClient(written(recorded))
    with pytest.raises(ReplayDivergenceError) as caught:
        await ask(replayed, **{**PLAIN, **changed})
    assert (caught.value.number, caught.value.where) == (1, where)
    assert recorded_value in caught.value.recorded
    assert now in caught.value.now
    assert len(replayed.unused) == 1
    assert await ask(replayed, **PLAIN) == "a"


async def test_schema_of_the_answers_type_is_compared() -> None:
    recorded = recorder()
    client = RecordingClient(ScriptedModel(scripted_answers(['{"say": "a"}'])), recorded)
    await ask(client, json_output=Word)
    LouderWord.__name__ = "Word"
    with pytest.raises(ReplayDivergenceError, match="json_output"):
        await ask(ReplayingClient(written(recorded)), json_output=LouderWord)
    assert await ask(ReplayingClient(written(recorded)), json_output=Word) == '{"say": "a"}'


async def test_divergence_shows_where_two_long_texts_part_and_no_more() -> None:
    recorded = recorder()
    client = RecordingClient(ScriptedModel(scripted_answers(["a", "b"])), recorded)
    await ask(client, "Another.")
    await ask(client, "x" * 5_000 + "red \x1b[31m" + "y" * 5_000)
    with pytest.raises(ReplayDivergenceError) as caught:
        await ask(ReplayingClient(written(recorded)), "x" * 5_000 + "green" + "y" * 5_000)
    assert caught.value.where == "messages[1].content"
    assert "red" not in str(caught.value)  # of the nearest one: the earliest of equally near ones
    replayed = ReplayingClient(written(recorded))
    await ask(replayed, "Another.")
    with pytest.raises(ReplayDivergenceError) as caught:
        await ask(replayed, "x" * 5_000 + "green" + "y" * 5_000)
    assert caught.value.number == 2
    text = str(caught.value)
    assert "request 2" in text
    assert r"red \u001b[31m" in text
    assert "green" in text
    assert len(text) < 700


async def test_dialogue_that_is_longer_or_shorter_is_told_by_its_first_message_too_many() -> None:
    recorded = recorder()
    longer = [*HI, UserMessage(content="Now.", source="bob")]
    model = ScriptedModel(scripted_answers(["a", "b"]))
    await RecordingClient(model, recorded).create(longer)
    replayed = ReplayingClient(written(recorded))
    with pytest.raises(ReplayDivergenceError) as caught:
        await replayed.create(HI)
    found = caught.value
    assert (found.where, found.now) == ("messages[2]", "nothing")
    with pytest.raises(ReplayDivergenceError) as caught:
        await replayed.create([*longer, HI[1]])
    found = caught.value
    assert (found.where, found.recorded) == ("messages[3]", "nothing")
    thinking = AssistantMessage(content="Hm.", thought="So.", source="ann")
    with pytest.raises(ReplayDivergenceError, match=r"messages\[2\]\.content"):
        await replayed.create([*HI, thinking])
    await RecordingClient(model, recorded).create([thinking])
    bare = thinking.model_copy(update={"thought": None})
    fresh = ReplayingClient(written(recorded))
    await fresh.create(longer)
    with pytest.raises(ReplayDivergenceError, match=r'thought: recorded "So.", now nothing'):
        await fresh.create([bare])


async def test_stream_is_not_the_same_as_a_whole_answer() -> None:
    recorded = recorder()
    await ask(RecordingClient(ScriptedModel(scripted_answers(["a"])), recorded))
    replayed = ReplayingClient(written(recorded))
    with pytest.raises(ReplayDivergenceError, match="in stream: recorded false, now true"):
        await stream_of(replayed)


async def test_images_are_compared_by_their_pixels() -> None:
    dark, light = (Image.from_pil(new_image("RGB", (2, 2), color)) for color in ("black", "white"))
    messages = [[UserMessage(content=["See:", image], source="user")] for image in (dark, light)]
    recorded = recorder()
    await RecordingClient(ScriptedModel(scripted_answers(["a"])), recorded).create(messages[0])
    with pytest.raises(ReplayDivergenceError, match=r"messages\[0\].parts\[1\]"):
        await ReplayingClient(written(recorded)).create(messages[1])
    answer = await ReplayingClient(written(recorded)).create(messages[0])
    assert answer.content == "a"


async def test_tape_that_is_too_short_says_so() -> None:
    recorded = recorder()
    await ask(RecordingClient(ScriptedModel(scripted_answers(["a"])), recorded))
    replayed = ReplayingClient(written(recorded))
    await ask(replayed)
    with pytest.raises(ReplayDivergenceError, match="request 2: all 1 recorded requests have"):
        await ask(replayed)


async def test_arguments_that_are_no_json_are_told_by_their_type() -> None:
    recorded = recorder()
    given: dict[str, Any] = {
        "extra_create_args": {"deadline": object(), "form": Word, "nan": float("nan")}
    }
    await ask(RecordingClient(ScriptedModel(scripted_answers(["a"])), recorded), **given)
    again: dict[str, Any] = {
        "extra_create_args": {"deadline": object(), "form": Word, "nan": float("nan")}
    }
    assert await ask(ReplayingClient(written(recorded)), **again) == "a"


# ---- what went wrong then, goes wrong again ----


class RateLimitError(Exception):
    status_code = 429


class RefusedError(Exception):
    status_code = 400


async def failed_twice(error: BaseException) -> ModelCallError:
    """What a replay raises of an error, whole and in the middle of a stream alike."""
    caught: list[ModelCallError] = []
    recorded = recorder()
    client = RecordingClient(Streaming("It ", error), recorded)
    with pytest.raises(type(error)):
        await stream_of(client)
    replayed = ReplayingClient(written(recorded)).create_stream(HI)
    assert await anext(replayed) == "It "
    with pytest.raises(ModelCallError) as raised:
        await anext(replayed)
    caught.append(raised.value)
    recorded = recorder()

    def fail(_request: ScriptedRequest) -> str:
        raise error

    with pytest.raises(type(error)):
        await ask(RecordingClient(ScriptedModel(fail), recorded))
    with pytest.raises(ModelCallError) as raised:
        await ask(ReplayingClient(written(recorded)))
    caught.append(raised.value)
    assert type(caught[0]) is type(caught[1])
    return caught[1]


async def test_error_is_raised_again_with_its_reason_and_sort() -> None:
    assert "ConnectionError: no route" in str(await failed_twice(ConnectionError("no route")))
    assert isinstance(await failed_twice(TimeoutError("slow")), ModelTimeoutError)
    assert is_refusal(await failed_twice(ValueError("no schemas here")))
    assert is_refusal(await failed_twice(RefusedError("bad request")))
    limited = await failed_twice(RateLimitError("later"))
    assert getattr(limited.__cause__, "status_code", None) == 429
    assert not is_refusal(limited)


async def test_cancelled_request_is_cancelled_again() -> None:
    recorded = recorder()

    async def hang(_request: ScriptedRequest) -> str:
        await asyncio.Event().wait()
        return ""

    token = CancellationToken()
    client = RecordingClient(ScriptedModel(hang), recorded)
    asking = asyncio.create_task(client.create(HI, cancellation_token=token))
    await asyncio.sleep(0)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    with pytest.raises(asyncio.CancelledError):
        await ReplayingClient(written(recorded)).create(HI)


async def test_replay_can_be_cancelled_too() -> None:
    recorded = recorder()
    await RecordingClient(ScriptedModel(scripted_answers(["a"])), recorded).create(HI)
    token = CancellationToken()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ReplayingClient(written(recorded)).create(HI, cancellation_token=token)


async def test_stream_that_was_left_gives_the_same_pieces_and_can_be_left() -> None:
    recorded = recorder()
    stream = RecordingClient(Streaming("It ", "is ", said("It is")), recorded).create_stream(HI)
    assert await anext(stream) == "It "
    await stream.aclose()
    replayed = ReplayingClient(written(recorded)).create_stream(HI)
    assert await anext(replayed) == "It "
    with pytest.raises(asyncio.CancelledError):
        await anext(replayed)


async def test_stream_without_a_result_ends_without_one_again() -> None:
    recorded = recorder()
    assert await stream_of(RecordingClient(Streaming("It \ud800"), recorded)) == ["It \ud800"]
    assert await stream_of(ReplayingClient(written(recorded))) == ["It \ud800"]


async def test_resilient_client_is_replayed_by_what_is_written_around_it() -> None:
    recorded = recorder()
    steady = ResilientClient(ScriptedModel(scripted_answers(["no", '{"say": "hi"}'])))
    await ask(RecordingClient(steady, recorded), json_output=Word)
    assert await ask(ReplayingClient(written(recorded)), json_output=Word) == '{"say": "hi"}'


# ---- runs on disk ----


async def test_folder_is_replayed_by_path_text_or_run_folder(tmp_path: Path) -> None:
    recorded = recorder(tmp_path)
    await ask(RecordingClient(ScriptedModel(scripted_answers(["a \ud800"])), recorded))
    recorded.close()
    folder = recorded.folder
    for run in (folder, folder.path, str(folder.path)):
        assert await ask(ReplayingClient(run)) == "a \ud800"
    with pytest.raises(TraceError):
        ReplayingClient(tmp_path / "nowhere")


async def test_secrets_are_in_no_tape_and_stand_in_no_replays_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARD_API_KEY", "s3cret-of-the-ward")
    asked = "Open with s3cret-of-the-ward and sk-abcdefghijklmnop0123456789."
    headers: dict[str, Any] = {
        "extra_create_args": {"extra_headers": {"Authorization": "Bearer abc.def.ghi.jkl"}}
    }
    recorded = recorder(tmp_path)
    pieces = ("Key s3cret-of", "-the-ward.", said("Key s3cret-of-the-ward."))
    client = RecordingClient(Streaming(*pieces), recorded)
    messages: list[LLMMessage] = [UserMessage(content=asked, source="user")]
    async for _ in client.create_stream(messages, **headers):
        pass
    recorded.close()
    trace = recorded.folder.trace_path.read_text()
    for secret in ("s3cret-of", "-the-ward", "sk-abc", "abc.def"):
        assert secret not in trace
    replayed = ReplayingClient(recorded.folder)
    parts = [part async for part in replayed.create_stream(messages, **headers)]
    assert isinstance(parts[-1], CreateResult)
    assert parts[-1].content == "Key [redacted]."
    assert "".join(str(part) for part in parts[:-1]) == "Key [redacted]."
    with pytest.raises(ReplayDivergenceError) as caught:
        await replayed.create([UserMessage(content=asked + " Now!", source="user")])
    assert "s3cret" not in str(caught.value)


@pytest.mark.broken_trace("it cuts the trace as a crash does")
async def test_run_that_crashed_is_replayed_as_far_as_it_came(tmp_path: Path) -> None:
    recorded = recorder(tmp_path)
    client = RecordingClient(ScriptedModel(scripted_answers(["a", "b"])), recorded)
    await ask(client, "First.")
    await ask(client, "Second.")
    recorded.close()
    trace = recorded.folder.trace_path
    trace.write_bytes(trace.read_bytes()[:-40])
    replayed = ReplayingClient(recorded.folder)
    assert await ask(replayed, "First.") == "a"
    with pytest.raises(ReplayDivergenceError, match="all 1 recorded requests"):
        await ask(replayed, "Second.")


async def test_replay_can_be_recorded_and_replayed_again(tmp_path: Path) -> None:
    first, second = recorder(), recorder(tmp_path)
    await ask(RecordingClient(ScriptedModel(scripted_answers(["a"])), first))
    await ask(RecordingClient(ReplayingClient(written(first)), second))
    second.close()
    assert await ask(ReplayingClient(second.folder)) == "a"


async def test_component_names_the_folder_and_begins_at_the_beginning(tmp_path: Path) -> None:
    recorded = recorder(tmp_path)
    await ask(RecordingClient(ScriptedModel(scripted_answers(["a"])), recorded))
    recorded.close()
    replayed = ReplayingClient(recorded.folder)
    await ask(replayed)
    loaded = ChatCompletionClient.load_component(replayed.dump_component())
    assert isinstance(loaded, ReplayingClient)
    assert await ask(loaded) == "a"
    with pytest.raises(ConfigurationError, match="records in RAM"):
        ReplayingClient(written(recorded)).dump_component()


async def test_run_without_requests_is_no_tape() -> None:
    with pytest.raises(ConfigurationError, match="holds no request"):
        ReplayingClient([])


async def test_of_several_models_one_is_named() -> None:
    recorded = recorder()
    poor = ModelInfo(
        vision=False, function_calling=False, json_output=False, family="x", structured_output=False
    )
    for name, info in (("rich", None), ("poor", poor)):
        model = ScriptedModel(scripted_answers([name]), name=name, model_info=info)
        await ask(RecordingClient(model, recorded))
    with pytest.raises(ConfigurationError, match="'poor', 'rich'"):
        ReplayingClient(written(recorded))
    replayed = ReplayingClient(written(recorded), model="poor")
    assert (await ask(replayed), replayed.model_info) == ("poor", poor)
    with pytest.raises(ConfigurationError, match=r"'other'.*'poor', 'rich'"):
        ReplayingClient(written(recorded), model="other")


# ---- records that say less ----


def older(records: Sequence[TraceRecord]) -> list[TraceRecord]:
    """The records as version 1 had them."""
    less = {"asked": None, "given": None}
    return [record.model_copy(update=less) for record in records]


async def test_records_without_the_rest_are_matched_by_what_was_said(tmp_path: Path) -> None:
    recorded = recorder()
    client = RecordingClient(ScriptedModel(scripted_answers(["a", "b"])), recorded)
    await ask(client, tools=[NOD])
    info = ScriptedModel(scripted_answers([])).model_info
    replayed = ReplayingClient(older(written(recorded)), model_info=info)
    assert replayed.model_info == info
    with pytest.raises(ReplayDivergenceError, match="messages"):
        await ask(replayed, "Ho.", tools=[NOD])
    assert await ask(replayed, tools=[NOD], extra_create_args={"temperature": 1}) == "a"
    with pytest.raises(ConfigurationError, match="model_info"):
        _ = ReplayingClient(older(written(recorded))).model_info


async def test_records_without_the_rest_tell_failures_from_answers() -> None:
    recorded = recorder()
    client = RecordingClient(ScriptedModel(scripted_answers([ConnectionError("no")])), recorded)
    with pytest.raises(ConnectionError):
        await ask(client)
    replayed = ReplayingClient(older(written(recorded)))
    with pytest.raises(ModelCallError, match="ConnectionError: no"):
        await ask(replayed)
