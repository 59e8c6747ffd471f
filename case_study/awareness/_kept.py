"""What models answered, kept line by line, so that a run that was cut off can be gone on with."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from coag.errors import ConfigurationError
from coag.schema import Value

_BEGINNING = b'{"model":'


class KeptAnswer(Value):
    """One answer of a model."""

    model: str
    """The public name of its spec."""
    asked: str
    """The question's id, or `perception`."""
    digest: str
    """Of everything the answer depends on: the text and how it was asked."""
    outcome: Literal["answered", "failed"]
    """A failure is an answer that could not be used, even after it was asked for again."""
    answer: str
    """As JSON; for a failure what was wrong."""


def digest_of(*parts: str) -> str:
    """A name for these texts that no others have."""
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()[:24]


class AnswerFile:
    """A JSONL file of answers; each is written as soon as it is there.

    Args:
        path: Where it is; made with the first answer. None keeps them in memory alone.

    Raises:
        ConfigurationError: It holds something else. A last line that was cut off is let go with the
            next answer.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[tuple[str, str, str], KeptAnswer] = {}
        self._whole = 0
        if path is not None and path.exists():
            self._read(path)

    def find(self, model: str, asked: str, digest: str) -> KeptAnswer | None:
        """The answer that a model gave to this; None if it was not asked yet."""
        return self._known.get((model, asked, digest))

    def keep(self, answer: KeptAnswer) -> None:
        """Writes an answer down."""
        self._known[answer.model, answer.asked, answer.digest] = answer
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            line = f"{json.dumps(answer.model_dump(mode='json'))}\n".encode()
            with self._path.open("ab") as file:
                file.truncate(self._whole)
                file.write(line)
            self._whole += len(line)

    def _read(self, path: Path) -> None:
        held = path.read_bytes()
        *lines, rest = held.split(b"\n")
        if rest and not (lines or rest.startswith(_BEGINNING)):
            lines.append(rest)  # none of ours, and not to be touched
        self._whole = len(held) - len(rest)
        for number, line in enumerate(lines, 1):
            try:
                one = KeptAnswer.model_validate_json(line)
            except ValidationError as error:
                said = line[:80].decode(errors="replace")
                raise ConfigurationError(
                    f"Line {number} of {str(path)!r} is no kept answer: {said!r}. Name "
                    "another file, or take the line out."
                ) from error
            self._known[one.model, one.asked, one.digest] = one
