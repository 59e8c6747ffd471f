"""From a model's raw answer to a value: strictly, else by extraction, else by repair."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from ._repair import repaired_object

ModelT = TypeVar("ModelT", bound=BaseModel)

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_MAX_STARTS = 200
"""How many opening braces are tried; bounds the work on a hostile answer."""
_NOT_GRAMMAR = (
    "greater_than",
    "less_than",
    "too_long",
    "too_short",
    "multiple_of",
    "finite_number",
    "value_error",
    "assertion_error",
)
"""Parts of pydantic's names for errors that a grammar is not expected to prevent."""


@dataclass(frozen=True, slots=True)
class Parsed(Generic[ModelT]):
    """A usable answer."""

    value: ModelT
    repaired: bool
    """True if the raw answer as a whole was no JSON of the wanted form."""
    text: str = field(default="", compare=False)
    """The value as JSON, as the model wrote it or as it was repaired."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an answer is unusable."""

    text: str
    """A sentence for the model and for the log."""
    off_schema: bool = False
    """True if a server that enforces the schema could not have let this through."""


def parse_answer(
    raw: str, output_type: type[ModelT], *, truncated: bool = False
) -> Parsed[ModelT] | Problem:
    """Reads an answer as `output_type`.

    Numbers outside their bounds are a problem, never clamped. A truncated answer is not
    repaired, because repair would pass off a part as the whole; a complete object in it counts.

    Args:
        raw: The answer as it came.
        output_type: What it should be.
        truncated: The model was cut off by its token limit.
    """
    if not raw.strip():
        return Problem("The answer was empty." + _length_note(truncated))
    try:
        return Parsed(output_type.model_validate_json(raw), repaired=False, text=raw)
    except ValidationError as error:
        problem = _problem(error)
    found = _extract(raw, output_type)
    if found is None and not truncated:
        found = _repair(raw, output_type)
    if isinstance(found, Parsed):
        return found
    if truncated:
        return Problem("The answer was not complete." + _length_note(truncated))
    return found or problem


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects in a text, in order, whatever stands around them."""
    decoder = json.JSONDecoder()
    position, tries = 0, 0
    while (start := text.find("{", position)) >= 0 and tries < _MAX_STARTS:
        tries += 1
        try:
            value, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        yield cast("dict[str, Any]", value)


def _extract(raw: str, output_type: type[ModelT]) -> Parsed[ModelT] | Problem | None:
    """The last object in the text that is of the type; else what is wrong with the last."""
    problem: Problem | None = None
    for value in reversed(list(json_objects(_THINKING.sub("", raw)))):
        found = _validate(value, output_type)
        if not isinstance(found, Problem):
            return found
        problem = problem or found
    return problem


def _repair(raw: str, output_type: type[ModelT]) -> Parsed[ModelT] | Problem | None:
    """What json-repair makes of the text from its first brace, or of JSON within a string."""
    text = _THINKING.sub("", raw)
    start = text.find("{")
    if start < 0:
        return None
    value = repaired_object(_unquoted(text) or text[start:])
    return None if value is None else _validate(value, output_type)


def _unquoted(text: str) -> str | None:
    """The text within, if the whole answer is one JSON string."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str) else None


def _validate(value: object, output_type: type[ModelT]) -> Parsed[ModelT] | Problem:
    """Validates by JSON's rules, under which a list may become a tuple, a string an enum."""
    try:
        text = json.dumps(value)
        return Parsed(output_type.model_validate_json(text), repaired=True, text=text)
    except ValidationError as error:
        return _problem(error)
    except RecursionError:
        return Problem("The answer is nested too deeply.", off_schema=True)


def _problem(error: ValidationError) -> Problem:
    """At most five of the errors, each with its place and the offending value."""
    details = error.errors(include_url=False, include_context=False)
    lines: list[str] = []
    for detail in details[:5]:
        place = ".".join(str(part) for part in detail["loc"]) or "the whole answer"
        given = repr(detail["input"])
        shown = given if len(given) <= 80 else given[:80] + "…"
        missing = detail["type"] == "missing" or detail["type"] == "json_invalid"
        lines.append(f"{place}: {detail['msg']}" + ("" if missing else f" (got {shown})"))
    off_schema = any(not any(part in detail["type"] for part in _NOT_GRAMMAR) for detail in details)
    return Problem("; ".join(lines) + ".", off_schema=off_schema)


def _length_note(truncated: bool) -> str:
    if not truncated:
        return ""
    return " It was cut off at the token limit: give a shorter answer, with shorter texts."
