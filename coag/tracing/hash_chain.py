"""The hash chain of a trace: its lines parsed, upgraded, chained and bound to their run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from coag._util.validation import first_error
from coag.schema import ENTRY, TRACE_VERSION, Entry

from .files import backwards, regular, trace_errors
from .run import Seal

# ---- What version 1 wrote, as this version would have written it ----
#
# To raise the version: add a step, and a run folder of the version before to the test data.


Fields = dict[str, Any]
"""A line or a `run.json` as its JSON says, not yet checked."""


def is_older(version: int) -> bool:
    """True for a version that can be upgraded."""
    return 1 <= version < TRACE_VERSION


def upgraded_line(fields: Fields) -> Fields:
    """A line of version 1, which had no hashes, and snapshots that did not say their reason.

    `cycle` promises that the records before lead to this state, so it is said where it is sure. A
    loaded state was written with the texts of all procedures; so was the snapshot of a cycle
    before which they had changed. Neither is claimed to follow from what was recorded before.
    """
    body = fields.get("body")
    if isinstance(body, dict) and cast("Fields", body).get("record") == "snapshot":
        procedures = cast("Fields", body).get("procedures")
        has_state = isinstance(procedures, dict) and "state" in procedures
        reason = "opened" if fields.get("seq") == 0 else "loaded" if has_state else "cycle"
        fields = {**fields, "body": {**cast("Fields", body), "reason": reason}}
    return {**fields, "v": TRACE_VERSION}


# ---- One line of a trace, of this version or of an older one ----


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """What a line holds."""

    entry: Entry
    """The record, as this version has it."""
    version: int
    """The version of the format that the line was written in."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no record of this version of the format or of an older one."""

    why: str
    """What is wrong, for after the name of the line."""


def parse_line(line: bytes) -> ParsedLine | Unreadable:
    """What a line holds, with or without its newline."""
    try:
        entry = ENTRY.validate_json(line)
        if entry.v == TRACE_VERSION:
            return ParsedLine(entry, TRACE_VERSION)
        return _older(line)
    except ValidationError as error:
        return Unreadable(_why_unreadable(line, error))


def newer_version(version: int) -> str:
    """What is wrong with something of a newer version, for after a name."""
    return (
        f"is of version {version} of the format, and this coag reads up to {TRACE_VERSION}. "
        "Update coag."
    )


def _older(line: bytes) -> ParsedLine | Unreadable:
    fields: dict[str, Any] = from_json(line)
    version: object = fields["v"]
    if not isinstance(version, int) or isinstance(version, bool):
        return Unreadable(f"has the version {version!r}, which is no number")
    if version > TRACE_VERSION:
        return Unreadable(newer_version(version))
    if not is_older(version):
        return Unreadable(f"is of version {version} of the format, which never was")
    return ParsedLine(ENTRY.validate_json(to_json(upgraded_line(fields))), version)


def _why_unreadable(line: bytes, error: ValidationError) -> str:
    value = _json(line)
    if value is None:
        return "is not JSON, so this is no trace of coag or it is damaged"
    if not isinstance(value, dict) or not {"v", "seq", "body"} <= cast("Any", value).keys():
        return "has no `v`, `seq` and `body`, so this is no trace of coag"
    version = cast("dict[str, Any]", value)["v"]
    if isinstance(version, int) and version > TRACE_VERSION:
        return newer_version(version)
    return f"is no valid record: {first_error(error)}"


def _json(line: bytes) -> object | None:
    """The line's JSON; None where it is none, or is nested too deeply to be a record."""
    try:
        return cast("object", from_json(line))
    except ValueError:
        return None


# ---- The hashes that make the lines of a trace a chain ----


_FORM = re.compile(rb'\{"v":%d,"seq":(\d+),"hash":"([0-9a-f]{64})","body":' % TRACE_VERSION)
"""The beginning of a line as a writer leaves it, byte for byte."""
_HEAD = 40
"""Bytes in which the `hash` of a line begins; lines of version 1 have none."""


def line_hash(before: str, seq: int, body: bytes) -> str:
    """The hash of a line: SHA-256, in hex, over the hash before, the number and the body.

    Args:
        before: The hash of the line before; empty for the first line of a trace.
        seq: The line's number.
        body: The record's JSON, exactly as it is in the line.
    """
    return _line_hash(before.encode(), str(seq).encode(), body)


def chained_line(before: str, seq: int, body: bytes) -> tuple[bytes, str]:
    """A line as it is written, with its newline, and its hash."""
    hashed = line_hash(before, seq, body)
    head = f'{{"v":{TRACE_VERSION},"seq":{seq},"hash":"{hashed}","body":'
    return b"%s%s}\n" % (head.encode(), body), hashed


def body_of(line: bytes) -> bytes:
    """The record's JSON in a line of this version; empty in another line."""
    form = _FORM.match(line)
    return b"" if form is None else line[form.end() : -2 if line.endswith(b"\n") else -1]


