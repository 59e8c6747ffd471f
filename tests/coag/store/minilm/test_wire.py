from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.store.minilm.model import field, fields, message

NUMBERS = st.integers(min_value=1, max_value=2**29 - 1)


@given(st.lists(st.tuples(NUMBERS, st.integers(0, 2**64 - 1) | st.binary() | st.text())))
def test_what_is_written_is_read_again(given_fields: list[tuple[int, int | bytes | str]]) -> None:
    data = message(*(field(number, value) for number, value in given_fields))

    read = [
        (number, bytes(value) if isinstance(value, memoryview) else value)
        for number, value in fields(memoryview(data))
    ]

    assert read == [
        (number, value.encode() if isinstance(value, str) else value)
        for number, value in given_fields
    ]


def test_negative_numbers_and_floats_are_written_as_protobuf_has_them() -> None:
    assert field(1, -1) == b"\x08" + b"\xff" * 9 + b"\x01"
    assert field(2, 1.0) == b"\x15\x00\x00\x80\x3f"
    assert [number for number, _ in fields(memoryview(field(2, 1.0) + field(3, 5)))] == [2, 3]


@given(st.binary(max_size=40))
def test_other_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read = list(fields(memoryview(data)))
    except ValueError:
        return
    assert len(read) <= len(data)


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (b"\x0a\x05abc", "ends 2 bytes too early"),
        (b"\x0b", "unknown wire type 3"),
        (b"\x80", "no whole number at byte 1"),
        (b"\xff" * 12, "no whole number"),
    ],
)
def test_broken_message_says_what_is_wrong(data: bytes, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        list(fields(memoryview(data)))
