"""What the module of an activity remembers between cycles, and shows in prompts.

What it remembers follows from the trace; what it shows is text from outside, within a budget.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

from pydantic import Field

from coag._util.text import cut_to_tokens
from coag.schema import Moment, Percept, PerceptKind, Value, estimate_tokens, folded, one_line

from .activities import OnSignal, Wait
from .catalogue import safe_text
from .manual import Manual
from .percepts import epoch_of, number_of
from .records import DELEGATED, SignalRecord, ToolDescription

_SIGNALS = 30
"""Perceived signals that may still end a wait."""


class PerceivedSignal(Value):
    """A signal that was perceived since the last operation of its tool."""

    tool: str
    record: SignalRecord


class PerceivedTool(Value):
    """The properties of a tool as they were perceived last."""

    text: str
    at: Moment


def _is_behind(signal: PerceivedSignal, cursor: str | None) -> bool:
    """Whether a signal that was perceived came after a place in its log; None is the end."""
    return (
        cursor is not None
        and epoch_of(signal.record.cursor) == epoch_of(cursor)  # else of an earlier life
        and number_of(signal.record.cursor) > number_of(cursor)
    )


class SituatedModuleState(Value):
    """The state of a `SituatedModule`, JSON in the trace."""

    mounted: tuple[str, ...] = ()
    """Tools whose manuals are mounted."""
    plan: str = ""
    signals: tuple[PerceivedSignal, ...] = ()
    """In order; those that an operation or a wait has left behind are gone."""
    tools: dict[str, PerceivedTool] = Field(default_factory=dict)
    recent: tuple[str, ...] = ()
    """The last signals and gaps in words."""
    waiting: Wait | None = None
    """What the activity waits for, until it is perceived."""
    preempted: int = 0
    """Cycles in a row that fresh signals ended."""
    perceived: tuple[str, ...] = ()
    """Ids of the percepts that were perceived last."""

    def perceive(self, percept: Percept) -> SituatedModuleState:
        """The state after a percept that came from an inbox."""
        changes: dict[str, object] = {"perceived": (*self.perceived, percept.id)}
        if percept.kind is PerceptKind.PROPERTY_CHANGE:
            now = PerceivedTool(text=percept.content, at=percept.at)
            changes["tools"] = {**self.tools, percept.source: now}
        elif percept.kind in (PerceptKind.SIGNAL, PerceptKind.GAP, PerceptKind.TIME_OUT):
            line = f"{percept.at:%H:%M:%S} {percept.content}"
            changes["recent"] = (*self.recent, line)[-8:]
        if percept.kind is PerceptKind.SIGNAL and not percept.is_error:
            record = SignalRecord.model_validate(percept.data)
            if len(json.dumps(record.data)) > 2_000:
                record = record.model_copy(update={"data": {}})
            new = PerceivedSignal(tool=percept.source, record=record)
            changes["signals"] = (*self.signals, new)[-_SIGNALS:]
        return self.model_copy(update=changes)

    def behind(self, tool: str, cursor: str | None) -> SituatedModuleState:
        """The state in which signals of a tool count from a cursor on; None for all so far."""
        left = (one for one in self.signals if one.tool != tool or _is_behind(one, cursor))
        return self.model_copy(update={"signals": tuple(left)})

    def meeting(self, condition: object) -> PerceivedSignal | None:
        """The first perceived signal that ends a wait for a signal."""
        if not isinstance(condition, OnSignal):
            return None
        mine = (one for one in self.signals if one.tool == condition.tool)
        return next((one for one in mine if condition.met_by(one.record)), None)

    def without_old(self) -> SituatedModuleState:
        """The state without the ids of percepts that left the inbox long ago."""
        return self.model_copy(update={"perceived": self.perceived[-100:]})


def ranked(tools: Iterable[ToolDescription], goal: str) -> list[ToolDescription]:
    """Tools by how many words of a goal their descriptions have, the most first.

    Those that represent delegated goals are left out: the agent that delegated one knows its id.
    """
    wanted = set(folded(goal).split())

    def shared(tool: ToolDescription) -> int:
        names = " ".join(one.name.replace("_", " ") for one in tool.operations)
        words = f"{tool.id.replace('_', ' ')} {tool.category} {tool.description} {names}"
        return len(wanted & set(folded(words).split()))

    listed = (tool for tool in tools if tool.category != DELEGATED)
    return sorted(listed, key=lambda tool: -shared(tool))


def catalogue_text(tools: Iterable[ToolDescription], state: SituatedModuleState) -> str:
    """One line for each tool."""
    return "\n".join(
        f"- {tool.id}: {one_line(tool.description, 160)}"
        + (" (manual mounted)" if tool.id in state.mounted else "")
        + ("" if tool.has_manual else " (needs no manual)")
        for tool in tools
    )


def situation_text(
    state: SituatedModuleState,
    now: datetime | None,
    focused: Mapping[str, ToolDescription | None],
    catalogue: str,
    manuals: Mapping[str, Manual | str],
    budget: int,
) -> str:
    """Plan, signals, properties, what may be waited for, manuals, and the catalogue in words.

    Of a manual that cannot be shown it is said why. The budget is in tokens.
    """
    plan = f"Plan:\n{cut_to_tokens(safe_text(state.plan), 300)}" if state.plan else ""
    recent = "Last signals:\n" + "\n".join(state.recent) if state.recent else ""
    parts = [plan, recent, _properties(state, now, focused), _waits(focused)]
    short = f"Tools:\n{cut_to_tokens(catalogue, 200)}" if catalogue else ""
    text = "\n\n".join(filter(None, [*parts, short]))
    room = budget - estimate_tokens(text)
    shown: list[str] = []
    for tool, manual in manuals.items():
        shown.append(_manual(tool, manual, room))
        room -= estimate_tokens(shown[-1]) + 1
    return cut_to_tokens("\n\n".join(filter(None, [*parts, *shown, short])), budget)


def _properties(
    state: SituatedModuleState, now: datetime | None, focused: Mapping[str, ToolDescription | None]
) -> str:
    lines: list[str] = []
    for tool in focused:
        if (known := state.tools.get(tool)) is not None:
            age = f" (changed {_age(known.at, now)} ago)" if now is not None else ""
            lines.append(f"- {known.text}{age}")
    return "In focus:\n" + "\n".join(lines) if lines else ""


def _age(at: datetime, now: datetime) -> str:
    seconds = max(0.0, (now - at).total_seconds())
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _waits(focused: Mapping[str, ToolDescription | None]) -> str:
    lines: list[str] = []
    for tool, known in focused.items():
        if known is not None and (known.signals or known.properties):
            signals = ", ".join(one.name for one in known.signals) or "none"
            properties = ", ".join(one.name for one in known.properties) or "none"
            lines.append(f"- {tool}: signals {signals}; properties {properties}")
    return "What may be waited for:\n" + "\n".join(lines) if lines else ""


def _manual(tool: str, manual: Manual | str, room: int) -> str:
    """A manual whole, its section 3 where that alone has room, or that it was left out."""
    if isinstance(manual, str):
        return f"The manual of {tool} is not shown: {one_line(manual, 400)}"
    size = estimate_tokens(manual.body)
    if size <= room:
        return f"Manual of {tool}:\n{manual.body.strip()}"
    protocol = f"Manual of {tool}, only its section on protocol and safety:\n{manual.protocol}"
    if manual.protocol and estimate_tokens(protocol) <= room:
        return f"{protocol}\n(The rest, {size} tokens in all, has no room: unmount another one.)"
    return f"The manual of {tool} ({size} tokens) has no room here: unmount another one."
