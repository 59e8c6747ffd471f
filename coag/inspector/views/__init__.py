"""What the pages show, as values: no file is read here, and no HTML made.

Everything in them comes out of logs, so every text is untrusted.
"""

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
from ._runs import Outcome, RunCard, RunList, RunState, RunView, Trouble

__all__ = [
    "Belief",
    "BeliefPoint",
    "BeliefTrack",
    "CallView",
    "CandidateView",
    "Change",
    "ComparedCycle",
    "Comparison",
    "CycleRow",
    "CycleView",
    "DiffLine",
    "Edge",
    "Finding",
    "FindingSort",
    "Findings",
    "ListChange",
    "ListTrack",
    "MemoryPage",
    "MessageView",
    "Node",
    "NodeSort",
    "Outcome",
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
    "RunCard",
    "RunList",
    "RunState",
    "RunView",
    "Trouble",
    "WhyGraph",
]
