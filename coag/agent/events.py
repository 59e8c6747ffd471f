"""What a turn shows as AutoGen's events and messages."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from autogen_agentchat import EVENT_LOGGER_NAME
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    HandoffMessage,
    MemoryQueryEvent,
    ModelClientStreamingChunkEvent,
    StructuredMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
    ToolCallSummaryMessage,
)
from autogen_core import FunctionCall
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    RequestUsage,
)

from coag.compat import RESERVED
from coag.context import CoagContext, WorkingMemory
from coag.cycle import TurnResult
from coag.errors import ConfigurationError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    one_line,
)

from .arguments import AgentArguments

# ---- Executed actions as AutoGen's tool calls and results ----


_NONE: Mapping[str, str] = MappingProxyType({})


def call_arguments(arguments: Mapping[str, Any] | None) -> str:
    """Arguments as AutoGen's calls carry them."""
    return json.dumps(dict(arguments or {}), ensure_ascii=False)


def function_call(done: Executed, ids: Mapping[str, str] = _NONE) -> FunctionCall:
    """The executed action as AutoGen's tool call.

    Args:
        done: What was run.
        ids: What the model calls its calls, by the intent's id, or by the candidate's.
    """
    return FunctionCall(
        id=_call_id(done, ids), name=done.action, arguments=call_arguments(done.arguments)
    )


def execution_result(
    done: Executed, outputs: Mapping[str, str], ids: Mapping[str, str] = _NONE
) -> FunctionExecutionResult:
    """What it brought back as AutoGen's tool result: the whole output, where it is at hand."""
    return FunctionExecutionResult(
        content=outputs.get(done.intent_id or "", done.result),
        name=done.action,
        call_id=_call_id(done, ids),
        is_error=done.status is not ExecutionStatus.DONE,
    )


def calls_and_results(
    ran: Sequence[Executed], outputs: Mapping[str, str], ids: Mapping[str, str]
) -> tuple[list[FunctionCall], list[FunctionExecutionResult]]:
    """Executed actions as AutoGen's tool calls, and their results in the same order."""
    calls = [function_call(one, ids) for one in ran]
    return calls, [execution_result(one, outputs, ids) for one in ran]


def external_calls(outcome: ExecutionOutcome) -> list[Executed]:
    """The actions of an outcome that are tool calls for AutoGen."""
    return [one for one in outcome.executed if one.intent_id is not None]


def request_usage(usage: TokenUsage) -> RequestUsage | None:
    """Usage as AutoGen counts it; None where no model was asked."""
    if not usage.calls:
        return None
    return RequestUsage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
    )


def _call_id(done: Executed, ids: Mapping[str, str]) -> str:
    own = done.intent_id or done.candidate_id or ""
    return ids.get(own, own)


# ---- Handoffs: actions that end the turn and give the conversation to another agent ----


_NO_ARGUMENTS = {"type": "object", "properties": dict[str, object]()}


class Handoffs:
    """The agents that this one can hand over to, as internal actions.

    Args:
        given: Names of agents, or AutoGen's `Handoff`s.

    Raises:
        ConfigurationError: Two have the same name, one has the name of a tool or of an action
            of the agent's own, or one is neither.
    """

    def __init__(self, given: Sequence[Handoff | str], tools: Sequence[str] = ()) -> None:
        self.by_name: Mapping[str, Handoff] = {h.name: h for h in map(_handoff, given)}
        names = [h.name for h in map(_handoff, given)]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"Handoff names must be unique; given twice: {doubled}.")
        if taken := sorted(set(names).intersection({*tools, *RESERVED})):
            raise ConfigurationError(
                f"These handoffs have names that a tool or an own action has: {taken}. "
                "Give Handoff(target=..., name=...) another name."
            )

    def action_specs(self) -> Sequence[ActionSpec]:
        """One action per handoff, without arguments."""
        return [
            ActionSpec(
                name=handoff.name,
                description=handoff.description,
                parameters=_NO_ARGUMENTS,
                internal=True,
                repeatable=True,
            )
            for handoff in self.by_name.values()
        ]

    def warn_of_several(self, wanted: Sequence[str]) -> None:
        """Warns, as AssistantAgent does, where one answer hands over more than once."""
        named = [name for name in wanted if name in self.by_name]
        if len(named) > 1:
            warnings.warn(
                f"Multiple handoffs detected. Only the first is executed: {named}. Disable "
                "parallel tool calls in the model client to avoid this warning.",
                stacklevel=2,
            )

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Ends the turn with the handoff's message."""
        return ActionResult(content=self.by_name[call.action].message, ends_turn=True)


