"""Situational awareness: where the agent stands, kept from call to call (SAGEN).

What an agent needs across calls is not only what it knows, but what it tries to do, what just
changed, what needs attention and what it has tried. Six modules hold this in one frozen
`AwarenessState`: goal graph, trajectory, world model, self model, attention and interaction
protocol. A domain's adapter turns raw input into an `Observation`, an observation gives the next
state, and the adapter renders a state as text within a token budget.

`Awareness` is all of it as a module of an agent's mind. What this face does not show has rooms of
its own: `adapters`, `dynamics` (long runs), `module`, `perception`, `state` and `stores`. Names of
`stores` and `perception` are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .adapters import CodingAdapter, CompositeAdapter, ConversationAdapter, DomainAdapter
from .dynamics import (
    Archive,
    DecaySettings,
    DynamicEngine,
    DynamicsSettings,
    LearningSettings,
    ProjectionSettings,
    RecordArchive,
    ReturnSettings,
    SharedEngine,
    SharedWorld,
)
from .engine import Adapter, AwarenessEngine, new_state
from .module import Awareness, AwarenessSettings, PerceptAdapter, ToolAdapter, heard_by
from .observation import (
    GoalChange,
    Observation,
    ObservedAttention,
    ObservedEntity,
    ObservedEvent,
    ObservedFailure,
    ObservedGoal,
    ObservedRelationship,
    Spent,
    load_state,
)
from .resolving import NameResolver
from .settings import EngineSettings
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
from .updating import updated

if TYPE_CHECKING:
    from .perception import ModelPerception, Perception, RulePerception
    from .stores import (
        FolderStateStore,
        InMemoryStateStore,
        PostgresStateStore,
        SqliteStateStore,
        StateStore,
        change_stored,
    )

_HOMES = {
    "Perception": "coag.awareness.perception",
    "RulePerception": "coag.awareness.perception",
    "ModelPerception": "coag.awareness.perception",
    "StateStore": "coag.awareness.stores",
    "InMemoryStateStore": "coag.awareness.stores",
    "FolderStateStore": "coag.awareness.stores",
    "SqliteStateStore": "coag.awareness.stores",
    "PostgresStateStore": "coag.awareness.stores",
    "change_stored": "coag.awareness.stores",
}

__all__ = [
    "Awareness",
    "AwarenessSettings",
    "PerceptAdapter",
    "ToolAdapter",
    "heard_by",
    "DynamicsSettings",
    "DecaySettings",
    "LearningSettings",
    "ProjectionSettings",
    "ReturnSettings",
    "DynamicEngine",
    "Archive",
    "RecordArchive",
    "SharedEngine",
    "SharedWorld",
    "Perception",
    "RulePerception",
    "ModelPerception",
    "StateStore",
    "InMemoryStateStore",
    "FolderStateStore",
    "SqliteStateStore",
    "PostgresStateStore",
    "change_stored",
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


def __getattr__(name: str) -> Any:
    """Loads a name of a room that takes its time on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'coag.awareness' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
