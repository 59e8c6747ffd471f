"""How memory changes with time, mood and use: pure functions, and the state of one owner.

docs/design/memory-dynamics.md is its design.
"""

from .engine import MemoryDynamics
from .file import DYNAMICS_FILE, DynamicsFile
from .settings import (
    ArchiveRetention,
    EmotionRegulation,
    FeelingOfKnowing,
    Forgetting,
    Gist,
    InvoluntaryRecall,
    Links,
    MemoryDynamicsSettings,
    PersonaDrift,
    Preset,
    Reconsolidation,
    RetrievalInducedForgetting,
    SchemaEncoding,
    SourceConfidence,
    Traits,
)
from .states import DAY, RecordState, RecordStates, days_since, seconds

__all__ = [
    "MemoryDynamics",
    "MemoryDynamicsSettings",
    "Preset",
    "Traits",
    "Forgetting",
    "Reconsolidation",
    "RetrievalInducedForgetting",
    "InvoluntaryRecall",
    "FeelingOfKnowing",
    "Gist",
    "SchemaEncoding",
    "SourceConfidence",
    "EmotionRegulation",
    "PersonaDrift",
    "Links",
    "ArchiveRetention",
    "RecordState",
    "RecordStates",
    "seconds",
    "days_since",
    "DAY",
    "DynamicsFile",
    "DYNAMICS_FILE",
]
