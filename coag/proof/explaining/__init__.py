"""What a decision rested on: percepts, records, procedures, constraints, and each candidate's fate.

Read from one cycle's records, without a model and without the domain's code.
"""

from ._values import Considered, Explanation, ProcedureUsed
from ._why import explain, why

__all__ = [
    "Considered",
    "Explanation",
    "ProcedureUsed",
    "explain",
    "why",
]
