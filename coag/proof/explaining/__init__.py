"""What a decision rested on: percepts, records, procedures, constraints, and each candidate's fate.

Read from one cycle's records, without a model and without the domain's code.
"""

from .why import Considered, Explanation, ProcedureUsed, explain, why

__all__ = [
    "Considered",
    "Explanation",
    "ProcedureUsed",
    "explain",
    "why",
]
