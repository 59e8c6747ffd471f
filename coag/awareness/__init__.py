"""Situational awareness: the agent's situation, kept from call to call (SAGEN).

What an agent needs across calls is not only what it knows, but what it tries to do, what just
changed, what needs attention and what it has tried. Six modules hold this in one frozen
`AwarenessState`: goal graph, trajectory, world model, self model, attention and interaction
protocol. A domain's adapter turns raw input into an `Observation`, which changes the state, and
renders a state as text within a token budget.

`AwarenessEngine` does this in a loop, `Awareness` as a module of an agent. `dynamics` is how a
state changes by itself over long runs, `archive` where it is found again, `stores` where states
are stored. `ModelPerception` is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coag._util.lazy import loaded_on_use

from .adapters import (
    CodingAdapter,
    CompositeAdapter,
    ConversationAdapter,
    DomainAdapter,
    PerceptAdapter,
    ToolAdapter,
)
from .archive import (
    ApartArchive,
    Archive,
    ArchivedEntity,
    ArchivedGoal,
    ArchivedItem,
    FoundBy,
    FoundItem,
    ItemKind,
    RecordArchive,
)
from .dynamics import (
    DecaySettings,
    DynamicsSettings,
    LearningSettings,
    ProjectionSettings,
    ReturnSettings,
)
from .engine import (
    Adapter,
    AwarenessEngine,
    DynamicEngine,
    SharedEngine,
    SharedVersion,
    SharedWorld,
    SharedWorldError,
    new_state,
)
from .goals import Goal, GoalDraft, GoalGraph, GoalSource, GoalStatus
from .injection import InjectionBlock, InjectionItem
from .module import Awareness, AwarenessSettings, heard_by
from .names import EngineSettings
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
from .perception import Perception, PerceptionDomain, RulePerception
from .state import (
    Attention,
    AttentionType,
    AwarenessState,
    Belief,
    CollaborationMode,
    Entity,
    InteractionProtocol,
    Need,
    Relationship,
    Resource,
    ScanPattern,
    SelfModel,
    Trajectory,
    Transition,
    TransitionType,
    WorldModel,
)
from .stores import (
    FolderStateStore,
    InMemoryStateStore,
    PostgresStateStore,
    SqliteStateStore,
    StaleStateError,
    StateStore,
    StateStoreError,
    StoredState,
    change_stored,
)

if TYPE_CHECKING:
    from .model_perception import ModelPerception, PerceptionSettings, summary_of

_LAZY = ("ModelPerception", "PerceptionSettings", "summary_of")
"""Names of `model_perception`, which imports `coag.models`."""

__all__ = [
    "CodingAdapter", "CompositeAdapter", "ConversationAdapter", "DomainAdapter",
    "PerceptAdapter", "ToolAdapter", "ApartArchive", "Archive", "ArchivedEntity",
    "ArchivedGoal", "ArchivedItem", "FoundBy", "FoundItem", "ItemKind", "RecordArchive",
    "DecaySettings", "DynamicsSettings", "LearningSettings", "ProjectionSettings",
    "ReturnSettings", "Adapter", "AwarenessEngine", "DynamicEngine", "SharedEngine",
    "SharedVersion", "SharedWorld", "SharedWorldError", "new_state", "Goal", "GoalDraft",
    "GoalGraph", "GoalSource", "GoalStatus", "InjectionBlock", "InjectionItem", "Awareness",
    "AwarenessSettings", "heard_by", "EngineSettings", "GoalChange", "Observation",
    "ObservedAttention", "ObservedEntity", "ObservedEvent", "ObservedFailure", "ObservedGoal",
    "ObservedRelationship", "Spent", "load_state", "Attention", "AttentionType",
    "AwarenessState", "Belief", "CollaborationMode", "Entity", "InteractionProtocol", "Need",
    "Relationship", "Resource", "ScanPattern", "SelfModel", "Trajectory", "Transition",
    "TransitionType", "WorldModel", "ModelPerception", "PerceptionSettings", "summary_of",
    "Perception", "PerceptionDomain", "RulePerception", "FolderStateStore",
    "InMemoryStateStore", "PostgresStateStore", "SqliteStateStore", "StaleStateError",
    "StateStore", "StateStoreError", "StoredState", "change_stored",
]  # fmt: skip

__getattr__ = loaded_on_use(__name__, dict.fromkeys(_LAZY, "coag.awareness.model_perception"))


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
