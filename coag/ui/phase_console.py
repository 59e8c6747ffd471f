"""`PhaseConsole`: a turn at the terminal, phase by phase."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeVar, cast

from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    MemoryQueryEvent,
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
    UserInputRequestedEvent,
)
from autogen_agentchat.ui import UserInputManager
from pydantic_core import from_json
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from coag._util.text import cleaned, well_formed
from coag.agent import PHASE_LISTENER
from coag.models import token_usage
from coag.schema import PHASES, Phase, TokenUsage, one_line, phase_after

_TEXT, _ANSWER = 300, 20_000
"""Characters shown of what a phase, a tool or a model says, and of what an agent says."""
_READ = 8
"""So many times the characters that are shown are looked at."""
_LABEL, _NARROW = 12, 60
"""Columns of a label, and of a terminal below which texts follow their labels."""
_Item = BaseAgentEvent | BaseChatMessage
T = TypeVar("T", bound=TaskResult | Response)


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
    the reason of every rejection), selected and done, and the tokens. It receives the phases
    itself: the stream need not hold them. Agents of a team whose runtime was started elsewhere
    must show them (`events="phases"`). Messages, tool calls and
    streamed text of stock agents in the same team are shown, too. At a terminal a last line says
    which phase is running and for how long.

    No text of a model, a tool or a person can steer the terminal: escapes and control characters
    are taken out, markup is shown as it is written, and long texts are cut.

    Args:
        stream: What `run_stream` of an agent or a team gives, or `on_messages_stream`.
        output: Where to write; None for standard output. Colours are used at terminals only, and
            not where `NO_COLOR` is set.
        output_stats: Show at the end what was used, and why it ended.
        messages: Show what agents and users say; False leaves the deliberation alone.
        user_input_manager: Is notified when a `UserProxyAgent` waits for input, as by `Console`.

    Returns:
        The `TaskResult` or `Response` that the stream ended with.

    Raises:
        ValueError: If the stream gave neither.
    """
    screen = _Screen(output or sys.stdout)
    view = _View(screen, messages=messages)
    result: T | None = None
    listening = PHASE_LISTENER.set(view.show_phase)
    try:
        screen.show_progress("working")
        async with aclosing(stream) as items:
            async for item in items:
                if isinstance(item, UserInputRequestedEvent):
                    view.wait_for_user()
                    # A manager that is notified before it is asked, as with an agent without a
                    # team, only notes the request and would wait for ever: so it is notified twice.
                    for manager in [user_input_manager] * 2 if user_input_manager else []:
                        manager.notify_event_received(item.request_id)
                elif isinstance(item, TaskResult | Response):
                    result = item
                    view.end(item, output_stats=output_stats)
                else:
                    view.take(item)
    finally:
        PHASE_LISTENER.reset(listening)
        screen.hide_progress()
    if result is None:
        raise ValueError("The stream gave no TaskResult and no Response; it gave no result.")
    return result


# ---- The lines on the terminal; no text in them can steer it ----


class _Screen:
    def __init__(self, output: TextIO) -> None:
        self.console = Console(file=output, highlight=False, markup=False, emoji=False)
        self._progress: Progress | None = None

    def show_progress(self, what: str) -> None:
        """Shows what is running, and for how long; nothing where the output is no terminal."""
        self.hide_progress()
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            spinner = "dots" if self.console.encoding.startswith("utf") else "line"
            columns = SpinnerColumn(spinner), TextColumn("{task.description}", markup=False)
            self._progress = Progress(
                *columns, TimeElapsedColumn(), console=self.console, transient=True
            )
            self._progress.add_task(what)
            self._progress.start()

    def hide_progress(self) -> None:
        """Removes that line, so that something else may write."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def heading(self, text: str) -> None:
        """A line of its own, above what follows."""
        self.console.print()
        self.paragraph(text, "bold underline")

    def paragraph(self, text: str, style: str = "") -> None:
        """A text from the margin on."""
        shown = Text(self._writable(text), style=style)
        self.console.print(shown, soft_wrap=not self.console.is_terminal)

    def piece(self, text: str) -> None:
        """A piece of a text, where the last one ended."""
        self.console.print(Text(self._writable(text), end=""), soft_wrap=True, end="")
        self.console.file.flush()

    def line(self, label: str, text: str, style: str = "", aside: str = "") -> None:
        """A text beside its label, which is empty for what belongs to the line before.

        The colour says nothing that the words do not say; `aside` is dimmed behind the text.
        """
        shown = Text(self._writable(text), style=style)
        if aside:
            shown.append(f"  {self._writable(aside)}", style="not bold dim")
        if not self.console.is_terminal:
            shown = Text(f"  {label:<{_LABEL}}").append_text(shown)
            self.console.print(shown, soft_wrap=True)
            return
        grid = Table.grid()  # further lines are under the first one
        if self.console.width < _NARROW:
            grid.add_column(width=2 if label else 4)
            grid.add_row("", Text(f"{label}: " if label else "", style="dim").append_text(shown))
        else:
            grid.add_column(width=_LABEL + 2, style="dim")
            grid.add_column(overflow="fold")
            grid.add_row(Text(f"  {label}"), shown)
        self.console.print(grid)

    def _writable(self, text: str) -> str:
        """The text with `?` for what the output's encoding does not have."""
        encoding = self.console.encoding
        return well_formed(text).encode(encoding, "replace").decode(encoding, "replace")


