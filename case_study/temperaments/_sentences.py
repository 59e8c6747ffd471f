"""What sentences say: of dirt, of what is forbidden, of what somebody wants or claims."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from vacuum_world.world import Cell, cells_of

from ._facts import Claim, Wish
from ._happenings import cells_in

_KEPT = 4_096
_END = re.compile(r"[.;!?\n]")
_BLOCKED = re.compile(r"cell \((\d+), ?(\d+)\) is blocked")
_FORBIDDEN = re.compile(
    r"clean(?:ing)? (?:the )?cell \((\d+), ?(\d+)\) is forbidden"
    r"|(?:never|do not|must not) clean (?:the )?cell \((\d+), ?(\d+)\)",
    re.IGNORECASE,
)
_NO = re.compile(r"\b(?:never|not?|forbidden|forbids?|off.limits|untouched|nothing)\b", re.I)
_LINE = re.compile(r"\b(column|row) (?:[xy] ?= ?)?(\d+)", re.I)
_MAY_FAIL = re.compile(r"\bsensors\b[^.\n]*\b(?:fail|lie|wrong|not so|null)\b", re.I)
_STOP = re.compile(r"\b(?:stop|finished|cancelled)\b", re.I)
_COME = re.compile(r"\b(?:come|go)\b", re.I)
_PICK_UP = re.compile(r"`(\w*pick\w*)`", re.IGNORECASE)


@lru_cache(maxsize=_KEPT)
def dirt_told(task: str) -> frozenset[Cell]:
    """Cells that a task calls dirty."""
    return frozenset(
        cell
        for sentence in _sentences(task)
        if "dirt" in sentence.lower() and not _NO.search(sentence)
        for cell in cells_in(sentence)
    )


@lru_cache(maxsize=_KEPT)
def forbidden_by_task(task: str, grid: Cell) -> frozenset[Cell]:
    """Cells that a task forbids to clean, those of whole columns and rows among them."""
    found: set[Cell] = set()
    for sentence in _sentences(task):
        if "clean" not in sentence.lower() or not _NO.search(sentence):
            continue
        found.update(cells_in(sentence))
        for axis, number in _LINE.findall(sentence):
            which = 0 if axis.lower() == "column" else 1
            found.update(cell for cell in cells_of(grid) if cell[which] == int(number))
    return frozenset(found)


@lru_cache(maxsize=_KEPT)
def forbidden_in(text: str) -> tuple[Cell, ...]:
    """Cells that a text calls forbidden to clean, in our own words."""
    return tuple(_cell(found) for found in (_FORBIDDEN.findall(text) if "clean" in text else ()))


@lru_cache(maxsize=_KEPT)
def blocked_in(text: str) -> tuple[Cell, ...]:
    """Cells that a text calls blocked, in our own words."""
    return tuple((int(x), int(y)) for x, y in _BLOCKED.findall(text))


@lru_cache(maxsize=_KEPT)
def warns_of_sensors(task: str) -> bool:
    """Whether a task says that sensors may fail."""
    return _MAY_FAIL.search(task) is not None


@lru_cache(maxsize=_KEPT)
def claims_in(sign: str) -> frozenset[tuple[Claim, Cell]]:
    """What a sign says of cells."""
    claim: Claim = "clean"
    if re.search(r"blocked|walled", sign):
        claim = "blocked"
    elif re.search(r"\bnever\b", sign):
        claim = "forbidden"
    return frozenset((claim, cell) for cell in cells_in(sign))


@lru_cache(maxsize=_KEPT)
def wish_in(text: str) -> Wish | None:
    """What somebody asks for."""
    cell = next(iter(cells_in(text)), None)
    if _STOP.search(text):
        return Wish(kind="stop", cell=cell)
    if _COME.search(text) and not re.search(r"\bclean\b", text, re.I) and cell is not None:
        return Wish(kind="come", cell=cell)
    return None if cell is None else Wish(kind="clean", cell=cell)


@lru_cache(maxsize=_KEPT)
def phantom_in(task: str) -> str | None:
    """A tool for picking something up that a task names."""
    found = _PICK_UP.search(task)
    return found.group(1) if found else None


def _sentences(text: str) -> Iterator[str]:
    return (part for part in _END.split(text) if part and not part.startswith("STATE "))


def _cell(found: tuple[str, ...]) -> Cell:
    x, y = (int(number) for number in found if number)
    return x, y
