"""From state to text: the block that stands in a prompt (SAGEN 4.3), within a budget of tokens.

An adapter gives *blocks* of *items*; `render_injection` chooses what fits and writes

    <sagen>
    ACTIVE GOALS:
      [explicit] Learn Python (p=0.7)
    </sagen>

The order in which items come in does not depend on the budget, and what is shown is always a
beginning of that order: a larger budget never drops what a smaller one showed. An item is shown
whole or not at all. What comes from outside stays on its own line and cannot close the block.
"""

from .blocks import (
    LONG_ITEM,
    InjectionBlock,
    InjectionItem,
    as_item,
    merge_blocks,
    render_injection,
)

__all__ = [
    "InjectionBlock",
    "InjectionItem",
    "LONG_ITEM",
    "as_item",
    "merge_blocks",
    "render_injection",
]
