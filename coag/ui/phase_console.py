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

# ---- A stream of AutoGen's messages and events, as lines ----


_TEXT, _ANSWER = 300, 20_000
"""Characters shown of what a phase, a tool or a model says, and of what an agent says."""
_READ = 8
"""So many times the characters that are shown are looked at."""
_Item = BaseAgentEvent | BaseChatMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleLine:
    """One line or text that is shown."""

    label: str = ""
    """The phase, or what it is; empty for what belongs to the line before."""
    text: str
    style: str = ""
    """Its colour; the words say the same."""
    aside: str = ""
    """Shown dimmed behind the text."""
    heading: bool = False
    """True for a line of its own, above what follows."""
    whole: bool = False
    """True for a text of several lines, shown from the margin on."""


_MORE = ConsoleLine(text="… and more than fits here", style="dim")


@dataclass(slots=True)
class _AgentCycle:
    """The last cycle seen of an agent that deliberates; candidates are known by their ids."""

    cycle: str = ""
    candidates: dict[str, str] = field(default_factory=dict[str, str])
    """What each would do."""
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """What the model calls the tool call that each is."""
    rejected: set[str] = field(default_factory=set[str])

    def proposed(self, detail: str) -> Iterator[ConsoleLine]:
        items, cut = _listed(detail)
        self.candidates, self.calls = {}, {}
        for item in items:
            does = f"{_brief(_text(item, 'action'))} {_brief(_text(item, 'raw_arguments'))}"
            self.candidates[_text(item, "id")] = does
            self.calls[_text(item, "id")] = _text(item, "call_id")
            yield ConsoleLine(text=does, aside=_brief(_text(item, "reason")))
        yield from [_MORE] if cut else []

    def judged(self, detail: str) -> Iterator[ConsoleLine]:
        """What became of it in Evaluation."""
        items, cut = _listed(detail)
        self.rejected = set()
        for item in items:
            identity = _text(item, "candidate_id")
            does = self.candidates.get(identity) or _brief(identity)
            verdicts = _objects(item.get("verdicts"))
            fatal = next((one for one in verdicts if one.get("allowed") is not True), None)
            if fatal is None:
                score, reason = item.get("score"), _brief(_text(item, "reason"))
                scored = f" ({score:.2f})" if isinstance(score, int | float) else ""
                yield ConsoleLine(text=f"survived{scored}: {does}", aside=reason, style="green")
                continue
            self.rejected |= {identity, self.calls.get(identity) or identity}
            yield ConsoleLine(text=f"rejected: {does}", style="red")
            why = f"{_brief(_text(fatal, 'constraint'))}: {_brief(_text(fatal, 'reason'))}"
            yield ConsoleLine(text=f"  by {why}", style="red")
        yield from [_MORE] if cut else []


class StreamLines:
    """Turns the items of a stream into lines; no text in them can steer a terminal.

    Phases are read from the metadata of an agent's `ThoughtEvent`s; messages and events of stock
    agents are shown, too.
    """

    def __init__(self) -> None:
        self._cycles: dict[str, _AgentCycle] = {}

    def of(self, item: _Item) -> Iterator[ConsoleLine]:
        """The lines of one item; none for what was shown already."""
        agent = self._cycles.setdefault(item.source, _AgentCycle())
        match item:
            case ThoughtEvent() if _phase_of(item):
                yield from self._phase(item, agent)
            case ThoughtEvent():
                yield ConsoleLine(label="thought", text=_brief(item.content), style="dim")
            case MemoryQueryEvent():
                for memory in item.content:
                    text = f"remembered: {_brief(str(memory.content))}"
                    yield ConsoleLine(text=text, style="dim")
            case ToolCallRequestEvent():
                for call in (call for call in item.content if call.id not in agent.rejected):
                    text = f"{_brief(call.name)} {_brief(call.arguments)}"
                    yield ConsoleLine(label="action", text=text, style="bold")
            case ToolCallExecutionEvent():
                for one in (one for one in item.content if one.call_id not in agent.rejected):
                    what, style = ("failed", "red") if one.is_error else ("returned", "green")
                    text = f"{what}: {_brief(one.content)}"
                    yield ConsoleLine(label="result", text=text, style=style)
            case BaseChatMessage():
                text = item.to_text()
                more = len(text) - _ANSWER
                excerpt = cleaned(well_formed(text[:_ANSWER]))
                yield ConsoleLine(text=_brief(item.source), heading=True)
                excerpt = f"{excerpt} [… {more:,} more]" if more > 0 else excerpt
                yield ConsoleLine(text=excerpt, whole=True)
            case _:
                yield ConsoleLine(label="event", text=f"{item.source}: {_brief(item.to_text())}")

    def _phase(self, event: ThoughtEvent, agent: _AgentCycle) -> Iterator[ConsoleLine]:
        phase, used = _phase_of(event), event.models_usage
        cycle = _brief(event.metadata.get("cycle", ""))
        if cycle != agent.cycle or phase == PHASES[0].value:
            agent.cycle = cycle
            yield ConsoleLine(text=f"{_brief(event.source)}, cycle {cycle}", heading=True)
        sentence = _brief(event.content).removeprefix(f"{phase.capitalize()}: ")
        if phase == "evaluation":
            sentence = sentence.partition(";")[0].rstrip(".") + "."
        spent = used and f"{used.prompt_tokens:,} + {used.completion_tokens:,} tokens"
        yield ConsoleLine(label=phase, text=sentence, aside=spent or "", style="bold")
        detail = event.metadata.get("detail", "")
        if phase == "proposal":
            yield from agent.proposed(detail)
        elif phase == "evaluation":
            yield from agent.judged(detail)
        elif detail:
            what = "query: " if phase == "retrieval" else ""
            yield ConsoleLine(text=f"{what}{_brief(detail)}", style="dim" if what else "")


