"""A phase's outcome as stock AutoGen events.

The text of an event is our own sentence (names, verdicts, counts), never the model's: teams
end on words they find in events. What the model wrote is in the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from autogen_agentchat.messages import (
    BaseAgentEvent,
    MemoryQueryEvent,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core import FunctionCall
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.models import FunctionExecutionResult, RequestUsage

from coag.context import WorkingMemory
from coag.schema import (
    Candidate,
    EvaluationOutcome,
    ExecutionOutcome,
    Outcome,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
)

METADATA_CHARACTERS = 4_000


def events_of(
    outcome: Outcome, memory: WorkingMemory, source: str, known: Collection[str]
) -> list[BaseAgentEvent]:
    """The events that show an outcome, in order.

    Args:
        outcome: What was committed.
        memory: Working memory right after it.
        source: The agent's name.
        known: Names of the actions that exist; others are not repeated in event texts.
    """
    if isinstance(outcome, ExecutionOutcome) and outcome.intent_id is not None:
        return _tool_events(outcome, source)
    usage = None
    if outcome.usage.calls:
        usage = RequestUsage(
            prompt_tokens=outcome.usage.prompt_tokens,
            completion_tokens=outcome.usage.completion_tokens,
        )
    text, detail = _sentence(outcome, memory, known)
    metadata = {"phase": outcome.phase.value, "cycle": str(outcome.cycle)}
    if detail:
        metadata["detail"] = detail[:METADATA_CHARACTERS]
    thought = ThoughtEvent(content=text, source=source, models_usage=usage, metadata=metadata)
    if isinstance(outcome, RetrievalOutcome) and outcome.records:
        return [thought, _memory_event(outcome, source)]
    return [thought]


def _memory_event(outcome: RetrievalOutcome, source: str) -> MemoryQueryEvent:
    return MemoryQueryEvent(
        source=source,
        content=[
            MemoryContent(
                content=hit.record.text,
                mime_type=MemoryMimeType.TEXT,
                metadata={
                    "id": hit.record.id,
                    "score": hit.score,
                    "kind": hit.record.kind.value,
                },
            )
            for hit in outcome.records
        ],
    )


def _tool_events(outcome: ExecutionOutcome, source: str) -> list[BaseAgentEvent]:
    call = function_call(outcome)
    return [
        ToolCallRequestEvent(content=[call], source=source),
        ToolCallExecutionEvent(content=[execution_result(outcome)], source=source),
    ]


def function_call(outcome: ExecutionOutcome) -> FunctionCall:
    """The executed action as AutoGen's tool call."""
    return FunctionCall(
        id=outcome.intent_id or "",
        name=outcome.action or "",
        arguments=json.dumps(outcome.arguments or {}, ensure_ascii=False),
    )


def execution_result(outcome: ExecutionOutcome) -> FunctionExecutionResult:
    """What it brought back as AutoGen's tool result."""
    return FunctionExecutionResult(
        content=outcome.result,
        name=outcome.action or "",
        call_id=outcome.intent_id or "",
        is_error=outcome.status.value != "done",
    )


def _sentence(outcome: Outcome, memory: WorkingMemory, known: Collection[str]) -> tuple[str, str]:
    match outcome:
        case RetrievalOutcome():
            return f"Retrieval: {len(outcome.records)} record(s) recalled.", outcome.query
        case ReasoningOutcome():
            text = f"Reasoning: the goal is {outcome.goal_status.value}, "
            return text + f"{len(outcome.risks)} risk(s) seen.", outcome.situation
        case ProposalOutcome():
            named = _names(outcome.candidates, known)
            detail = json.dumps([c.model_dump(exclude_none=True) for c in outcome.candidates])
            return f"Proposal: {len(outcome.candidates)} candidate(s){named}.", detail
        case EvaluationOutcome():
            return _evaluation_sentence(outcome, memory, known)
        case SelectionOutcome():
            if outcome.decided_by is None:
                return "Selection: an impasse, no candidate survived.", outcome.reason
            action = _action_of(outcome.candidate_id, memory, known)
            return f"Selection: {action}, decided by {outcome.decided_by.value}.", outcome.reason
        case ExecutionOutcome():
            action = outcome.action if outcome.action in known else "nothing"
            return f"Execution: {action}, {outcome.status.value}.", outcome.result


def _evaluation_sentence(
    outcome: EvaluationOutcome, memory: WorkingMemory, known: Collection[str]
) -> tuple[str, str]:
    survivors = sum(e.survived for e in outcome.evaluations)
    text = f"Evaluation: {survivors} of {len(outcome.evaluations)} candidate(s) survived"
    deaths = [
        f"{_action_of(e.candidate_id, memory, known)} rejected by {e.died_of.constraint}"
        for e in outcome.evaluations
        if e.died_of is not None
    ]
    detail = json.dumps([e.model_dump(mode="json", exclude_none=True) for e in outcome.evaluations])
    return "; ".join([text, *deaths]) + ".", detail


def _names(candidates: Sequence[Candidate], known: Collection[str]) -> str:
    names = [c.action if c.action in known else "an unknown action" for c in candidates]
    return f": {', '.join(names)}" if names else ""


def _action_of(candidate_id: str | None, memory: WorkingMemory, known: Collection[str]) -> str:
    proposal = memory.cognitive_state.proposal
    for candidate in proposal.candidates if proposal else ():
        if candidate.id == candidate_id:
            return candidate.action if candidate.action in known else "an unknown action"
    return "nothing"
