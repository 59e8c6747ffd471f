"""What can be set about the engine, with its defaults."""

from __future__ import annotations

from pydantic import Field

from coag.schema import Value

from .state import STICKY, TransitionType


class EngineSettings(Value):
    """How names are recognised and how much is kept."""

    name_threshold: float = Field(default=0.75, ge=0.0, le=1.0)
    """Cosine from which two names mean one entity; for the default embedder of `coag.store`."""
    loose_types: frozenset[str] = frozenset({"topic", "concept"})
    """Types (without their namespace) whose names are words of a language. Only these are
    recognised by meaning: `config.py` and `test_config.py` are near in meaning, and two files."""
    generic_words: frozenset[str] = frozenset(
        {"programming", "language", "coding", "development", "topic", "subject"}
    )
    """Words that say nothing of their own beside another: `Python programming` is Python."""
    trajectory_window: int = Field(default=5, ge=0)
    """How many of the latest transitions a new state keeps."""
    sticky: tuple[TransitionType, ...] = STICKY
    """Types of transitions that a new state keeps however old they are."""
    kept_aliases: int = Field(default=16, ge=0)
    """How many other names an entity remembers."""
    kept_merges: int = Field(default=200, ge=0)
    """How many recognitions of a name the world model remembers."""
    kept_failures: int = Field(default=100, ge=0)
    """How many mistakes the self model remembers."""
