"""`coag chat`: talk to a default agent, and see it deliberate."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console
from rich.text import Text

from coag.agent import SYSTEM_MESSAGE, CoagAgent
from coag.errors import ConfigurationError, ModelCallError
from coag.models import ModelSpec
from coag.schema import Phase, cleaned, one_line
from coag.ui import PhaseConsole

from .command import as_typed, coag_command
from .hints import what_to_check

_DIM = "dim"
_UNUSABLE = "The model gave no usable answer:"
"""How Reasoning's account of the situation begins where there was no answer to take it from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """What the user asked for."""

    model: str
    """A model spec; see `coag.models.ModelSpec`."""
    system: str | None = None
    """Instructions to the agent; None for the default ones."""
    memory: str | None = None
    """A folder (or a Chroma server's URL) for long-term memory; None keeps it in RAM."""
    logs: Path | None = None
    """A folder for the run's log; None keeps none."""
    depth: Literal["compact", "full"] = "compact"
    proposal: Literal["json", "native"] = "json"
    """How the model proposes; `json` works with every one."""
    once: str | None = None
    """The only message; None to read messages from standard input."""


def chat(options: ChatOptions) -> None:
    """Answers one message, or every line of standard input, until it ends or Ctrl-C.

    Answers go to standard output; the banner and the phases to standard error, so that what is
    piped on is the answers alone.

    Raises:
        ConfigurationError: The model cannot be opened, or could not be asked for an answer to
            the one message or to some of the piped ones; says what to do. At a terminal a
            message that fails is told, and the next one is read.
        TraceError: The log cannot be written.
    """
    spec = ModelSpec.parse(options.model)
    client = spec.open()
    agent = CoagAgent(
        "assistant",
        client,
        system_message=options.system or SYSTEM_MESSAGE,
        memory=options.memory,
        events="phases",
        logs=options.logs,
        depth=options.depth,
        proposal=options.proposal,
    )
    shown = Console(stderr=True, highlight=False)
    with asyncio.Runner() as runner:
        conversation = _Conversation(agent, spec, shown)
        try:
            for message in _messages(options, spec.public, shown):
                conversation.take(message, runner, only=options.once is not None)
        except KeyboardInterrupt:
            shown.print(Text("\nStopped.", style=_DIM))
        finally:
            runner.run(agent.close())
            runner.run(client.close())
    _farewell(conversation, options)


def _messages(options: ChatOptions, model: str, shown: Console) -> Iterator[str]:
    """The one message, or the lines that the user types; empty ones are left out."""
    if options.once is not None:
        yield options.once
        return
    shown.print(Text(f"coag chat with {model}. It deliberates, then answers."))
    kept = f"kept in {options.memory}" if options.memory else "gone at the end (--memory DIR)"
    shown.print(Text(f"What it remembers is {kept}. Ctrl-D leaves.", style=_DIM))
    for line in _lines(sys.stdin, shown):
        if line.strip():
            yield line.strip()


def _lines(source: TextIO, shown: Console) -> Iterator[str]:
    if not source.isatty():
        yield from source
        return
    while True:
        try:
            yield input("> ")
        except EOFError:
            shown.print()
            return


class _Conversation:
    """Message and answer, as they are shown."""

    def __init__(self, agent: CoagAgent, spec: ModelSpec, shown: Console) -> None:
        self.agent = agent
        self.shown = shown
        self.failed = 0
        """How many messages got no answer because the model could not be asked."""
        self.unusable = 0
        """How many times an answer of the model was unusable."""
        self._spec = spec

    def take(self, message: str, runner: asyncio.Runner, *, only: bool) -> None:
        """One message; a model that cannot be asked is told, and raised for an only one."""
        try:
            runner.run(self._turn(message))
        except ModelCallError as error:
            told = f"{str(error).rstrip('.')}. {what_to_check(error, self._spec)}"
            if only:
                raise ConfigurationError(told) from error
            self.failed += 1
            self.shown.print(Text(one_line(told, 600), style="red"), soft_wrap=True)

    async def _turn(self, message: str) -> None:
        result = await PhaseConsole(
            self.agent.run_stream(task=message), output=sys.stderr, messages=False
        )
        for item in result.messages:
            thought = item.metadata.get("detail", "")
            if item.metadata.get("phase") == Phase.REASONING and thought.startswith(_UNUSABLE):
                self.unusable += 1
        said = result.messages[-1]
        Console(highlight=False).print(Text(cleaned(said.to_text())), soft_wrap=True)
        ended_by = said.metadata.get("ended_by", "respond")
        if ended_by != "respond":
            self._dim(f"(ended by its bound on {ended_by})")

    def _dim(self, text: str) -> None:
        self.shown.print(Text(f"  {text}", style=_DIM), soft_wrap=True)


def _farewell(conversation: _Conversation, options: ChatOptions) -> None:
    shown, folder = conversation.shown, conversation.agent.run_folder
    if folder is not None and options.logs is not None:
        command = f"{coag_command()} log {folder.path.name} --logs {as_typed(options.logs)}"
        shown.print(Text(f"See it all by: {command}", style=_DIM), soft_wrap=True)
    elif conversation.unusable:
        hint = "To see what the model answered, keep a log: --logs DIR"
        shown.print(Text(hint, style=_DIM), soft_wrap=True)
    if conversation.failed and not sys.stdin.isatty():
        raise ConfigurationError(
            f"Messages without an answer: {conversation.failed}. See the errors above."
        )
