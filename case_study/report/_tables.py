"""The tables of a report: one value each, written as HTML and as Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ._values import DecidedBy, Rate
from ._wording import NONE, deciders, percent, span

Tone = Literal["", "good", "bad", "open"]
DECIDED = "decided by: model / rank / only survivor"
"""Heading of the column that stands in every row of a contender."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    more: str = ""
    """What stands small below it."""
    tone: Tone = ""
    """Whether it speaks for the contender, against it, or leaves it open; colour only."""
    heat: int | None = None
    """How strong it is tinted, 0 to 9; None for no tint."""
    link: str = ""
    """A relative address that the text leads to; empty for none."""
    code: bool = False
    """Whether the text is a command."""


@dataclass(frozen=True, slots=True)
class Column:
    """What stands in the cells below a heading."""

    title: str
    words: bool = False
    """Whether it holds text, which is written from the left, and no numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with a caption that says what it shows, of how many trials, in what unit."""

    caption: str
    columns: tuple[Column, ...]
    """The first is the heading of each row."""
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """What is to be known to read it."""


def text(content: str, *, tone: Tone = "") -> Cell:
    """A cell of text."""
    return Cell(content, tone=tone)


def decided(one: DecidedBy) -> Cell:
    """Who decided."""
    return Cell(deciders(one))


def rate_cell(one: Rate | None) -> Cell:
    """A rate with its counts and its interval."""
    if one is None or one.share is None:
        return Cell(NONE)
    more = f"{one.successes:,}/{one.n:,}, {span(one.interval)} %"
    return Cell(percent(one.share), more, heat=heat(one.share))


def heat(share: float) -> int:
    """How strong a share is tinted."""
    return min(9, max(0, int(share * 10)))


def columns(*titles: str, words: Sequence[int] = ()) -> tuple[Column, ...]:
    """Columns of numbers, but for those at the places named in `words`."""
    return tuple(Column(title, words=at in words) for at, title in enumerate(titles))
