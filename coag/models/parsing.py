"""What a model wrote: parsed, repaired, and calls in a text."""

from __future__ import annotations

import ctypes
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock, Thread
from typing import Any, Generic, TypeVar, cast

import json_repair
from pydantic import BaseModel, ValidationError

_LONGEST = 50_000
"""Longest text, in characters, that repair is tried on."""
_DEEPEST = 100
"""How deeply brackets may nest there."""
_SECONDS = 0.5
"""How long repair may take; the caller waits for it."""


class _OutOfTime(BaseException):
    """Ends the thread that repairs. It is no `Exception`, so that no handler there takes it."""


def repaired_object(text: str) -> dict[str, Any] | None:
    """What `json-repair` makes of a text; None if that is no object, or would take too long."""
    if len(text) > _LONGEST or _depth(text) > _DEEPEST:
        return None
    repair = _Repair(text)
    repair.start()
    repair.join(_SECONDS)
    while repair.is_alive():
        repair.stop()
        repair.join(_SECONDS)
    value = repair.value
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


class _Repair(Thread):
    """Repairs a text in a thread, since only a thread can be stopped from without."""

    def __init__(self, text: str) -> None:
        super().__init__(name="coag-repair", daemon=True)
        self.value: Any = None
        self._text: str | None = text
        self._lock = Lock()
        self._ended = False

    def run(self) -> None:
        """Repairs once; whatever stops that, the thread ends without an error."""
        while not self._ended:
            try:
                text, self._text = self._text, None
                if text is not None:
                    self.value = json_repair.loads(text)
                with self._lock:
                    self._ended = True
            except (ValueError, RecursionError, _OutOfTime):
                continue

    def stop(self) -> None:
        """Raises `_OutOfTime` at the thread's next step, unless it has ended by itself."""
        with self._lock:
            if not self._ended:
                ident = ctypes.c_ulong(self.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_OutOfTime))


def _depth(text: str) -> int:
    """How deeply brackets nest, those within strings counted too."""
    steps = (1 if c in "{[" else -1 if c in "}]" else 0 for c in text)
    return max(accumulate(steps), default=0)


# ---- From a model's raw answer to a value: strictly, else by extraction, else by repair ----


ModelT = TypeVar("ModelT", bound=BaseModel)

