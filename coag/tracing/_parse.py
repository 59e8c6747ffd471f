"""One line of a trace, of this version or of an older one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from coag.schema import ENTRY, TRACE_VERSION, Entry

from ._upgrade import is_older, upgraded_line


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


def is_json(line: bytes) -> bool:
    """True if the line is whole JSON, so that only its newline can be missing."""
    return _json(line) is not None


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
    found = _json(line)
    if found is None:
        return "is not JSON, so this is no trace of coag or it is damaged"
    if not isinstance(found, dict) or not {"v", "seq", "body"} <= cast("Any", found).keys():
        return "has no `v`, `seq` and `body`, so this is no trace of coag"
    version = cast("dict[str, Any]", found)["v"]
    if isinstance(version, int) and version > TRACE_VERSION:
        return newer_version(version)
    first = error.errors(include_url=False)[0]
    at = ".".join(str(part) for part in first["loc"])
    return f"is no valid record: {at}: {first['msg']}"


def _json(line: bytes) -> object | None:
    """The line's JSON; None where it is none, or is nested too deeply to be a record."""
    try:
        return cast("object", from_json(line))
    except ValueError:
        return None
