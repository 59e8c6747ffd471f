"""The demonstrators of S-ORA (thesis, chapter 8) as enhanced tools, with the truth of each run.

*Water Hammer*: a reactor core has to be flushed by a pump that takes its time, a valve that must
not be opened meanwhile, and four buttons of which one is right; any wrong step locks the plant
for good. *Even/Odd*: two agents that do not know each other increment one counter in turn, until
it exceeds 5.

`make_water_hammer` and `make_even_odd` give a workspace each, to be used in process or served;
`water_hammer_truth` and `even_odd_truth` say what really happened in it.
"""

from .even_odd import even_odd_truth, make_even_odd
from .running import (
    DEMONSTRATORS,
    DemonstratorTable,
    compare_agents,
    run_demonstrator,
)
from .water_hammer import make_water_hammer, water_hammer_truth

__all__ = [
    "DEMONSTRATORS",
    "DemonstratorTable",
    "compare_agents",
    "even_odd_truth",
    "make_even_odd",
    "make_water_hammer",
    "run_demonstrator",
    "water_hammer_truth",
]
