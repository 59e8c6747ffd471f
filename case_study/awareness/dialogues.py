"""Dialogues with hand-written analyses, and what the engine makes of them, turn by turn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, JsonValue, TypeAdapter, ValidationError, model_validator

from coag.awareness import (
    AwarenessEngine,
    AwarenessState,
    ConversationAdapter,
    Observation,
    Perception,
    summary_of,
)
from coag.awareness.adapters import (
    ConversationAnalysis,
    ConversationEntityType,
    MentionedEntity,
    Sentiment,
    StatedGoal,
)
from coag.errors import AwarenessError, ConfigurationError, ModelAnswerError
from coag.schema import SteppingClock, Value, one_line

from .kept_lines import KeptLines

# ---- The paper's talk of four turns ----

CONVERSATION = (
    ConversationAnalysis(
        message="I want to learn Python and build a web scraper. Can you help me learn Python?",
        topics=("Python", "web scraping"),
        entities=(MentionedEntity(name="Python", type=ConversationEntityType.CONCEPT),),
        goals=(
            StatedGoal(description="Learn Python"),
            StatedGoal(description="Build a web scraper"),
        ),
        questions=("Can you help me learn Python?",),
    ),
    ConversationAnalysis(
        message="By the way, how do you make pasta carbonara?",
        topics=("cooking", "pasta carbonara"),
        goals=(StatedGoal(description="Make pasta carbonara"),),
        questions=("How do you make pasta carbonara?",),
    ),
    ConversationAnalysis(
        message="Oh wait, going back to Python - what library for scraping?",
        topics=("Python", "web scraping"),
        questions=("What library for scraping?",),
        references_previous=True,
    ),
    ConversationAnalysis(
        message="BeautifulSoup is not working! Errors everywhere!",
        topics=("web scraping", "BeautifulSoup"),
        goals=(StatedGoal(description="Get BeautifulSoup to work"),),
        sentiment=Sentiment.FRUSTRATED,
    ),
)
"""The talk of section 6.1, read as in sections 6.2 and 5.1 (tables 5 and 14)."""


# ---- Dialogues in a file ----


class Dialogue(Value):
    """What one person said, turn by turn, and what each turn says by hand."""

    name: str = Field(pattern=r"\S")
    turns: tuple[ConversationAnalysis, ...] = Field(min_length=1)
    """Each with its `message`."""

    @model_validator(mode="after")
    def _have_messages(self) -> Dialogue:
        for number, turn in enumerate(self.turns, 1):
            if not turn.message.strip():
                raise ValueError(f"turn {number} of {self.name!r} has no message")
        return self

    @property
    def messages(self) -> tuple[str, ...]:
        """What was said."""
        return tuple(turn.message for turn in self.turns)


_ModelT = TypeVar("_ModelT")


def load_dialogues(path: Path) -> tuple[Dialogue, ...]:
    """The dialogues of a JSON file: a list of `{"name": ..., "turns": [{"message": ...}, ...]}`.

    Raises:
        ConfigurationError: It cannot be read, or is something else.
    """
    form = TypeAdapter(tuple[Dialogue, ...])
    example = '[{"name": NAME, "turns": [{"message": TEXT, ...}, ...]}]'
    return read_json(path, form, "dialogues", example)


def read_json(path: Path, form: TypeAdapter[_ModelT], what: str, example: str) -> _ModelT:
    """What a JSON file holds.

    Raises:
        ConfigurationError: It cannot be read, or is something else; says where, and what to write.
    """
    try:
        return form.validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            f"{what.capitalize()} cannot be read from {str(path)!r}: {error}"
        ) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = " > ".join(map(str, first["loc"])) or "its beginning"
        raise ConfigurationError(
            f"{str(path)!r} holds no {what}: wrong at {place}: {first['msg']}, given "
            f"{one_line(repr(first['input']), 80)}. Write {example}."
        ) from error


# ---- Running a dialogue through the engine ----


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueRun:
    """What the engine made of a dialogue, turn by turn."""

    label: str
    """Who read it, e.g. `rules`."""
    analyses: tuple[ConversationAnalysis | None, ...]
    """None for a turn that gave nothing usable."""
    observations: tuple[Observation | None, ...]
    errors: tuple[str, ...]
    """One sentence for each turn without an analysis."""
    state: AwarenessState
    """At the end."""


async def run_perception(
    label: str, perception: Perception, messages: Sequence[str]
) -> DialogueRun:
    """Runs a dialogue whose messages a perception reads, each with the state so far.

    A turn without a usable analysis leaves the state as it was.

    Raises:
        ModelCallError: A model could not be asked.
    """
    recorder = _Recorder(label)
    for message in messages:
        try:
            raw = await perception.perceive(message, recorder.engine.state)
            recorder.read(ConversationAnalysis.parse(raw))
        except (ModelAnswerError, AwarenessError) as error:
            recorder.fail(str(error))
    return recorder.run()


def run_analyses(label: str, turns: Sequence[ConversationAnalysis]) -> DialogueRun:
    """Runs a dialogue that was analysed by hand.

    Raises:
        AwarenessError: An analysis names what does not exist.
    """
    recorder = _Recorder(label)
    for turn in turns:
        recorder.read(turn)
    return recorder.run()


class _Recorder:
    """An engine, and a record of its input."""

    def __init__(self, label: str) -> None:
        self.engine = AwarenessEngine(ConversationAdapter(), clock=SteppingClock())
        self._label = label
        self._analyses: list[ConversationAnalysis | None] = []
        self._observations: list[Observation | None] = []
        self._errors: list[str] = []

    def read(self, analysis: ConversationAnalysis) -> None:
        observation = self.engine.observe(analysis.model_dump())
        self.engine.update(observation)
        self._analyses.append(analysis)
        self._observations.append(observation)

    def fail(self, error: str) -> None:
        self._analyses.append(None)
        self._observations.append(None)
        self._errors.append(f"turn {len(self._analyses)}: {one_line(error, 200)}")

    def run(self) -> DialogueRun:
        return DialogueRun(
            label=self._label,
            analyses=tuple(self._analyses),
            observations=tuple(self._observations),
            errors=tuple(self._errors),
            state=self.engine.state,
        )


_SUMMARY_TOKENS = 300


class CachedReading(Value):
    """What one text was read as, in a line of the file."""

    key: str
    """Of the reader, the state's summary and the text."""
    text: str
    analysis: dict[str, JsonValue] | None = None
    fault: dict[str, Any] | None = None
    """Why there is no analysis: the arguments of a `ModelAnswerError`."""


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
        parts = (self._reader, summary_of(state, _SUMMARY_TOKENS).text, text)
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        reading = self._cache.get(key)
        if reading is None:
            reading = await self._read(key, text, state)
            self._cache[key] = reading
            self._file.append(reading)
        if reading.fault is not None:
            raise ModelAnswerError(**reading.fault)
        return reading.analysis or {}

    async def _read(self, key: str, text: str, state: AwarenessState) -> CachedReading:
        try:
            analysis = await self._perception.perceive(text, state)
        except ModelAnswerError as error:
            names = ("expected", "problem", "raw", "attempts")
            fault = {name: getattr(error, name) for name in names}
            return CachedReading(key=key, text=text, fault=fault)
        return CachedReading.model_validate({"key": key, "text": text, "analysis": dict(analysis)})
