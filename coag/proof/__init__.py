"""What a trace proves, and what can be done with it: verify, replay, fork, explain, diagnose.

Everything here starts from a run's folder alone. `verify` checks the invariants of deliberation
on the records, `replay` runs the agent again on what they hold, `fork` goes on from one of their
phases otherwise, `why` tells what a decision rested on, and `diagnose` what a failure came from.
"""

from .causes import Cause, Circumstances, Claim, Diagnosis, Domain, Evidence
from .diagnose import diagnose, diagnoses
from .explaining import Considered, Explanation, ProcedureUsed, why
from .findings import Examination, Remark, Rule, Violation, folded
from .forking import (
    Boundary,
    Changes,
    Choice,
    Counterfactual,
    CycleStory,
    Death,
    ForkReport,
    counterfactuals,
    fork,
)
from .replaying import AgentBuilder, Divergence, ReplayReport, replay
from .verify import TraceSource, examine, verify

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
    "CycleStory",
    "Choice",
    "Death",
    "why",
    "Explanation",
    "Considered",
    "ProcedureUsed",
    "counterfactuals",
    "Counterfactual",
]
