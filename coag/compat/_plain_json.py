"""Any value as JSON that can be written, read and compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from pydantic import BaseModel

from coag.schema import well_formed


def plain_json(value: object) -> Any:
    """The value as JSON that UTF-8 can carry: the same value, the same JSON, in any process.

    What is no JSON is told by its type alone: its text may name a place in memory.
    """
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if isfinite(value) else str(value)
        case str():
            return well_formed(value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {well_formed(str(key)): plain_json(item) for key, item in items}
        case list() | tuple():
            return [plain_json(item) for item in cast("list[object]", value)]
        case BaseModel():
            return plain_json(value.model_dump(mode="json"))
        case type() if issubclass(value, BaseModel):
            return {"type": value.__name__, "schema": hash_of(value.model_json_schema())}
        case _:
            return f"<{type(value).__module__}.{type(value).__qualname__}>"


def hash_of(value: object) -> str:
    """A hash of the value's JSON, whatever the order of its keys; 64 bits, in hex."""
    return hashlib.sha256(canonical(plain_json(value)).encode()).hexdigest()[:16]


def canonical(value: object) -> str:
    """JSON as the one text in which equal values are equal."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
