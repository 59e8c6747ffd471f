"""Model clients that answer from a recorded run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken, FunctionCall, Image
from autogen_core.models import (
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
from kits.stock import only, recorder, written
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
from coag.schema import ModelCall, TokenUsage, TraceRecord

Part = str | CreateResult


class Word(BaseModel):
    say: str


class LouderWord(BaseModel):
    say: str
    loud: bool


LouderWord.__name__ = "Word"


def nod(deep: bool) -> str:
    """Nods."""
    return "nodded"


NOD = FunctionTool(nod, description="Nods.")
HI: list[LLMMessage] = [SystemMessage(content="Be kind."), UserMessage(content="Hi.", source="ann")]
POOR = ModelInfo(
    vision=True, function_calling=False, json_output=False, family="x", structured_output=False
)


class Streaming(ScriptedModel):
    """Streams some parts, and raises those that are errors."""

    def __init__(self, *parts: Part | BaseException) -> None:
        super().__init__(scripted_answers([]), name="streaming")
        self._parts = parts

    async def create_stream(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[Part, None]:
        for part in self._parts:
            if isinstance(part, BaseException):
                raise part
            yield part


def result_of(content: str) -> CreateResult:
    usage = RequestUsage(prompt_tokens=7, completion_tokens=3)
    return CreateResult(finish_reason="stop", usage=usage, cached=False, content=content)


async def ask(client: ChatCompletionClient, text: str = "Hi.", **options: Any) -> Any:
    messages: list[LLMMessage] = [HI[0], UserMessage(content=text, source="ann")]
    return (await client.create(messages, **options)).content


def recording_client(recorded: Recorder, *answers: Any) -> RecordingClient:
    return RecordingClient(ScriptedModel(scripted_answers(answers or ["a", "b", "c"])), recorded)


async def taped(*texts: str, answers: Sequence[Any] = (), **options: Any) -> list[TraceRecord]:
    """The records of some requests, which are answered by `a`, `b`, `c` by default."""
    recorded = recorder()
    client = recording_client(recorded, *answers)
    for text in texts or ("Hi.",):
        await ask(client, text, **options)
    return written(recorded)


async def on_disk(logs: Path, *texts: str) -> Recorder:
    recorded = recorder(logs)
    client = recording_client(recorded)
    for text in texts or ("Hi.",):
        await ask(client, text)
    recorded.close()
    return recorded


async def stream_of(client: ChatCompletionClient, **options: Any) -> list[Part]:
    return [part async for part in client.create_stream(HI, **options)]


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
COUNTS = st.integers(0, 2**31)
RESULTS = st.builds(
    CreateResult,
    finish_reason=st.sampled_from(["stop", "length", "function_calls", "content_filter"]),
    content=TEXTS | CALLS,
    usage=st.builds(RequestUsage, prompt_tokens=COUNTS, completion_tokens=COUNTS),
    cached=st.booleans(),
    logprobs=st.none() | LOGPROBS,
    thought=st.none() | TEXTS,
)


@given(result=RESULTS, pieces=st.lists(TEXTS, max_size=4), joined=st.booleans())
async def test_any_answer_and_any_stream_comes_back_equal(
    result: CreateResult, pieces: list[str], joined: bool
) -> None:
    recorded = recorder()
    client = RecordingClient(ScriptedModel(lambda _request: result), recorded)
    assert await client.create(HI) == result
    replayed = ReplayingClient(written(recorded))
    assert await replayed.create(HI) == result
    assert replayed.unused == ()
    assert replayed.total_usage() == replayed.actual_usage() == result.usage
    if joined:
        result = result.model_copy(update={"content": "".join(pieces)})
    recorded = recorder()
    parts = await stream_of(RecordingClient(Streaming(*pieces, result), recorded))
    assert parts == [*pieces, result]
    assert await stream_of(ReplayingClient(written(recorded))) == parts


async def test_model_is_described_once_and_in_every_replay() -> None:
    recorded = recorder()
    model = ScriptedModel(scripted_answers(["a", "b"]), model_info=POOR)
    client = RecordingClient(model, recorded)
    await client.create(HI)
    await client.create(HI)
    assert [call.asked.model_info for call in only(recorded, ModelCall)] == [POOR, None]
    replayed = ReplayingClient(written(recorded))
    assert replayed.model_info == replayed.capabilities == POOR
    assert replayed.remaining_tokens(HI) == 128_000 - replayed.count_tokens(HI) > 0
    await replayed.close()


@pytest.mark.parametrize("fails", [False, True])
async def test_tokens_are_the_same_in_a_replay_also_of_a_call_that_failed(fails: bool) -> None:
    usage = TokenUsage(prompt_tokens=7, completion_tokens=3, cached_tokens=5)

    def answer(request: ScriptedRequest) -> str:
        publish_usage(usage, failed=fails)
        if fails:
            raise ConnectionError("cut off")
        return "said"

    first, second = recorder(), recorder()
    for client, recorded in ((ScriptedModel(answer), first), (None, second)):
        recording = RecordingClient(client or ReplayingClient(written(first)), recorded)
        try:
            await recording.create(HI)
        except (ConnectionError, ModelCallError):
            assert fails
    counted = [[call.usage for call in only(each, ModelCall)] for each in (first, second)]
    assert counted[0] == counted[1]
    assert counted[0][0].cached_tokens == 5


# ---- the same request ----


async def test_equal_requests_are_answered_in_their_order_and_others_in_any() -> None:
    replayed = ReplayingClient(await taped("a", "b", "a", answers=["1", "2", "3"]))
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
    assert [call.raw for call in only(recorded, ModelCall)] == ["2", "1"]
    replayed = ReplayingClient(written(recorded))
    assert await asyncio.gather(ask(replayed), ask(replayed)) == ["1", "2"]


PLAIN: dict[str, Any] = {"tools": [NOD], "extra_create_args": {"temperature": 0}}
BOWS = FunctionTool(nod, description="Bows.")


@pytest.mark.parametrize(
    ("changed", "where", "recorded_value", "now"),
    [
        ({"tools": []}, "tools.nod", "of hash", "nothing"),
        ({"tools": [BOWS]}, "tools.nod.schema", "of hash", "of hash"),
        ({"tool_choice": "required"}, "tool_choice", '"auto"', '"required"'),
        ({"tool_choice": NOD}, "tool_choice", '"auto"', '"tool nod"'),
        ({"json_output": Word}, "json_output[0]", "null", '"Word"'),
        ({"extra_create_args": {"temperature": 1}}, "extra_create_args.temperature", "0", "1"),
    ],
)
async def test_request_that_differs_is_refused_and_shown(
    changed: dict[str, Any], where: str, recorded_value: str, now: str
) -> None:
    replayed = ReplayingClient(await taped(**PLAIN))
    with pytest.raises(ReplayDivergenceError) as caught:
        await ask(replayed, **{**PLAIN, **changed})
    assert (caught.value.number, caught.value.where) == (1, where)
    assert recorded_value in caught.value.recorded
    assert now in caught.value.now
    assert len(replayed.unused) == 1
    assert await ask(replayed, **PLAIN) == "a"


async def test_what_else_is_compared() -> None:
    form = ReplayingClient(await taped(answers=['{"say": "a"}'], json_output=Word))
    with pytest.raises(ReplayDivergenceError, match="json_output"):
        await ask(form, json_output=LouderWord)
    assert await ask(form, json_output=Word) == '{"say": "a"}'
    with pytest.raises(ReplayDivergenceError, match="in stream: recorded false, now true"):
        await stream_of(ReplayingClient(await taped()))
    short = ReplayingClient(await taped())
    await ask(short)
    with pytest.raises(ReplayDivergenceError, match="request 2: all 1 recorded requests have"):
        await ask(short)

    def no_json() -> dict[str, Any]:
        return {"extra_create_args": {"deadline": object(), "form": Word, "nan": float("nan")}}

    assert await ask(ReplayingClient(await taped(**no_json())), **no_json()) == "a"


async def test_images_are_compared_by_their_pixels() -> None:
    dark, light = (Image.from_pil(new_image("RGB", (2, 2), color)) for color in ("black", "white"))
    messages = [[UserMessage(content=["See:", image], source="user")] for image in (dark, light)]
    recorded = recorder()
    await recording_client(recorded).create(messages[0])
    replayed = ReplayingClient(written(recorded))
    with pytest.raises(ReplayDivergenceError, match=r"messages\[0\].parts\[1\]"):
        await replayed.create(messages[1])
    assert (await replayed.create(messages[0])).content == "a"


# ---- what went wrong then, goes wrong again ----


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


async def failed(error: BaseException) -> ModelCallError:
    """What a replay raises of an error, alike in a whole answer and in the middle of a stream."""
    answered, streamed = recorder(), recorder()
    with pytest.raises(type(error)):
        await ask(recording_client(answered, error))
    with pytest.raises(ModelCallError) as raised:
        await ask(ReplayingClient(written(answered)))
    with pytest.raises(type(error)):
        await stream_of(RecordingClient(Streaming("It ", error), streamed))
    replayed = ReplayingClient(written(streamed)).create_stream(HI)
    assert await anext(replayed) == "It "
    with pytest.raises(type(raised.value)):
        await anext(replayed)
    return raised.value


async def test_error_is_raised_again_with_its_reason_and_sort() -> None:
    assert "ConnectionError: no route" in str(await failed(ConnectionError("no route")))
    assert isinstance(await failed(TimeoutError("slow")), ModelTimeoutError)
    assert is_refusal(await failed(ValueError("no schemas here")))
    assert is_refusal(await failed(StatusError(400)))
    limited = await failed(StatusError(429))
    assert getattr(limited.__cause__, "status_code", None) == 429
    assert not is_refusal(limited)


async def test_cancelled_request_is_cancelled_again_and_a_replay_can_be_cancelled_too() -> None:
    async def hang(_request: ScriptedRequest) -> str:
        await asyncio.Event().wait()
        return ""

    recorded, token = recorder(), CancellationToken()
    client = RecordingClient(ScriptedModel(hang), recorded)
    asking = asyncio.create_task(client.create(HI, cancellation_token=token))
    await asyncio.sleep(0)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    with pytest.raises(asyncio.CancelledError):
        await ReplayingClient(written(recorded)).create(HI)
    with pytest.raises(asyncio.CancelledError):
        await ask(ReplayingClient(await taped()), cancellation_token=token)


async def test_stream_that_was_left_gives_the_same_pieces_and_can_be_left() -> None:
    recorded = recorder()
    stream = RecordingClient(Streaming("It ", "is ", result_of("It is")), recorded).create_stream(
        HI
    )
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
    recorded = recorder(tmp_path / "logs")
    await ask(recording_client(recorded, "a \ud800"))
    recorded.close()
    folder = recorded.folder
    for run in (folder, folder.path, str(folder.path)):
        assert await ask(ReplayingClient(run)) == "a \ud800"
    with pytest.raises(TraceError):
        ReplayingClient(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="is a folder of runs: give one of them"):
        ReplayingClient(tmp_path / "logs")


async def test_secrets_are_in_no_tape_and_stand_in_no_replays_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARD_API_KEY", "s3cret-of-the-ward")
    question = "Open with s3cret-of-the-ward and sk-abcdefghijklmnop0123456789."
    headers: dict[str, Any] = {
        "extra_create_args": {"extra_headers": {"Authorization": "Bearer abc.def.ghi.jkl"}}
    }
    recorded = recorder(tmp_path)
    pieces = ("Key s3cret-of", "-the-ward.", result_of("Key s3cret-of-the-ward."))
    client = RecordingClient(Streaming(*pieces), recorded)
    messages: list[LLMMessage] = [UserMessage(content=question, source="user")]
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
        await replayed.create([UserMessage(content=question + " Now!", source="user")])
    assert "s3cret" not in str(caught.value)


@pytest.mark.broken_trace("it cuts the trace as a crash does")
async def test_run_that_crashed_is_replayed_as_far_as_it_came(tmp_path: Path) -> None:
    recorded = await on_disk(tmp_path, "First.", "Second.")
    trace = recorded.folder.trace_path
    trace.write_bytes(trace.read_bytes()[:-40])
    replayed = ReplayingClient(recorded.folder)
    assert await ask(replayed, "First.") == "a"
    with pytest.raises(ReplayDivergenceError, match="all 1 recorded requests"):
        await ask(replayed, "Second.")


async def test_component_names_the_folder_and_begins_at_the_beginning(tmp_path: Path) -> None:
    replayed = ReplayingClient((await on_disk(tmp_path)).folder)
    await ask(replayed)
    loaded = ChatCompletionClient.load_component(replayed.dump_component())
    assert isinstance(loaded, ReplayingClient)
    assert await ask(loaded) == "a"
    with pytest.raises(ConfigurationError, match="records in RAM"):
        ReplayingClient(await taped()).dump_component()


async def test_of_several_models_one_is_named_and_of_none_there_is_no_tape() -> None:
    recorded = recorder()
    for name, info in (("rich", None), ("poor", POOR)):
        model = ScriptedModel(scripted_answers([name]), name=name, model_info=info)
        await ask(RecordingClient(model, recorded))
    with pytest.raises(ConfigurationError, match="'poor', 'rich'"):
        ReplayingClient(written(recorded))
    replayed = ReplayingClient(written(recorded), model="poor")
    assert (await ask(replayed), replayed.model_info) == ("poor", POOR)
    with pytest.raises(ConfigurationError, match=r"'other'.*'poor', 'rich'"):
        ReplayingClient(written(recorded), model="other")
    with pytest.raises(ConfigurationError, match="holds no request"):
        ReplayingClient([])


# ---- records that say less ----


def older(records: Sequence[TraceRecord]) -> list[TraceRecord]:
    """The records as version 1 had them."""
    less = {"asked": None, "given": None}
    return [record.model_copy(update=less) for record in records]


async def test_records_without_the_rest_are_matched_by_what_was_said() -> None:
    records = older(await taped(tools=[NOD]))
    replayed = ReplayingClient(records, model_info=POOR)
    assert replayed.model_info == POOR
    with pytest.raises(ReplayDivergenceError, match="messages"):
        await ask(replayed, "Ho.", tools=[NOD])
    assert await ask(replayed, tools=[NOD], extra_create_args={"temperature": 1}) == "a"
    with pytest.raises(ConfigurationError, match="model_info"):
        _ = ReplayingClient(records).model_info


async def test_records_without_the_rest_distinguish_failures_from_answers() -> None:
    recorded = recorder()
    with pytest.raises(ConnectionError):
        await ask(recording_client(recorded, ConnectionError("no")))
    with pytest.raises(ModelCallError, match="ConnectionError: no"):
        await ask(ReplayingClient(older(written(recorded))))
