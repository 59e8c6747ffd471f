"""No mind at all: answers drawn at random from whatever form is asked for.

It is the control for models that are held to a schema: what an agent achieves with it is the work
of the schema, the rules and the domain's value, and not of a model.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any, cast

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage

from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import estimate_tokens

CHANCE = "chance"
"""Its name as a scripted model."""

_TEXT = "Nobody says this."
_MOST_ENTRIES = 3
_DEEPEST = 8

Schema = Mapping[str, Any]


def drawn_answer(request: ScriptedRequest, seed: int) -> ScriptedReply:
    """An answer of the form that is asked for, drawn by the seed and the request.

    Asked for tool calls it calls one of the tools, or ends with a text, each as likely.
    """
    dice = random.Random(f"chance {seed} {request.number} {request.text}")
    if request.schema is not None:
        return cast("ScriptedReply", drawn_value(request.schema, dice))
    if not request.tools:
        return _TEXT
    number = dice.randrange(len(request.tools) + 1)
    if number == len(request.tools):
        return _TEXT
    tool = request.tools[number]
    arguments = json.dumps(drawn_value(cast("Schema", tool.get("parameters", {})), dice))
    return CreateResult(
        finish_reason="function_calls",
        content=[FunctionCall(id=f"call-{request.number}", name=tool["name"], arguments=arguments)],
        usage=RequestUsage(
            prompt_tokens=estimate_tokens(request.text),
            completion_tokens=estimate_tokens(tool["name"] + arguments),
        ),
        cached=False,
    )


def drawn_value(schema: Schema, dice: random.Random) -> Any:
    """A value that a JSON Schema admits, every way as likely where it names several."""
    return _drawn(schema, dice, schema.get("$defs", {}), 0)


def _drawn(schema: Schema, dice: random.Random, defined: Mapping[str, Schema], depth: int) -> Any:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return _drawn(defined[name], dice, defined, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return dice.choice(schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _drawn(dice.choice(schema[several]), dice, defined, depth)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = dice.choice(cast("list[str]", kind))
    if kind == "object":
        parts: Mapping[str, Schema] = schema.get("properties", {})
        wanted = schema.get("required", list(parts))
        return {
            name: _drawn(part, dice, defined, depth + 1)
            for name, part in parts.items()
            if name in wanted
        }
    if kind == "array":
        return _drawn_list(schema, dice, defined, depth)
    return _drawn_scalar(kind, schema, dice)


def _drawn_list(
    schema: Schema, dice: random.Random, defined: Mapping[str, Schema], depth: int
) -> list[Any]:
    least = int(schema.get("minItems", 0 if depth >= _DEEPEST else 1))
    most = max(least, int(schema.get("maxItems", _MOST_ENTRIES)))
    length = dice.randint(least, min(most, max(least, _MOST_ENTRIES)))
    item: Schema = schema.get("items", {})
    return [_drawn(item, dice, defined, depth + 1) for _ in range(length)]


def _drawn_scalar(kind: object, schema: Schema, dice: random.Random) -> Any:
    if kind == "boolean":
        return dice.random() < 0.5
    if kind == "null":
        return None
    least = schema.get("minimum", 0)
    if kind == "integer":
        return dice.randint(int(least), int(schema.get("maximum", least + _MOST_ENTRIES)))
    if kind == "number":
        return round(dice.uniform(float(least), float(schema.get("maximum", least + 1))), 2)
    return _TEXT[: int(schema.get("maxLength", len(_TEXT)))]
