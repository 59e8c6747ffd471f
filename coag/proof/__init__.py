"""What a trace proves, and what can be done with it: verify, replay, fork, explain, diagnose.

Everything here starts from a run's folder alone. `verify` checks the invariants of deliberation
on the records, `replay` runs the agent again on what they hold, `fork` goes on from one of their
phases otherwise, `why` tells what a decision rested on, and `diagnose` what a failure came from.
"""

from ._boundary import Boundary
from ._causes import Cause, Diagnosis, Evidence
from ._counterfactual import Counterfactual, counterfactuals
from ._diag_domain import Circumstances, Claim, Domain
from ._diagnose import diagnose, diagnoses
from ._fork import ForkReport, fork
from ._fork_changes import Changes
from ._replay import AgentBuilder, Divergence, ReplayReport, replay
from ._story import Choice, CycleStory, Death
from ._verify import Trace, examine, verify
from ._violation import Examination, Remark, Rule, Violation
from ._why import why
from ._why_values import Considered, Explanation, ProcedureUsed

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
    "Trace",
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
