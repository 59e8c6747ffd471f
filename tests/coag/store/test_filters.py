from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from coag.schema import MemoryKind
from coag.store import Search, check_metadata, parse_where


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("type = obstacle", "must be a mapping"),
        ({"x": None}, "must be text, a number or a truth value, not None"),
        ({"x": [1, 2]}, "must be text, a number or a truth value"),
        ({"x": float("nan")}, "NaN"),
        ({"x": 2**60}, "beyond 2\\*\\*53"),
        ({"x": "\ud800"}, "no valid Unicode"),
        ({"x": {}}, "is empty"),
        ({"x": {"$ne": 1}}, "Unknown operator '\\$ne' for 'x'. Known: \\$eq, \\$in, \\$gt"),
        ({"x": {"$gt": "a"}}, "compares numbers, not 'a'"),
        ({"x": {"$gt": True}}, "compares numbers, not True"),
        ({"x": {"$in": []}}, "at least one entry"),
        ({"x": {"$in": "abc"}}, "takes a list"),
        ({"$and": []}, "at least one entry"),
        ({"$or": {"x": 1}}, "takes a list"),
        ({"$not": [{"x": 1}]}, "Unknown operator '\\$not'. Known here: \\$and, \\$or"),
        ({"$and": ["x"]}, "must be a mapping"),
    ],
)
def test_malformed_filter_is_refused_with_what_is_known(where: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_where(where)


def test_datetime_is_compared_as_seconds() -> None:
    condition = parse_where({"created_at": {"$lte": datetime(2026, 1, 1, tzinfo=UTC)}})
    assert condition.matches({"created_at": datetime(2025, 1, 1, tzinfo=UTC).timestamp()})
    assert not condition.matches({"created_at": datetime(2027, 1, 1, tzinfo=UTC).timestamp()})


def test_metadata_key_that_is_a_field_of_every_record_is_refused() -> None:
    check_metadata({"x": 1, "blocked": True})
    with pytest.raises(ValueError, match="Metadata key 'scope' is the name of a field"):
        check_metadata({"scope": "mine"})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"k": 0}, "k must be at least 1, not 0"),
        ({"min_score": 1.5}, "min_score must be between 0 and 1, not 1.5"),
        ({"scopes": ()}, "scopes is empty"),
    ],
)
def test_impossible_search_is_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Search(text="x", kind=MemoryKind.EPISODIC, **arguments)
