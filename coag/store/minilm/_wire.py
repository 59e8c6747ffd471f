"""Protocol buffers, as far as a model file of ONNX needs them.

The package `onnx` would do this too, but its newest releases and AutoGen ask for different
versions of protobuf.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}


def message(*fields: bytes) -> bytes:
    """A message of these fields."""
    return b"".join(fields)


def field(number: int, value: int | float | str | bytes) -> bytes:
    """One field: an int as a varint, a float in 32 bits, a text or a message as bytes."""
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | _FIXED32) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message in their order, by number; what is no varint comes as bytes.

    Raises:
        ValueError: It is no message, or ends too early.
    """
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        if key & 7 == _VARINT:
            value, place = _read_varint(data, place)
            yield key >> 3, value
            continue
        if key & 7 == _BYTES:
            size, place = _read_varint(data, place)
        elif key & 7 in _SIZES:
            size = _SIZES[key & 7]
        else:
            raise ValueError(f"Field {key >> 3} has the unknown wire type {key & 7}.")
        if place + size > len(data):
            raise ValueError(f"Field {key >> 3} ends {place + size - len(data)} bytes too early.")
        yield key >> 3, data[place : place + size]
        place += size


def _varint(value: int) -> bytes:
    rest = value & 0xFFFF_FFFF_FFFF_FFFF  # a negative number is sent as its complement
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _read_varint(data: memoryview, place: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise ValueError(f"There is no whole number at byte {place}.")
