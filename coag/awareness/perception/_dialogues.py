"""Dialogues with hand-written analyses, to measure a perception on."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from coag.awareness._problems import where_wrong
from coag.awareness.adapters import ConversationAnalysis
from coag.awareness.state import Said
from coag.errors import ConfigurationError
from coag.schema import Value


class Dialogue(Value):
    """What one person said, turn by turn, and what each turn says by hand."""

    name: Said
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


_DIALOGUES = TypeAdapter(tuple[Dialogue, ...])


def load_dialogues(path: Path) -> tuple[Dialogue, ...]:
    """The dialogues of a JSON file: a list of `{"name": ..., "turns": [{"message": ...}, ...]}`.

    Raises:
        ConfigurationError: It cannot be read, or is something else.
    """
    try:
        return _DIALOGUES.validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"Dialogues cannot be read from {str(path)!r}: {error}") from error
    except ValidationError as error:
        place, problem = where_wrong(error)
        raise ConfigurationError(
            f"{str(path)!r} holds no dialogues: wrong at {place or 'its beginning'}: {problem} "
            'Write a list of {"name": NAME, "turns": [{"message": TEXT, ...}, ...]}.'
        ) from error
