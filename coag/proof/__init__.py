"""What a trace proves, and what can be done with it: verify, replay, fork, explain, diagnose.

Everything here starts from a run's folder alone. `verify` checks the invariants of deliberation
on the records, `replay` runs the agent again on what they hold, `fork` goes on from one of their
phases otherwise, `why` tells what a decision rested on, and `diagnose` what a failure came from.
"""

import warnings

from .boundary import Boundary, Choice, CycleResult, Rejection, cycle_results
from .causes import Cause, Circumstances, Claim, Diagnosis, Domain, Evidence
from .diagnose import diagnose, diagnoses
from .findings import Examination, Remark, Rule, Violation, folded
from .fork import Counterfactual, ForkReport, counterfactuals, fork
from .fork_changes import Changes
from .replay import AgentBuilder, ReplayReport, replay
from .tape import Divergence
from .verify import TraceSource, examine, verify
from .why import Considered, Explanation, ProcedureUsed, explain, why

__all__ = [
    "diagnose",
    "diagnoses",
    "Diagnosis",
    "Evidence",
    "Domain",
    "Claim",
    "Circumstances",
    "Cause",
    "verify",
    "examine",
    "folded",
    "TraceSource",
    "Examination",
    "Violation",
    "Remark",
    "Rule",
    "replay",
    "ReplayReport",
    "Divergence",
    "AgentBuilder",
    "fork",
    "ForkReport",
    "Changes",
    "Boundary",
    "CycleResult",
    "cycle_results",
    "Choice",
    "Rejection",
    "why",
    "explain",
    "Explanation",
    "Considered",
    "ProcedureUsed",
    "counterfactuals",
    "Counterfactual",
]

_RENAMED = {"CycleStory": CycleResult, "Death": Rejection}


def __getattr__(name: str) -> object:
    """Former names, which still work and warn."""
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    now = _RENAMED[name]
    text = f"coag.proof.{name} is now called {now.__name__}"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return now
