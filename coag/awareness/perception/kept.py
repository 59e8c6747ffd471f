"""A perception whose readings are kept in a file, so that a long measurement can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from coag.awareness.state import AwarenessState
from coag.errors import ModelAnswerError
from coag.schema import Value
from coag.tracing import KeptLines

from .protocol import Perception
from .rules import summary_of

_SUMMARY_TOKENS = 300


class Fault(Value):
    """Why a reading failed, as `ModelAnswerError` tells it."""

    expected: str
    problem: str
    raw: str
    attempts: int


class Reading(Value):
    """What one text was read as, in a line of the file."""

    key: str
    """Of the reader, the state's summary and the text."""
    text: str
    analysis: dict[str, JsonValue] | None = None
    fault: Fault | None = None
    """Why there is no analysis."""


class KeptPerception:
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
        self._file = KeptLines(file, Reading, named="reading")
        self._kept = {one.key: one for one in self._file.values}

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """What a text says where things stand so.

        Raises:
            ModelAnswerError: A model was asked, now or earlier, and gave nothing usable.
            ModelCallError: A model could not be asked.
            OSError: The file cannot be written.
        """
        key = _key(self._reader, summary_of(state, _SUMMARY_TOKENS).text, text)
        reading = self._kept.get(key)
        if reading is None:
            reading = await self._read(key, text, state)
            self._kept[key] = reading
            self._file.append(reading)
        if reading.fault is not None:
            raise ModelAnswerError(**reading.fault.model_dump())
        return reading.analysis or {}

    async def _read(self, key: str, text: str, state: AwarenessState) -> Reading:
        try:
            analysis = await self._perception.perceive(text, state)
        except ModelAnswerError as error:
            fault = Fault(
                expected=error.expected,
                problem=error.problem,
                raw=error.raw,
                attempts=error.attempts,
            )
            return Reading(key=key, text=text, fault=fault)
        return Reading.model_validate({"key": key, "text": text, "analysis": dict(analysis)})


def _key(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
