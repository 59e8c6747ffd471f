"""How memory changes with time, mood and use: pure functions, and the state of one owner.

docs/design/memory-dynamics.md is its design.
"""

from .aging import (
    SchemaFit,
    TraitChange,
    TraitName,
    confidence_now,
    gist_of,
    gisted,
    heard,
    is_due_for_gist,
    persona_proposals,
    regulated,
    schema_fit,
    usable_gist,
    with_schema,
)
from .appraisal import AT_REST, Appraise, VaderAppraisal, arousal_of
from .archive import ArchiveEntry, ArchiveReason, MemoryArchive
from .encoding import FLASHBULB_INTENSITY, attention, encode, yerkes_dodson
from .engine import MemoryDynamics, MemoryDynamicsConfig
from .features import ContentFeatures, features_of
from .file import DYNAMICS_FILE, DynamicsFile
from .forgetting import (
    NEUTRAL_STRENGTH,
    fades_at,
    has_faded,
    is_exempt,
    neutral_stability,
    strength_now,
    used,
)
from .links import RecordLinks, passed_on, spread, with_linked
from .mood import baseline_of
from .owners import owners_of
from .persona import Persona, PersonaVersion
from .recalling import (
    FeltRecord,
    cue_of,
    felt,
    pick_involuntary,
    reconsolidated,
    rivals,
    suppressed,
)
from .schemas import SchemaClusters
from .settings import (
    ArchiveRetention,
    EmotionRegulation,
    FeelingOfKnowing,
    Forgetting,
    Gist,
    Graduation,
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
from .whole import StoreWithArchive

__all__ = [
    "MemoryDynamics",
    "MemoryDynamicsConfig",
    "Persona",
    "PersonaVersion",
    "baseline_of",
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
    "Graduation",
    "SchemaClusters",
    "ArchiveRetention",
    "RecordState",
    "RecordStates",
    "seconds",
    "days_since",
    "DAY",
    "ContentFeatures",
    "features_of",
    "Appraise",
    "VaderAppraisal",
    "arousal_of",
    "AT_REST",
    "encode",
    "attention",
    "yerkes_dodson",
    "FLASHBULB_INTENSITY",
    "strength_now",
    "used",
    "has_faded",
    "fades_at",
    "is_exempt",
    "neutral_stability",
    "NEUTRAL_STRENGTH",
    "reconsolidated",
    "rivals",
    "suppressed",
    "pick_involuntary",
    "FeltRecord",
    "felt",
    "cue_of",
    "is_due_for_gist",
    "gist_of",
    "usable_gist",
    "gisted",
    "confidence_now",
    "heard",
    "regulated",
    "SchemaFit",
    "schema_fit",
    "with_schema",
    "TraitName",
    "TraitChange",
    "persona_proposals",
    "RecordLinks",
    "passed_on",
    "spread",
    "with_linked",
    "DynamicsFile",
    "owners_of",
    "MemoryArchive",
    "ArchiveEntry",
    "ArchiveReason",
    "StoreWithArchive",
    "DYNAMICS_FILE",
]
