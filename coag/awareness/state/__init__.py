"""The awareness state: six modules on one blackboard, as frozen values (SAGEN §3, appendix A).

`AwarenessState` holds the goal graph, the trajectory, the world model, the self model, attention
and the interaction protocol, with a step and a time. Each module is a value with views of itself
and methods that give a changed one; nothing is changed in place. Whatever is dumped as JSON loads
to an equal value.
"""

from ._attention import Attention, AttentionItem, AttentionType, ScanPattern, attention_id
from ._experience import Reading, Tally, TallyOf
from ._goal import Goal, GoalOutcomes, GoalSource, GoalStatus, goal_id
from ._goal_draft import GoalDraft
from ._goal_graph import GoalGraph, WaitsFor
from ._protocol import CollaborationMode, InteractionProtocol
from ._self_model import CanI, FailureNote, Need, Resource, SelfModel
from ._state import STATE_VERSION, AwarenessState
from ._texts import (
    NOT_BLANK,
    Amount,
    Finite,
    Heard,
    HeardPlain,
    HeardText,
    Names,
    Plain,
    Said,
    Share,
    Step,
    Text,
    distinct,
    folded,
)
from ._trajectory import STICKY, Trajectory, Transition, TransitionType
from ._world import Belief, Entity, Merge, MergeReason, Relationship, WorldModel

__all__ = [
    "AwarenessState",
    "STATE_VERSION",
    "GoalGraph",
    "GoalDraft",
    "WaitsFor",
    "Goal",
    "GoalStatus",
    "GoalSource",
    "GoalOutcomes",
    "goal_id",
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
    "Reading",
    "Tally",
    "TallyOf",
    "CanI",
    "Attention",
    "AttentionItem",
    "AttentionType",
    "ScanPattern",
    "attention_id",
    "InteractionProtocol",
    "CollaborationMode",
    "NOT_BLANK",
    "Heard",
    "HeardText",
    "HeardPlain",
    "Text",
    "Said",
    "Plain",
    "Names",
    "Share",
    "Step",
    "Finite",
    "Amount",
    "folded",
    "distinct",
]