def _handoff(given: Handoff | str) -> Handoff:
    if isinstance(given, str):
        return Handoff(target=given)
    if isinstance(given, Handoff):  # pyright: ignore[reportUnnecessaryIsInstance] - from outside
        return given
    raise ConfigurationError(
        f"Unsupported handoff type: {given!r} is no handoff. Give an agent's name, or a Handoff."
    )


# ---- Live events, while a phase still runs: pieces of text, tools at work ----


Shown = BaseAgentEvent | BaseChatMessage


class LiveEvents:
    """Events of the current turn that have not been shown yet.

    Args:
        agent: The agent's name.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._waiting: deque[Shown] = deque()
        self._wake: Callable[[], None] = lambda: None
        self._written: list[str] = []
        self._usage = TokenUsage()
        self.call_ids: dict[str, str] = {}
        """What the model calls the turn's tool calls, by the intent's id, where it has a name."""
        self.message_id = ""
        """Id of the answer that is being written."""

    def begin(self) -> None:
        """A new turn: nothing is waiting, nothing was written."""
        self._waiting.clear()
        self._written.clear()
        self._usage = TokenUsage()
        self.call_ids.clear()
        self.message_id = str(uuid.uuid4())

    def on_text(self, piece: str) -> None:
        """A piece of the answer was written."""
        self._written.append(piece)
        self.show(self.chunk(piece))

    def chunk(self, piece: str) -> ModelClientStreamingChunkEvent:
        """A piece of the answer as an event."""
        return ModelClientStreamingChunkEvent(
            content=piece, source=self._agent, full_message_id=self.message_id
        )

    def on_calls(self, calls: Sequence[ActionCall]) -> None:
        """Tools are about to be called."""
        if not calls:
            return
        self.call_ids.update({call.id: call.call_id for call in calls if call.call_id})
        content = [
            FunctionCall(
                id=call.call_id or call.id,
                name=call.action,
                arguments=call_arguments(call.arguments),
            )
            for call in calls
        ]
        usage = self.take_usage()
        self.show(ToolCallRequestEvent(content=content, source=self._agent, models_usage=usage))

    def use(self, usage: TokenUsage) -> None:
        """Adds the usage of model calls, which the next message is to report."""
        self._usage += usage

    def take_usage(self) -> RequestUsage | None:
        """The usage that no message has reported yet; None if there is none."""
        used, self._usage = self._usage, TokenUsage()
        return request_usage(used)

    def on_tool_event(self, event: object) -> None:
        """A streaming tool, e.g. another agent, shows what it does."""
        if isinstance(event, BaseAgentEvent | BaseChatMessage):
            self.show(event)

    def show(self, event: Shown) -> None:
        """Queues an event and wakes whoever waits for one."""
        self._waiting.append(event)
        self.wake()

    def wake(self) -> None:
        """Wakes whoever waits in `until`."""
        self._wake()

    def take(self) -> list[Shown]:
        """What has come since the last time."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def answer_id(self, text: str) -> tuple[str, bool]:
        """The id for an answer with this text, and whether its text was shown already.

        A text that was written and is not the answer keeps its id to itself.
        """
        if not self._written:
            return self.message_id, False
        if "".join(self._written) == text:
            return self.message_id, True
        self.message_id = str(uuid.uuid4())
        return self.message_id, False

    async def until(self, task: asyncio.Task[object]) -> None:
        """Waits until there is something to show, or the task is done."""
        wake = asyncio.Event()
        self._wake = wake.set
        task.add_done_callback(lambda _: wake.set())
        try:
            if not self._waiting and not task.done():
                await wake.wait()
        finally:
            self._wake = lambda: None


