"""What is said to a model, and what it said as it is shown."""

from __future__ import annotations

from autogen_core.models import UserMessage

_SHOWN = 80


def user(text: str) -> UserMessage:
    """A message of the user."""
    return UserMessage(content=text, source="user")


def shown(text: str) -> str:
    """The beginning of a foreign text, quoted, on one line."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "…")
