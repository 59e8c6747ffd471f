"""Taking a run back to one of its phases and going on from there otherwise.

The past is read up to a boundary; a twin of the agent stands there with a memory of its own, in
an environment that is put back where it can be; then the changes are made, and the turn goes on.
Nothing of the past is done again, and the parent's folder stays as it was. A counterfactual is a
fork that ends with the decision.
"""

from .boundary import Boundary, Choice, CycleStory, Death, Stories, procedure_of
from .changes import Changes
from .counterfactual import Counterfactual, counterfactuals
from .fork import ForkReport, fork
from .past import memory_of, outcomes_of

__all__ = [
    "Boundary",
    "Changes",
    "Choice",
    "Counterfactual",
    "CycleStory",
    "Death",
    "ForkReport",
    "Stories",
    "counterfactuals",
    "fork",
    "memory_of",
    "outcomes_of",
    "procedure_of",
]
