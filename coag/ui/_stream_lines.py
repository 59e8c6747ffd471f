"""What a stream of AutoGen's messages and events lets be seen, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    MemoryQueryEvent,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from pydantic_core import from_json

from coag.schema import PHASES, cleaned, one_line, well_formed

_TEXT = 300
"""Characters shown of what a phase, a tool or a model says."""
_ANSWER = 20_000
"""Characters shown of what an agent says."""
_READ = 8
"""So many times the characters that are shown are looked at."""
_NAMES = frozenset(phase.value for phase in PHASES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that is shown."""

    label: str = ""
    """The phase, or what it is; empty for what belongs to the line before."""
    text: str
    style: str = ""
    """Its colour, which never tells what the words do not."""
    aside: str = ""
    """Shown dimmed behind the text."""
    heading: bool = False
    """True for a line of its own, above what follows."""
    whole: bool = False
    """True for a text of several lines, shown from the margin on."""


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What was seen last of an agent that deliberates."""

    cycle: str = ""
    candidates: dict[str, str] = field(default_factory=dict[str, str])
    """What each proposed candidate would do, by its id."""
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """What the model calls the tool call that each candidate is, by the candidate's id."""
    rejected: set[str] = field(default_factory=set[str])


class StreamLines:
    """Turns what comes in a stream into lines; no text in them can steer a terminal.

    Phases are told by the metadata of an agent's `ThoughtEvent`s; what stock agents send is
    shown, too.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def of(self, item: BaseAgentEvent | BaseChatMessage) -> Iterator[Line]:
        """The lines of one item; none for what was shown already."""
        match item:
            case ThoughtEvent() if phase_of(item):
                yield from self._phase(item)
            case ThoughtEvent():
                yield Line(label="thought", text=brief(item.content), style="dim")
            case MemoryQueryEvent():
                for memory in item.content:
                    yield Line(text=f"remembered: {brief(str(memory.content))}", style="dim")
            case ToolCallRequestEvent():
                rejected = self._of(item.source).rejected
                for call in item.content:
                    if call.id not in rejected:
                        text = f"{brief(call.name)} {brief(call.arguments)}"
                        yield Line(label="action", text=text, style="bold")
            case ToolCallExecutionEvent():
                yield from self._results(item)
            case BaseChatMessage():
                yield Line(text=brief(item.source), heading=True)
                yield Line(text=said(item), whole=True)
            case _:
                yield Line(label="event", text=f"{item.source}: {brief(item.to_text())}")

    def _of(self, source: str) -> _Seen:
        return self._seen.setdefault(source, _Seen())

    def _results(self, event: ToolCallExecutionEvent) -> Iterator[Line]:
        rejected = self._of(event.source).rejected
        for result in event.content:
            if result.call_id in rejected:
                continue
            what, style = ("failed", "red") if result.is_error else ("returned", "green")
            yield Line(label="result", text=f"{what}: {brief(result.content)}", style=style)

    def _phase(self, event: ThoughtEvent) -> Iterator[Line]:
        seen, phase = self._of(event.source), phase_of(event)
        cycle = brief(event.metadata.get("cycle", ""))
        if cycle != seen.cycle or phase == PHASES[0].value:
            seen.cycle = cycle
            yield Line(text=f"{brief(event.source)}, cycle {cycle}", heading=True)
        sentence = brief(event.content).removeprefix(f"{phase.capitalize()}: ")
        used = event.models_usage
        aside = (
            "" if used is None else f"{used.prompt_tokens:,} + {used.completion_tokens:,} tokens"
        )
        told = event.metadata.get("detail", "")
        if phase == "evaluation":
            sentence = sentence.partition(";")[0].rstrip(".") + "."
        yield Line(label=phase, text=sentence, aside=aside, style="bold")
        match phase:
            case "proposal":
                yield from _proposed(seen, told)
            case "evaluation":
                yield from _judged(seen, told)
            case _ if told:
                what = "query: " if phase == "retrieval" else ""
                yield Line(text=f"{what}{brief(told)}", style="dim" if what else "")
            case _:
                pass


def phase_of(item: object) -> str:
    """The phase that an event tells of; empty if it tells of none."""
    if not isinstance(item, ThoughtEvent):
        return ""
    phase = item.metadata.get("phase", "")
    return phase if phase in _NAMES else ""


def brief(text: str) -> str:
    """The beginning of a foreign text on one line."""
    return one_line(well_formed(text[: _READ * _TEXT]), _TEXT)


def said(message: BaseChatMessage) -> str:
    """What an agent says, harmless, and cut where it fills the screen."""
    text = message.to_text()
    shown = cleaned(well_formed(text[:_ANSWER]))
    return shown if len(text) <= _ANSWER else f"{shown} [… {len(text) - _ANSWER:,} more]"


def _proposed(seen: _Seen, told: str) -> Iterator[Line]:
    items, cut = _listed(told)
    seen.candidates, seen.calls = {}, {}
    for item in items:
        does = f"{brief(_text(item, 'action'))} {brief(_text(item, 'raw_arguments'))}"
        seen.candidates[_text(item, "id")] = does
        seen.calls[_text(item, "id")] = _text(item, "call_id")
        reason = brief(_text(item, "reason"))
        yield Line(text=does, aside=reason)
    if cut:
        yield Line(text="… and more than is told here", style="dim")


def _judged(seen: _Seen, told: str) -> Iterator[Line]:
    items, cut = _listed(told)
    seen.rejected = set()
    for item in items:
        identity = _text(item, "candidate_id")
        does = seen.candidates.get(identity) or brief(identity)
        fatal = _fatal(item.get("verdicts"))
        if fatal is None:
            score = item.get("score")
            scored = f" ({score:.2f})" if isinstance(score, int | float) else ""
            reason = brief(_text(item, "reason"))
            yield Line(text=f"survived{scored}: {does}", aside=reason, style="green")
            continue
        seen.rejected |= {identity, seen.calls.get(identity) or identity}
        yield Line(text=f"rejected: {does}", style="red")
        why = f"{brief(_text(fatal, 'constraint'))}: {brief(_text(fatal, 'reason'))}"
        yield Line(text=f"  by {why}", style="red")
    if cut:
        yield Line(text="… and more than is told here", style="dim")


def _listed(told: str) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """The objects of a list in JSON that may be cut, but for the cut one; and whether it is cut."""
    cut = False
    try:
        found = from_json(told)
    except ValueError:
        cut = True
        try:
            found = from_json(told, allow_partial=True)
        except ValueError:
            found = []
    items = cast("list[Any]", found) if isinstance(found, list) else []
    if cut:
        items = items[:-1]
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)], cut


def _fatal(verdicts: object) -> Mapping[str, Any] | None:
    """The verdict that forbids, if there is one."""
    listed = cast("list[Any]", verdicts) if isinstance(verdicts, list) else []
    for verdict in listed:
        if isinstance(verdict, dict):
            one = cast("dict[str, Any]", verdict)
            if one.get("allowed") is not True:
                return one
    return None


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name, "")
    return value if isinstance(value, str) else ""
