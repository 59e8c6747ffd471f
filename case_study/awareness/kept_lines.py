"""A file of values, one JSON line each, so that a long measurement can be resumed."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from coag.errors import ConfigurationError
from coag.schema import Value

_LOG = logging.getLogger(__name__)
_SHOWN = 80
"""Bytes of a line that an error shows."""

ValueT = TypeVar("ValueT", bound=Value)


class KeptLines(Generic[ValueT]):
    """Values in the lines of a file; each is written at once, behind what others wrote meanwhile.

    A last line that was cut off does not count. It goes when the next value is written, not before:
    a file of something else is left as it is.

    Raises:
        ConfigurationError: The file cannot be read, or holds something else.
    """

    def __init__(self, path: Path, kind: type[ValueT], *, named: str) -> None:
        self._path = path
        self._whole: int | None = None
        """Bytes up to a line that was cut off; None if there is none."""
        self.values: tuple[ValueT, ...] = tuple(self._read(kind, named))
        """What the file held when it was opened."""

    def append(self, value: ValueT) -> None:
        """Writes a value as the last line.

        Raises:
            OSError: It cannot be written.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            if self._whole is not None:
                file.truncate(self._whole)
                self._whole = None
            file.write(f"{json.dumps(value.model_dump(mode='json'))}\n".encode())

    def _read(self, kind: type[ValueT], named: str) -> list[ValueT]:
        try:
            held = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigurationError(
                f"{named.capitalize()}s cannot be read from {str(self._path)!r}: {error}"
            ) from error
        *lines, rest = held.split(b"\n")
        if rest and not (lines or _begins(kind, rest)):
            lines.append(rest)
        elif rest:
            self._whole = len(held) - len(rest)
            _LOG.warning("the last line of %r was cut off and is left out", str(self._path))
        return [self._parsed(kind, named, at, line) for at, line in enumerate(lines, 1)]

    def _parsed(self, kind: type[ValueT], named: str, at: int, line: bytes) -> ValueT:
        try:
            return kind.model_validate_json(line)
        except ValidationError as error:
            start = line[:_SHOWN].decode(errors="replace")
            raise ConfigurationError(
                f"Line {at} of {str(self._path)!r} is no kept {named}: {start!r}. A file with it "
                f"holds no {named}s to continue from. Give another file, or take the line out."
            ) from error


def _begins(kind: type[Value], line: bytes) -> bool:
    """Whether what there is of a line may be the beginning of such a value."""
    first = f'{{"{next(iter(kind.model_fields))}":'.encode()
    return line.startswith(first) or first.startswith(line)
