"""From state to text: the block in a prompt (SAGEN §4.3), within a budget of tokens.

An adapter gives *blocks* of *items*; `render_injection` chooses what fits and writes

    <sagen>
    ACTIVE GOALS:
      [explicit] Learn Python (p=0.7)
    </sagen>

The order in which items are chosen does not depend on the budget, and what is shown is always a
beginning of that order: a larger budget never drops what a smaller one showed. An item is shown
whole or not at all. Text from outside stays on its own line and cannot close the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from coag._util.text import BYTES_PER_TOKEN, cleaned, well_formed, without_tags

# ---- Blocks of items ----


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionItem:
    """One item, shown whole or not at all."""

    text: str
    """The line; text from outside may be part of it."""
    urgency: float = 0.5
    """From 0 to 1; within a module the more urgent is chosen first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionBlock:
    """A heading with the items of one module, in reading order."""

    heading: str
    """The heading, without a colon."""
    priority: int
    """Lower is chosen and shown first. Blocks of equal priority share by urgency."""
    items: tuple[InjectionItem, ...]
    first: int = 5
    """So many items, the most urgent, are chosen before any block's others."""
    inline: bool = False
    """Whether the items are written after the heading, separated by commas."""
    more: int = 0
    """How many more items exist that are not given here; counted as left out."""


# ---- Text from outside: on one line, without anything that reads as a delimiter ----

_GAP = r"[^\w\x21-\x7e]*"
"""Blanks, invisible characters, and whatever else is neither ASCII nor a letter or digit."""
_DELIMITER = re.compile(rf"<(?={_GAP}(?:/|sagen|data))", re.IGNORECASE)


def as_item(text: str) -> str:
    r"""The text as an item: one line, without control characters, unable to open or close a block.

    Nothing is cut. `<` before `/`, `sagen` or `data` becomes `<\`, a lone surrogate `?`.
    """
    if text.isascii() and text.isprintable() and not {"<", "&"} & set(text) and "  " not in text:
        return text.strip()  # nearly every text, and many times faster
    line = " ".join(cleaned(" ".join(well_formed(text).split())).split())
    return without_tags(_DELIMITER.sub(r"<\\", line))


def as_inline(text: str) -> str:
    """The text as one of several between commas: quoted where it has a comma or a quote itself."""
    line = as_item(text)
    if "," not in line and '"' not in line:
        return line
    return '"' + line.replace('"', "'") + '"'


# ---- Blocks of several adapters ----


def merge_blocks(blocks: Iterable[InjectionBlock]) -> tuple[InjectionBlock, ...]:
    """The blocks, those with the same heading made one; the same item is shown once.

    An item that several give has the highest urgency that one of them gives it. The first
    block of a heading decides whether it is inline; the priority is the lowest number.
    """
    merged: dict[str, InjectionBlock] = {}
    for block in blocks:
        known = merged.get(block.heading)
        merged[block.heading] = block if known is None else _joined(known, block)
    return tuple(merged.values())


def _joined(one: InjectionBlock, other: InjectionBlock) -> InjectionBlock:
    items: dict[str, InjectionItem] = {}
    for item in (*one.items, *other.items):
        known = items.get(item.text, item)
        items[item.text] = item if item.urgency > known.urgency else known
    return replace(
        one,
        priority=min(one.priority, other.priority),
        items=tuple(items.values()),
        first=max(one.first, other.first),
        more=max(one.more, other.more),
    )


# ---- Choosing what fits, and writing it ----

LONG_ITEM = 100
"""Tokens; an item of more comes after all others, so that it does not keep them out."""

_OPENING, _CLOSING = "<sagen>\n", "</sagen>"
_INDENT, _COMMA = "  ", ", "
_FIRST, _FURTHER, _LONG = range(3)


def render_injection(blocks: Sequence[InjectionBlock], budget: int) -> str:
    """The blocks as text for a prompt, the most that fits; empty where nothing does.

    Chosen first are each block's most urgent items (`InjectionBlock.first`), by the blocks'
    priority and then by urgency; then the others likewise; then what is longer than `LONG_ITEM`.
    The first item that does not fit ends it. How many are left out is noted where that fits. The
    budget is in tokens, as `estimate_tokens` counts, tags and headings included.

    Raises:
        ValueError: If the budget is negative.
    """
    if budget < 0:
        raise ValueError(f"A budget is 0 tokens or more, not {budget!r}. Give 0 to inject nothing.")
    room = budget * BYTES_PER_TOKEN - len(_OPENING) - len(_CLOSING)
    placed = sorted(blocks, key=lambda block: block.priority)
    texts: dict[int, dict[int, str]] = {}  # by block and place
    for at, place in _in_order(placed):
        block = placed[at]
        text = (as_inline if block.inline else as_item)(block.items[place].text)
        if not text:
            continue  # nothing but characters that are not shown
        cost = len(text.encode()) + len(_COMMA if block.inline else f"{_INDENT}\n")
        if at not in texts:  # the heading with colon and line break; a blank line between blocks
            opening = len(as_item(block.heading).encode()) + (1 if block.inline else 2)
            cost += opening + bool(texts)
        if cost > room:
            break
        room -= cost
        texts.setdefault(at, {})[place] = text
    if not texts:
        return ""
    body = "\n".join(_written(placed[at], texts[at]) for at in sorted(texts))
    items = sum(len(block.items) + block.more for block in placed)
    left_out = items - sum(map(len, texts.values()))
    note = f"[{left_out} more left out]\n" if left_out else ""
    return f"{_OPENING}{body}{note if len(note) <= room else ''}{_CLOSING}"


def _in_order(blocks: Sequence[InjectionBlock]) -> Iterator[tuple[int, int]]:
    """Where each item is, in the order in which they are chosen, whatever the budget."""
    keys: list[tuple[int, int, float, int, int]] = []
    for at, block in enumerate(blocks):
        urgent = sorted(enumerate(block.items), key=lambda found: -found[1].urgency)
        for rank, (place, item) in enumerate(urgent):
            turn = _FIRST if rank < block.first else _FURTHER
            if len(item.text) > LONG_ITEM * BYTES_PER_TOKEN:
                turn = _LONG
            keys.append((turn, block.priority, -item.urgency, at, place))
    return ((at, place) for *_, at, place in sorted(keys))


def _written(block: InjectionBlock, texts: dict[int, str]) -> str:
    heading = as_item(block.heading)
    in_place = [texts[place] for place in sorted(texts)]
    if block.inline:
        return f"{heading}: {_COMMA.join(in_place)}\n"
    return f"{heading}:\n" + "".join(f"{_INDENT}{text}\n" for text in in_place)