# ---- What a stream of AutoGen's messages and events says ----


@dataclass(slots=True)
class _AgentCycle:
    """The last cycle seen of an agent that deliberates; candidates are known by their ids."""

    cycle: str = ""
    candidates: dict[str, str] = field(default_factory=dict[str, str])
    """What each would do."""
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """What the model calls the tool call that each is."""
    rejected: set[str] = field(default_factory=set[str])

    def show_proposed(self, detail: str, screen: _Screen) -> None:
        self.candidates, self.calls = {}, {}
        for item in _listed(detail, screen):
            does = f"{_brief(_text(item, 'action'))} {_brief(_text(item, 'raw_arguments'))}"
            self.candidates[_text(item, "id")] = does
            self.calls[_text(item, "id")] = _text(item, "call_id")
            screen.line("", does, aside=_brief(_text(item, "reason")))

    def show_judged(self, detail: str, screen: _Screen) -> None:
        """What became of it in Evaluation."""
        self.rejected = set()
        for item in _listed(detail, screen):
            identity = _text(item, "candidate_id")
            does = self.candidates.get(identity) or _brief(identity)
            verdicts = _objects(item.get("verdicts"))
            fatal = next((one for one in verdicts if one.get("allowed") is not True), None)
            if fatal is None:
                score, reason = item.get("score"), _brief(_text(item, "reason"))
                scored = f" ({score:.2f})" if isinstance(score, int | float) else ""
                screen.line("", f"survived{scored}: {does}", "green", reason)
                continue
            self.rejected |= {identity, self.calls.get(identity) or identity}
            screen.line("", f"rejected: {does}", "red")
            why = f"{_brief(_text(fatal, 'constraint'))}: {_brief(_text(fatal, 'reason'))}"
            screen.line("", f"  by {why}", "red")


