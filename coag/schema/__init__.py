"""The nouns of `coag`: frozen values that every layer speaks in, and the protocols between layers.

A *percept* arrives from outside and alone changes the perceptual state. Each *phase* of a
*cycle* gives one *outcome*: the state change and the log line at once. *Candidates* are judged
by *verdicts* into *evaluations*; one is selected and run as an *action*, bracketed by an
*intent* and a *receipt*. *Records* are units of long-term memory. Everything that happens is a
`TraceRecord`, and a run's state can be rebuilt from them.

Nothing here does input or output, and nothing here knows AutoGen.
"""

from ._actions import ActionCall, ActionResult, ActionSpec
from ._candidates import (
    Candidate,
    Evaluation,
    Reconciliation,
    UnsettledAction,
    Verdict,
    numbered,
)
from ._clock import Clock, SteppingClock, SystemClock
from ._effects import UNPARSED, Intent, Receipt, ReceiptStatus, Returned, parsed_arguments
from ._html import HtmlTable, html_card, html_text, visible
from ._ids import CountingIds, IdSource, content_id, new_run_id
from ._import_names import (
    check_own_code,
    check_provider,
    from_import_name,
    import_name,
    provider_name,
)
from ._imported import Declarable, Imported
from ._json import diff_patch, merge_patch
from ._model_calls import Asked, Given, ModelCall, Rung
from ._moment import Moment
from ._outcomes import (
    DecidedBy,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    GoalStatus,
    Outcome,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
)
from ._percepts import Failure, Percept, PerceptKind, Settlement, Trust
from ._phase import PHASES, Phase, phase_after
from ._protocols import (
    ActionSource,
    ActionSpace,
    CognitiveModule,
    CompletesArguments,
    Constraint,
    ConstraintSource,
    Environment,
    LazySink,
    Resettable,
    TraceSink,
)
from ._random import random_state, set_random
from ._records import (
    Dynamics,
    Event,
    Fact,
    Lineage,
    MemoryKind,
    Mood,
    Provenance,
    RecalledRecord,
    Record,
    Scalar,
    ScoreParts,
    Stretch,
    folded,
    is_own_id,
    record_id,
)
from ._secrets import REDACTED, Redactor, is_secret_setting
from ._sections import Prompt, PromptMessage, Section, Situation
from ._text import cleaned, escaped_json, one_line
from ._tokens import BYTES_PER_TOKEN, cut_to_tokens, estimate_tokens, well_formed
from ._trace import (
    ENTRY,
    RESUMED,
    TRACE_VERSION,
    ActionsListed,
    Entry,
    Note,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Written,
)
from ._value import Value
from ._waiting import end_task, let_others_run

__all__ = [
    "Phase",
    "PHASES",
    "phase_after",
    "Value",
    "Clock",
    "SystemClock",
    "SteppingClock",
    "IdSource",
    "CountingIds",
    "new_run_id",
    "content_id",
    "Trust",
    "Settlement",
    "PerceptKind",
    "Failure",
    "Percept",
    "ActionSpec",
    "ActionCall",
    "ActionResult",
    "Candidate",
    "Verdict",
    "Evaluation",
    "UnsettledAction",
    "Reconciliation",
    "numbered",
    "Scalar",
    "MemoryKind",
    "Provenance",
    "Record",
    "Event",
    "Fact",
    "Dynamics",
    "Mood",
    "Lineage",
    "Stretch",
    "record_id",
    "folded",
    "is_own_id",
    "RecalledRecord",
    "ScoreParts",
    "Section",
    "Situation",
    "PromptMessage",
    "Prompt",
    "TokenUsage",
    "GoalStatus",
    "DecidedBy",
    "RetrievalOutcome",
    "ReasoningOutcome",
    "ProposalOutcome",
    "EvaluationOutcome",
    "SelectionOutcome",
    "ExecutionStatus",
    "ExecutionOutcome",
    "Executed",
    "Outcome",
    "Rung",
    "ModelCall",
    "Moment",
    "Asked",
    "Given",
    "Intent",
    "UNPARSED",
    "parsed_arguments",
    "LazySink",
    "ReceiptStatus",
    "Receipt",
    "Returned",
    "TRACE_VERSION",
    "Snapshot",
    "SnapshotReason",
    "ActionsListed",
    "Note",
    "RESUMED",
    "TurnStart",
    "TurnEnd",
    "Written",
    "TraceRecord",
    "Entry",
    "ENTRY",
    "HtmlTable",
    "html_card",
    "html_text",
    "visible",
    "Constraint",
    "ConstraintSource",
    "ActionSpace",
    "ActionSource",
    "Environment",
    "TraceSink",
    "CognitiveModule",
    "CompletesArguments",
    "Resettable",
    "import_name",
    "check_own_code",
    "from_import_name",
    "provider_name",
    "check_provider",
    "Imported",
    "Declarable",
    "random_state",
    "set_random",
    "merge_patch",
    "diff_patch",
    "BYTES_PER_TOKEN",
    "estimate_tokens",
    "cut_to_tokens",
    "well_formed",
    "cleaned",
    "one_line",
    "escaped_json",
    "end_task",
    "let_others_run",
    "REDACTED",
    "Redactor",
    "is_secret_setting",
]
