"""What models answered, kept line by line, so that a run that was cut off can be gone on with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from coag.awareness import AwarenessState
from coag.awareness.perception import Perception, summary_of
from coag.errors import ModelAnswerError
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


_SUMMARY_TOKENS = 300


class ReadingError(Value):
    """Why a reading failed, as `ModelAnswerError` tells it."""

    expected: str
    problem: str
    raw: str
    attempts: int


class CachedReading(Value):
    """What one text was read as, in a line of the file."""

    key: str
    """Of the reader, the state's summary and the text."""
    text: str
    analysis: dict[str, JsonValue] | None = None
    fault: ReadingError | None = None
    """Why there is no analysis."""


class CachedPerception:
    """Asks a perception what is not in its file yet, and writes each reading there at once.

    The same text in the same situation is read once. A reading that failed is kept, too.

    Args:
        perception: Reads what is new.
        file: JSON lines; made if missing. A last line that was cut off is read again.
        reader: Who reads, with all that changes its readings, e.g. the model's name: readings of
            others in the same file do not count.

    Raises:
        ConfigurationError: The file cannot be read, or is something else.
    """

    def __init__(self, perception: Perception, file: Path, reader: str) -> None:
        self._perception = perception
        self._reader = reader
        self._file = KeptLines(file, CachedReading, named="reading")
        self._cache = {one.key: one for one in self._file.values}

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """What a text says where things stand so.

        Raises:
            ModelAnswerError: A model was asked, now or earlier, and gave nothing usable.
            ModelCallError: A model could not be asked.
            OSError: The file cannot be written.
        """
        key = _key(self._reader, summary_of(state, _SUMMARY_TOKENS).text, text)
        reading = self._cache.get(key)
        if reading is None:
            reading = await self._read(key, text, state)
            self._cache[key] = reading
            self._file.append(reading)
        if reading.fault is not None:
            raise ModelAnswerError(**reading.fault.model_dump())
        return reading.analysis or {}

    async def _read(self, key: str, text: str, state: AwarenessState) -> CachedReading:
        try:
            analysis = await self._perception.perceive(text, state)
        except ModelAnswerError as error:
            fault = ReadingError(
                expected=error.expected,
                problem=error.problem,
                raw=error.raw,
                attempts=error.attempts,
            )
            return CachedReading(key=key, text=text, fault=fault)
        return CachedReading.model_validate({"key": key, "text": text, "analysis": dict(analysis)})


def _key(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
