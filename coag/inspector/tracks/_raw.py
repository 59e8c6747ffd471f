"""Lines of a trace as they are written: to see quickly that two cycles are the same."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import BinaryIO

from coag.errors import TraceError
from coag.tracing import TraceIndex

_NUMBERED = re.compile(rb'^\{"v":\d+,"seq":\d+,"hash":"\w*",')
_TIME = re.compile(rb'"(?:at|created_at)":"[^"\\]{10,40}"')


class RawLines:
    """Reads lines of a trace without parsing them.

    Args:
        index: The trace, as far as it was scanned.
    """

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        lengths = map(index.length, range(index.lines))
        self._begins = array("Q", accumulate(lengths, initial=0))

    def same(self, positions: Iterable[int]) -> list[bytes]:
        """Lines without their numbers, hashes and times: equal ones tell of the same.

        Raises:
            TraceError: If the file cannot be read.
        """
        path = self._index.path
        try:
            with path.open("rb") as file:
                return [self._line(file, position) for position in positions]
        except OSError as error:
            raise TraceError(path, f"cannot be read: {error.strerror}") from error

    def _line(self, file: BinaryIO, position: int) -> bytes:
        file.seek(self._begins[position])
        line = file.read(self._index.length(position))
        return _TIME.sub(b"", _NUMBERED.sub(b"", line))
