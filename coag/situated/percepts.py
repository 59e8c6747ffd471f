"""What was read of a tool, as percepts: bounded, in plain words, checked by what it declares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from coag._util.json_schemas import LEVELS, levels, value_fault
from coag.schema import Percept, PerceptKind, Trust

from .records import PropertyReading, SignalRecord, ToolDescription
from .trust import safe_text

CONTENT_CHARACTERS = 2_000
"""Of what a percept shows a model."""
VALUE_CHARACTERS = 400
"""Of one value in it."""
RECORD_CHARACTERS = 16_000
"""Of JSON that a percept carries; larger values are left out and named."""
FLOOD = "flood"
"""The reason of a gap for signals beyond what an inbox takes."""
_FIELD_CHARACTERS = 4_000
_FIELDS = 200
_NAME_CHARACTERS = 100
_NO_SIGNAL = "it declares no such signal"


# ---- Values within bounds ----


def bounded(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The values that fit, and what was left out, each with its size in words."""
    kept: dict[str, Any] = {}
    left: list[str] = []
    room = RECORD_CHARACTERS
    for name, value in values.items():
        if levels(value) > LEVELS:
            left.append(f"{safe_text(name, _NAME_CHARACTERS)} (over {LEVELS} levels)")
            continue
        size = len(json.dumps(value, ensure_ascii=False)) + len(name)
        if size > min(room, _FIELD_CHARACTERS) or len(kept) >= _FIELDS:
            left.append(f"{safe_text(name, _NAME_CHARACTERS)} ({size:,} characters)")
        else:
            kept[name] = value
            room -= size
    return kept, tuple(left)


def cut_reading(reading: PropertyReading) -> tuple[PropertyReading, tuple[str, ...]]:
    """A reading without the properties that are too large, and which those are."""
    kept, left = bounded(reading.properties)
    return (reading.model_copy(update={"properties": kept}) if left else reading), left


def shown_values(values: Mapping[str, Any]) -> str:
    """Values in one line: `pressure=140, status="RAMPING"`."""
    return ", ".join(
        f"{safe_text(name, _NAME_CHARACTERS)}={shown_value(value)}"
        for name, value in values.items()
    )


def shown_value(value: Any) -> str:
    """One value as JSON, bounded."""
    return safe_text(json.dumps(value, ensure_ascii=False), VALUE_CHARACTERS)


def _left_out(left: tuple[str, ...]) -> str:
    if not left:
        return ""
    shown = ", ".join(left[:10]) + (f" and {len(left) - 10} more" if len(left) > 10 else "")
    return f" Left out because they are too large: {shown}."


# ---- Percepts ----


def property_percept(
    reading: PropertyReading, left: tuple[str, ...], at: datetime, again: int | None = None
) -> Percept:
    """That the properties of a tool have changed.

    Args:
        reading: The properties, cut by `cut_reading`.
        left: What was too large.
        at: When it was read.
        again: Given where a reading of the same revision is to be perceived again: a number that
            grows.
    """
    place = f"rev-{reading.rev}" if again is None else f"again-{again}"
    text = f"Properties of {reading.tool}: {shown_values(reading.properties)}."
    return _percept(
        PerceptKind.PROPERTY_CHANGE,
        f"{reading.tool}/{reading.epoch}/{place}",
        reading.tool,
        at,
        text + _left_out(left),
        reading.model_dump(mode="json"),
    )


def signal_percept(
    tool: str, record: SignalRecord, description: ToolDescription | None, at: datetime
) -> Percept:
    """That a tool has emitted a signal; an erroneous one where it breaks what the tool declares.

    Args:
        tool: The tool's id.
        record: The signal.
        description: What the tool declares; None where it declares nothing.
        at: When it was read.
    """
    record = _own_id(tool, record)
    fault = None if description is None else _fault(record, description)
    kept, left = bounded(record.data)
    record = record.model_copy(update={"data": kept}) if left else record
    values = f": {shown_values(kept)}" if kept else ""
    text = f"Signal {safe_text(record.name, _NAME_CHARACTERS)} of {tool}{values}."
    if fault is not None:
        text = f"Erroneous: {safe_text(fault, VALUE_CHARACTERS)}. Nothing waits for it. {text}"
    percept = _percept(
        PerceptKind.SIGNAL,
        record.event_id,
        tool,
        at,
        text + _left_out(left),
        record.model_dump(mode="json"),
    )
    return percept.model_copy(update={"is_error": True}) if fault is not None else percept


def gap_percept(
    tool: str, place: str, at: datetime, reason: str, text: str, **more: Any
) -> Percept:
    """That something of a tool may be missing.

    Args:
        tool: The tool's id.
        place: What follows the tool in the percept's id, ending in a number that grows.
        at: When it was found.
        reason: In one word: `restarted`, `truncated`, `flood`, `unreachable`, `changed`.
        text: What it means, in words.
        more: Further data.
    """
    data = {"tool": tool, "reason": reason, **more}
    return _percept(PerceptKind.GAP, f"{tool}/{place}", tool, at, text, data)


def _percept(
    kind: PerceptKind, id: str, source: str, at: datetime, content: str, data: Any
) -> Percept:
    return Percept(
        id=id,
        at=at,
        kind=kind,
        source=source,
        trust=Trust.UNTRUSTED,
        content=safe_text(content, CONTENT_CHARACTERS),
        data=data,
    )


def _own_id(tool: str, record: SignalRecord) -> SignalRecord:
    """The record under an id of this tool: one of another tool's would hide that one's signal."""
    if record.event_id.startswith(f"{tool}/") and len(record.event_id) <= VALUE_CHARACTERS:
        return record
    return record.model_copy(update={"event_id": f"{tool}/{record.event_id}"[:VALUE_CHARACTERS]})


def _fault(record: SignalRecord, description: ToolDescription) -> str | None:
    """How a signal breaks what its tool declares; None if it does not."""
    declared = next((one for one in description.signals if one.name == record.name), None)
    if declared is None:
        return _NO_SIGNAL
    fault = value_fault(record.data, json.dumps(declared.payload))
    return None if fault is None else f"its payload breaks its declared schema: {fault}"