def _phase_of(item: object) -> str:
    """The phase that an event is about; empty if it is about none."""
    phase = item.metadata.get("phase", "") if isinstance(item, ThoughtEvent) else ""
    return phase if phase in [one.value for one in PHASES] else ""


def _brief(text: str) -> str:
    """The beginning of a foreign text on one line."""
    return one_line(well_formed(text[: _READ * _TEXT]), _TEXT)


def _listed(detail: str) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """The objects of a list in JSON that may be cut, without the cut one; and whether it is cut."""
    with suppress(ValueError):
        return _objects(from_json(detail)), False
    with suppress(ValueError):
        return _objects(from_json(detail, allow_partial=True), but=1), True
    return [], True


def _objects(value: Any, but: int = 0) -> Sequence[Mapping[str, Any]]:
    """The objects in a list, without its last `but` items; of no list none."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    complete = items[: len(items) - but]
    return [cast("dict[str, Any]", item) for item in complete if isinstance(item, dict)]


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name, "")
    return value if isinstance(value, str) else ""


# ---- The console that shows agents think ----


T = TypeVar("T", bound=TaskResult | Response)
_LABEL, _NARROW = 12, 60
"""Columns of a label, and of a terminal below which texts follow their labels."""


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
    view = _View(output or sys.stdout, messages=messages)
    result: T | None = None
    listening = PHASE_LISTENER.set(view.show_phase)
    try:
        view.show_progress("working")
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
        view.hide_progress()
    if result is None:
        raise ValueError("The stream gave no TaskResult and no Response; it gave no result.")
    return result


class _View:
    def __init__(self, output: TextIO, *, messages: bool) -> None:
        self.console = Console(file=output, highlight=False, markup=False, emoji=False)
        self._progress: Progress | None = None
        self._messages = messages
        self._lines = StreamLines()
        self._started = time.monotonic()
        self._usage = TokenUsage()
        self._streamed: list[str] = []

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

    def take(self, item: _Item) -> None:
        if isinstance(item, ModelClientStreamingChunkEvent):
            self._write(item)
            return
        self._show(item, self._end_of_writing())
        self.show_progress(_next(item))

    def show_phase(self, phase: ThoughtEvent) -> None:
        """Shows a phase that the stream does not hold; its usage is in a message that follows."""
        self._end_of_writing()
        for line in self._lines.of(phase):
            self._print(line)
        self.show_progress(_next(phase))

    def wait_for_user(self) -> None:
        """Frees the line for what a person types."""
        self._end_of_writing()
        self.hide_progress()

    def end(self, result: TaskResult | Response, *, output_stats: bool) -> None:
        written = self._end_of_writing()
        self.hide_progress()
        reason = result.stop_reason if isinstance(result, TaskResult) else None
        if isinstance(result, Response):
            self._show(result.chat_message, written)
        if output_stats:
            seconds = time.monotonic() - self._started
            tokens = f"{self._usage.prompt_tokens:,} + {self._usage.completion_tokens:,} tokens"
            total = f"{tokens}, {seconds:.1f} s{f', ended: {_brief(reason)}' if reason else ''}"
            self._print(ConsoleLine(label="total", text=total, style="dim"))

    def _show(self, item: _Item, written: str | None) -> None:
        """Shows an item, unless its text was just written piece by piece."""
        used = item.models_usage
        if used is not None:
            self._usage += token_usage(used)
        known = isinstance(item, TextMessage) and written == item.content
        if known or (isinstance(item, BaseChatMessage) and not self._messages):
            return
        for line in self._lines.of(item):
            self._print(line)

    def _write(self, chunk: ModelClientStreamingChunkEvent) -> None:
        """A piece of a text that is just being written, where the last one ended."""
        if self._messages:
            self.hide_progress()
            if not self._streamed:
                self._print(ConsoleLine(text=_brief(chunk.source), heading=True))
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

    def _print(self, line: ConsoleLine) -> None:
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


def _next(item: _Item) -> str:
    """What probably runs after an item."""
    if isinstance(item, ToolCallRequestEvent):
        return _brief(f"{item.source}: {', '.join(call.name for call in item.content)}")
    phase = _phase_of(item)
    return f"{_brief(item.source)}: {phase_after(Phase(phase))}" if phase else "working"
