"""Blocks of several adapters as those of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ._blocks import InjectionBlock, InjectionItem


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
