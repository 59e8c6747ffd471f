"""Dialogues with hand-written analyses, and what the engine makes of them, turn by turn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue, TypeAdapter, ValidationError, model_validator

from coag._util.files import replace_file
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


def load_dialogues(path: Path) -> tuple[Dialogue, ...]:
    """The dialogues of a JSON file: a list of `{"name": ..., "turns": [{"message": ...}, ...]}`.

    Raises:
        ConfigurationError: It cannot be read, or is something else.
    """
    try:
        return TypeAdapter(tuple[Dialogue, ...]).validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"Dialogues cannot be read from {str(path)!r}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = " > ".join(map(str, first["loc"])) or "its beginning"
        raise ConfigurationError(
            f"{str(path)!r} holds no dialogues: wrong at {place}: {first['msg']}, given "
            f"{one_line(repr(first['input']), 80)}. "
            'Write [{"name": NAME, "turns": [{"message": TEXT, ...}, ...]}].'
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
    run = _Running()
    for number, message in enumerate(messages, 1):
        try:
            raw = await perception.perceive(message, run.engine.state)
            run.take(ConversationAnalysis.parse(raw))
        except (ModelAnswerError, AwarenessError) as error:
            run.read.append((None, None))
            run.errors.append(f"turn {number}: {one_line(str(error), 200)}")
    return run.done(label)


def run_analyses(label: str, turns: Sequence[ConversationAnalysis]) -> DialogueRun:
    """Runs a dialogue that was analysed by hand.

    Raises:
        AwarenessError: An analysis names what does not exist.
    """
    run = _Running()
    for turn in turns:
        run.take(turn)
    return run.done(label)


class _Running:
    def __init__(self) -> None:
        self.engine = AwarenessEngine(ConversationAdapter(), clock=SteppingClock())
        self.read: list[tuple[ConversationAnalysis | None, Observation | None]] = []
        self.errors: list[str] = []

    def take(self, analysis: ConversationAnalysis) -> None:
        observation = self.engine.observe(analysis.model_dump())
        self.engine.update(observation)
        self.read.append((analysis, observation))

    def done(self, label: str) -> DialogueRun:
        analyses, observations = zip(*self.read, strict=True)
        return DialogueRun(
            label=label,
            analyses=analyses,
            observations=observations,
            errors=tuple(self.errors),
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
        file: JSON lines; made if missing, and replaced whole with each new reading.
        reader: Who reads, with all that changes its readings, e.g. the model's name: readings of
            others in the same file do not count.

    Raises:
        ConfigurationError: The file cannot be read, or is something else.
    """

    def __init__(self, perception: Perception, file: Path, reader: str) -> None:
        self._perception = perception
        self._path = file
        self._reader = reader
        self._cache = {one.key: one for one in self._kept()}

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """What a text says where things stand so.

        Raises:
            ModelAnswerError: A model was asked, now or earlier, and gave nothing usable.
            ModelCallError: A model could not be asked.
            OSError: The file cannot be written.
        """
        parts = (self._reader, summary_of(state, _SUMMARY_TOKENS).text, text)
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        if key not in self._cache:
            self._cache[key] = await self._read(key, text, state)
            self._write()
        reading = self._cache[key]
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

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = (f"{json.dumps(one.model_dump(mode='json'))}\n" for one in self._cache.values())
        replace_file(self._path, "".join(lines), durable=False)

    def _kept(self) -> list[CachedReading]:
        try:
            lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        except OSError as error:
            raise ConfigurationError(
                f"Readings cannot be read from {str(self._path)!r}: {error}"
            ) from error
        found: list[CachedReading] = []
        for at, line in enumerate(lines, 1):
            try:
                found.append(CachedReading.model_validate_json(line))
            except ValidationError as error:
                start = line[:80].decode(errors="replace")
                raise ConfigurationError(
                    f"Line {at} of {str(self._path)!r} is no kept reading: {start!r}. Give "
                    "another file, or take the line out."
                ) from error
        return found
