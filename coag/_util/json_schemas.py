"""Checking values against foreign JSON Schemas, in bounded time.

A schema of 3 kB can ask for more work than a day has: definitions that refer to two others each,
or a pattern such as `^(a+)+$`. Three bounds end that. A schema is looked at when it arrives; each
check has an amount of work, after which it is stopped; and patterns are matched by Rust's
engine, which takes linear time. That engine has no lookaround: one at a pattern's
beginning, as in `^(?!.*--)`, is matched by itself, and any other is refused.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType] - untyped
from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry
from referencing.exceptions import Unresolvable

_CHARACTERS = 100_000
"""Characters of JSON that a schema may have."""
LEVELS = 50
"""Levels of lists and objects that arguments may have; a schema may have twice as many."""
_STEPS = 100_000
"""Steps of one check; a step takes a few microseconds at most."""
_AT_ONCE = 5_000
"""Schemas that may apply to one and the same value, each reference followed."""
_UNEVALUATED = 50
"""The same, in a schema that asks what no other part of it has evaluated."""
_PATTERN = 1_000
"""Characters of a pattern."""
_REPEATS = 20_000
"""Signs that the patterns of a schema have together, counted as often as they are repeated."""
_PER_STEP = 1_024
"""Signs of a pattern that are compared with one character of a text each, in one step."""
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""Parts of a schema that hold values."""
_BROKEN = (SchemaError, Unresolvable, RecursionError, ArithmeticError, ValueError)
"""What a schema raises that cannot be checked against, by itself or in use."""


class _TooMuchWork(Exception):
    """A check has taken all its steps."""


class _Steps(threading.local):
    left: int = 0
    lookup: int = 0
    """What it takes to find a definition by anything but its place."""

    def take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _TooMuchWork


_steps = _Steps()


@lru_cache(maxsize=1024)
def schema_fault(schema: str) -> str | None:
    """Why nothing can be checked against a JSON Schema in bounded time; None if it can be.

    Args:
        schema: The schema as JSON.
    """
    if len(schema) > _CHARACTERS:
        return f"its schema has {len(schema):,} characters, more than {_CHARACTERS:,}"
    loaded: Any = json.loads(schema)
    if levels(loaded) > 2 * LEVELS:
        return f"its schema has more than {2 * LEVELS} levels"
    nodes = list(_schemas(loaded))
    repeats = 0
    for pattern in (pattern for node in nodes for pattern in _patterns_of(node)):
        try:
            repeats += _pattern(pattern)[0]
        except ValueError as error:
            return f"its pattern {pattern[:80]!r} cannot be matched: {error}"
        if repeats > _REPEATS:
            return f"its patterns have more than {_REPEATS:,} signs with their repetitions"
    return _too_many(nodes, loaded)


def value_fault(value: Mapping[str, Any], schema: str) -> str | None:
    """What is wrong with a value by a JSON Schema, or with the schema; None if it fits.

    Args:
        value: An object.
        schema: The schema as JSON.
    """
    try:
        validator = _validator(schema)
        _steps.left, _steps.lookup = _STEPS, len(schema) // 64
        error = next(validator.iter_errors(value), None)
    except _TooMuchWork:
        return "it takes too much work to check them by the action's schema: give fewer or shorter"
    except _BROKEN as broken:
        reason = str(broken).partition(chr(10))[0]
        return f"the action's own schema is invalid: {type(broken).__name__}: {reason}"[:300]
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    return f"{where + ': ' if where else ''}{error.message}"[:300]


def levels(value: Any) -> int:
    """How deeply lists and objects are nested; counted without recursion."""
    found, layer = 0, _nested([value])
    while layer:
        found += 1
        inside = [item.values() if isinstance(item, dict) else item for item in layer]
        layer = _nested([item for items in inside for item in items])
    return found


def _nested(items: list[Any]) -> list[dict[str, Any] | list[Any]]:
    return [item for item in items if isinstance(item, dict | list)]


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    if fault := schema_fault(schema):
        raise ValueError(fault)
    loaded: dict[str, Any] = json.loads(schema)
    _steps.left, _steps.lookup = _STEPS, 0
    for error in _Bounded(Draft202012Validator.META_SCHEMA).iter_errors(loaded):
        raise SchemaError(error.message)
    return _Bounded(loaded, registry=Registry[Any]())  # an empty one: nothing is fetched


# What a schema asks for: its parts, and how many of them apply to one value.


def _schemas(loaded: Any) -> Iterator[dict[str, Any]]:
    """Every object in a schema, but for those that are values."""
    waiting = [loaded]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += cast("list[Any]", node)
        elif isinstance(node, dict):
            schema = cast("dict[str, Any]", node)
            yield schema
            waiting += [part for key, part in schema.items() if key not in _VALUES]


