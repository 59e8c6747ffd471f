"""What a run came to: from its trace, and from the world's own log for what truly happened.

An agent's own account is never taken for the truth. Where it states what it believes, that is
measured against the world as it was. A `Measure` is a function of a `Tally`, which is what was
counted of an `Episode`; tallies of a case's episodes add up, so that an episode is counted when it
ends, kept, and never has to be read again. `measures_of` gives all measures of a case as one flat
dict; docs/measures.md defines each.
"""

from ._beliefs import belief_error, stated_batteries
from ._cost import cost_per_success
from ._counting import tally_of
from ._episode import Episode, Where, vacuum_episode
from ._figures import Figures, figures_of
from ._measure import Better, Measure, Part
from ._measures import MEASURES, causes_of, decisions_of, measures_of, measures_table
from ._recollection import Recollection, recollection_of
from ._result import CaseResult, EpisodeRecord, result_of
from ._tally import (
    NO_FAILURE_FOUND,
    NOT_ATTRIBUTABLE,
    Blame,
    Calls,
    Deeds,
    Statements,
    Steps,
    Tally,
    Truths,
)

__all__ = [
    "measures_of",
    "causes_of",
    "decisions_of",
    "MEASURES",
    "measures_table",
    "Measure",
    "Part",
    "Better",
    "cost_per_success",
    "Episode",
    "Where",
    "vacuum_episode",
    "tally_of",
    "Tally",
    "Steps",
    "Statements",
    "Deeds",
    "Blame",
    "Calls",
    "Truths",
    "NOT_ATTRIBUTABLE",
    "NO_FAILURE_FOUND",
    "Figures",
    "figures_of",
    "Recollection",
    "recollection_of",
    "belief_error",
    "stated_batteries",
    "EpisodeRecord",
    "CaseResult",
    "result_of",
]
