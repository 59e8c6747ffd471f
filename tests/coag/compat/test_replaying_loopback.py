"""AutoGen's real OpenAI client, recorded against a server on this machine, replayed without it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import ChatCompletionClient, LLMMessage, UserMessage
from autogen_core.tools import FunctionTool
from kits.fake_server import Behaviour, FakeServer, openai_body, openai_text
from kits.model_servers import Body, hang, openai_client, sound, status
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from coag.compat import Recorder, RecordingClient, ReplayingClient
from coag.errors import ModelCallError


class Tint(BaseModel):
    tint: str


def note_weather(city: str, celsius: int, sky: str) -> str:
    """Notes the weather."""
    return "noted"


TOOL = FunctionTool(note_weather, description="Notes the weather.", strict=True)


@pytest.fixture
def served() -> Iterator[FakeServer]:
    with FakeServer(sound()) as fake:
        yield fake


@pytest.fixture
async def live(served: FakeServer) -> AsyncIterator[ChatCompletionClient]:
    opened = openai_client(served, api_key="sk-local-secret-0123456789", timeout=2.0)
    yield opened
    await opened.close()


Case = tuple[list[LLMMessage], dict[str, Any]]


def case(text: str, **options: Any) -> Case:
    return [UserMessage(content=text, source="user")], options


CASES: dict[str, Case] = {
    "text": case("What is water?"),
    "tool": case("Note the weather in Lisbon.", tools=[TOOL], tool_choice="required"),
    "tools": case("Note the weather in both cities.", tools=[TOOL]),
    "chosen": case("Note the weather in Lisbon.", tools=[TOOL], tool_choice=TOOL),
    "form": case("A tint?", json_output=Tint),
    "json": case("A fruit?", json_output=True),
    "extra": case("Count.", extra_create_args={"max_tokens": 3, "temperature": 0}),
}


# The openai package warns of its own type for answers in a form.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", CASES)
async def test_answer_comes_back_without_the_server(
    live: ChatCompletionClient, tmp_path: Path, name: str
) -> None:
    messages, options = CASES[name]
    recorder = Recorder(tmp_path, agent="clerk")
    wanted = await RecordingClient(live, recorder).create(messages, **options)
    recorder.close()
    assert wanted.content
    replayed = ReplayingClient(recorder.folder)
    assert await replayed.create(messages, **options) == wanted
    assert replayed.model_info == live.model_info
    assert replayed.total_usage() == live.total_usage()


def thinking(text: str = "Teal.") -> Behaviour:
    async def behave(_body: Body, _request: Request) -> Response:
        message = {"content": text, "reasoning_content": "The sea."}
        body = openai_body(message, "length", cached=7)
        token = {"token": "Teal", "logprob": -0.5, "bytes": [84], "top_logprobs": []}
        body["choices"][0]["logprobs"] = {"content": [token], "refusal": None}
        return JSONResponse(body)

    return behave


async def test_log_probabilities_of_a_secret_are_not_written(
    served: FakeServer,
    live: ChatCompletionClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TINT_TOKEN", "Teal.Teal")
    served.behave = thinking("Teal.Teal")
    recorder = Recorder(tmp_path, agent="clerk")
    messages, _ = case("A tint?")
    await RecordingClient(live, recorder).create(messages)
    recorder.close()
    assert "Teal" not in recorder.folder.trace_path.read_text()
    assert (await ReplayingClient(recorder.folder).create(messages)).logprobs is None


async def limited(_body: Body, _request: Request) -> Response:
    return status(429, "too many requests")


@pytest.mark.parametrize(
    ("behave", "error"), [(limited, "RateLimitError"), (hang, "APITimeoutError")]
)
async def test_refused_and_late_requests_fail_again_at_once(
    served: FakeServer,
    live: ChatCompletionClient,
    tmp_path: Path,
    behave: Behaviour,
    error: str,
) -> None:
    served.behave = behave
    recorder = Recorder(tmp_path, agent="clerk")
    messages, _ = case("Hello?")
    client = RecordingClient(live, recorder)
    with pytest.raises(Exception, match=r"too many requests|timed out") as live_error:
        await client.create(messages)
    served.behave = openai_text("Hello.")
    assert (await client.create(messages)).content == "Hello."
    recorder.close()
    replayed = ReplayingClient(recorder.folder)
    with pytest.raises(ModelCallError, match=error) as caught:
        await replayed.create(messages)
    number = getattr(live_error.value, "status_code", None)
    assert getattr(caught.value.__cause__, "status_code", None) == number
    assert (await replayed.create(messages)).content == "Hello."
