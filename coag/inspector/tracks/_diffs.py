"""A text beside an earlier version of it, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from coag.inspector.views import DiffLine

_LINES = 2_000
"""Lines of either text that are compared."""
_LONG = 2_000
"""Characters of a line that are kept."""


def diff(old: str, new: str, *, around: int | None = 3) -> tuple[DiffLine, ...]:
    """What changed from one text to the next.

    Args:
        old: The earlier text.
        new: The later one.
        around: Lines that stay the same which are kept beside each change; None for all.

    Returns:
        The lines in order, those removed before those added in their place. Beyond 2,000 lines
        and 2,000 characters of a line the texts are not compared.
    """
    lines = list(_compared(_lines(old), _lines(new)))
    return tuple(lines if around is None else _folded(lines, around))


def _lines(text: str) -> list[str]:
    lines = text.split("\n", _LINES)
    rest = len(lines) > _LINES
    kept = [line[:_LONG] for line in lines[:_LINES]]
    return [*kept, "…"] if rest else kept


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for sort, a, b, c, d in matcher.get_opcodes():
        if sort == "equal":
            for step in range(b - a):
                place = {"old": a + step + 1, "new": c + step + 1}
                yield DiffLine(sort="same", text=old[a + step], **place)
            continue
        for number in range(a, b):
            yield DiffLine(sort="removed", text=old[number], old=number + 1)
        for number in range(c, d):
            yield DiffLine(sort="added", text=new[number], new=number + 1)


def _folded(lines: Sequence[DiffLine], around: int) -> Iterator[DiffLine]:
    """Without what is far from every change; of that only how many lines it is."""
    changed = [number for number, line in enumerate(lines) if line.sort != "same"]
    kept = {
        near
        for number in changed
        for near in range(max(0, number - around), min(len(lines), number + around + 1))
    }
    skipped = 0
    for number, line in enumerate(lines):
        if number in kept:
            if skipped:
                yield DiffLine(sort="skipped", text=str(skipped))
                skipped = 0
            yield line
        else:
            skipped += 1
    if skipped:
        yield DiffLine(sort="skipped", text=str(skipped))