# ---- The message that ends a turn, and what a foreign context gets of the dialogue ----


CARRIED = 20
"""Tool calls of the turn that a handoff carries along, the last ones."""


@dataclass(frozen=True, slots=True)
class ResponseBuilder:
    """Builds the response of a turn, and passes the dialogue on to a foreign context."""

    given: AgentArguments
    context: CoagContext[Any]
    handoffs: Handoffs
    live: LiveEvents

    @property
    def message_types(self) -> tuple[type[BaseChatMessage], ...]:
        """What the agent's turns can end with. Swarm looks for `HandoffMessage` itself."""
        kind = self.given.output_content_type
        return (
            *((StructuredMessage[kind],) if kind is not None else ()),
            TextMessage,
            ToolCallSummaryMessage,
            *((HandoffMessage,) if self.handoffs.by_name else ()),
        )

    async def pass_on(self, message: BaseChatMessage) -> None:
        """Adds an arriving message to the context that decides what of the dialogue is shown."""
        foreign = self.context.dialogue_source
        if foreign is not None:
            await foreign.add_message(message.to_model_message())

    async def pass_on_calls(self, outcome: ExecutionOutcome, outputs: Mapping[str, str]) -> None:
        """Adds tool calls and their results together, so that no call is without a result."""
        foreign = self.context.dialogue_source
        ran = external_calls(outcome)
        if foreign is None or not ran:
            return
        calls, results = calls_and_results(ran, outputs, self.live.call_ids)
        self.context.note_own_calls(call.id for call in calls)
        await foreign.add_message(self._own_message(calls))
        await foreign.add_message(FunctionExecutionResultMessage(content=results))

    def _own_message(self, content: str | list[FunctionCall]) -> AssistantMessage:
        thought = self.context.thought or None
        return AssistantMessage(content=content, thought=thought, source=self.given.name)

    async def answer(
        self,
        result: TurnResult,
        done: Sequence[Executed],
        outputs: Mapping[str, str],
        message_id: str,
        may_say: Callable[[str], bool],
    ) -> BaseChatMessage:
        """The answer of a turn: in the form that was asked for, a handoff, or a summary.

        Args:
            result: How the turn ended.
            done: The tool calls of the turn.
            outputs: Whole outputs of the last cycle's tools, where the outcome holds them cut.
            message_id: The id of the answer.
            may_say: Whether the rules let a text leave the turn.
        """
        metadata = {"ended_by": result.reason, "cycles": str(result.cycles)}
        if result.failed_modules:
            metadata["failed_modules"] = ", ".join(result.failed_modules)
        if self.context.dialogue_source is not None:
            await self.context.dialogue_source.add_message(self._own_message(result.response))
        last = result.last
        handoff = self.handoffs.by_name.get((last.ended_by if last else None) or "")
        if handoff is not None:
            own = [one for one in done if one.intent_id not in result.anothers]
            return self._handoff(handoff, own, metadata, may_say)
        cut_off = not result.answered and not result.withheld
        if result.reason == "actions" and last is not None and cut_off:
            summary = self._summary(external_calls(last), outputs, metadata)
            if may_say(summary.to_text()):
                return summary
        if result.answered and self.given.output_content_type is not None:
            kind = self.given.output_content_type
            return StructuredMessage[kind](
                content=kind.model_validate_json(result.response),
                format_string=self.given.output_content_type_format,
                source=self.given.name,
                metadata=metadata,
                id=message_id,
            )
        message = TextMessage(content=result.response, source=self.given.name, metadata=metadata)
        return message.model_copy(update={"id": message_id}) if result.answered else message

    def _summary(
        self, ran: Sequence[Executed], outputs: Mapping[str, str], metadata: dict[str, str]
    ) -> ToolCallSummaryMessage:
        """How the answer reads where a turn ends with an action, as in AssistantAgent."""
        calls, results = calls_and_results(ran, outputs, self.live.call_ids)
        form = self.given.tool_call_summary_formatter or self._summary_text
        return ToolCallSummaryMessage(
            content="\n".join(map(form, calls, results)),
            source=self.given.name,
            tool_calls=calls,
            results=results,
            metadata=metadata,
        )

    def _summary_text(self, call: FunctionCall, result: FunctionExecutionResult) -> str:
        text = self.given.tool_call_summary_format
        text = text.replace("{tool_name}", call.name).replace("{arguments}", call.arguments)
        text = text.replace("{is_error}", str(result.is_error))
        return text.replace("{result}", result.content)

    def _handoff(
        self,
        handoff: Handoff,
        done: Sequence[Executed],
        metadata: dict[str, str],
        may_say: Callable[[str], bool],
    ) -> HandoffMessage:
        """The developer's message; with it go the last calls and results that the rules let out."""
        carried = [
            one
            for one in done[-CARRIED:]
            if may_say(one.result) and may_say(function_call(one).arguments)
        ]
        context: list[LLMMessage] = []
        if carried:
            calls, results = calls_and_results(carried, {}, self.live.call_ids)
            context = [
                AssistantMessage(content=calls, source=self.given.name),
                FunctionExecutionResultMessage(content=results),
            ]
        return HandoffMessage(
            content=handoff.message,
            target=handoff.target,
            source=self.given.name,
            context=context,
            metadata=metadata,
        )


