"""What a trace proves, and what can be done with it: verify, replay, fork, explain, diagnose.

Everything here starts from a run's folder alone. `verify` checks the invariants of deliberation
on the records, `replay` runs the agent again on what they hold, `fork` continues from one of their
phases otherwise, `why` shows what a decision was based on, and `diagnose` what caused a failure.
"""

from coag._util.deprecation import renamed

from .boundary import Boundary, CycleResult, Rejection, cycle_results
from .causes import Cause, Circumstances, Claim, Diagnosis, DomainKnowledge, Evidence
from .diagnose import diagnose, diagnoses
from .findings import Examination, Rule, TraceRemark, Violation, folded
from .fork import Counterfactual, ForkReport, counterfactuals, fork
from .fork_changes import Changes
from .replay import AgentBuilder, ReplayReport, replay
from .verify import TraceSource, examine, verify
from .why import Considered, Explanation, explain, refusals, why

__all__ = [
    "diagnose",
    "diagnoses",
    "Diagnosis",
    "Evidence",
    "DomainKnowledge",
    "Claim",
    "Circumstances",
    "Cause",
    "verify",
    "examine",
    "folded",
    "TraceSource",
    "Examination",
    "Violation",
    "TraceRemark",
    "Rule",
    "replay",
    "ReplayReport",
    "AgentBuilder",
    "fork",
    "ForkReport",
    "Changes",
    "Boundary",
    "CycleResult",
    "cycle_results",
    "refusals",
    "Rejection",
    "why",
    "explain",
    "Explanation",
    "Considered",
    "counterfactuals",
    "Counterfactual",
]

__getattr__ = renamed(
    __name__,
    {
        "CycleStory": "CycleResult",
        "Death": "Rejection",
        "Domain": "DomainKnowledge",
        "Remark": "TraceRemark",
    },
)
