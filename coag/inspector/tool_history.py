"""What a situated agent perceived of its tools, and when it waited for them, from a trace alone."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from coag.schema import ExecutionOutcome, Percept, PerceptKind, TraceRecord, TurnEnd
from coag.tracing import RecordKind, TraceIndex

from .texts import in_a_line, object_of, value_in_a_line
from .views import ToolEvent, ToolEventSort, ToolHistory, ToolRow

_PERCEPTS, _TURNS = 2_000, 1_000
"""The last percepts and turns that are looked at."""
_LONGEST = 1 << 18
"""Bytes of a record above which it is passed over."""
_AT_ONCE = 100
"""Records that are read at a time."""
_ROWS, _PROPERTIES, _STEPS, _EVENTS = 12, 8, 100, 200
"""Tools, properties of each, values of each, and events that are given."""
_NAME, _VALUE = 80, 120
"""Characters of a name and of a value that are kept."""
_SORTS: Mapping[PerceptKind, ToolEventSort] = {
    PerceptKind.PROPERTY_CHANGE: ToolEventSort.PROPERTIES,
    PerceptKind.SIGNAL: ToolEventSort.SIGNAL,
    PerceptKind.TIME_OUT: ToolEventSort.TIME_OUT,
    PerceptKind.GAP: ToolEventSort.GAP,
}


def read_tools(index: TraceIndex) -> ToolHistory:
    """The tools of a run over time, as far as its trace was scanned.

    Times are those at which the agent perceived: of what changed while it waited, only what it
    saw when it was woken is in its trace.
    """
    percepts = list(index.positions(RecordKind.PERCEPT))
    seen = percepts[-_PERCEPTS:]
    found = [*_perceived(index, seen), *_waits(index)]
    if not found:
        return ToolHistory()
    events, rows = _by_tool(found)
    return ToolHistory(
        rows=tuple(rows[:_ROWS]),
        rows_of=len(rows),
        events=tuple(events[-_EVENTS:]),
        events_of=len(events),
        left_out=len(percepts) - len(seen),
    )


def _read(index: TraceIndex, positions: Sequence[int]) -> Iterator[tuple[int, TraceRecord]]:
    """The records at some positions, but those that are too long or cannot be read."""
    short = [at for at in positions if index.length(at) <= _LONGEST]
    for start in range(0, len(short), _AT_ONCE):
        for line in index.read(short[start : start + _AT_ONCE]):
            if line.entry is not None:
                yield line.number - 1, line.entry.body


def _perceived(index: TraceIndex, positions: Sequence[int]) -> Iterator[ToolEvent]:
    for at, body in _read(index, positions):
        if not isinstance(body, Percept) or body.kind not in _SORTS:
            continue
        data = object_of(body.data)
        sort, tool, name = _SORTS[body.kind], body.source, ""
        if sort is ToolEventSort.SIGNAL:
            name = str(data.get("name", ""))
        elif sort is ToolEventSort.GAP:
            name = str(data.get("reason", ""))
        elif sort is ToolEventSort.TIME_OUT:
            tool = str(object_of(data.get("condition")).get("tool", tool))
        properties = object_of(data.get("properties")) if sort is ToolEventSort.PROPERTIES else {}
        yield ToolEvent(
            sort=sort,
            tool=in_a_line(tool, _NAME),
            at=body.at,
            cycle=index.stretch(index.stretch_of(at)).cycle,
            name=in_a_line(name, _NAME),
            text=in_a_line(body.content),
            is_error=body.is_error,
            properties=properties,
        )


def _waits(index: TraceIndex) -> Iterator[ToolEvent]:
    """The turns that ended by waiting; each wait lasts until the next turn begins."""
    ends = list(index.positions(RecordKind.TURN_END))[-_TURNS:]
    starts = list(index.positions(RecordKind.TURN_START))
    for at, end in _read(index, ends):
        if not isinstance(end, TurnEnd) or end.reason != "suspended":
            continue
        outcome = _execution_before(index, at)
        if outcome is None or not outcome.suspended:
            continue
        later = starts[bisect(starts, at) :][:1]
        done = [(outcome.action, outcome.arguments)]
        done += [(one.action, one.arguments) for one in outcome.batch]
        given = next((arguments for name, arguments in done if name == outcome.ended_by), None)
        tool = str((given or {}).get("tool", outcome.ended_by or "?"))
        yield ToolEvent(
            sort=ToolEventSort.WAIT,
            tool=in_a_line(tool, _NAME),
            at=outcome.at,
            cycle=outcome.cycle,
            text=in_a_line(outcome.result),
            until=index.times(later)[0] if later else None,
        )


def _execution_before(index: TraceIndex, end: int) -> ExecutionOutcome | None:
    """The outcome with which a turn ended, given the position of its end."""
    near = range(end - 1, max(end - 20, -1), -1)
    at = [one for one in near if index.kind(one) is RecordKind.OUTCOME][:1]
    bodies = [body for _, body in _read(index, at)]
    return bodies[0] if bodies and isinstance(bodies[0], ExecutionOutcome) else None


def _by_tool(found: Sequence[ToolEvent]) -> tuple[list[ToolEvent], list[ToolRow]]:
    """The events as they are listed, and those of each tool, with what changed in it first.

    Properties that are as they were are left out.
    """
    listed: list[ToolEvent] = []
    drawn: defaultdict[str, list[ToolEvent]] = defaultdict(list)
    tools: dict[str, dict[str, list[tuple[datetime, Any]]]] = {}
    for event in sorted(found, key=lambda one: one.at):
        properties = tools.setdefault(event.tool, {})
        if event.sort is not ToolEventSort.PROPERTIES:
            drawn[event.tool].append(event)
            listed.append(event)
            continue
        changes: list[str] = []
        for given, value in event.properties.items():
            name, shown = in_a_line(given, _NAME), _bounded(value)
            steps = properties.setdefault(name, [])
            if not steps or steps[-1][1] != shown:
                before = f"{value_in_a_line(steps[-1][1], _VALUE)} → " if steps else ""
                changes.append(f"{name} {before}{value_in_a_line(shown, _VALUE)}")
                steps.append((event.at, shown))
        if changes:
            text = in_a_line("; ".join(changes), 600)
            listed.append(replace(event, text=text, properties={}))
    rows: list[ToolRow] = []
    for tool, properties in tools.items():
        changed = sorted(properties.items(), key=lambda one: len(one[1]) < 2)[:_PROPERTIES]
        if changed or drawn[tool]:
            shown = {name: tuple(steps[-_STEPS:]) for name, steps in changed}
            rows.append(ToolRow(tool=tool, properties=shown, events=tuple(drawn[tool][-_EVENTS:])))
    return listed, rows


def _bounded(value: Any) -> Any:
    """A number or truth value as it is, anything else as a short text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return in_a_line(value, _VALUE) if isinstance(value, str) else value_in_a_line(value, _VALUE)
