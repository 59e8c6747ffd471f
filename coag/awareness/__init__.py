"""Situational awareness: where the agent stands, kept from call to call (SAGEN).

What an agent needs across calls is not only what it knows, but what it tries to do, what just
changed, what needs attention and what it has tried. Six modules hold this in one frozen
`AwarenessState`: goal graph, trajectory, world model, self model, attention and interaction
protocol. A domain's adapter turns raw input into an `Observation`, an observation gives the next
state, and the adapter renders a state as text within a token budget.
"""

from ._adapter import Adapter
from ._domain import new_state
from ._engine import AwarenessEngine
from ._loading import load_state
from ._observation import (
    GoalChange,
    Observation,
    ObservedAttention,
    ObservedEntity,
    ObservedEvent,
    ObservedFailure,
    ObservedGoal,
    ObservedRelationship,
    Spent,
)
from ._resolving import NameResolver
from ._settings import EngineSettings
from ._updating import updated
from .adapters import CodingAdapter, CompositeAdapter, ConversationAdapter, DomainAdapter
from .module import Awareness, AwarenessSettings, PerceptAdapter, ToolAdapter
from .state import (
    STATE_VERSION,
    STICKY,
    Attention,
    AttentionItem,
    AttentionType,
    AwarenessState,
    Belief,
    CanI,
    CollaborationMode,
    Entity,
    FailureNote,
    Goal,
    GoalGraph,
    GoalOutcomes,
    GoalSource,
    GoalStatus,
    InteractionProtocol,
    Merge,
    MergeReason,
    Need,
    Relationship,
    Resource,
    ScanPattern,
    SelfModel,
    Trajectory,
    Transition,
    TransitionType,
    WaitsFor,
    WorldModel,
)

__all__ = [
    "Awareness",
    "AwarenessSettings",
    "PerceptAdapter",
    "ToolAdapter",
    "AwarenessEngine",
    "EngineSettings",
    "Adapter",
    "NameResolver",
    "new_state",
    "updated",
    "DomainAdapter",
    "ConversationAdapter",
    "CodingAdapter",
    "CompositeAdapter",
    "AwarenessState",
    "load_state",
    "STATE_VERSION",
    "GoalGraph",
    "WaitsFor",
    "Goal",
    "GoalStatus",
    "GoalSource",
    "GoalOutcomes",
    "Trajectory",
    "Transition",
    "TransitionType",
    "STICKY",
    "WorldModel",
    "Entity",
    "Relationship",
    "Belief",
    "Merge",
    "MergeReason",
    "SelfModel",
    "Resource",
    "Need",
    "FailureNote",
    "CanI",
    "Attention",
    "AttentionItem",
    "AttentionType",
    "ScanPattern",
    "InteractionProtocol",
    "CollaborationMode",
    "Observation",
    "ObservedEntity",
    "ObservedRelationship",
    "ObservedGoal",
    "GoalChange",
    "ObservedAttention",
    "ObservedEvent",
    "ObservedFailure",
    "Spent",
]
