"""Domains: what turns raw input into observations and a state into text (SAGEN §5, table 2).

A `DomainAdapter` has all that is particular to a domain, and keeps nothing: what it knows is in
the state that it is given. `ConversationAdapter` follows a talk: topics, pivots, callbacks and
moods. `CodingAdapter` follows work on software: errors with their life, regressions and growing
scope. Both take an analysis, hand-written or made by a model; `ConversationAnalysis` and
`CodingAnalysis` are its schemas. `CompositeAdapter` makes several domains one.
"""

from .analysis import Analysis, StatedGoal
from .coding import CodingAdapter, CodingAnalysis, CodingEdge, CodingEdgeType, RaisedError
from .composite import CompositeAdapter
from .conversation import (
    ConversationAdapter,
    ConversationAnalysis,
    ConversationEdge,
    ConversationEdgeType,
    ConversationEntityType,
    MentionedEntity,
    Sentiment,
)
from .domain_adapter import DomainAdapter, Place, standard_blocks

__all__ = [
    "DomainAdapter",
    "standard_blocks",
    "Place",
    "Analysis",
    "StatedGoal",
    "ConversationAdapter",
    "ConversationAnalysis",
    "ConversationEntityType",
    "ConversationEdge",
    "ConversationEdgeType",
    "MentionedEntity",
    "Sentiment",
    "CodingAdapter",
    "CodingAnalysis",
    "CodingEdge",
    "CodingEdgeType",
    "RaisedError",
    "CompositeAdapter",
]
