"""Choosing what fits, and writing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coag.schema import BYTES_PER_TOKEN

from ._blocks import InjectionBlock, InjectionItem
from ._escaping import as_inline, as_item

LONG_ITEM = 100
"""Tokens; an item of more comes after all others, so that it does not keep them out."""

_OPENING, _CLOSING = "<sagen>\n", "</sagen>"
_INDENT, _COMMA = "  ", ", "
_FIRST, _FURTHER, _LONG = range(3)


def render_injection(blocks: Sequence[InjectionBlock], budget: int) -> str:
    """The blocks as text for a prompt, the most that fits; empty where nothing does.

    Chosen first are each block's most urgent items (`InjectionBlock.first`), by the blocks'
    priority and then by urgency; then the others likewise; then what is longer than `LONG_ITEM`.
    The first item that does not fit ends it. How many are left out is told where that fits.

    Args:
        blocks: What may be shown, in any order.
        budget: Tokens for the whole text, tags and headings included, as `estimate_tokens` counts.

    Raises:
        ValueError: If the budget is negative.
    """
    if budget < 0:
        raise ValueError(f"A budget is 0 tokens or more, not {budget!r}. Give 0 to inject nothing.")
    room = budget * BYTES_PER_TOKEN - len(_OPENING) - len(_CLOSING)
    placed = sorted(blocks, key=lambda block: block.priority)
    shown, room = _chosen(placed, room)
    if not shown:
        return ""
    body = "\n".join(_written(placed[at], shown[at]) for at in sorted(shown))
    given = sum(len(block.items) + block.more for block in placed)
    left_out = given - sum(map(len, shown.values()))
    note = f"[{left_out} more left out]\n" if left_out else ""
    return f"{_OPENING}{body}{note if len(note) <= room else ''}{_CLOSING}"


def _chosen(blocks: Sequence[InjectionBlock], room: int) -> tuple[dict[int, dict[int, str]], int]:
    """The texts that are shown, by block and place, and the bytes that are left."""
    shown: dict[int, dict[int, str]] = {}
    for at, place in _in_order(blocks):
        block = blocks[at]
        text = (as_inline if block.inline else as_item)(block.items[place].text)
        if not text:
            continue  # nothing but characters that are not shown
        cost = len(text.encode()) + len(_COMMA if block.inline else f"{_INDENT}\n")
        if at not in shown:
            cost += _opening_cost(block) + (1 if shown else 0)
        if cost > room:
            break
        room -= cost
        shown.setdefault(at, {})[place] = text
    return shown, room


def _opening_cost(block: InjectionBlock) -> int:
    """Bytes of a heading with colon and line break; an inline one has a comma less than items."""
    return len(as_item(block.heading).encode()) + (1 if block.inline else 2)


def _in_order(blocks: Sequence[InjectionBlock]) -> Iterator[tuple[int, int]]:
    """Where each item stands, in the order in which they are chosen, whatever the budget."""
    keys: list[tuple[int, int, float, int, int]] = []
    for at, block in enumerate(blocks):
        urgent = sorted(enumerate(block.items), key=lambda found: -found[1].urgency)
        for rank, (place, item) in enumerate(urgent):
            turn = _turn(item, rank, block.first)
            keys.append((turn, block.priority, -item.urgency, at, place))
    return ((at, place) for *_, at, place in sorted(keys))


def _turn(item: InjectionItem, rank: int, first: int) -> int:
    if len(item.text) > LONG_ITEM * BYTES_PER_TOKEN:
        return _LONG
    return _FIRST if rank < first else _FURTHER


def _written(block: InjectionBlock, texts: dict[int, str]) -> str:
    heading = as_item(block.heading)
    in_place = [texts[place] for place in sorted(texts)]
    if block.inline:
        return f"{heading}: {_COMMA.join(in_place)}\n"
    return f"{heading}:\n" + "".join(f"{_INDENT}{text}\n" for text in in_place)
