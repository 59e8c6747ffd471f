"""`coag chat`: talk to a default agent, and see it deliberate."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TextIO
from urllib.parse import urlsplit, urlunsplit

import typer
from rich.console import Console
from rich.text import Text

from coag._util.text import cleaned, one_line
from coag.agent import SYSTEM_MESSAGE, CoagAgent
from coag.errors import ConfigurationError, ModelCallError
from coag.models import ModelSpec
from coag.schema import Depth, Phase
from coag.ui import PhaseConsole

from .output import DIM, say
from .terminal import as_typed, coag_command

_UNUSABLE = "The model gave no usable answer:"
"""How Reasoning's account of the situation begins where there was no answer to take it from."""


def chat(
    model: Annotated[
        str,
        typer.Option(
            help="`openai:NAME`, `ollama:NAME`, `anthropic:NAME`, `URL#NAME` for a server that "
            "speaks OpenAI's API, or an AutoGen component file."
        ),
    ],
    system: Annotated[str | None, typer.Option(help="Instructions to the agent.")] = None,
    memory: Annotated[
        str | None, typer.Option(help="A folder in which it remembers; without one, in RAM.")
    ] = None,
    logs: Annotated[Path | None, typer.Option(help="A folder for a log of what it did.")] = None,
    depth: Annotated[
        Depth,
        typer.Option(help="Ask the model once a phase, once a cycle, or as each cycle needs."),
    ] = "compact",
    proposal: Annotated[
        Literal["json", "native"],
        typer.Option(
            help="Candidates written as JSON, which every model can, or the model's own tool "
            "calls; `coag doctor` says whether a server gives those."
        ),
    ] = "json",
    once: Annotated[str | None, typer.Option(help="Say this, show the answer, and leave.")] = None,
) -> None:
    """Talks with an agent that deliberates; shows the phases as they happen.

    Reads a message a line. Answers go to standard output, all else to standard error.
    """
    spec = ModelSpec.parse(model)
    client = spec.open()
    agent = CoagAgent(
        "assistant",
        client,
        system_message=system or SYSTEM_MESSAGE,
        memory=memory,
        events="phases",
        logs=logs,
        depth=depth,
        proposal=proposal,
    )
    with asyncio.Runner() as runner:
        conversation = _Conversation(agent, spec)
        try:
            messages = [once] if once is not None else _messages(spec.public, memory)
            for message in messages:
                conversation.take(message, runner, only=once is not None)
        except KeyboardInterrupt:
            say("\nStopped.", DIM)
        finally:
            runner.run(agent.close())
            runner.run(client.close())
    conversation.end(logs)


def _messages(model: str, memory: str | None) -> Iterator[str]:
    """The lines that the user types; empty ones are left out."""
    say(f"coag chat with {model}. It deliberates, then answers.")
    kept = f"kept in {memory}" if memory else "gone at the end (--memory DIR)"
    say(f"What it remembers is {kept}. Ctrl-D leaves.", DIM)
    for line in _lines(sys.stdin):
        if line.strip():
            yield line.strip()


def _lines(source: TextIO) -> Iterator[str]:
    if not source.isatty():
        yield from source
        return
    while True:
        try:
            yield input("> ")
        except EOFError:
            say("")
            return


class _Conversation:
    """Message and answer, as they are shown."""

    def __init__(self, agent: CoagAgent, spec: ModelSpec) -> None:
        self._agent = agent
        self._spec = spec
        self._failed = 0
        """How many messages got no answer because the model could not be asked."""
        self._unusable = 0
        """How many times an answer of the model was unusable."""

    def take(self, message: str, runner: asyncio.Runner, *, only: bool) -> None:
        """One message; that the model cannot be asked is shown, or raised for an only message."""
        try:
            runner.run(self._turn(message))
        except ModelCallError as error:
            text = f"{str(error).rstrip('.')}. {what_to_check(error, self._spec)}"
            if only:
                raise ConfigurationError(text) from error
            self._failed += 1
            say(one_line(text, 600), "red")

    async def _turn(self, message: str) -> None:
        result = await PhaseConsole(
            self._agent.run_stream(task=message), output=sys.stderr, messages=False
        )
        for item in result.messages:
            thought = item.metadata.get("detail", "")
            if item.metadata.get("phase") == Phase.REASONING and thought.startswith(_UNUSABLE):
                self._unusable += 1
        answer = result.messages[-1]
        Console(highlight=False).print(Text(cleaned(answer.to_text())), soft_wrap=True)
        ended_by = answer.metadata.get("ended_by", "respond")
        if ended_by != "respond":
            say(f"  (ended by its bound on {ended_by})", DIM)

    def end(self, logs: Path | None) -> None:
        """Says where to see more."""
        folder = self._agent.run_folder
        if folder is not None and logs is not None:
            command = f"{coag_command()} log {folder.path.name} --logs {as_typed(logs)}"
            say(f"See it all by: {command}", DIM)
        elif self._unusable:
            say("To see what the model answered, keep a log: --logs DIR", DIM)
        if self._failed and not sys.stdin.isatty():
            raise ConfigurationError(
                f"Messages without an answer: {self._failed}. See the errors above."
            )


# ---- What to check when a model could not be asked ----


_KEYS = {"openai": "OPENAI_API_KEY", "url": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_ADDRESSES = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "ollama": ("OLLAMA_HOST", "http://127.0.0.1:11434"),
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
}
"""Where a provider is met: the variable that says so, and the address without it."""


def what_to_check(error: ModelCallError, spec: ModelSpec) -> str:
    """A sentence on what to do, by how the server answered; names its address where known."""
    address = _address(spec)
    server = f"the server at {address}" if address else f"the server of {spec.public}"
    status = _status(error)
    if status in {401, 403}:
        key = _KEYS.get(spec.scheme)
        return f"Check the key{f' in {key}' if key else ''}: {server} refused it."
    if status == 404:
        return f"Check the model's name {spec.name!r} and the URL: {server} does not know them."
    if status == 429:
        return f"Wait, or check the account: {server} takes no more requests for now."
    if status is not None:
        return f"Check that {server} can serve this model: it answered with status {status}."
    return f"Check that {server} runs and knows this model."


def _address(spec: ModelSpec) -> str:
    """Where the model is asked, without user, password and query; empty where it is not known."""
    if spec.scheme == "url":
        return spec.public.partition("#")[0]
    if spec.scheme not in _ADDRESSES:
        return ""
    variable, usual = _ADDRESSES[spec.scheme]
    parts = urlsplit(os.environ.get(variable) or usual)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _status(error: BaseException) -> int | None:
    """The HTTP status in the chain of causes, where there is one."""
    current: BaseException | None = error
    while current is not None:
        for holder in (current, getattr(current, "response", None)):
            status: object = getattr(holder, "status_code", None)
            if isinstance(status, int):
                return status
        current = current.__cause__
    return None
