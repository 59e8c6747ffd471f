"""The deliberative cycle (CoALA §4.6; CoAG A.2), enforced.

    Retrieval -> Reasoning -> Proposal -> Evaluation -> Selection -> Execution

Each phase is a function `(context, deps) -> Outcome` in a file of its own; phases know nothing
of each other. The cycle runs them in order, and it alone commits what they return. What the
model proposes are candidates; code decides first (does the action exist, do its arguments fit,
would it fail again, what do the constraints say of its projection), the model judges what is
left, and only Execution acts, at most once. A cycle in which nothing survives is an impasse,
and the next cycle perceives it.
"""

from ._action_rules import ActionRule, rule
from ._actions import RESPOND, GuardedActions, NoActions, respond_spec
from ._answers import (
    DeliberationAnswer,
    EvaluationAnswer,
    ProposalAnswer,
    ReasoningAnswer,
    SelectionAnswer,
)
from ._approval import Approvals
from ._approval_events import ApprovalEvent, ApprovalOccasion
from ._approval_policy import ApprovalNeed, ApprovalPolicy, ApprovalRule
from ._approval_values import (
    Approval,
    ApprovalAnswer,
    ApprovalRequest,
    ApproveFunction,
    Approver,
    memory_version,
    still_holds,
)
from ._approving import approvals_of
from ._arguments import COMPLETED, IDEMPOTENCY_KEY, with_defaults
from ._checking import CURRENT_STATE
from ._constraints import ConstraintSet, NamedConstraint
from ._cycle import close_cycle, commit, perceive, run_cycle
from ._deps import Asked, AskModel, Deps, OfferActions, Offered, untrusted_texts
from ._detector import ProgressDetector
from ._forms import NOT_OFFERED, OFFER
from ._guard import Ended, run_selected
from ._guard_deps import ActionDoor, AskReconciliation, GuardDeps, decided_at
from ._json_schemas import schema_fault, value_fault
from ._modules import ModuleSeam
from ._only_trusted import BoundRule, JudgedBy, OnlyTrusted, only_trusted
from ._returns import return_percept
from ._rules import check_rule
from ._running import Ran
from ._settings import Bounds, Budget, CycleSettings, Part
from ._settling import (
    UNSETTLED,
    idempotency_key,
    identity,
    reconcile,
    settled_by_person,
)
from ._snapshots import write_snapshot
from ._threads import in_thread, outcome_of
from ._timed import LateError, SelfCancelledError, told, within
from ._turn import WITHHELD, TurnResult, run_turn, sayable

__all__ = [
    "run_turn",
    "TurnResult",
    "sayable",
    "WITHHELD",
    "run_cycle",
    "close_cycle",
    "commit",
    "perceive",
    "write_snapshot",
    "Deps",
    "run_selected",
    "Ended",
    "Ran",
    "GuardDeps",
    "ActionDoor",
    "AskReconciliation",
    "decided_at",
    "UNSETTLED",
    "IDEMPOTENCY_KEY",
    "COMPLETED",
    "with_defaults",
    "idempotency_key",
    "identity",
    "reconcile",
    "settled_by_person",
    "AskModel",
    "Asked",
    "OfferActions",
    "Offered",
    "CycleSettings",
    "Part",
    "Bounds",
    "Budget",
    "CURRENT_STATE",
    "OFFER",
    "NOT_OFFERED",
    "rule",
    "ActionRule",
    "ConstraintSet",
    "NamedConstraint",
    "check_rule",
    "only_trusted",
    "OnlyTrusted",
    "BoundRule",
    "JudgedBy",
    "GuardedActions",
    "NoActions",
    "RESPOND",
    "respond_spec",
    "Approvals",
    "approvals_of",
    "ApprovalPolicy",
    "ApprovalRule",
    "ApprovalNeed",
    "ApprovalOccasion",
    "ApprovalEvent",
    "ApprovalRequest",
    "ApprovalAnswer",
    "Approval",
    "Approver",
    "ApproveFunction",
    "memory_version",
    "still_holds",
    "in_thread",
    "outcome_of",
    "ProgressDetector",
    "ModuleSeam",
    "ReasoningAnswer",
    "ProposalAnswer",
    "EvaluationAnswer",
    "SelectionAnswer",
    "DeliberationAnswer",
    "untrusted_texts",
    "schema_fault",
    "value_fault",
    "return_percept",
    "within",
    "LateError",
    "SelfCancelledError",
    "told",
]
