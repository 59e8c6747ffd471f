"""JSON Schemas as they are sent to servers, and as they are shown to models."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import cache, lru_cache
from typing import Any, cast

from pydantic import BaseModel


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON Schema in the form that strict structured output asks for.

    Every object lists all its fields as required and forbids others; defaults and titles are
    gone; a `$ref` is alone (a description beside it is dropped: write it on the class that
    is referred to). Definitions stay in `$defs`; nothing is inlined.

    Raises:
        ValueError: The model has a free dictionary, which strict output cannot express.
    """
    return deepcopy(_strict_schema(model))


@lru_cache(maxsize=256)
def _strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    return cast("dict[str, Any]", _strict(model.model_json_schema(), model.__name__))


def schema_name(model: type[BaseModel]) -> str:
    """The model's name as servers accept it: letters, digits, `_` and `-`, at most 64."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", model.__name__)[:64]


def response_format(model: type[BaseModel]) -> dict[str, Any]:
    """OpenAI's `response_format` for an answer of this type."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": schema_name(model),
            "strict": True,
            "schema": strict_schema(model),
        },
    }


@cache
def can_be_strict(model: type[BaseModel]) -> bool:
    """True if the model can be asked for strictly; see `strict_schema`."""
    try:
        _strict_schema(model)
    except ValueError:
        return False
    return True


@cache
def schema_text(model: type[BaseModel]) -> str:
    """The schema on one line, for a prompt: strict if it can be."""
    schema = strict_schema(model) if can_be_strict(model) else model.model_json_schema()
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _strict(node: Any, path: str) -> Any:
    """A schema node made strict; `path` names it in errors."""
    if isinstance(node, list):
        return [_strict(item, path) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("dict[str, Any]", node)
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    is_object = schema.get("type") == "object"
    if is_object and schema.get("additionalProperties", False) is not False:
        free = f"{path} is a free dictionary, which cannot be asked for strictly"
        raise ValueError(f"{free}: name its fields in a model, or take a string of JSON.")
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("default", "title"):
            continue
        if key in ("properties", "$defs"):
            named = cast("dict[str, Any]", value)
            result[key] = {name: _strict(item, f"{path}.{name}") for name, item in named.items()}
        elif key in ("enum", "const", "examples"):
            result[key] = value
        else:
            result[key] = _strict(value, path)
    if is_object:
        result["required"] = list(result.setdefault("properties", {}))
        result["additionalProperties"] = False
    return result