def _patterns_of(node: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(node.get("pattern"), str):
        yield node["pattern"]
    if isinstance(node.get("patternProperties"), dict):
        yield from node["patternProperties"]


def _too_many(nodes: Sequence[Mapping[str, Any]], root: Any) -> str | None:
    """Whether too many schemas apply to one value."""
    looks_back = any(key.startswith("unevaluated") for node in nodes for key in node)
    if looks_back and any("patternProperties" in node for node in nodes):
        return "its schema has 'patternProperties' beside 'unevaluated…', which is not supported"
    most, known = _UNEVALUATED if looks_back else _AT_ONCE, dict[int, int]()
    if max(_applied(node, root, known) for node in nodes) <= most:
        return None
    return f"more than {most:,} parts of its schema apply to one value, references followed"


def _applied(node: Any, root: Any, known: dict[int, int]) -> int:
    """How many schemas apply to a value that this one applies to."""
    if not isinstance(node, dict):
        return 1
    schema = cast("dict[str, Any]", node)
    if id(schema) not in known:
        known[id(schema)] = _AT_ONCE + 1  # what refers to itself at one value never ends
        parts = [_applied(part, root, known) for part in _in_place(schema, root)]
        known[id(schema)] = min(1 + sum(parts), _AT_ONCE + 1)
    return known[id(schema)]


def _in_place(schema: Mapping[str, Any], root: Any) -> Iterator[Any]:
    """The schemas that apply to the same value as this one."""
    for key in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(key)
        yield from cast("list[Any]", parts) if isinstance(parts, list) else ()
    yield from (schema[key] for key in ("not", "if", "then", "else") if key in schema)
    dependent = schema.get("dependentSchemas")
    yield from cast("dict[str, Any]", dependent).values() if isinstance(dependent, dict) else ()
    for key in ("$ref", "$dynamicRef"):
        if isinstance(reference := schema.get(key), str):
            yield _at(reference, root)


def _at(reference: str, root: Any) -> Any:
    """What a reference within the schema leads to; None for any other kind."""
    node: Any = root
    if reference.partition("#")[0]:
        return None
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            items = cast("list[Any]", node)
            node = items[int(name)] if name.isdecimal() and int(name) < len(items) else None
        else:
            node = cast("dict[str, Any]", node).get(name) if isinstance(node, dict) else None
    return node


# Patterns.

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d+(?:,\d*)?\}|.", re.DOTALL)
_SORT_OF = re.compile(r"\\[wWdDsSbBpP]")
_ANY = frozenset({r"[\s\S]", r"[\S\s]", r"[\w\W]", r"[\d\D]"})
_CLASS = 20
"""What a sort of sign such as `\\w` counts, of which there are thousands of signs."""
_LOOKS = (["(", "?", "="], ["(", "?", "!"])


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> tuple[int, tuple[tuple[bool, SchemaValidator], ...]]:
    """How many signs a pattern has, repeated ones counted, and what must match or must not.

    Raises:
        ValueError: It is no pattern, or cannot be matched in linear time.
    """
    if len(pattern) > _PATTERN:
        raise ValueError(f"it has more than {_PATTERN:,} characters")
    signs, conditions = 0, list[tuple[bool, SchemaValidator]]()
    for wanted, tokens in _conditions(_TOKEN.findall(pattern)):
        signs += _signs(tokens)
        if signs > _REPEATS:
            raise ValueError(f"it has more than {_REPEATS:,} signs with its repetitions")
        plain = "".join(map(_in_rust, tokens))
        schema = core_schema.str_schema(pattern=plain, regex_engine="rust-regex")
        try:
            conditions.append((wanted, SchemaValidator(schema)))
        except PatternError as error:
            lines = [line.strip(" ^") for line in str(error).splitlines() if line.strip(" ^")]
            raise ValueError(lines[-1].rpartition("Error: ")[2].removeprefix("error: ")) from error
    return signs, tuple(conditions)


