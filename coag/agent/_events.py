"""A phase's outcome as stock AutoGen events.

The text of an event is our own sentence (names, verdicts, counts), never the model's: teams
end on words they find in events. What the model wrote is in the metadata. A thought that the
client itself tells apart is the exception: it is shown as it is, as AssistantAgent does.

Names of tools and constraints may come from elsewhere (an MCP server, say). In a sentence they
are short, without control characters, and without square brackets: `RichConsole` takes those for
markup and may raise.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from autogen_agentchat import EVENT_LOGGER_NAME
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
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
    one_line,
)

from ._calls import execution_result, function_call
from ._live import Live

_EVENTS = logging.getLogger(EVENT_LOGGER_NAME)
METADATA_CHARACTERS = 4_000
PHASE_LISTENER: ContextVar[Callable[[ThoughtEvent], None] | None] = ContextVar(
    "coag_phase_listener", default=None
)
"""Is told of every phase by agents that run in this context and show none (`events="stock"`)."""
_NAME = 80
"""Characters of a name in a sentence."""
_UNKNOWN = "an unknown action"
_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Tells an agent's outcomes as events."""

    source: str
    """The agent's name."""
    native: bool
    """True if the model's own tool calls are its proposals: each is answered with a result."""
    handoffs: Collection[str]
    """Names of the actions that hand over to another agent."""
    phases: bool = False
    """True to show every phase as a `ThoughtEvent`, with its usage."""
    live: Live
    """Knows what the model calls its calls, and the usage that no message has told yet."""

    def events_of(
        self,
        outcome: Outcome,
        memory: WorkingMemory,
        known: Collection[str],
        outputs: Mapping[str, str],
    ) -> list[BaseAgentEvent]:
        """The events that show an outcome, in order.

        Args:
            outcome: What was committed.
            memory: Working memory right after it.
            known: Names of the actions that exist; others are not repeated in event texts.
            outputs: Whole outputs of tools by call, where the outcome holds them cut.
        """
        if not self.phases:
            self.live.use(outcome.usage)
        own = self._own_events(outcome, memory, outputs)
        listener = PHASE_LISTENER.get()
        if not self.phases and listener is None:
            return own
        if isinstance(outcome, ExecutionOutcome) and own:
            return own
        phase = _phase_event(outcome, memory, self.source, known)
        if not self.phases:
            if listener is not None:
                listener(phase)
            return own
        if isinstance(outcome, EvaluationOutcome | RetrievalOutcome):
            return [phase, *own]
        return [*own, phase]

    def _own_events(
        self, outcome: Outcome, memory: WorkingMemory, outputs: Mapping[str, str]
    ) -> list[BaseAgentEvent]:
        """What AssistantAgent would show of it, too."""
        match outcome:
            case RetrievalOutcome():
                return [_memory_event(outcome, self.source)] if outcome.records else []
            case ReasoningOutcome() | ProposalOutcome() if outcome.thought:
                return [ThoughtEvent(content=outcome.thought, source=self.source)]
            case EvaluationOutcome() if self.native:
                return self._rejected(outcome, memory)
            case ExecutionOutcome():
                return self._tool_events(outcome, memory, outputs)
            case _:
                return []

    def _tool_events(
        self, outcome: ExecutionOutcome, memory: WorkingMemory, outputs: Mapping[str, str]
    ) -> list[BaseAgentEvent]:
        """Results of the tools, whose calls were shown when they began; then handoffs."""
        ran = [done for done in outcome.executed if done.intent_id is not None]
        events: list[BaseAgentEvent] = []
        if ran:
            results = [execution_result(done, outputs, self.live.call_ids) for done in ran]
            events.append(ToolCallExecutionEvent(content=results, source=self.source))
        handed = [done for done in outcome.executed if done.action in self.handoffs]
        if ran or not handed:
            return events
        ids = _ids(memory)
        calls = [function_call(one, ids) for one in handed]
        return [*events, *self._pair(calls, [execution_result(one, {}, ids) for one in handed])]

    def _pair(
        self, calls: list[FunctionCall], results: list[FunctionExecutionResult]
    ) -> list[BaseAgentEvent]:
        usage = None if self.phases else self.live.take_usage()
        return [
            ToolCallRequestEvent(content=calls, source=self.source, models_usage=usage),
            ToolCallExecutionEvent(content=results, source=self.source),
        ]

    def _rejected(self, outcome: EvaluationOutcome, memory: WorkingMemory) -> list[BaseAgentEvent]:
        """Tool calls of the model that did not survive, each answered with the reason."""
        proposal, ids = memory.cognitive_state.proposal, _ids(memory)
        by_id = {c.id: c for c in (proposal.candidates if proposal else ())}
        gone = [
            (by_id[judged.candidate_id], judged.died_of)
            for judged in outcome.evaluations
            if judged.died_of is not None
        ]
        if not gone:
            return []
        calls = [
            FunctionCall(id=ids.get(one.id, one.id), name=one.action, arguments=one.raw_arguments)
            for one, _ in gone
        ]
        results = [
            FunctionExecutionResult(
                content=f"Rejected by {verdict.constraint}: {verdict.reason}",
                name=candidate.action,
                call_id=ids.get(candidate.id, candidate.id),
                is_error=True,
            )
            for candidate, verdict in gone
        ]
        return self._pair(calls, results)


