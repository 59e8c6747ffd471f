"""Parts of prompts that are made once and shown as long as they would read the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

PartT = TypeVar("PartT")


class Kept(Generic[PartT]):
    """The latest part of each sort, and the very values that it was made from.

    Within a cycle most of what a prompt shows does not change from phase to phase. All that
    parts are made from is frozen, so that the same object means the same text.
    """

    def __init__(self) -> None:
        self._parts: dict[str, tuple[tuple[Any, ...], PartT]] = {}

    def part(self, sort: str, made_from: tuple[Any, ...], make: Callable[[], PartT]) -> PartT:
        """The part that was made from these values last, or a new one."""
        known = self._parts.get(sort)
        if known is not None and _same(known[0], made_from):
            return known[1]
        part = make()
        self._parts[sort] = (made_from, part)
        return part


def _same(known: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    return len(known) == len(now) and all(a is b for a, b in zip(known, now, strict=True))
