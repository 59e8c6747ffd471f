"""Long-term memory: what happened, what holds, and how to act (CoALA §4.1).

`LongTermMemory` keeps events (episodic) and facts (semantic) as records with provenance and
trust, and recalls them by similarity. `ProceduralMemory` keeps the prompts of the phases as
versioned procedures. The agent decides what is worth remembering by the internal actions of
`MemoryActions`; nothing is remembered behind its back.

Two rules keep memory from becoming a way in. Records are always data: they carry the trust of
what they rest on, and a text that quotes an untrusted one is untrusted. And procedures, which
do stand as instruction, change only through a gate that refuses quotations from outside, lost
placeholders, repetitions and growth without bound; every version stays, with the way back.
"""

from .actions import (
    EPISODIC_ACTION,
    MEMORY_ACTIONS,
    PROCEDURAL_ACTION,
    SEMANTIC_ACTION,
    MemoryActions,
    MemorySituation,
    place_of,
)
from .config import LTM_FOLDER, PROCEDURES_FILE, LongTermMemoryConfig
from .facts import (
    CONCLUSION,
    Held,
    binding_metadata,
    derived_levels,
    held_when,
    holding_again,
    in_force,
    is_trusted,
    settled,
    trusted_at_most,
)
from .gate import GateSettings
from .long_term import LongTermMemory
from .procedural import ProceduralMemory
from .procedures import (
    PendingRewrite,
    Procedure,
    ProcedureVersion,
    RuleChange,
    Undone,
    is_seed,
    load_procedures,
    parse_procedure,
    rules_of,
    seed_procedures,
)
from .recall import RecallSource
from .records import (
    Scopes,
    agent_scope,
    is_user_scope,
    said_by_person,
    scopes_in,
    team_scope,
    user_scope,
)
from .retract_source import revoke_again, revoke_origin, would_revoke
from .retraction import Revocation
from .statements import (
    Decision,
    DecisionKind,
    Recall,
    Remembered,
    ToRemember,
    decided,
    says_the_same,
    unfit,
)
from .words import quotes, shared_run

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
    "Remembered",
    "Revocation",
    "revoke_origin",
    "would_revoke",
    "revoke_again",
    "Decision",
    "DecisionKind",
    "decided",
    "says_the_same",
    "unfit",
    "Undone",
    "settled",
    "Held",
    "held_when",
    "holding_again",
    "in_force",
    "derived_levels",
    "trusted_at_most",
    "place_of",
    "ProceduralMemory",
    "Procedure",
    "ProcedureVersion",
    "PendingRewrite",
    "RuleChange",
    "rules_of",
    "GateSettings",
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
    "shared_run",
    "LTM_FOLDER",
    "PROCEDURES_FILE",
]