def _line_hash(before: bytes, seq: bytes, body: bytes | memoryview) -> str:
    hashed = sha256(b"%s\n%s\n" % (before, seq))
    hashed.update(body)
    return hashed.hexdigest()


#
# The hash before the first line covers what is known when a run begins. The hash after the last
# covers all that `run.json` says of an ended run, and what a fork's memory began with.
FIXED = (
    *("id", "kind", "agent", "model", "seed"),
    *("versions", "configuration", "started_at", "parent"),
)
"""Fields of `run.json` that never change once the run has begun. Its recipe may: code moves."""


def opening_hash(fields: dict[str, Any]) -> str:
    """The hash before the first line of a run's trace.

    Args:
        fields: What `run.json` holds, unchanged.
    """
    return _hash("opening", {name: fields.get(name) for name in FIXED})


def closing_hash(fields: dict[str, Any], records: int, head: str, remembered: str) -> str:
    """The last hash of an ended run, which follows from all that is sealed.

    Args:
        fields: What `run.json` holds, unchanged; its `seal` does not count.
        records: How many records the trace has.
        head: The hash of its last line; empty for an empty trace.
        remembered: SHA-256 of `remembered.jsonl`; empty where there is none.
    """
    unsealed = {name: value for name, value in fields.items() if name != "seal"}
    return _hash("closing", [records, head, remembered, unsealed])


def info_fields(path: Path) -> dict[str, Any] | None:
    """What a `run.json` holds, unchanged; None where it cannot be read."""
    try:
        with open(path, "rb", opener=regular) as file:
            value: object = from_json(file.read())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hex; empty where it is not there.

    Raises:
        OSError: It cannot be read.
    """
    try:
        with open(path, "rb", opener=regular) as file:
            hashed = sha256()
            while block := file.read(1 << 16):
                hashed.update(block)
            return hashed.hexdigest()
    except FileNotFoundError:
        return ""


def seal_of(trace: Path) -> Seal | None:
    """The seal of a closed trace: how many records it has, and its last hash.

    Args:
        trace: A run's `trace.jsonl`.

    Returns:
        The seal; None if there is no trace, or it ends in what is no whole line of this version.

    Raises:
        TraceError: If the trace cannot be read.
    """
    with trace_errors(trace, "cannot be read"):
        try:
            with FileIO(trace, "r", opener=regular) as file:
                lines = backwards(file, os.fstat(file.fileno()).st_size)
                tail, last = next(lines), next(lines, b"")
        except FileNotFoundError:
            return None
    if not tail and not last:
        return Seal(records=0, hash="")
    parsed = parse_line(last)
    if tail or isinstance(parsed, Unreadable) or not parsed.entry.hash:
        return None
    return Seal(records=parsed.entry.seq + 1, hash=parsed.entry.hash)


def canonical(value: object) -> bytes:
    """The one JSON text of a value: keys in order, no white space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _hash(tag: str, value: object) -> str:
    return sha256(b"coag run " + tag.encode() + b"\n" + canonical(value)).hexdigest()


# ---- A trace line by line, with what is wrong with each ----


LONGEST_LINE = 1 << 26
"""Bytes; longer than any record, so that a foreign file cannot fill the memory."""


class ProblemKind(StrEnum):
    """What can be wrong with a line."""

    TRUNCATED = "truncated"
    """The last line is not whole: the run was killed, or is just writing it."""
    UNREADABLE = "unreadable"
    """The line is no record: it is damaged, foreign, or of a newer version."""
    NUMBER = "number"
    """The line's number does not follow: lines are missing, were added or moved."""
    HASH = "hash"
    """The line's hash does not follow from its text and the line before it, or it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceProblem:
    """Something is wrong with a line of a trace."""

    path: Path
    line: int
    """Number of the line, from 1."""
    kind: ProblemKind
    text: str
    """What is wrong, as a sentence that names the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One line of a trace."""

    number: int
    """From 1."""
    entry: Entry | None
    """What it holds, as this version has it; None if it cannot be read."""
    version: int | None
    """The version of the format that it was written in; None if it cannot be read."""
    problems: tuple[TraceProblem, ...] = ()
    """What is wrong with it; none for a line that is as it was written."""
    body: bytes = b""
    """The record's JSON as it is in the line; empty for other versions than this one."""
    bound: bool = False
    """Of a first line: whether its hash follows from what `run.json` says."""


def read_lines(path: Path) -> Iterator[TraceLine]:
    """All lines of a trace, bad ones too, read one at a time.

    Numbers and hashes are measured by the line before, so that one change is reported once. Lines
    that are missing at the end are not seen here: they are found by the `Seal` of `run.json`.
    What follows a line of over 64 MB is not read.

    Args:
        path: A run's `trace.jsonl`.

    Raises:
        TraceError: If the file cannot be read at all.
    """
    check = LineCheck(path)
    with trace_errors(path, "cannot be read"), open(path, "rb", opener=regular) as file:
        while line := file.readline(LONGEST_LINE + 1):
            yield check.line(line)
            if len(line) > LONGEST_LINE:
                return


