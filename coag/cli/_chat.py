"""`coag chat`: talk to a default agent, and see it deliberate."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console
from rich.text import Text

from coag.agent import SYSTEM_MESSAGE, CoagAgent, talk
from coag.errors import ConfigurationError, ModelCallError
from coag.models import ModelSpec

from ._text import cleaned

_DIM = "dim"


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
    once: str | None = None
    """The only message; None to read messages from standard input."""


def chat(options: ChatOptions) -> None:
    """Answers one message, or every line of standard input, until it ends or Ctrl-C.

    Answers go to standard output; the banner and the phases to standard error, so that what is
    piped on is the answers alone.

    Raises:
        ConfigurationError: The model cannot be opened or asked; says what to do.
        TraceError: The log cannot be written.
    """
    spec = ModelSpec.parse(options.model)
    client = spec.open()
    agent = CoagAgent(
        "assistant",
        client,
        system_message=options.system or SYSTEM_MESSAGE,
        memory=options.memory,
        logs=options.logs,
        depth=options.depth,
    )
    shown = Console(stderr=True, highlight=False)
    with asyncio.Runner() as runner, warnings.catch_warnings():
        # AutoGen's remark on local servers that call a model otherwise than one has asked for it.
        warnings.filterwarnings("ignore", message="Resolved model mismatch")
        try:
            for message in _messages(options, spec.public, shown):
                runner.run(_turn(agent, message, shown, spec.public))
        except KeyboardInterrupt:
            shown.print(Text("\nStopped.", style=_DIM))
        finally:
            runner.run(agent.close())
            runner.run(client.close())
    _farewell(agent, options, shown)


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


async def _turn(agent: CoagAgent, message: str, shown: Console, model: str) -> None:
    try:
        async with aclosing(talk(agent, message)) as remarks:
            async for remark in remarks:
                if remark.ended_by is None:
                    shown.print(Text(f"  {cleaned(remark.text)}", style=_DIM), soft_wrap=True)
                    continue
                Console(highlight=False).print(Text(cleaned(remark.text)), soft_wrap=True)
                if remark.ended_by != "respond":
                    shown.print(Text(f"  (ended by its bound on {remark.ended_by})", style=_DIM))
    except ModelCallError as error:
        raise ConfigurationError(
            f"{error}. Check that the server of {model} runs and knows this model."
        ) from error


def _farewell(agent: CoagAgent, options: ChatOptions, shown: Console) -> None:
    if agent.run_folder is not None and options.logs is not None:
        run = agent.run_folder.path.name
        shown.print(Text(f"See it all by: coag log {run} --logs {options.logs}", style=_DIM))
