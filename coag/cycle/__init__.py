"""The deliberative cycle (CoALA §4.6; CoAG A.2), enforced.

    Retrieval -> Reasoning -> Proposal -> Evaluation -> Selection -> Execution

Each phase is a function `(context, deps) -> Outcome` in a file of its own; phases know nothing
of each other. The cycle runs them in order, and it alone commits what they return. What the
model proposes are candidates; code decides first (does the action exist, do its arguments fit,
would it fail again, what do the constraints say of its projection), the model judges what is
left, and only Execution acts, at most once. A cycle in which nothing survives is an impasse,
and the next cycle perceives it.
"""

from coag._util.deprecation import renamed

from .actions import (
    COMPLETED,
    IDEMPOTENCY_KEY,
    RESPOND,
    GuardedActions,
    respond_spec,
    with_defaults,
)
from .approval import (
    Approval,
    ApprovalAnswer,
    ApprovalOccasion,
    ApprovalPolicy,
    ApprovalRequest,
    ApprovalRule,
    Approvals,
    ApproveFunction,
    Approver,
    memory_version,
)
from .asking import NOT_OFFERED
from .checks import (
    CURRENT_STATE,
    OFFER,
    check,
    idempotency_key,
    identity,
    reconcile,
    settled_by_person,
)
from .compiled import CompiledProcedure, CompiledProcedures
from .constraints import (
    ActionRule,
    BoundRule,
    ConstraintSet,
    JudgedBy,
    NamedConstraint,
    bound,
    check_rule,
    rule,
    written_rule,
)
from .cycle import EMPTY_OUTCOMES, close_cycle, commit, perceive, write_snapshot
from .deps import (
    ActionExecutor,
    AskModel,
    AskReconciliation,
    Deps,
    GuardDeps,
    ModelReply,
    OfferActions,
    ToolProposal,
    decided_at,
    untrusted_texts,
)
from .execution import ActionRun, BatchResult, approvals_of, return_percept, run_selected
from .foreign_orders import no_foreign_orders
from .modules import ModuleHost
from .only_trusted import only_trusted
from .output_schema import (
    DeliberationAnswer,
    EvaluationAnswer,
    ProposalAnswer,
    ReasoningAnswer,
    SelectionAnswer,
)
from .repeated_failures import ProgressDetector
from .settings import Ablation, Bounds, Budget, CycleSettings
from .turn import TurnResult, run_turn, sayable

__all__ = [
    "run_turn",
    "TurnResult",
    "sayable",
    "close_cycle",
    "EMPTY_OUTCOMES",
    "commit",
    "perceive",
    "write_snapshot",
    "Deps",
    "run_selected",
    "check",
    "BatchResult",
    "ActionRun",
    "GuardDeps",
    "ActionExecutor",
    "AskReconciliation",
    "decided_at",
    "IDEMPOTENCY_KEY",
    "COMPLETED",
    "with_defaults",
    "idempotency_key",
    "identity",
    "reconcile",
    "settled_by_person",
    "AskModel",
    "ModelReply",
    "OfferActions",
    "ToolProposal",
    "CycleSettings",
    "Ablation",
    "Bounds",
    "Budget",
    "CURRENT_STATE",
    "OFFER",
    "CompiledProcedure",
    "CompiledProcedures",
    "NOT_OFFERED",
    "rule",
    "ActionRule",
    "ConstraintSet",
    "NamedConstraint",
    "written_rule",
    "bound",
    "check_rule",
    "only_trusted",
    "no_foreign_orders",
    "BoundRule",
    "JudgedBy",
    "GuardedActions",
    "RESPOND",
    "respond_spec",
    "Approvals",
    "approvals_of",
    "ApprovalPolicy",
    "ApprovalRule",
    "ApprovalOccasion",
    "ApprovalRequest",
    "ApprovalAnswer",
    "Approval",
    "Approver",
    "ApproveFunction",
    "memory_version",
    "ProgressDetector",
    "ModuleHost",
    "ReasoningAnswer",
    "ProposalAnswer",
    "EvaluationAnswer",
    "SelectionAnswer",
    "DeliberationAnswer",
    "untrusted_texts",
    "return_percept",
]

__getattr__ = renamed(
    __name__,
    {
        "Part": "Ablation",
        "ActionDoor": "ActionExecutor",
        "Asked": "ModelReply",
        "Offered": "ToolProposal",
        "Ran": "ActionRun",
        "Ended": "BatchResult",
        "ModuleSeam": "ModuleHost",
    },
)
