"""The one face by which every contender is driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from coag.tracing import RunFolder

from ._parts import Change, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What came of a turn."""

    results: tuple[str, ...] = ()
    """What its external actions gave, in order; those of futile attempts too."""
    refused: int = 0
    """Calls that a guard around the tools refused: nothing was done."""


class Player(Protocol):
    """An agent that plays an episode."""

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens that its model has read and written for it in this run."""
        ...

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        """Lets it take a turn, or go on with one that was broken off.

        Args:
            text: What the user says.
            messages: What others say, before that.
            allowance: How many external actions it may still take; None for no bound.
        """
        ...

    async def change(self, change: Change) -> None:
        """Tells it of a change of requirements; telling it twice is fine."""
        ...

    @property
    def folder(self) -> RunFolder | None:
        """Its run's folder; None before the first turn."""
        ...

    async def close(self) -> None:
        """Ends its run."""
        ...
