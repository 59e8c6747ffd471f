"""Records as JSON text, also where a text in them is broken."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from coag.schema import Entry


def entry_line(entry: Entry) -> str:
    """One line of a trace, without its newline.

    Half characters (lone surrogates), which an answer cut off within an escape gives, cannot
    stand in a file; they are written as `?`.

    Raises:
        PydanticSerializationError: If the record holds something that is no JSON.
    """
    try:
        return entry.model_dump_json()
    except PydanticSerializationError:
        fields = entry.model_dump(mode="json")
        return _without_halves(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def page_text(page: dict[str, Any]) -> str:
    """A page for reading; half characters are written as `?`, as in the trace."""
    try:
        return to_json(page, indent=2).decode()
    except PydanticSerializationError:
        fields = to_jsonable_python(page)
        return _without_halves(json.dumps(fields, ensure_ascii=False, indent=2))


def _without_halves(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
