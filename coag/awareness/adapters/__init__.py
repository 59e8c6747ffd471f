"""Domains: from raw input to observations, and from a state to text (SAGEN §5, table 2).

A `DomainAdapter` has all that is particular to a domain, and holds no state. `ConversationAdapter`
follows a talk: topics, pivots, callbacks and moods. `CodingAdapter` follows work on software:
errors, regressions and growing scope. Both take an analysis, hand-written or made by a model;
`ConversationAnalysis` and `CodingAnalysis` are its schemas. `ToolAdapter` reads an agent's
percepts. `CompositeAdapter` combines several domains.
"""

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
from .domain_adapter import Analysis, DomainAdapter, Place, StatedGoal
from .tools import PerceptAdapter, ToolAdapter

__all__ = [
    "DomainAdapter", "Place", "Analysis", "StatedGoal", "ConversationAdapter",
    "ConversationAnalysis", "ConversationEntityType", "ConversationEdge",
    "ConversationEdgeType", "MentionedEntity", "Sentiment", "CodingAdapter", "CodingAnalysis",
    "CodingEdge", "CodingEdgeType", "RaisedError", "CompositeAdapter", "PerceptAdapter",
    "ToolAdapter",
]  # fmt: skip
