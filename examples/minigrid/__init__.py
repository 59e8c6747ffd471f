"""MiniGrid, a domain that nobody here wrote, as a domain of CoAG and of the assessment.

What CoAG needs of a domain is in `_context.py`: a state, hooks, a forward model, two rules; and
in `prompts/`. The rest is the other side of the tools (`_body`, `_tools`, and what is seen by
them: `_chart`, `_reading`, `_physics`), and what an assessment compares it with: levels, search,
scripted minds. No contender but the oracle sees more than its own 7x7 view.
"""

from ._again import build_again
from ._body import Body, everything
from ._chart import Cell, Chart, Facing
from ._context import (
    CONSTRAINTS,
    MiniGridContext,
    MiniGridState,
    never_into_lava,
    nothing_in_vain,
)
from ._domain import DOMAIN, MiniGridDomain
from ._levels import LEVELS, Level, level_named
from ._minds import MINDS, open_mind
from ._parts import parts_of, task_text
from ._reading import Reading
from ._search import plan
from ._tools import minigrid_tools

__all__ = [
    "MiniGridContext",
    "MiniGridState",
    "CONSTRAINTS",
    "never_into_lava",
    "nothing_in_vain",
    "Body",
    "everything",
    "minigrid_tools",
    "Reading",
    "Chart",
    "Cell",
    "Facing",
    "LEVELS",
    "Level",
    "level_named",
    "plan",
    "MINDS",
    "open_mind",
    "parts_of",
    "task_text",
    "build_again",
    "DOMAIN",
    "MiniGridDomain",
]