# ---- A phase's outcome as stock AutoGen events ----
#
# The text of an event is our own sentence (names, verdicts, counts), never the model's: teams end
# on words they find in events. What the model wrote is in the metadata. A thought that the client
# itself separates is the exception: it is shown as it is, as AssistantAgent does.
#
# Names of tools and constraints may come from elsewhere (an MCP server, say). In a sentence they
# are short, without control characters, and without square brackets: `RichConsole` takes those
# for markup and may raise.


_EVENTS = logging.getLogger(EVENT_LOGGER_NAME)
METADATA_CHARACTERS = 4_000
PHASE_LISTENER: ContextVar[Callable[[ThoughtEvent], None] | None] = ContextVar(
    "coag_phase_listener", default=None
)
"""Gets every phase of agents that run in this context and show none (`events="stock"`)."""
_NAME = 80
"""Characters of a name in a sentence."""
_UNKNOWN = "an unknown action"
_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMapper:
    """Maps an agent's outcomes to AutoGen events."""

    source: str
    """The agent's name."""
    native: bool
    """True if the model's own tool calls are its proposals: each is answered with a result."""
    handoffs: Collection[str]
    """Names of the actions that hand over to another agent."""
    phases: bool = False
    """True to show every phase as a `ThoughtEvent`, with its usage."""
    live: LiveEvents
    """Holds the model's ids of its calls, and the usage that no message has reported yet."""

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
        ran = external_calls(outcome)
        events: list[BaseAgentEvent] = []
        if ran:
            _, results = calls_and_results(ran, outputs, self.live.call_ids)
            events.append(ToolCallExecutionEvent(content=results, source=self.source))
        handed = [done for done in outcome.executed if done.action in self.handoffs]
        if ran or not handed:
            return events
        return [*events, *self._pair(*calls_and_results(handed, {}, _ids(memory)))]

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
    usage = request_usage(outcome.usage)
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
    """Writes tool calls and results to AutoGen's event log, as AssistantAgent does."""
    if isinstance(event, ToolCallRequestEvent | ToolCallExecutionEvent):
        _EVENTS.debug(event)
