"""What the benchmarks of turns measure: models without latency, and the agents around them."""

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
from ._measured import Spread, long_conversations, memory_of
from ._model import InstantModel, PlannedModel, count_stone
from ._turns import NAMES, PLAIN, SITUATIONS, Crowd, Runner, Situation, crowd, make_agent

__all__ = [
    "Contender",
    "Crowd",
    "InstantModel",
    "PlannedModel",
    "Runner",
    "Situation",
    "Spread",
    "contenders",
    "count_stone",
    "crowd",
    "long_conversations",
    "make_agent",
    "memory_of",
    "window",
    "BASELINE",
    "FULL",
    "NAMES",
    "PLAIN",
    "SITUATIONS",
    "WITHOUT_RECALL",
    "RECORDS",
    "TASK",
]
