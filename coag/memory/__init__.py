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
    PROCEDURAL_ACTION,
    SEMANTIC_ACTION,
    MemoryActions,
    MemorySituation,
)
from ._config import LongTermMemoryConfig
from ._gate import GateSettings
from ._long_term import LongTermMemory, Recall, RecallSource, Remembered
from ._procedural import ProceduralMemory
from ._procedure import (
    PendingRewrite,
    Procedure,
    ProcedureVersion,
    load_procedures,
    parse_procedure,
    seed_procedures,
)
from ._rules import RuleChange, rules_of
from ._words import quotes, shared_run

__all__ = [
    "LongTermMemory",
    "LongTermMemoryConfig",
    "Recall",
    "RecallSource",
    "Remembered",
    "ProceduralMemory",
    "Procedure",
    "ProcedureVersion",
    "PendingRewrite",
    "RuleChange",
    "rules_of",
    "GateSettings",
    "seed_procedures",
    "load_procedures",
    "parse_procedure",
    "MemoryActions",
    "MemorySituation",
    "EPISODIC_ACTION",
    "SEMANTIC_ACTION",
    "PROCEDURAL_ACTION",
    "quotes",
    "shared_run",
]
