"""A foreign schema is bounded when it arrives, and checked against in bounded time."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from coag._util.json_schemas import schema_fault, value_fault

PATTERNS = [
    *("^a", "b$", "a|b", "(a|b){2}c?", "x{2,}", r"\Aab\Z", r"^\d{4}-\d{2}-\d{2}$", "[[a&&b]+"),
    *("^{.*}$", r"^[^\]]*$", "[a~~b]", r"^\/api\/", "^https?://", "^#[0-9a-fA-F]{6}$"),
    *("^(?!.*--)[a-z-]+$", r"^(?=.*[A-Z])(?=.*\d).{3,}$", r"^[\w.+-]+@[\w-]+\.[\w.]+$"),
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "b", "ab", 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=6,
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "object", "integer", ["array", "null"]]),
            "enum": st.lists(VALUES, min_size=1, max_size=2),
            "const": VALUES,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["a", "^b", "[bc]"]), inner),
            "additionalProperties": inner,
            "propertyNames": inner,
            "items": inner,
            "contains": inner,
            "uniqueItems": st.booleans(),
            "pattern": st.sampled_from(PATTERNS),
            "required": st.just(["a"]),
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": inner,
            "$ref": st.sampled_from(["#/$defs/tree", "#/$defs/text"]),
            "minimum": st.just(2),
            "maxLength": st.just(1),
        },
    )


SCHEMAS = st.recursive(st.booleans() | st.just({"type": "string"}), _schemas, max_leaves=6)
DEFS = {
    "tree": {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}}},
    "text": {"type": ["string", "array"]},
}


@given(schema=SCHEMAS, value=st.dictionaries(st.sampled_from("abc"), VALUES))
def test_a_value_fits_by_jsonschema_if_and_only_if_it_fits_here(
    schema: Any, value: dict[str, Any]
) -> None:
    whole = {"allOf": [schema], "$defs": DEFS}
    text = json.dumps(whole)
    if schema_fault(text) is not None:
        return
    plain: ValidationError | None = next(Draft202012Validator(whole).iter_errors(value), None)  # pyright: ignore[reportUnknownMemberType] - jsonschema is partly typed
    assert (value_fault(value, text) is None) == (plain is None)


@pytest.mark.filterwarnings("ignore:Possible")  # Python warns of sets within sets
@given(text=st.text(alphabet="aAb1-.@x{}[]/# \u00e9_", max_size=12))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_python_says(pattern: str, text: str) -> None:
    schema = json.dumps({"properties": {"a": {"pattern": pattern}}})
    fits = value_fault({"a": text}, schema) is None
    assert fits == (re.search(pattern, text) is not None)


def _twice(count: int, **within: Any) -> dict[str, Any]:
    """Definitions that each refer twice to the next: at one value, or at the one within it."""
    defs: dict[str, Any] = {f"d{count}": {"type": "object"}}
    for n in range(count):
        both = {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2}
        defs[f"d{n}"] = {"properties": {"a": both}} if within else both
    return {"$defs": defs, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (_twice(40), "more than 5,000 parts of its schema apply to one value"),
        ({"$ref": "#"}, "more than 5,000 parts"),
        ({**_twice(10), "unevaluatedProperties": False}, "more than 50 parts"),
        ({"description": "x" * 100_000}, "characters, more than 100,000"),
        ({"pattern": "("}, "cannot be matched: unclosed group"),
        ({"pattern": r"(a)\1"}, "backreferences are not supported"),
        ({"pattern": "(?<=a)b"}, "look-around"),
        ({"pattern": "^(?!a)b|c"}, "lookaround is not supported beside '|'"),
        ({"pattern": "((a{100}){100}){100}"}, "more than 20,000 signs"),
        ({"pattern": "a{99999999999999999999}"}, "more than 20,000 signs"),
        ({"pattern": "a" * 1_001}, "more than 1,000 characters"),
        (
            {"properties": {f"p{n}": {"pattern": f"\\w{{90}}{n}"} for n in range(50)}},
            "its patterns",
        ),
        ({"patternProperties": {"(": True}}, "cannot be matched"),
        ({"patternProperties": {"a": True}, "unevaluatedProperties": False}, "not supported"),
    ],
)
def test_a_schema_that_cannot_be_checked_in_bounded_time_is_refused(
    schema: dict[str, Any], why: str
) -> None:
    text = json.dumps(schema)
    assert why in (schema_fault(text) or "")
    assert "the action's own schema is invalid" in (value_fault({"a": 1}, text) or "")


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    assert "levels" in (schema_fault('{"not":' * 120 + "{}" + "}" * 120) or "")


def _deep(levels: int) -> dict[str, Any]:
    return {"a": _deep(levels - 1)} if levels else {}


HEAVY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "references at each level": (_twice(40, within=True), _deep(44)),
    "equal objects": (
        {"properties": {"a": {"uniqueItems": True}}},
        {"a": [{"x": n} for n in range(5_000)]},
    ),
    "empty schemas": (
        {"properties": {"a": {"items": {"allOf": [True] * 4_000}}}},
        {"a": list(range(5_000))},
    ),
    "long errors": ({"anyOf": [{"type": "string"}] * 4_000}, {"a": "x" * 100_000}),
    "lists within lists": (
        {"properties": {"a": {"contains": {"contains": {"contains": {"const": 1}}}}}},
        {"a": [[[0] * 60] * 60] * 60},
    ),
    "many patterns": (
        {
            "patternProperties": {f"^k{n}x": True for n in range(2_000)},
            "additionalProperties": False,
        },
        {f"j{n}": 1 for n in range(2_000)},
    ),
    "a repeated pattern": ({"properties": {"a": {"pattern": "a{1,9000}b"}}}, {"a": "a" * 50_000}),
}


@pytest.mark.parametrize("what", HEAVY)
@pytest.mark.timeout(20)
def test_a_check_that_takes_too_much_work_is_stopped(what: str) -> None:
    schema, value = HEAVY[what]
    assert "too much work" in (value_fault(value, json.dumps(schema)) or "")


@pytest.mark.timeout(20)
def test_a_pattern_that_python_would_match_for_years_is_matched_at_once() -> None:
    schema = json.dumps({"properties": {"a": {"pattern": "^(a+)+$"}}})
    assert value_fault({"a": "a" * 50_000}, schema) is None
    assert "does not match" in (value_fault({"a": "a" * 200 + "b"}, schema) or "")


def test_large_ordinary_arguments_are_checked_whole() -> None:
    row = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    schema = json.dumps({"properties": {"rows": {"items": row}}})
    assert value_fault({"rows": [{"n": n} for n in range(5_000)]}, schema) is None
    last = [*({"n": n} for n in range(5_000)), {"n": "x"}]
    assert value_fault({"rows": last}, schema) == "rows.5000.n: 'x' is not of type 'integer'"
