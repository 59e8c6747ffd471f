"""Policy files: the common hard rules for people who do not program (docs/policies.md).

A file in YAML has a name (`policy`), `rules`, and perhaps `tests`. A rule has a `name`, `tools` and
one of six kinds: `never` or `only_if` (a condition), `at_most` (a number; `sum` argument; `per`),
`once` (an argument or `all`; `per`), `needs_approval` (a condition), `only_trusted` (an argument;
`sources`, tools that are believed); `because` is the reason that the agent is shown.

A rule is compiled to a constraint as a programmer writes it: it judges in Evaluation and again
right before Execution, no model output overrides it, and what cannot be judged is forbidden.
Conditions are a small part of CEL, which stays in one module, as does YAML in another. What rules
count is kept in working memory by percepts alone, so it survives a kill, a resume and a batch.
"""

from .cases import CaseResult, run_cases
from .files import PolicyError
from .policy import Policy, load_policy, problems_with_tools, read_policy
from .rules import PolicyRule

__all__ = [
    "load_policy",
    "read_policy",
    "Policy",
    "PolicyRule",
    "CaseResult",
    "run_cases",
    "problems_with_tools",
    "PolicyError",
]