def line_by_itself(path: Path, number: int, text: bytes) -> TraceLine:
    """One line, whose number and hash are not measured by the line before."""
    parsed = parse_line(text)
    if not isinstance(parsed, Unreadable):
        return TraceLine(number=number, entry=parsed.entry, version=parsed.version)
    sentence = f"line {number} {parsed.why}"
    kind = ProblemKind.UNREADABLE
    problem = TraceProblem(path=path, line=number, kind=kind, text=sentence)
    return TraceLine(number=number, entry=None, version=None, problems=(problem,))


class LineCheck:
    """Parses the lines of one trace, from its first, and checks their numbers and hashes.

    Each line is measured by the hash in the line before, so that what was changed in one place is
    reported once. Lines of version 1 have no hash: the first line that has one takes the SHA-256 of
    all bytes before it for the hash of the line before. The first line of a trace follows from
    `run.json`, where there is one; runs of before it was bound have nothing there, which fits too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0
        self._seq = 0
        self._before: bytes | None = b""
        """The hash of the line before; None if that is not known."""
        self._older = sha256()
        self._begun = False
        """True once a line had a hash."""
        self._bound = False

    def line(self, text: bytes) -> TraceLine:
        """The next line, with its newline; without one it is the last, as far as it got."""
        self._number += 1
        where = f"line {self._number}"
        if not text.endswith(b"\n"):
            if len(text) > LONGEST_LINE:
                problem = f"{where} is over {LONGEST_LINE:,} bytes, so this is no trace of coag"
                return self._bad(text, ProblemKind.UNREADABLE, problem)
            if _json(text) is None:
                problem = f"{where}, the last one, is truncated"
                return self._bad(text, ProblemKind.TRUNCATED, problem)
        parsed = parse_line(text)
        if isinstance(parsed, Unreadable):
            return self._bad(text, ProblemKind.UNREADABLE, f"{where} {parsed.why}")
        return TraceLine(
            number=self._number,
            entry=parsed.entry,
            version=parsed.version,
            problems=tuple(self._problems(text, parsed)),
            body=body_of(text),
            bound=self._bound,
        )

    def _problems(self, text: bytes, parsed: ParsedLine) -> Iterator[TraceProblem]:
        seq, expected = parsed.entry.seq, self._seq
        self._seq = seq + 1
        if seq != expected:
            missing = "lines are missing" if seq > expected else "lines were added or moved"
            sentence = f"line {self._number} has the number {seq}, not {expected}: {missing}"
            yield self._problem(ProblemKind.NUMBER, sentence)
        if not self._fits(text, parsed.version):
            others = (
                "lines before it are missing, were added or moved"
                if self._number > 1
                else "what run.json says of the run's beginning was, or lines before it are missing"
            )
            sentence = (
                f"line {self._number} has a hash that does not fit: it was changed, or {others}"
            )
            yield self._problem(ProblemKind.HASH, sentence)

    def _bad(self, text: bytes, kind: ProblemKind, sentence: str) -> TraceLine:
        self._seq += 1
        self._fits(text, None)
        problem = self._problem(kind, sentence)
        return TraceLine(number=self._number, entry=None, version=None, problems=(problem,))

    def _problem(self, kind: ProblemKind, sentence: str) -> TraceProblem:
        return TraceProblem(path=self._path, line=self._number, kind=kind, text=sentence)

    def _fits(self, line: bytes, version: int | None) -> bool:
        """False if the line's hash is wrong, or is missing where one must be.

        A line that cannot be read, of no version, fits if nothing speaks against it.
        """
        form = _FORM.match(line)
        if form is None:
            return self._fits_without(line, version)
        first = not self._begun and self._before is None
        before = self._older.hexdigest().encode() if first else self._before
        self._begun, self._before = True, form[2]
        if before is None or version is None:
            return True
        body = memoryview(line)[form.end() : -2 if line.endswith(b"\n") else -1]
        fits = _line_hash(before, form[1], body).encode() == form[2]
        if fits or before:
            return fits
        return not line.endswith(b"\r\n") and self._fits_opening(form, body)

    def _fits_opening(self, form: re.Match[bytes], body: memoryview) -> bool:
        """Whether a first line follows from `run.json`, as far as there is one."""
        fields = info_fields(self._path.with_name("run.json"))
        if fields is None:
            return form[1] == b"0"
        opening = opening_hash(fields).encode()
        self._bound = _line_hash(opening, form[1], body).encode() == form[2]
        return self._bound

    def _fits_without(self, line: bytes, version: int | None) -> bool:
        begun, self._before = self._begun, None
        if not begun:
            self._older.update(line)
        old = version == 1 and not begun and b'"hash":' not in line[:_HEAD]
        return version is None or old
