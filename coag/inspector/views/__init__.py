"""What the pages show, as values: no file is read here, and no HTML made.

Everything in them comes out of logs, so every text is untrusted.
"""

from ._awareness import (
    AttentionView,
    AwarenessView,
    Course,
    CycleChange,
    GoalView,
    Lane,
    Listing,
    Marks,
    Move,
    ResourceView,
    Series,
    Span,
    Stand,
    StateChange,
    TransitionView,
)
from ._beliefs import Belief, BeliefPoint, BeliefTrack, ListChange, ListTrack
from ._changes import Change, DiffLine, ProcedureHistory, ProcedureStep
from ._comparison import ComparedCycle, Comparison
from ._cycles import (
    CallView,
    CandidateView,
    CycleRow,
    CycleView,
    MessageView,
    PartKind,
    PhaseView,
    PromptPart,
    Rejected,
)
from ._findings import Finding, Findings, FindingSort, Progress
from ._graph import Edge, Node, NodeSort, WhyGraph
from ._memory import MemoryPage, RecallRow, RecordRow
from ._records import RecordView
from ._runs import RunCard, RunList, RunState, RunView, TaskOutcome, Trouble

__all__ = [
    "AttentionView",
    "AwarenessView",
    "Belief",
    "BeliefPoint",
    "BeliefTrack",
    "CallView",
    "CandidateView",
    "Change",
    "ComparedCycle",
    "Comparison",
    "Course",
    "CycleChange",
    "CycleRow",
    "CycleView",
    "DiffLine",
    "Edge",
    "Finding",
    "FindingSort",
    "Findings",
    "GoalView",
    "Lane",
    "ListChange",
    "ListTrack",
    "Listing",
    "Marks",
    "MemoryPage",
    "MessageView",
    "Move",
    "Node",
    "NodeSort",
    "TaskOutcome",
    "PartKind",
    "PhaseView",
    "ProcedureHistory",
    "ProcedureStep",
    "Progress",
    "PromptPart",
    "RecallRow",
    "RecordRow",
    "RecordView",
    "Rejected",
    "ResourceView",
    "RunCard",
    "RunList",
    "RunState",
    "RunView",
    "Series",
    "Span",
    "Stand",
    "StateChange",
    "TransitionView",
    "Trouble",
    "WhyGraph",
]
