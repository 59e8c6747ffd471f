"""Measures of a run: from its trace, and from the world's own log for what truly happened.

An agent's own account is never taken for the truth. Where it states what it believes, that is
measured against the world as it was. The measures of a trace alone are `coag.evals`'s; here are
those that need the world, and the result of a case. docs/measures.md defines each.
"""

from .statements import Statements, belief_error_of, stated_batteries
from .steps import Steps
from .tally import (
    MEASURES,
    CaseResult,
    Episode,
    EpisodeRecord,
    Tally,
    measures_of,
    measures_table,
    recollection_of,
    result_of,
    tally_of,
    vacuum_episode,
)

__all__ = [
    "measures_of",
    "MEASURES",
    "measures_table",
    "Episode",
    "vacuum_episode",
    "tally_of",
    "Tally",
    "Steps",
    "Statements",
    "recollection_of",
    "belief_error_of",
    "stated_batteries",
    "EpisodeRecord",
    "CaseResult",
    "result_of",
]
