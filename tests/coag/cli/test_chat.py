"""`coag chat`, against a model server on this machine."""

from __future__ import annotations

import asyncio
import codecs
import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
from kits.fake_server import FakeServer, openai_body, openai_text
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import coag
from coag.cli import coag_command
from coag.schema import PHASES

Say = Callable[..., Any]
ROOT = Path(coag.__file__).parents[1]


def deliberation(action: str, **arguments: str) -> str:
    candidate = {
        "reason": "It is asked for.",
        "action": action,
        "arguments": json.dumps(arguments),
        "expected_effect": "",
        "score": 0.9,
    }
    return json.dumps(
        {
            "situation": "Somebody talks to me.",
            "risks": [],
            "goal_status": "open",
            "candidates": [candidate],
        }
    )


async def echo(body: dict[str, Any], _request: Request) -> Response:
    """Answers with the last message of the user."""
    prompt = body["messages"][-1]["content"]
    lines = prompt.splitlines()
    messages = [line for line in lines if line.startswith("user: ")]
    last = messages[-1].removeprefix("user: ") if messages else "(the goal above)"
    if last == "(the goal above)":
        last = lines[lines.index("## Goal") + 2]
    return JSONResponse(openai_body({"content": deliberation("respond", text=f"You said: {last}")}))


@pytest.fixture
def model_server() -> Iterator[FakeServer]:
    with FakeServer(echo) as fake:
        yield fake


def spec(server: FakeServer) -> str:
    return f"{server.url}/v1#tiny"


@pytest.fixture
def chat(model_server: FakeServer, say: Say) -> Say:
    return partial(say, "chat", "--model", spec(model_server))


def test_one_message_gets_one_answer_and_the_phases_are_shown_as_they_happen(
    model_server: FakeServer, chat: Say
) -> None:
    words = ("--once", "Hello.", "--system", "Speak like a pirate.")
    result = chat(*words)
    assert (result.code, result.out) == (0, "You said: Hello.\n")
    assert "Speak like a pirate." in model_server.seen[0]["messages"][0]["content"]
    lines = result.err.strip().splitlines()
    assert lines[0] == "assistant, cycle 1"
    labels = [line.split()[0] for line in lines[1:] if not line.startswith("    ")]
    assert labels == [phase.value for phase in PHASES] + ["total"]
    assert "  evaluation  1 of 1 candidate(s) survived." in lines


def test_every_line_of_standard_input_is_answered(
    chat: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("One.\n\nTwo.\n"))
    result = chat()
    assert (result.code, result.out) == (0, "You said: One.\nYou said: Two.\n")
    assert "coag chat with http://127.0.0.1" in result.err
    assert "Ctrl-D leaves" in result.err


def test_full_depth_asks_phase_by_phase(model_server: FakeServer, chat: Say) -> None:
    names: list[str] = []

    async def by_phase(body: dict[str, Any], request: Request) -> Response:
        name = body["response_format"]["json_schema"]["name"]
        names.append(name)
        answer = json.loads(deliberation("respond", text="Aye."))
        if name == "ReasoningAnswer":
            answer.pop("candidates")
        else:
            answer = {"candidates": [{**answer["candidates"][0]}]}
            answer["candidates"][0].pop("score")
        return await openai_text(json.dumps(answer))(body, request)

    model_server.behave = by_phase
    result = chat("--once", "Hi.", "--depth", "full")
    assert result.out == "Aye.\n"
    assert names == ["ReasoningAnswer", "ProposalAnswer"]


def test_memory_lasts_in_its_folder(model_server: FakeServer, chat: Say, tmp_path: Path) -> None:
    async def remember(body: dict[str, Any], request: Request) -> Response:
        prompt = body["messages"][-1]["content"]
        if "Remembered (" in prompt:
            return await openai_text(deliberation("respond", text="Noted."))(body, request)
        content = deliberation("tool_update_semantic_memory", fact="Ada likes tea.")
        return await openai_text(content)(body, request)

    model_server.behave = remember
    folder = str(tmp_path / "memory")
    result = chat("--memory", folder, "--once", "Tea, please.")
    assert result.out == "Noted.\n"
    model_server.behave = echo
    model_server.seen.clear()
    result = chat("--memory", folder, "--once", "Ada likes tea?")
    assert "  retrieval   1 record(s) recalled." in result.err.splitlines()
    assert "Ada likes tea." in model_server.seen[0]["messages"][-1]["content"]


def test_a_log_is_left_and_named(chat: Say, say: Say, tmp_path: Path) -> None:
    result = chat("--once", "Hi.", "--logs", "runs")
    (run,) = (tmp_path / "runs").iterdir()
    last = result.err.splitlines()[-1]
    assert last == f"See it all by: {coag_command()} log {run.name} --logs runs"
    log = say("log", run.name, "--logs", "runs")
    assert log.code == 0
    assert "You said: Hi." in log.out


def test_a_turn_that_a_bound_ended_says_so(model_server: FakeServer, chat: Say) -> None:
    model_server.behave = openai_text(deliberation("fly"))
    result = chat("--once", "Fly.")
    assert "in 3 cycles in a row no action was possible" in result.out
    assert "(ended by its bound on impasses)" in result.err


