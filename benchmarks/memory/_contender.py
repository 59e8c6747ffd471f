"""What every memory that is measured has to do, ours and the others alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from coag.schema import MemoryKind, Provenance, Record, Trust, record_id

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
        """Releases files and threads."""
        ...


class Correctable(Findable, Protocol):
    """A memory that may be able to take something back."""

    def retract(self, names: Sequence[str]) -> bool:
        """Takes back what was added under these ids; False if there is no method for it."""
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


class SetClock:
    """A clock that shows what it was set to."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        """What it was set to."""
        return self.at

    def monotonic(self) -> float:
        """Seconds that truly pass."""
        return time.monotonic()


def said_by(source: str, *, run: str = "", activity: str = "", trusted: bool = True) -> Provenance:
    """Where a message comes from."""
    return Provenance(
        run=run,
        activity=activity,
        cycle=0,
        source=source,
        source_kind="message",
        trust=Trust.USER if trusted else Trust.UNTRUSTED,
    )


def record_of(
    scope: str,
    text: str,
    at: datetime,
    source: str = "user",
    *,
    kind: MemoryKind = MemoryKind.EPISODIC,
    name: str = "",
    **further: Any,
) -> Record:
    """Something that was said as a record; a name makes it another one than the text alone."""
    return Record(
        id=record_id(kind, scope, f"{name} {text}" if name else text),
        kind=kind,
        text=text,
        scope=scope,
        created_at=at,
        provenance=said_by(source),
        **further,
    )
