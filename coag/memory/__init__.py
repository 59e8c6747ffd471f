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

from ._actions import (
    EPISODIC_ACTION,
    MEMORY_ACTIONS,
    PROCEDURAL_ACTION,
    SEMANTIC_ACTION,
    MemoryActions,
)
from ._asking import RecallSource
from ._config import LongTermMemoryConfig
from ._disowning import revoke_again, revoke_origin
from ._earlier import Held, held_when
from ._facts import settled
from ._gate import GateSettings
from ._lineage import CONCLUSION, binding_metadata, derived_levels, is_trusted, trusted_at_most
from ._long_term import LongTermMemory
from ._person import said_by_person
from ._places import LTM_FOLDER, PROCEDURES_FILE
from ._policy import Decision, DecisionKind, decided, says_the_same, unfit
from ._procedural import ProceduralMemory
from ._procedure import (
    PendingRewrite,
    Procedure,
    ProcedureVersion,
    is_seed,
    load_procedures,
    parse_procedure,
    seed_procedures,
)
from ._results import Recall, Remembered
from ._revoking import Revocation
from ._rules import RuleChange, rules_of
from ._scopes import Scopes, agent_scope, is_user_scope, scopes_in, team_scope, user_scope
from ._situation import MemorySituation, place_of
from ._stretches import holding_again, in_force
from ._telling import ToRemember
from ._trying import would_revoke
from ._undoing import Undone
from ._words import quotes, shared_run

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
