"""What models answered, kept line by line, so that a run that was cut off can be gone on with."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from coag.schema import Value
from coag.tracing import KeptLines


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
        ConfigurationError: It cannot be read, or holds something else. A last line that was cut off
            is let go with the next answer.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = None if path is None else KeptLines(path, KeptAnswer, named="answer")
        held = self._file.values if self._file else ()
        self._known = {(one.model, one.asked, one.digest): one for one in held}

    def find(self, model: str, asked: str, digest: str) -> KeptAnswer | None:
        """The answer that a model gave to this; None if it was not asked yet."""
        return self._known.get((model, asked, digest))

    def keep(self, answer: KeptAnswer) -> None:
        """Writes an answer down."""
        self._known[answer.model, answer.asked, answer.digest] = answer
        if self._file is not None:
            self._file.append(answer)
