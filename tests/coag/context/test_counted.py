"""The calls that rules count: which are kept, and as what values."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from coag._util.secrets import REDACTED
from coag.context.counted import COUNTED_LIMIT, CountedAction, counted_value, with_call
from coag.schema import Percept, PerceptKind, Settlement, Trust


def _paid(intent: str, **changes: object) -> Percept:
    fields = {
        "id": intent,
        "kind": PerceptKind.TOOL_RETURN,
        "source": "pay",
        "content": "paid",
        "arguments": {"amount": 5},
        "trust": Trust.UNTRUSTED,
        "at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return Percept.model_validate(fields | changes)


def _after(*percepts: Percept) -> list[CountedAction]:
    done: tuple[CountedAction, ...] = ()
    for percept in percepts:
        done, _ = with_call(done, percept, "g1", "s1")
    return list(done)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (60, 60.0),
        ("Ann", " ann"),
        ([1.0, "B"], [1, "b"]),
        ({"a": 1, "b": None}, {"a": 1.0}),
    ],
)
def test_values_that_count_as_the_same_have_one_text(one: object, other: object) -> None:
    assert counted_value(one) == counted_value(other)


def test_a_long_value_is_kept_as_its_hash_and_a_redacted_one_as_redacted() -> None:
    assert counted_value("x" * 500).startswith("sha256 ")
    assert counted_value("x" * 500) != counted_value("x" * 501)
    assert counted_value(f"a {REDACTED}") == counted_value({"b": REDACTED}) == REDACTED


def test_a_call_counts_once_and_one_that_did_nothing_does_not() -> None:
    assert [one.values for one in _after(_paid("i1"), _paid("i1"))] == [{"amount": "5"}]
    assert _after(_paid("i1", is_error=True)) == []
    assert len(_after(_paid("i1", is_error=True, counts=True))) == 1


def test_a_call_that_is_found_not_to_have_happened_goes_again() -> None:
    lost = _paid("i1", kind=PerceptKind.UNKNOWN_OUTCOME)
    settled = {"kind": PerceptKind.SETTLED, "caused_by": "i1"}
    happened = _paid("s", settlement=Settlement.HAPPENED, **settled)
    did_not = _paid("s", settlement=Settlement.DID_NOT_HAPPEN, **settled)
    assert len(_after(lost)) == len(_after(lost, happened)) == 1
    assert _after(lost, did_not) == []


def test_of_one_action_a_bounded_number_is_kept_and_the_oldest_goes() -> None:
    done: tuple[CountedAction, ...] = ()
    gone: CountedAction | None = None
    for number in range(COUNTED_LIMIT + 1):
        done, gone = with_call(done, _paid(f"i{number}"), "g1", "s1")
    assert len(done) == COUNTED_LIMIT
    assert gone is not None
    assert gone.intent_id == "i0"
