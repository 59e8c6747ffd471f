"""Every noun is its JSON: what is written can be read, and is equal."""

from __future__ import annotations

import types
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from coag.schema import (
    ENTRY,
    PHASES,
    ActionCall,
    ActionResult,
    ActionSpec,
    Entry,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Percept,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    Record,
    RetrievalOutcome,
    Section,
    SelectionOutcome,
    Situation,
    Snapshot,
    TurnEnd,
    TurnStart,
    Value,
    Written,
)

TRACE_RECORDS: tuple[type[Value], ...] = (
    RetrievalOutcome,
    ReasoningOutcome,
    ProposalOutcome,
    EvaluationOutcome,
    SelectionOutcome,
    ExecutionOutcome,
    Percept,
    ModelCall,
    Intent,
    Receipt,
    Snapshot,
    Note,
    TurnStart,
    TurnEnd,
    Written,
)
OTHER_NOUNS: tuple[type[Value], ...] = (
    ActionCall,
    ActionResult,
    ActionSpec,
    Record,
    Section,
    Situation,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INTEGERS = st.integers(min_value=1, max_value=2**31)
FLOATS = st.floats(min_value=0.0, max_value=1.0, allow_subnormal=False)
TIMES = st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    str: TEXTS,
    int: INTEGERS,
    float: FLOATS,
    bool: st.booleans(),
    datetime: TIMES,
    type(None): st.none(),
}


def any_of(annotation: Any) -> st.SearchStrategy[Any]:
    """A strategy for the type of a field."""
    if annotation in LEAVES:
        return LEAVES[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return any_of(inner[0])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, types.UnionType):
        return st.one_of([any_of(each) for each in inner])
    if origin is not None:
        return any_container(origin, inner)
    if issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    return any_noun(cast("type[Value]", annotation))


def any_container(origin: Any, inner: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin is tuple:
        return st.lists(any_of(inner[0]), max_size=2).map(tuple)
    assert origin is dict
    return st.dictionaries(TEXTS, any_of(inner[1]), max_size=2)


def any_field(field: FieldInfo) -> st.SearchStrategy[Any]:
    strategy = any_of(field.annotation)
    must_not_be_empty = any(getattr(bound, "min_length", 0) for bound in field.metadata)
    return strategy.filter(bool) if must_not_be_empty else strategy


def any_noun(noun: type[Value]) -> st.SearchStrategy[Any]:
    fields = {name: any_field(field) for name, field in noun.model_fields.items()}
    return st.fixed_dictionaries(fields).map(lambda values: noun(**values))


@pytest.mark.parametrize("noun", TRACE_RECORDS, ids=lambda noun: noun.__name__)
def test_a_trace_record_is_equal_after_writing_and_reading(noun: type[Value]) -> None:
    @settings(max_examples=25, deadline=None)
    @given(body=any_noun(noun), seq=st.integers(0, 2**40))
    def check(body: Any, seq: int) -> None:
        line = Entry(seq=seq, body=body).model_dump_json()
        assert "\n" not in line
        read = ENTRY.validate_json(line)
        assert type(read.body) is noun
        assert read == Entry(seq=seq, body=body)
        # Equal values may differ as JSON (true and 1): the text must be the same as well.
        assert read.model_dump_json() == line

    check()


@pytest.mark.parametrize("noun", OTHER_NOUNS, ids=lambda noun: noun.__name__)
def test_a_noun_is_equal_after_writing_and_reading(noun: type[Value]) -> None:
    @settings(max_examples=25, deadline=None)
    @given(value=any_noun(noun))
    def check(value: Value) -> None:
        read = noun.model_validate_json(value.model_dump_json())
        assert read == value
        assert read.model_dump_json() == value.model_dump_json()

    check()


def test_an_outcome_is_recognised_by_its_phase() -> None:
    defaults = [noun.model_fields["phase"].default for noun in TRACE_RECORDS[:6]]
    assert defaults == list(PHASES)


START = TurnStart(at=datetime(2026, 1, 1, tzinfo=UTC), turn=1, cycle=0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({**START.model_dump(mode="json"), "mood": "good"}, "extra"),
        ({"record": "dream"}, "turn_start"),
    ],
)
def test_an_unknown_field_or_record_is_refused(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ENTRY.validate_python({"v": 1, "seq": 0, "body": body})


def test_a_noun_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        START.turn = 2  # pyright: ignore[reportAttributeAccessIssue] - that is the point
