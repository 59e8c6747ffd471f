"""Maintainability: what the same change request takes in either agent, and whether it then holds.

The paper compares by eye how a forbidden cell is written into a monolithic prompt and into
CoAG's Selection procedure. Here the request is worked into a temporary copy of the sources in
each way there is, the diff is counted, and the changed agent is played by scripted models on
instances in which the rule stands in the way of the job: one that heeds the rules that it can
read, and one that heeds none. A guarantee is what holds with both. `maintain()` does all of
it, and so does `python -m case_study.maintainability`.
"""

from ._change import CHANGES, WAYS, ChangeRequest, Way, change_named, edited, files_of
from ._effort import Effort, effort_of
from ._maintain import Maintained, effort, maintain, sources
from ._probe import MODELS, Probe, Run, broken_by, probe, tempting_seeds
from ._table import replaced, table

__all__ = [
    "maintain",
    "Maintained",
    "effort",
    "Effort",
    "effort_of",
    "CHANGES",
    "ChangeRequest",
    "change_named",
    "WAYS",
    "Way",
    "edited",
    "files_of",
    "sources",
    "table",
    "replaced",
    "probe",
    "Probe",
    "Run",
    "MODELS",
    "broken_by",
    "tempting_seeds",
]
