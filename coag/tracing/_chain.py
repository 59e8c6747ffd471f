"""The hashes that make the lines of a trace a chain."""

from __future__ import annotations

import re
from hashlib import sha256

from coag.schema import TRACE_VERSION

_FORM = re.compile(rb'\{"v":%d,"seq":(\d+),"hash":"([0-9a-f]{64})","body":' % TRACE_VERSION)
"""The beginning of a line as a writer leaves it, byte for byte."""
_HEAD = 40
"""Bytes in which the `hash` of a line begins; lines of version 1 have none."""


def line_hash(before: str, seq: int, body: bytes) -> str:
    """The hash of a line: SHA-256, in hex, over the hash before, the number and the body.

    Args:
        before: The hash of the line before; empty for the first line of a trace.
        seq: The line's number.
        body: The record's JSON, exactly as it stands in the line.
    """
    return _hash(before.encode(), str(seq).encode(), body)


def chained_line(before: str, seq: int, body: bytes) -> tuple[bytes, str]:
    """A line as it is written, with its newline, and its hash."""
    hashed = line_hash(before, seq, body)
    head = f'{{"v":{TRACE_VERSION},"seq":{seq},"hash":"{hashed}","body":'
    return b"%s%s}\n" % (head.encode(), body), hashed


def body_of(line: bytes) -> bytes:
    """The record's JSON in a line of this version; empty in another line."""
    form = _FORM.match(line)
    return b"" if form is None else line[form.end() : -2 if line.endswith(b"\n") else -1]


class Chain:
    """Checks the hashes of a trace, line by line from its first.

    Each line is measured by the hash that stands in the line before, so that what was changed in
    one place is told of once. Lines of version 1 have no hash: the first line that has one takes
    the SHA-256 of all bytes before it for the hash of the line before.

    Args:
        opening: What `run.json` gives for the hash before the first line; None where there is no
            `run.json`. Runs of before it was bound have nothing there, which fits too.
    """

    def __init__(self, opening: str | None = "") -> None:
        self._opening = opening
        self.bound = False
        """Whether the first line follows from `run.json`; False where that was not there."""
        self._before: bytes | None = b""
        """The hash of the line before; None if that could not be told."""
        self._older = sha256()
        self._begun = False
        """True once a line had a hash."""

    @property
    def head(self) -> str:
        """The hash of the last line; empty where there is none."""
        return self._before.decode() if self._begun and self._before is not None else ""

    def fits(self, line: bytes, version: int | None) -> bool:
        """Takes the next line; true unless its hash is wrong, or is missing where one must be.

        Args:
            line: The line as it stands in the file, with its newline.
            version: The version it was written in; None for a line that cannot be read, which
                fits if nothing speaks against it.
        """
        form = _FORM.match(line)
        if form is None:
            return self._fits_without(line, version)
        before, self._before = self._expected(), form[2]
        self._begun = True
        if before is None or version is None:
            return True
        body = memoryview(line)[form.end() : -2 if line.endswith(b"\n") else -1]
        fits = _hash(before, form[1], body).encode() == form[2]
        if fits or before:
            return fits
        return not line.endswith(b"\r\n") and self._fits_opening(form, body)

    def _fits_opening(self, form: re.Match[bytes], body: memoryview) -> bool:
        """Whether a first line follows from `run.json`, as far as there is one."""
        if self._opening is None:
            return form[1] == b"0"
        self.bound = _hash(self._opening.encode(), form[1], body).encode() == form[2]
        return self.bound

    def _fits_without(self, line: bytes, version: int | None) -> bool:
        if not self._begun:
            self._older.update(line)
            self._before = None
            return version is None or (version == 1 and b'"hash":' not in line[:_HEAD])
        self._before = None
        return version is None

    def _expected(self) -> bytes | None:
        """What stands for the hash of the line before."""
        if self._begun or self._before is not None:
            return self._before
        return self._older.hexdigest().encode()


def _hash(before: bytes, seq: bytes, body: bytes | memoryview) -> str:
    hashed = sha256(b"%s\n%s\n" % (before, seq))
    hashed.update(body)
    return hashed.hexdigest()
