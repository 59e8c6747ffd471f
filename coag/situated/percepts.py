"""What was read of a tool, as percepts: bounded, in plain words, checked by what it declares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from coag._util.json_schemas import LEVELS, levels, value_fault
from coag._util.text import well_formed
from coag.schema import Percept, PerceptKind, Trust

from .catalogue import safe_text
from .records import Cursor, PropertyReading, SignalRecord, ToolDescription

CONTENT_CHARACTERS = 2_000
"""Of what a percept shows a model."""
VALUE_CHARACTERS = 400
"""Of one value in it."""
RECORD_CHARACTERS = 16_000
"""Of JSON that a percept carries; larger values are left out and named."""
_FIELD_CHARACTERS = 4_000
_FIELDS = 200
_NAME_CHARACTERS = 100


# ---- Values within bounds ----


def bounded(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The values that fit, as UTF-8 can carry them; what was left out, with its size in words."""
    kept: dict[str, Any] = {}
    left: list[str] = []
    room = RECORD_CHARACTERS
    for name, value in values.items():
        if levels(value) > LEVELS:
            left.append(f"{safe_text(name, _NAME_CHARACTERS)} (over {LEVELS} levels)")
            continue
        text = well_formed(json.dumps(value, ensure_ascii=False))
        size = len(text) + len(name)
        if size > min(room, _FIELD_CHARACTERS) or len(kept) >= _FIELDS:
            left.append(f"{safe_text(name, _NAME_CHARACTERS)} ({size:,} characters)")
        else:
            kept[well_formed(name)] = json.loads(text)
            room -= size
    return kept, tuple(left)


def cut_reading(reading: PropertyReading) -> tuple[PropertyReading, tuple[str, ...]]:
    """A reading without the properties that are too large, and which those are."""
    kept, left = bounded(reading.properties)
    return reading.model_copy(update={"properties": kept}), left


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
    """That the properties of a tool have changed, cut by `cut_reading`; `left` was too large.

    Where a reading of the same revision is to be perceived again, `again` is a number that grows.
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
    """That a tool has emitted a signal; an erroneous one where it breaks what the tool declares."""
    record = _own_id(tool, record)
    fault = None if description is None else _fault(record, description)
    kept, left = bounded(record.data)
    record = record.model_copy(update={"data": kept})
    values = f": {shown_values(kept)}" if kept else ""
    text = f"Signal {safe_text(record.name, _NAME_CHARACTERS)} of {tool}{values}."
    if fault is not None:
        text = f"Erroneous: {safe_text(fault, VALUE_CHARACTERS)}. Nothing waits for it. {text}"
    data = record.model_dump(mode="json") | ({"left_out": list(left)} if left else {})
    content = text + _left_out(left)
    percept = _percept(PerceptKind.SIGNAL, record.event_id, tool, at, content, data)
    return percept.model_copy(update={"is_error": True}) if fault is not None else percept


def gap_percept(
    tool: str, place: str, at: datetime, reason: str, text: str, **more: Any
) -> Percept:
    """That something of a tool may be missing, and why, in a word (e.g. `restarted`) and a text.

    `place` follows the tool in the percept's id, and ends in a number that grows.
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
        return "it declares no such signal"
    fault = value_fault(record.data, json.dumps(declared.payload))
    return None if fault is None else f"its payload breaks its declared schema: {fault}"


def as_new(reading: PropertyReading | None, epoch: str, rev: int) -> bool:
    """Whether a reading is of this revision or a later one; another epoch is no later."""
    return reading is not None and reading.epoch == epoch and reading.rev >= rev


def epoch_of(cursor: str) -> str | None:
    """The epoch of a place in a log; None where the text does not say."""
    with suppress(ValueError):
        return Cursor.read(cursor).epoch
    return None


def number_of(cursor: str) -> int:
    """The number of a place in a log; 0 where the text does not say."""
    with suppress(ValueError):
        return Cursor.read(cursor).number
    return 0
