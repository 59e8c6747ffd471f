"""A semantic network: what records are about, and what ties one thing to another.

Its nodes are entities (the subjects and values of facts, the places of events, names in texts)
and records; a record ties the entities that it mentions. A question wakes the entities that it
names, and from there activation spreads: over the records that mention an entity to the other
entities of these, weaker at every step, and the weaker the more records mention it. So a memory
finds the second fact of a question that needs two: who the manager is of the person who owns
the boat.

Spreading activation is Collins and Loftus's (1975, "A spreading-activation theory of semantic
processing", Psychological Review 82); that what an entity gives is shared out among all that
mention it is the fan effect as ACT-R has it (Anderson 1983, "A spreading activation theory of
memory", Journal of Verbal Learning and Verbal Behavior 22).

`SemanticNetwork` is the network of one scope, in RAM, built from its records and kept current
with them. `AssociativeStore` puts one beside any `RecordStore` and lets recall follow it.
"""

from .network import (
    DEFAULT_LIMITS,
    Activation,
    Links,
    Neighbour,
    NetworkLimits,
    SemanticNetwork,
    entities_of,
    entity_named,
    spread,
)
from .store import Associating, Association, AssociativeStore

__all__ = [
    "SemanticNetwork",
    "NetworkLimits",
    "DEFAULT_LIMITS",
    "Neighbour",
    "Activation",
    "Links",
    "spread",
    "entities_of",
    "entity_named",
    "AssociativeStore",
    "Association",
    "Associating",
]
