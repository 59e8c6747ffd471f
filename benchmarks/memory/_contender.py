"""What every memory that is measured has to do, ours and the others alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")

Item = tuple[str, str, Mapping[str, Any]]
"""Something to remember: its id, its text, and what is known of it."""


class Findable(Protocol):
    """A memory that takes texts in and finds them again."""

    def add(self, turns: Sequence[Item]) -> None:
        """Takes texts in, in the way that is its quickest public one."""
        ...

    def query(self, text: str, k: int) -> list[str]:
        """The ids of the k texts that answer best, best first."""
        ...

    def close(self) -> None:
        """Lets go of files and threads."""
        ...


class Correctable(Findable, Protocol):
    """A memory that may be able to take something back."""

    def retract(self, names: Sequence[str]) -> bool:
        """Takes back what was added under these ids; False if there is no door for it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A memory that is measured, or why it is not."""

    name: str
    make: Callable[[Path], Findable] | None
    """Opens it empty, in a folder of its own; None if it is not installed."""


class Looped:
    """An asynchronous memory, used from outside a loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What the work gives."""
        return self._loop.run_until_complete(work)

    def end(self) -> None:
        """Closes the loop."""
        self._loop.close()
