"""Tool calls that a model spelled out in its text, read with good will.

Small models reason in text, as they are asked to, and then write down what they call instead of
calling it. An agent that reads no such text never acts with them, and to be better than that says
little. So the plain agents have their texts read: the first call in JSON, or else the first line
`Action: tool(argument="value")`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, cast

_LINE = re.compile(r"(?im)^\W*action\W*:\W*(\w+)[ \t]*\(([^()\n]*)\)")
_OPENINGS = 50
"""Braces in a text at which JSON is looked for."""


class Spelled(NamedTuple):
    """A call in a text."""

    name: str
    arguments: str
    """As JSON."""
    before: str
    """The text up to the call."""


def spelled_call(text: str, names: Collection[str]) -> Spelled | None:
    """The first call of one of these tools that stands in a text; None if there is none."""
    return next(_in_json(text, names), None) or next(_in_lines(text, names), None)


def _in_json(text: str, names: Collection[str]) -> Iterator[Spelled]:
    decoder = json.JSONDecoder()
    for opening in list(re.finditer(r"\{", text))[:_OPENINGS]:
        try:
            value, _ = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        told = cast("dict[str, Any]", value)
        given = told.get("arguments", told.get("parameters", {}))
        if told.get("name") in names and isinstance(given, dict):
            yield Spelled(str(told["name"]), json.dumps(given), text[: opening.start()])


def _in_lines(text: str, names: Collection[str]) -> Iterator[Spelled]:
    for line in _LINE.finditer(text):
        given = _keywords(line[2])
        if line[1] in names and given is not None:
            yield Spelled(line[1], json.dumps(given), text[: line.start()])


def _keywords(text: str) -> dict[str, Any] | None:
    """`direction="east", far=True` as a dictionary; None if it is something else."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            return None
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
