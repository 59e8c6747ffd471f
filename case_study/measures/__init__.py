"""What a run came to: from its trace, and from the world's own log for what truly happened.

An agent's own account is never taken for the truth. Where it states what it believes of its
battery, that is measured against the battery that the world logged.
"""

from ._beliefs import belief_error, stated_batteries
from ._figures import Figures, figures_of
from ._result import CaseResult, EpisodeRecord, result_of

__all__ = [
    "Figures",
    "figures_of",
    "belief_error",
    "stated_batteries",
    "EpisodeRecord",
    "CaseResult",
    "result_of",
]
