"""What a reader must do."""

from __future__ import annotations

from typing import Protocol

from ._questions import Question

Claim = tuple[str, ...]
"""What a text says in answer to a question: one passage, or several that belong together in
order. A passage may be a phrase or a whole sentence."""


class Reader(Protocol):
    """Answers questions from a text alone; it is told neither who wrote it nor what is right."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    async def read(self, text: str, question: Question) -> tuple[Claim, ...] | None:
        """What the text says in answer; empty if it says nothing, None if no answer came.

        Raises:
            ModelCallError: A model could not be asked.
        """
        ...
