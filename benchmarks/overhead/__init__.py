"""What `cycle_overhead.py` measures: a model without latency, and the agents around it."""

from ._contenders import (
    BASELINE,
    FULL,
    RECORDS,
    TASK,
    WITHOUT_RECALL,
    Contender,
    contenders,
    window,
)
from ._model import InstantModel

__all__ = [
    "Contender",
    "InstantModel",
    "contenders",
    "window",
    "BASELINE",
    "FULL",
    "WITHOUT_RECALL",
    "RECORDS",
    "TASK",
]