_THINKING = re.compile(r"(?<!\")<think>.*?(?:</think>|\Z)", re.DOTALL)
_CUT_OFF = " It was cut off at the token limit: give a shorter answer, with shorter texts."
_MAX_STARTS = 200
"""How many opening braces are tried; bounds the work on a hostile answer."""
_NOT_GRAMMAR = re.compile(
    "greater_than|less_than|too_long|too_short|multiple_of|finite_number|value_error|assertion"
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
        return Problem(f"The answer was empty.{_CUT_OFF if truncated else ''}")
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
        return Problem(f"The answer was not complete.{_CUT_OFF}")
    return found or problem


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects in a text, in order; drafts within thinking do not count."""
    decoder = json.JSONDecoder()
    position, tries = 0, 0
    while (start := text.find("{", position)) >= 0 and tries < _MAX_STARTS:
        if thinking := _THINKING.search(text, position, start + 1):
            whole = _THINKING.match(text, thinking.start())
            position = whole.end() if whole else len(text)
            continue
        tries += 1
        try:
            value, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        yield cast("dict[str, Any]", value)


def _extract(raw: str, output_type: type[ModelT]) -> Parsed[ModelT] | Problem | None:
    problem: Problem | None = None
    for value in reversed(list(json_objects(raw))):
        found = _validate(value, output_type)
        if not isinstance(found, Problem):
            return found
        problem = problem or found
    return problem


def _repair(raw: str, output_type: type[ModelT]) -> Parsed[ModelT] | Problem | None:
    text = _THINKING.sub("", raw)
    start = text.find("{")
    if start < 0:
        return None
    value = repaired_object(_unquoted(text) or text[start:])
    return None if value is None else _validate(value, output_type)


def _unquoted(text: str) -> str | None:
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
    off_schema = any(not _NOT_GRAMMAR.search(detail["type"]) for detail in details)
    return Problem("; ".join(lines) + ".", off_schema=off_schema)


# ---- Tool calls that a model wrote as text, because its server did not take them out of it ----


_TAG = re.compile(r"\s*<(tool_call|tools?|function_call)>")
_FENCE = re.compile(r"```[a-z_]*")
_BETWEEN = re.compile(r"\s*,?\s*")
_LOOKED_FOR = 200
"""Places of a shown text at which an object is looked for."""


def calls_in_text(text: str, names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Names and arguments of the calls that the whole text consists of; none if it is a text.

    Read are `{"name": ..., "arguments": {...}}` (or `parameters`), a list of those, several
    one after the other, each also in a code fence, in doubled braces, or in tags as Qwen and
    Hermes write them. All of them must name tools that exist: any other JSON may be the answer
    that was asked for.
    """
    stripped = text.strip()
    if not names or len(stripped) > _LONGEST or stripped[:1] not in ("{", "[", "<", "`"):
        return ()
    parts = _parts(stripped)
    calls = [_call(value) for part in parts for value in _values(part)]
    if not calls or any(call is None or call[0] not in names for call in calls):
        return ()
    return tuple(call for call in calls if call is not None)


def repeats(text: str, prompt: Iterable[str]) -> bool:
    """Whether a call in a text repeats one of the prompt's, however it is spelled there."""
    parts, texts = _parts(text.strip()), tuple(prompt)
    calls = [_core(part) for part in parts]
    if any(call in core for core in map(_core, texts) for call in calls):
        return True
    objects = {_canonical(value) for part in parts for value in _values(part)}
    return any(not objects.isdisjoint(_objects(one)) for one in texts)


def _objects(text: str) -> set[str]:
    """The JSON objects in a text, as far as they are looked for, in one spelling."""
    found, decoder, position = set[str](), json.JSONDecoder(), -1
    for _ in range(_LOOKED_FOR):
        position = text.find("{", position + 1)
        if position < 0:
            break
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            continue
        waiting: list[Any] = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict):
                held = cast("dict[str, Any]", one)
                found.add(_canonical(held))
                waiting += held.values()
            elif isinstance(one, list):
                waiting += cast("list[Any]", one)
        position = end - 1
    return found


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _core(text: str) -> str:
    """A text's letters and digits in one case, without line breaks that JSON has written out."""
    folded = unicodedata.normalize("NFKC", re.sub(r"\\[nrt]", "", text)).casefold()
    return "".join(filter(str.isalnum, folded))


def _parts(text: str) -> list[str]:
    """The text within tags, also in a fence, if there is no other; else the text itself."""
    fence = _FENCE.match(text)
    if fence is not None and text.endswith("```") and len(text) >= fence.end() + len("```"):
        text = text[fence.end() : -len("```")].strip()
    # some chat templates double the braces around a call: {{...}}
    return [
        part[1:-1] if part.startswith("{{") and part.endswith("}}") else part
        for part in _tagged(text) or [text]
    ]


def _tagged(text: str) -> list[str]:
    """The text within each tag; nothing if any is outside. Looks at each letter once."""
    parts: list[str] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        tag = _TAG.match(text, position)
        closing = "" if tag is None else f"</{tag[1]}>"
        close = -1 if tag is None else text.find(closing, tag.end())
        if tag is None or close < 0:
            return []
        parts.append(text[tag.end() : close].strip())
        position = close + len(closing)
    return parts


def _values(text: str) -> list[Any]:
    """The JSON values that the text is, one after the other; `[None]` if it is something else."""
    decoder, values = json.JSONDecoder(), list[Any]()
    position, end = 0, len(text)
    while position < end:
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return [None]
        values += cast("list[Any]", value) if isinstance(value, list) else [value]
        between = _BETWEEN.match(text, position)
        position = between.end() if between is not None else position
    return values


def _call(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    if isinstance(fields.get("function"), dict):
        fields = cast("dict[str, Any]", fields["function"])
    name, inputs = fields.get("name"), fields.get("arguments", fields.get("parameters", {}))
    if not isinstance(name, str) or set(fields) - {"name", "arguments", "parameters", "id", "type"}:
        return None
    return name, inputs if isinstance(inputs, str) else json.dumps(inputs, ensure_ascii=False)
