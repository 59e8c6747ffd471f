"""Showing a text while it is written, unless it turns out to be tool calls."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ._tool_text import calls_in_text


class Release:
    """Passes on pieces of a text, unless it begins like tool calls that are written as text."""

    def __init__(self, passed_on: Callable[[str], None], names: Collection[str]) -> None:
        self._pass_on = passed_on
        self._names = names
        self._held: list[str] = []
        self._open = False
        self._blank = True

    def take(self, piece: str) -> None:
        """Passes the piece on, or keeps it until it is known what the text is."""
        if self._open:
            self._pass_on(piece)
            return
        self._held.append(piece)
        begun = piece.lstrip() if self._blank else ""
        if begun:
            self._blank = False
            if begun[0] not in "{[<`":
                self.release()

    def release(self) -> None:
        """It is a text: everything that was kept goes out."""
        self._open = True
        for piece in self._held:
            self._pass_on(piece)
        self._held.clear()

    def end(self, text: str) -> None:
        """The text is whole."""
        if not self._open and not calls_in_text(text, self._names):
            self.release()
