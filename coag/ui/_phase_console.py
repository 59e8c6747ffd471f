"""The console that shows agents think."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TextIO, TypeVar

from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
    ToolCallRequestEvent,
    UserInputRequestedEvent,
)
from autogen_agentchat.ui import UserInputManager
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coag.agent import PHASE_LISTENER
from coag.schema import Phase, TokenUsage, cleaned, phase_after, well_formed

from ._progress import Progress
from ._stream_lines import Line, StreamLines, brief, phase_of

T = TypeVar("T", bound=TaskResult | Response)
_LABEL = 12
"""Columns of a label."""
_NARROW = 60
"""Columns of a terminal below which texts follow their labels."""


async def PhaseConsole(
    stream: AsyncGenerator[BaseAgentEvent | BaseChatMessage | T, None],
    *,
    output: TextIO | None = None,
    output_stats: bool = True,
    messages: bool = True,
    user_input_manager: UserInputManager | None = None,
) -> T:
    """Shows a stream as it comes, phase by phase, and gives its result.

    It takes the place of AutoGen's `Console`: `await PhaseConsole(agent.run_stream(task="..."))`.
    Of a `CoagAgent` it shows each cycle: what was recalled, understood, proposed, judged (with
    the reason of every rejection), selected and done, and the tokens. It hears of the phases
    itself: the stream need not hold them. Agents of a team whose runtime was started elsewhere
    must show them (`events="phases"`). Messages, tool calls and
    streamed text of stock agents in the same team are shown, too. At a terminal a last line tells
    which phase goes on and for how long.

    No text of a model, a tool or a person can steer the terminal: escapes and control characters
    are taken out, markup is shown as it is written, and long texts are cut.

    Args:
        stream: What `run_stream` of an agent or a team gives, or `on_messages_stream`.
        output: Where to write; None for standard output. Colours are used at terminals only, and
            not where `NO_COLOR` is set.
        output_stats: Show at the end what was used, and why it ended.
        messages: Show what agents and users say; False leaves the deliberation alone.
        user_input_manager: Is told when a `UserProxyAgent` waits for input, as by `Console`.

    Returns:
        The `TaskResult` or `Response` that the stream ended with.

    Raises:
        ValueError: If the stream gave neither.
    """
    view = _View(output or sys.stdout, messages=messages)
    result: T | None = None
    listening = PHASE_LISTENER.set(view.hear)
    try:
        view.progress.show("working")
        async with aclosing(stream) as items:
            async for item in items:
                if isinstance(item, UserInputRequestedEvent):
                    view.wait_for_user()
                    _tell(user_input_manager, item)
                elif isinstance(item, TaskResult | Response):
                    result = item
                    view.end(item, output_stats=output_stats)
                else:
                    view.take(item)
    finally:
        PHASE_LISTENER.reset(listening)
        view.progress.hide()
    if result is None:
        raise ValueError("The stream gave no TaskResult and no Response; it gave no result.")
    return result


def _tell(manager: UserInputManager | None, event: UserInputRequestedEvent) -> None:
    """Tells whoever asks the user that the screen is free."""
    if manager is not None:
        # Told before it is asked, as of an agent without a team, it only takes note of the
        # request and would wait for ever: it is told once more.
        manager.notify_event_received(event.request_id)
        manager.notify_event_received(event.request_id)


class _View:
    """What is shown, and what it adds up to."""

    def __init__(self, output: TextIO, *, messages: bool) -> None:
        self.console = Console(file=output, highlight=False, markup=False, emoji=False)
        self.progress = Progress(self.console)
        self._messages = messages
        self._lines = StreamLines()
        self._begun = time.monotonic()
        self._usage = TokenUsage()
        self._streamed: list[str] = []

    def take(self, item: BaseAgentEvent | BaseChatMessage) -> None:
        """Shows one item of the stream."""
        if isinstance(item, ModelClientStreamingChunkEvent):
            self._write(item)
            return
        written = self._end_of_writing()
        self._show(item, written)
        self.progress.show(_next(item))

    def hear(self, phase: ThoughtEvent) -> None:
        """Shows a phase that the stream does not hold; a message of it tells the usage."""
        self._end_of_writing()
        for line in self._lines.of(phase):
            self._print(line)
        self.progress.show(_next(phase))

    def wait_for_user(self) -> None:
        """Makes way for what a person types."""
        self._end_of_writing()
        self.progress.hide()

    def end(self, result: TaskResult | Response, *, output_stats: bool) -> None:
        """Shows how it ended."""
        written = self._end_of_writing()
        self.progress.hide()
        if isinstance(result, Response):
            self._show(result.chat_message, written)
        if output_stats:
            reason = result.stop_reason if isinstance(result, TaskResult) else None
            self._print(Line(label="total", text=self._total(reason), style="dim"))

    def _show(self, item: BaseAgentEvent | BaseChatMessage, written: str | None) -> None:
        """Shows an item, unless its text was just written piece by piece."""
        used = item.models_usage
        if used is not None:
            self._usage += TokenUsage(
                prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens
            )
        known = isinstance(item, TextMessage) and written == item.content
        if known or (isinstance(item, BaseChatMessage) and not self._messages):
            return
        for line in self._lines.of(item):
            self._print(line)

    def _total(self, reason: str | None) -> str:
        seconds = time.monotonic() - self._begun
        tokens = f"{self._usage.prompt_tokens:,} + {self._usage.completion_tokens:,} tokens"
        return f"{tokens}, {seconds:.1f} s{f', ended: {brief(reason)}' if reason else ''}"

    def _write(self, chunk: ModelClientStreamingChunkEvent) -> None:
        """A piece of a text that is just being written, where the last one ended."""
        if self._messages:
            self.progress.hide()
            if not self._streamed:
                self._print(Line(text=brief(chunk.source), heading=True))
            piece = Text(self._writable(cleaned(chunk.content)), end="")
            self.console.print(piece, soft_wrap=True, end="")
            self.console.file.flush()
        self._streamed.append(chunk.content)

    def _end_of_writing(self) -> str | None:
        """The text that was just written, which others come after; None if there was none."""
        if not self._streamed:
            return None
        written = "".join(self._streamed)
        self._streamed.clear()
        if self._messages:
            self.console.print()
        return written

    def _print(self, line: Line) -> None:
        text = Text(self._writable(line.text), style=line.style)
        if line.aside:
            text.append(f"  {self._writable(line.aside)}", style="not bold dim")
        terminal = self.console.is_terminal
        if line.heading:
            self.console.print()
            text.stylize("bold underline")
        if line.heading or line.whole:
            self.console.print(text, soft_wrap=not terminal)
        elif terminal:
            self.console.print(self._beside(line.label, text))
        else:
            label = Text(f"  {line.label:<{_LABEL}}")
            self.console.print(label.append_text(text), soft_wrap=True)

    def _beside(self, label: str, text: Text) -> Table:
        """The text beside its label, with its further lines under its first one."""
        grid = Table.grid()
        if self.console.width < _NARROW:
            grid.add_column(width=2 if label else 4)
            grid.add_row("", Text(f"{label}: " if label else "", style="dim").append_text(text))
            return grid
        grid.add_column(width=_LABEL + 2, style="dim")
        grid.add_column(overflow="fold")
        grid.add_row(Text(f"  {label}"), text)
        return grid

    def _writable(self, text: str) -> str:
        """The text with `?` for what the output's encoding does not have."""
        encoding = self.console.encoding
        return well_formed(text).encode(encoding, "replace").decode(encoding, "replace")


def _next(item: BaseAgentEvent | BaseChatMessage) -> str:
    """What goes on after an item, as far as it tells."""
    if isinstance(item, ToolCallRequestEvent):
        return brief(f"{item.source}: {', '.join(call.name for call in item.content)}")
    phase = phase_of(item)
    return f"{brief(item.source)}: {phase_after(Phase(phase))}" if phase else "working"
