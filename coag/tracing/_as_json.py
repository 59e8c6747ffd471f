"""Records as JSON text, also where a text in them is broken."""

from __future__ import annotations

import json

from pydantic_core import PydanticSerializationError, from_json

from coag.schema import TraceRecord

_DEEP = 150
"""Brackets from which it is worth a look whether a text is nested too deeply to be read."""


def record_text(record: TraceRecord) -> str:
    """A record as it stands in a trace.

    Half characters (lone surrogates), which an answer cut off within an escape gives, cannot
    stand in a file; they are written as `?`.

    Raises:
        PydanticSerializationError: If the record holds something that is no JSON.
        ValueError: If it is nested so deeply that no reader would take it.
    """
    try:
        text = record.model_dump_json()
    except PydanticSerializationError:
        fields = record.model_dump(mode="json")
        text = _without_halves(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
    if text.count("{") + text.count("[") >= _DEEP:
        from_json(f"[{text}]")  # the line around it is one level more
    return text


def _without_halves(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
