"""Ten sessions of a small game: three characters remember the same events differently.

    python -m examples.ten_sessions                                          # a scripted model
    python -m examples.ten_sessions --rules                                  # no model
    python -m examples.ten_sessions --model http://127.0.0.1:8080/v1#NAME    # a real one

docs/sessions.md explains it, and says what a small real model wrote.
"""

from .game import PlayedSession, Story, load_story, play
from .reading import BlindReading, EmotionalNarrator, emotional_score, read_pairs
from .script import script

__all__ = [
    "Story",
    "PlayedSession",
    "load_story",
    "play",
    "script",
    "EmotionalNarrator",
    "BlindReading",
    "emotional_score",
    "read_pairs",
]