def test_what_a_model_writes_cannot_steer_the_terminal(model_server: FakeServer, chat: Say) -> None:
    model_server.behave = openai_text(deliberation("respond", text="[bold]\x1b[31mred[/bold]"))
    result = chat("--once", "Hi.")
    assert result.out == "[bold]red[/bold]\n"


# ---- what the user got wrong ----


def one_line(result: Any) -> str:
    assert result.code == 2
    assert result.out == ""
    return result.err.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("openai:gpt-5", ["OpenAI needs a key: set the environment variable OPENAI_API_KEY."]),
        ("gpt", ["There is no form of model spec named 'gpt'", "ollama:NAME"]),
        (
            "http://127.0.0.1:9/v1#tiny",
            ["'tiny' could not be asked", "Check that the server at http://127.0.0.1:9/v1 runs"],
        ),
    ],
)
def test_a_model_that_cannot_be_asked_is_one_line_with_what_to_do(
    say: Say, model: str, parts: list[str]
) -> None:
    line = one_line(say("chat", "--model", model, "--once", "Hi."))
    assert all(part in line for part in parts)


def test_a_call_that_fails_does_not_end_the_talk(
    model_server: FakeServer, chat: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def once(body: dict[str, Any], request: Request) -> Response:
        model_server.behave = echo
        return JSONResponse({"error": {"message": "no"}}, 404)

    model_server.behave = once
    monkeypatch.setattr(sys, "stdin", io.StringIO("One.\nTwo.\n"))
    result = chat()
    assert (result.code, result.out) == (2, "You said: Two.\n")
    assert "Check the model's name 'tiny'" in result.err
    assert "Messages without an answer: 1." in result.err


def test_an_unusable_answer_is_named_as_such(model_server: FakeServer, chat: Say) -> None:
    model_server.behave = openai_text("I would rather not.")
    result = chat("--once", "Hi.")
    assert "The model gave no usable answer: " in result.err
    assert result.err.splitlines()[-1].endswith("keep a log: --logs DIR")


def test_a_log_that_cannot_be_kept_stops_before_the_model_is_asked(
    model_server: FakeServer, chat: Say, tmp_path: Path
) -> None:
    (tmp_path / "runs").write_text("I am a file.")
    line = one_line(chat("--once", "Hi.", "--logs", "runs"))
    assert "cannot be made" in line
    assert model_server.seen == []


# ---- at a terminal ----


class Terminal:
    """Runs `coag` at a terminal of its own, where Ctrl-C works; ended with the block.

    A shell that runs the tests in the background may ignore it, and children inherit that.
    """

    def __init__(self, words: list[str]) -> None:
        self._leader, follower = pty.openpty()
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._unread = ""
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        code = f"{heard}; from coag.cli import main; main({words!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            env={**os.environ, "TERM": "dumb", "COLUMNS": "200"},
        )
        os.close(follower)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)

    def type(self, keys: bytes) -> None:
        os.write(self._leader, keys)

    def until(self, wanted: str) -> str:
        """What is shown up to and with the wanted text, or until nothing more comes."""
        while wanted not in self._unread:
            try:
                part = os.read(self._leader, 4_096)
            except OSError:
                break
            if not part:
                break
            self._unread += self._decoder.decode(part)
        seen, found, self._unread = self._unread.partition(wanted)
        return seen + found

    def ends(self) -> tuple[int, str]:
        """Its exit code and the rest of what it shows."""
        rest = self.until("\0")
        return self.process.wait(timeout=50), rest


def test_ctrl_d_leaves_cleanly(model_server: FakeServer) -> None:
    with Terminal(["chat", "--model", spec(model_server)]) as terminal:
        terminal.until("> ")
        terminal.type(b"Hello.\n")
        assert "You said: Hello." in terminal.until("You said: Hello.")
        terminal.until("> ")
        terminal.type(b"\x04")
        code, rest = terminal.ends()
    assert code == 0
    assert "Traceback" not in rest


def test_ctrl_c_leaves_cleanly_while_the_model_thinks(
    model_server: FakeServer, tmp_path: Path
) -> None:
    async def think(_body: dict[str, Any], _request: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    model_server.behave = think
    logs = str(tmp_path / "runs")
    with Terminal(["chat", "--model", spec(model_server), "--logs", logs]) as terminal:
        terminal.until("> ")
        terminal.type(b"Hello.\n")
        assert model_server.arrived.wait(timeout=50)
        terminal.process.send_signal(signal.SIGINT)
        code, rest = terminal.ends()
    assert code == 0
    assert "Stopped." in rest
    assert "Traceback" not in rest
    (trace,) = (tmp_path / "runs").glob("*/trace.jsonl")
    assert '"reason":"cancelled"' in trace.read_text().splitlines()[-1]


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """The spec of a model with one answer, from a component file; then it cannot be asked."""
    component = {
        "provider": "autogen_ext.models.replay.ReplayChatCompletionClient",
        "component_type": "model",
        "config": {"chat_completions": [deliberation("respond", text="Aye.")]},
    }
    (tmp_path / "recorded.json").write_text(json.dumps(component))
    return "recorded.json"


def test_a_message_without_an_answer_is_reported_and_the_next_one_is_sent(
    recorded: str, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("One.\nTwo.\nThree.\n"))
    result = say("chat", "--model", recorded)
    assert (result.code, result.out) == (2, "Aye.\n")
    assert result.err.count("No more mock responses") == 2
    assert result.err.endswith("Messages without an answer: 2. See the errors above.\n")