def _conditions(tokens: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """The pattern as several: each lookahead at its beginning, and the rest."""
    begin = 1
    while tokens[:1] == ["^"] and tokens[begin : begin + 3] in _LOOKS:
        depth, end = 1, begin + 3
        while depth and end < len(tokens):
            depth += {"(": 1, ")": -1}.get(tokens[end], 0)
            end += 1
        inner = tokens[begin + 3 : end - 1]
        yield tokens[begin + 2] == "=", ["^", "(", "?", ":", *inner, ")"]
        begin = end
    rest, depth = tokens[begin:], 0
    for token in rest if begin > 1 else ():
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "|" and not depth:
            raise ValueError("lookaround is not supported beside '|'")
    yield True, [*tokens[:1], *rest]


def _signs(tokens: list[str]) -> int:
    """How many signs a pattern has when each repetition is written out."""
    sums, last = [0], 0
    for token in tokens:
        if token == "(":
            sums.append(0)
            continue
        if token == ")" and len(sums) > 1:
            last = sums.pop()
        elif token[0] == "{" and len(token) > 1:
            most = max(int(number) for number in re.findall(r"\d{1,6}", token))
            last *= max(most - 1, 0)
        else:
            last = 1 if token in _ANY or not _SORT_OF.search(token) else _CLASS
        sums[-1] += last
    return sum(sums)


def _in_rust(token: str) -> str:
    """A part of a pattern as Rust's engine reads it."""
    if token[0] == "[" and len(token) > 1:  # where it takes `[`, `&&` and `~~` for operators
        return "[" + re.sub(r"\\.|[\[&~]", lambda sign: f"\\{sign[0][-1]}", token[1:])
    if token == "{":
        return r"\{"
    return r"\z" if token == r"\Z" else token


def _matches(pattern: str, text: str) -> bool:
    signs, conditions = _pattern(pattern)
    _steps.take(1 + signs * len(text) // _PER_STEP)
    return all(one.isinstance_python(text) is wanted for wanted, one in conditions)


# The keywords of JSON Schema, each of which takes steps.

_Keyword = Callable[[Any, Any, Any, Any], "Iterator[Any] | None"]


def _counted(keyword: _Keyword) -> _Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _steps.take(1 + _size(value) + _size(instance))
        for error in keyword(validator, value, instance, schema) or ():
            _steps.take(len(error.message) // 256)
            yield error

    return check


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value) // 64
    return len(cast("list[Any]", value)) if isinstance(value, list | dict) else 0


def _nodes(value: Any) -> int:
    """How many values a value holds, itself among them."""
    found, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        found += 1
        if isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] - JSON
    return found


_PLAIN = cast("dict[str, _Keyword]", Draft202012Validator.VALIDATORS)


def _compared(name: str) -> _Keyword:
    """`const` or `enum`: lists and objects are compared part by part."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, list | dict):
            _steps.take(_nodes(value))
        yield from _PLAIN[name](validator, value, instance, schema) or ()

    return check


def _unique(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if value and isinstance(instance, list):
        items = cast("list[Any]", instance)
        sorts = all(type(item) is str for item in items)
        _steps.take(len(items) if sorts else len(items) * _nodes(items))
    yield from _PLAIN["uniqueItems"](validator, value, instance, schema) or ()


def _referred(name: str) -> _Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _steps.take(0 if value[:2] in ("#", "#/") else _steps.lookup)
        yield from _PLAIN[name](validator, value, instance, schema) or ()

    return check


def _unevaluated(name: str) -> _Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _steps.take(_UNEVALUATED * (1 + _size(instance) // 8))
        yield from _PLAIN[name](validator, value, instance, schema) or ()

    return check


def _pattern_keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _matches(value, instance):
        plain = _PLAIN["pattern"](validator, "(?!)", instance, schema) or ()
        for error in plain:
            error.message = f"{instance!r} does not match {value!r}"
            yield error


def _pattern_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, part in value.items():
        for key, item in cast("dict[str, Any]", instance).items():
            if _matches(pattern, key):
                yield from validator.descend(item, part, path=key, schema_path=pattern)


def _additional(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict) and (patterns := schema.get("patternProperties")):
        keys = cast("dict[str, Any]", instance)
        matched = {key: True for key in keys if any(_matches(one, key) for one in patterns)}
        properties = {**schema.get("properties", {}), **matched}
        schema = {"properties": properties}
    yield from _PLAIN["additionalProperties"](validator, value, instance, schema) or ()


_OWN: dict[str, _Keyword] = {
    "const": _compared("const"),
    "enum": _compared("enum"),
    "uniqueItems": _unique,
    "$ref": _referred("$ref"),
    "$dynamicRef": _referred("$dynamicRef"),
    "unevaluatedItems": _unevaluated("unevaluatedItems"),
    "unevaluatedProperties": _unevaluated("unevaluatedProperties"),
    "pattern": _pattern_keyword,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
}
_Bounded: Any = extend(  # pyright: ignore[reportUnknownVariableType] - untyped
    Draft202012Validator,
    {name: _counted(_OWN.get(name, keyword)) for name, keyword in _PLAIN.items()},
)
