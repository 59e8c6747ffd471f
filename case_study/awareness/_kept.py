"""What models answered, kept line by line, so that a run that was cut off can be gone on with."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from coag.errors import ConfigurationError
from coag.schema import Value


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
        ConfigurationError: It holds something else; a last line that was cut off is let go.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[tuple[str, str, str], KeptAnswer] = {}
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
            with self._path.open("a", encoding="utf-8") as file:
                file.write(answer.model_dump_json() + "\n")

    def _read(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        if lines and not text.endswith("\n"):
            path.write_text("".join(f"{line}\n" for line in lines[:-1]), encoding="utf-8")
            lines.pop()
        for number, line in enumerate(lines, 1):
            try:
                one = KeptAnswer.model_validate_json(line)
            except ValidationError as error:
                raise ConfigurationError(
                    f"Line {number} of {str(path)!r} is no kept answer: {line[:80]!r}. Name "
                    "another file, or take the line out."
                ) from error
            self._known[one.model, one.asked, one.digest] = one
