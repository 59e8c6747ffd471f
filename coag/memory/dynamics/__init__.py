"""How memory changes with time, mood and use: pure functions, and the state of one owner.

docs/design/memory-dynamics.md is its design.
"""

from .aging import (
    gist_of,
    gisted,
    heard,
    is_due_for_gist,
    persona_proposals,
    regulated,
    usable_gist,
)
from .appraisal import Appraise
from .archive import ArchiveEntry, MemoryArchive
from .encoding import encode
from .engine import MemoryDynamics, MemoryDynamicsConfig
from .export import (
    ArchivedLine,
    DynamicsImport,
    DynamicsLine,
    LinkLine,
    MatterLine,
    StateLine,
    dynamics_lines,
    is_typed_line,
    parse_dynamics_line,
)
from .features import read_all
from .file import DYNAMICS_FILE, DynamicsFile
from .forgetting import day_of, fades_at, has_faded, strength_now, used, why_kept
from .interference import in_scope
from .links import RecordLinks, spread
from .persona import Persona, PersonaVersion, owners_of
from .recalling import felt
from .settings import (
    ArchiveRetention,
    EmotionRegulation,
    FeelingOfKnowing,
    Forgetting,
    Gist,
    Graduation,
    Interference,
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
from .states import DAY, RecordState, RecordStates, moment_of, seconds
from .whole import StoreWithArchive

__all__ = [
    "MemoryDynamics",
    "MemoryDynamicsConfig",
    "Persona",
    "PersonaVersion",
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
    "Interference",
    "EmotionRegulation",
    "PersonaDrift",
    "Links",
    "Graduation",
    "ArchiveRetention",
    "RecordState",
    "RecordStates",
    "seconds",
    "moment_of",
    "DAY",
    "Appraise",
    "encode",
    "strength_now",
    "used",
    "has_faded",
    "fades_at",
    "why_kept",
    "day_of",
    "read_all",
    "felt",
    "is_due_for_gist",
    "gist_of",
    "usable_gist",
    "gisted",
    "heard",
    "regulated",
    "persona_proposals",
    "in_scope",
    "RecordLinks",
    "spread",
    "DynamicsFile",
    "owners_of",
    "dynamics_lines",
    "DynamicsLine",
    "ArchivedLine",
    "StateLine",
    "LinkLine",
    "MatterLine",
    "is_typed_line",
    "parse_dynamics_line",
    "DynamicsImport",
    "MemoryArchive",
    "ArchiveEntry",
    "StoreWithArchive",
    "DYNAMICS_FILE",
]
