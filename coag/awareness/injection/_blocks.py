"""What an adapter gives to be shown: blocks of items."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionItem:
    """One thing to be shown, whole or not at all."""

    text: str
    """The line; text from outside may be part of it."""
    urgency: float = 0.5
    """How much it matters within its module, from 0 to 1; what is more urgent is chosen first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionBlock:
    """A heading with the items of one module, in the order in which they are to be read."""

    heading: str
    """The heading, without a colon."""
    priority: int
    """The place of the module: lower is chosen and shown first. Equals share by urgency."""
    items: tuple[InjectionItem, ...]
    """What may be shown."""
    first: int = 5
    """So many items, the most urgent, are chosen before any block's further ones are."""
    inline: bool = False
    """Whether the items stand behind the heading, between commas, instead of on lines."""
    more: int = 0
    """How many further items there are that were not even given; told as left out."""
