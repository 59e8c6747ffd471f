"""Long-term memory: what happened, what holds, and how to act (CoALA §4.1).

`LongTermMemory` keeps events (episodic) and facts (semantic) as records with provenance and
trust, and recalls them by similarity. `ProceduralMemory` keeps the prompts of the phases as
versioned procedures. The agent decides what is worth remembering by the internal actions of
`MemoryActions`; nothing is remembered behind its back.

Two rules keep attackers out. Records are always data: they carry the trust of what they were
concluded from, and a text that quotes an untrusted one is untrusted. Procedures, which are
instructions, change only through a gate that refuses quotations from outside, lost placeholders,
repetitions and growth without bound; every version is kept, and can be rolled back.

What reads or writes a store, or a file beside it, raises `RecordStoreError` where that fails; the
docstrings name what else is raised.
"""

from coag._util.deprecation import renamed

from .actions import (
    EPISODIC_ACTION,
    MEMORY_ACTIONS,
    PROCEDURAL_ACTION,
    SEMANTIC_ACTION,
    MemoryActions,
    MemorySituation,
    place_of,
)
from .facts import CONCLUSION, binding_metadata, held_when, is_trusted, settled
from .gate import GateSettings, compiling_objections
from .long_term import (
    PROCEDURES_FILE,
    LongTermMemory,
    LongTermMemoryConfig,
    retract_source,
    revoke_again,
    would_revoke,
)
from .procedural import ProceduralMemory
from .procedures import (
    PendingRewrite,
    Procedure,
    ProcedureVersion,
    RuleChange,
    is_seed,
    load_procedures,
    parse_procedure,
    rules_of,
    seed_procedures,
)
from .recall import Recall, RecallSource
from .rehydration import MemoryDynamicsModule, restore
from .retraction import Revocation
from .scopes import (
    Scopes,
    agent_scope,
    is_user_scope,
    said_by_person,
    scopes_in,
    team_scope,
    user_scope,
)
from .words import quotes
from .write_policy import DecisionKind, Remembered, ToRemember, WriteDecision

__all__ = [
    "LongTermMemory",
    "LongTermMemoryConfig",
    "Scopes",
    "agent_scope",
    "user_scope",
    "is_user_scope",
    "scopes_in",
    "team_scope",
    "ToRemember",
    "said_by_person",
    "Recall",
    "RecallSource",
    "restore",
    "MemoryDynamicsModule",
    "Remembered",
    "Revocation",
    "retract_source",
    "would_revoke",
    "revoke_again",
    "WriteDecision",
    "DecisionKind",
    "settled",
    "held_when",
    "place_of",
    "ProceduralMemory",
    "Procedure",
    "ProcedureVersion",
    "PendingRewrite",
    "RuleChange",
    "rules_of",
    "GateSettings",
    "compiling_objections",
    "seed_procedures",
    "is_seed",
    "load_procedures",
    "parse_procedure",
    "MemoryActions",
    "MemorySituation",
    "EPISODIC_ACTION",
    "SEMANTIC_ACTION",
    "PROCEDURAL_ACTION",
    "MEMORY_ACTIONS",
    "CONCLUSION",
    "binding_metadata",
    "is_trusted",
    "quotes",
    "PROCEDURES_FILE",
]

__getattr__ = renamed(__name__, {"revoke_origin": "retract_source", "Decision": "WriteDecision"})