class _View:
    """Shows the items of a stream.

    Phases are read from the metadata of an agent's `ThoughtEvent`s; messages and events of stock
    agents are shown, too.
    """

    def __init__(self, screen: _Screen, *, messages: bool) -> None:
        self._screen = screen
        self._messages = messages
        self._cycles: dict[str, _AgentCycle] = {}
        self._started = time.monotonic()
        self._usage = TokenUsage()
        self._streamed: list[str] = []

    def take(self, item: _Item) -> None:
        if isinstance(item, ModelClientStreamingChunkEvent):
            self._write(item)
            return
        self._show_new(item, self._end_of_writing())
        self._screen.show_progress(_next(item))

    def show_phase(self, phase: ThoughtEvent) -> None:
        """Shows a phase that the stream does not hold; its usage is in a message that follows."""
        self._end_of_writing()
        self._show(phase)
        self._screen.show_progress(_next(phase))

    def wait_for_user(self) -> None:
        """Frees the line for what a person types."""
        self._end_of_writing()
        self._screen.hide_progress()

    def end(self, result: TaskResult | Response, *, output_stats: bool) -> None:
        written = self._end_of_writing()
        self._screen.hide_progress()
        reason = result.stop_reason if isinstance(result, TaskResult) else None
        if isinstance(result, Response):
            self._show_new(result.chat_message, written)
        if output_stats:
            seconds = time.monotonic() - self._started
            tokens = f"{self._usage.prompt_tokens:,} + {self._usage.completion_tokens:,} tokens"
            total = f"{tokens}, {seconds:.1f} s{f', ended: {_brief(reason)}' if reason else ''}"
            self._screen.line("total", total, "dim")

    def _write(self, chunk: ModelClientStreamingChunkEvent) -> None:
        """A piece of a text that is just being written."""
        if self._messages:
            self._screen.hide_progress()
            if not self._streamed:
                self._screen.heading(_brief(chunk.source))
            self._screen.piece(cleaned(chunk.content))
        self._streamed.append(chunk.content)

    def _end_of_writing(self) -> str | None:
        """The text that was just written, which others come after; None if there was none."""
        if not self._streamed:
            return None
        written = "".join(self._streamed)
        self._streamed.clear()
        if self._messages:
            self._screen.piece("\n")
        return written

    def _show_new(self, item: _Item, written: str | None) -> None:
        """Shows an item, unless its text was just written piece by piece."""
        used = item.models_usage
        if used is not None:
            self._usage += token_usage(used)
        known = isinstance(item, TextMessage) and written == item.content
        if not known and (self._messages or not isinstance(item, BaseChatMessage)):
            self._show(item)

    def _show(self, item: _Item) -> None:
        agent, line = self._cycles.setdefault(item.source, _AgentCycle()), self._screen.line
        match item:
            case ThoughtEvent() if _phase_of(item):
                self._show_deliberation(item, agent)
            case ThoughtEvent():
                line("thought", _brief(item.content), "dim")
            case MemoryQueryEvent():
                for memory in item.content:
                    line("", f"remembered: {_brief(str(memory.content))}", "dim")
            case ToolCallRequestEvent():
                for call in (call for call in item.content if call.id not in agent.rejected):
                    line("action", f"{_brief(call.name)} {_brief(call.arguments)}", "bold")
            case ToolCallExecutionEvent():
                for one in (one for one in item.content if one.call_id not in agent.rejected):
                    what, style = ("failed", "red") if one.is_error else ("returned", "green")
                    line("result", f"{what}: {_brief(one.content)}", style)
            case BaseChatMessage():
                text = item.to_text()
                more = len(text) - _ANSWER
                excerpt = cleaned(well_formed(text[:_ANSWER]))
                self._screen.heading(_brief(item.source))
                self._screen.paragraph(f"{excerpt} [… {more:,} more]" if more > 0 else excerpt)
            case _:
                line("event", f"{item.source}: {_brief(item.to_text())}")

    def _show_deliberation(self, event: ThoughtEvent, agent: _AgentCycle) -> None:
        phase, used = _phase_of(event), event.models_usage
        cycle = _brief(event.metadata.get("cycle", ""))
        if cycle != agent.cycle or phase == PHASES[0].value:
            agent.cycle = cycle
            self._screen.heading(f"{_brief(event.source)}, cycle {cycle}")
        sentence = _brief(event.content).removeprefix(f"{phase.capitalize()}: ")
        if phase == "evaluation":
            sentence = sentence.partition(";")[0].rstrip(".") + "."
        spent = used and f"{used.prompt_tokens:,} + {used.completion_tokens:,} tokens"
        self._screen.line(phase, sentence, "bold", spent or "")
        detail = event.metadata.get("detail", "")
        if phase == "proposal":
            agent.show_proposed(detail, self._screen)
        elif phase == "evaluation":
            agent.show_judged(detail, self._screen)
        elif phase == "retrieval" and detail:
            self._screen.line("", f"query: {_brief(detail)}", "dim")
        elif detail:
            self._screen.line("", _brief(detail))


def _phase_of(item: object) -> str:
    """The phase that an event is about; empty if it is about none."""
    phase = item.metadata.get("phase", "") if isinstance(item, ThoughtEvent) else ""
    return phase if phase in [one.value for one in PHASES] else ""


def _brief(text: str) -> str:
    """The beginning of a foreign text on one line."""
    return one_line(well_formed(text[: _READ * _TEXT]), _TEXT)


def _listed(detail: str, screen: _Screen) -> Iterator[Mapping[str, Any]]:
    """The objects of a list in JSON; of one that is cut without the cut one, which is said."""
    try:
        yield from _objects(from_json(detail))
    except ValueError:
        with suppress(ValueError):
            yield from _objects(from_json(detail, allow_partial=True), but=1)
        screen.line("", "… and more than fits here", "dim")


def _objects(value: Any, but: int = 0) -> Sequence[Mapping[str, Any]]:
    """The objects in a list, without its last `but` items; of no list none."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    complete = items[: len(items) - but]
    return [cast("dict[str, Any]", item) for item in complete if isinstance(item, dict)]


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name, "")
    return value if isinstance(value, str) else ""


def _next(item: _Item) -> str:
    """What probably runs after an item."""
    if isinstance(item, ToolCallRequestEvent):
        return _brief(f"{item.source}: {', '.join(call.name for call in item.content)}")
    phase = _phase_of(item)
    return f"{_brief(item.source)}: {phase_after(Phase(phase))}" if phase else "working"
