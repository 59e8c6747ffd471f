"""Who tries a turn again says the same once more; it is not heard twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from autogen_agentchat.messages import BaseChatMessage


class Heard:
    """What was taken in of the turn that broke off last.

    A repetition of it at the head of what is said next is not new: the whole of it or its end,
    once or several times (a team says what it had not got an answer to, and then the same task
    again). What comes in another order is said anew: after "Delete it." and "No, stop.", "Delete
    it." is a third message.
    """

    def __init__(self) -> None:
        self._last: list[str] = []
        self._repeated: list[str] = []

    def new(self, messages: Sequence[BaseChatMessage]) -> list[BaseChatMessage]:
        """The messages after those that only repeat what was heard last."""
        said = [_identity(message) for message in messages]
        repeated = 0
        while length := self._overlap(said[repeated:]):
            repeated += length
        self._repeated = said[:repeated]
        if repeated:
            self._last = self._repeated.copy()
        return list(messages[repeated:])

    def note(self, message: BaseChatMessage) -> None:
        """One of the new ones was taken in; the turn that broke off before is not the last."""
        self._repeated.append(_identity(message))
        self._last = self._repeated.copy()

    def forget(self) -> None:
        """All was answered: whatever is said from now on is new."""
        self._last, self._repeated = [], []

    def _overlap(self, said: Sequence[str]) -> int:
        """How many of the first ones are the last ones that were heard."""
        longest = min(len(said), len(self._last))
        return next((n for n in range(longest, 0, -1) if self._last[-n:] == said[:n]), 0)


def _identity(message: BaseChatMessage) -> str:
    """The same for messages of the same kind, sender and content."""
    told = message.model_dump(mode="json", exclude={"id", "created_at", "metadata", "models_usage"})
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