def _phase_event(
    outcome: Outcome,
    memory: WorkingMemory,
    source: str,
    known: Collection[str],
) -> ThoughtEvent:
    """A phase as a thought, with its usage."""
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
    return ThoughtEvent(content=text, source=source, models_usage=usage, metadata=metadata)


def _ids(memory: WorkingMemory) -> dict[str, str]:
    """What the model calls the calls that it proposed in this cycle, by the candidate's id."""
    proposal = memory.cognitive_state.proposal
    return {c.id: c.call_id for c in (proposal.candidates if proposal else ()) if c.call_id}


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
            action = ", ".join(_action_of(one, memory, known) for one in outcome.chosen)
            return f"Selection: {action}, decided by {outcome.decided_by.value}.", outcome.reason
        case ExecutionOutcome():
            names = [_plain(done.action) for done in outcome.executed if done.action in known]
            action = ", ".join(names) or "nothing"
            return f"Execution: {action}, {outcome.status.value}.", outcome.result


def _evaluation_sentence(
    outcome: EvaluationOutcome, memory: WorkingMemory, known: Collection[str]
) -> tuple[str, str]:
    survivors = sum(e.survived for e in outcome.evaluations)
    text = f"Evaluation: {survivors} of {len(outcome.evaluations)} candidate(s) survived"
    deaths = [
        f"{_action_of(e.candidate_id, memory, known)} rejected by {_plain(e.died_of.constraint)}"
        for e in outcome.evaluations
        if e.died_of is not None
    ]
    detail = json.dumps([e.model_dump(mode="json", exclude_none=True) for e in outcome.evaluations])
    return "; ".join([text, *deaths]) + ".", detail


def _names(candidates: Sequence[Candidate], known: Collection[str]) -> str:
    names = [_plain(c.action) if c.action in known else _UNKNOWN for c in candidates]
    return f": {', '.join(names)}" if names else ""


def _action_of(candidate_id: str | None, memory: WorkingMemory, known: Collection[str]) -> str:
    proposal = memory.cognitive_state.proposal
    for candidate in proposal.candidates if proposal else ():
        if candidate.id == candidate_id:
            return _plain(candidate.action) if candidate.action in known else _UNKNOWN
    return "nothing"


def _plain(name: str) -> str:
    """A name as a sentence takes it."""
    return one_line(name, _NAME).translate(_BRACKETS)


def log_event(event: BaseAgentEvent | BaseChatMessage) -> None:
    """Tells AutoGen's event log of tool calls and results, as AssistantAgent does."""
    if isinstance(event, ToolCallRequestEvent | ToolCallExecutionEvent):
        _EVENTS.debug(event)
