"""What a turn shows as AutoGen's events and messages."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
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
from coag.cycle import GuardedActions, TurnResult
from coag.errors import ConfigurationError
from coag.models import request_usage
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


def call_arguments(arguments: Mapping[str, Any] | None) -> str:
    """Arguments as AutoGen's calls carry them."""
    return json.dumps(dict(arguments or {}), ensure_ascii=False)


def calls_and_results(
    ran: Sequence[Executed], outputs: Mapping[str, str], ids: Mapping[str, str]
) -> tuple[list[FunctionCall], list[FunctionExecutionResult]]:
    """Executed actions as AutoGen's tool calls, and their results in the same order."""
    calls: list[FunctionCall] = []
    results: list[FunctionExecutionResult] = []
    for done in ran:
        own = done.intent_id or done.candidate_id or ""
        call_id, name = ids.get(own, own), done.action
        failed = done.status is not ExecutionStatus.DONE
        text = outputs.get(done.intent_id or "", done.result)
        calls.append(FunctionCall(id=call_id, name=name, arguments=call_arguments(done.arguments)))
        results.append(
            FunctionExecutionResult(content=text, name=name, call_id=call_id, is_error=failed)
        )
    return calls, results


def external_calls(outcome: ExecutionOutcome) -> list[Executed]:
    """The actions of an outcome that are tool calls for AutoGen."""
    return [one for one in outcome.executed if one.intent_id is not None]


# ---- Handoffs: actions that end the turn and give the conversation to another agent ----


_NO_ARGUMENTS = {"type": "object", "properties": dict[str, object]()}


class Handoffs:
    """The agents that this one can hand over to, as internal actions."""

    def __init__(self, targets: Sequence[Handoff | str], tools: Sequence[str] = ()) -> None:
        handoffs = [Handoff(target=one) if isinstance(one, str) else one for one in targets]
        for one in handoffs:
            if not isinstance(one, Handoff):  # pyright: ignore[reportUnnecessaryIsInstance] - from outside
                problem = f"Unsupported handoff type: {one!r} is no handoff"
                raise ConfigurationError(f"{problem}. Give an agent's name, or a Handoff.")
        self.by_name: Mapping[str, Handoff] = {one.name: one for one in handoffs}
        names = [one.name for one in handoffs]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"Handoff names must be unique; given twice: {doubled}.")
        if taken := sorted(set(names).intersection({*tools, *RESERVED})):
            problem = f"These handoffs have names that a tool or an own action has: {taken}"
            raise ConfigurationError(f"{problem}. Give Handoff(target=..., name=...) another.")

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


# ---- Live events, while a phase still runs: pieces of text, tools at work ----


Shown = BaseAgentEvent | BaseChatMessage


def _nobody() -> None:
    """Wakes nobody."""


class LiveEvents:
    """Events of the current turn that have not been shown yet."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._waiting: list[Shown] = []
        self.wake: Callable[[], None] = _nobody
        """Wakes a waiting `until`."""
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

    def begin_text(self) -> Callable[[str], None]:
        """The model is asked; gives what shows the pieces of its text, a message of its own."""
        if self._written:
            self._written.clear()
            self.message_id = str(uuid.uuid4())
        return self._on_text

    def _on_text(self, piece: str) -> None:
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
        return request_usage(used) if used.calls else None

    def on_tool_event(self, event: object) -> None:
        """A streaming tool, e.g. another agent, shows what it does."""
        if isinstance(event, BaseAgentEvent | BaseChatMessage):
            self.show(event)

    def show(self, event: Shown) -> None:
        """Queues an event and wakes who waits for one."""
        self._waiting.append(event)
        self.wake()

    def take(self) -> list[Shown]:
        """What has come since the last time."""
        taken, self._waiting = self._waiting, []
        return taken

    def answer_id(self, text: str) -> tuple[str, bool]:
        """The id for an answer with this text, and whether its text was shown already.

        A text that was written and does not end with the answer keeps its id to itself.
        """
        written = bool(self._written)
        same = bool(text) and "".join(self._written).endswith(text)
        if written and not same:
            self.message_id = str(uuid.uuid4())
        return self.message_id, written and same

    async def until(self, task: asyncio.Task[object]) -> None:
        """Waits until there is something to show, or the task is done."""
        woken = asyncio.Event()
        self.wake = woken.set
        task.add_done_callback(lambda _: woken.set())
        try:
            if not self._waiting and not task.done():
                await woken.wait()
        finally:
            self.wake = _nobody


# ---- What was committed as AutoGen's events, and the message that ends a turn ----
#
# The text of an event is our own sentence (names, verdicts, counts), never the model's: teams end
# on words they find in events. What the model wrote is in the metadata. A thought that the client
# itself separates is the exception: it is shown as it is, as AssistantAgent does.


_EVENTS = logging.getLogger(EVENT_LOGGER_NAME)
PHASE_LISTENER: ContextVar[Callable[[ThoughtEvent], None] | None] = ContextVar(
    "coag_phase_listener", default=None
)
"""Gets every phase of agents that run in this context and show none (`events="stock"`)."""
METADATA_CHARACTERS = 4_000
CARRIED = 20
"""Tool calls of the turn that a handoff carries along, the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMapper:
    """Maps what an agent does to AutoGen's messages, and passes them on to a foreign context."""

    given: AgentArguments
    context: CoagContext[Any]
    handoffs: Handoffs
    live: LiveEvents
    """Holds the model's ids of its calls, and the usage that no message has reported yet."""
    native: bool
    """True if the model's own tool calls are its proposals: each is answered with a result."""
    actions: GuardedActions
    """Has the names of the actions that exist; others are not repeated in event texts. And the
    whole outputs of tools by call, where an outcome holds them cut."""

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
        if self.context.dialogue_source is not None:
            await self.context.dialogue_source.add_message(message.to_model_message())

    async def events_of(self, outcome: Outcome, calls: list[Executed]) -> list[BaseAgentEvent]:
        """The events that show an outcome, in order; its tool calls are added to `calls`."""
        if isinstance(outcome, ExecutionOutcome):
            calls += external_calls(outcome)
            await self._pass_on_calls(external_calls(outcome))
        if isinstance(outcome, ProposalOutcome):
            self.handoffs.warn_of_several([one.action for one in outcome.candidates])
        phases, listener = self.given.events == "phases", PHASE_LISTENER.get()
        if not phases:
            self.live.use(outcome.usage)
        own = self._own_events(outcome)
        if isinstance(outcome, ExecutionOutcome) and own:
            return own
        if not phases and listener is None:
            return own
        known = await self.actions.specs()
        phase = _phase_event(outcome, self.context.working_memory, self.given.name, known)
        if not phases:
            if listener is not None:
                listener(phase)
            return own
        first = isinstance(outcome, EvaluationOutcome | RetrievalOutcome)
        return [phase, *own] if first else [*own, phase]

    async def _pass_on_calls(self, ran: Sequence[Executed]) -> None:
        """Adds tool calls and their results together, so that no call is without a result."""
        foreign = self.context.dialogue_source
        if foreign is None or not ran:
            return
        calls, results = calls_and_results(ran, self.actions.outputs, self.live.call_ids)
        self.context.note_own_calls(call.id for call in calls)
        await foreign.add_message(self._own_message(calls))
        await foreign.add_message(FunctionExecutionResultMessage(content=results))

    def _own_message(self, content: str | list[FunctionCall]) -> AssistantMessage:
        thought = self.context.working_memory.cognitive_state.thought or None
        return AssistantMessage(content=content, thought=thought, source=self.given.name)

    def _own_events(self, outcome: Outcome) -> list[BaseAgentEvent]:
        """What AssistantAgent would show of it, too."""
        match outcome:
            case RetrievalOutcome() if outcome.records:
                return [_memory_event(outcome, self.given.name)]
            case ReasoningOutcome() | ProposalOutcome() if outcome.thought:
                return [ThoughtEvent(content=outcome.thought, source=self.given.name)]
            case EvaluationOutcome() if self.native:
                return self._rejected(outcome)
            case ExecutionOutcome():
                return self._tool_events(outcome)
            case _:
                return []

    def _tool_events(self, outcome: ExecutionOutcome) -> list[BaseAgentEvent]:
        """Results of the tools, whose calls were shown when they began; else handoffs."""
        if ran := external_calls(outcome):
            _, results = calls_and_results(ran, self.actions.outputs, self.live.call_ids)
            return [ToolCallExecutionEvent(content=results, source=self.given.name)]
        handed = [done for done in outcome.executed if done.action in self.handoffs.by_name]
        ids = {one.id: one.call_id for one in self._candidates() if one.call_id}
        return self._pair(*calls_and_results(handed, {}, ids))

    def _rejected(self, outcome: EvaluationOutcome) -> list[BaseAgentEvent]:
        """Tool calls of the model that did not survive, each answered with the reason."""
        by_id = {one.id: one for one in self._candidates()}
        calls: list[FunctionCall] = []
        results: list[FunctionExecutionResult] = []
        for judged in outcome.evaluations:
            if (verdict := judged.rejected_by) is None:
                continue
            one = by_id[judged.candidate_id]
            call_id, name = one.call_id or one.id, one.action
            why = f"Rejected by {verdict.constraint}: {verdict.reason}"
            calls.append(FunctionCall(id=call_id, name=name, arguments=one.raw_arguments))
            results.append(
                FunctionExecutionResult(content=why, name=name, call_id=call_id, is_error=True)
            )
        return self._pair(calls, results)

    def _candidates(self) -> tuple[Candidate, ...]:
        proposal = self.context.working_memory.cognitive_state.proposal
        return proposal.candidates if proposal else ()

    def _pair(
        self, calls: list[FunctionCall], results: list[FunctionExecutionResult]
    ) -> list[BaseAgentEvent]:
        if not calls:
            return []
        usage = None if self.given.events == "phases" else self.live.take_usage()
        return [
            ToolCallRequestEvent(content=calls, source=self.given.name, models_usage=usage),
            ToolCallExecutionEvent(content=results, source=self.given.name),
        ]

    async def answer(
        self,
        result: TurnResult,
        done: Sequence[Executed],
        message_id: str,
        may_say: Callable[[str], bool],
    ) -> BaseChatMessage:
        """The answer of a turn: in the form that was asked for, a handoff, or a summary."""
        common: dict[str, Any] = {"source": self.given.name}
        common["metadata"] = {"ended_by": result.reason, "cycles": str(result.cycles)}
        if result.failed_modules:
            common["metadata"]["failed_modules"] = ", ".join(result.failed_modules)
        if self.context.dialogue_source is not None:
            await self.context.dialogue_source.add_message(self._own_message(result.response))
        last, kind = result.last, self.given.output_content_type
        handoff = self.handoffs.by_name.get((last.ended_by if last else None) or "")
        if handoff is not None:
            own = [one for one in done if one.intent_id not in result.anothers]
            context = self._carried(own, may_say)
            text, target = handoff.message, handoff.target
            return HandoffMessage(content=text, target=target, context=context, **common)
        cut_off = not result.answered and not result.withheld
        if result.reason == "actions" and last is not None and cut_off:
            ran = external_calls(last)
            calls, results = calls_and_results(ran, self.actions.outputs, self.live.call_ids)
            form = self.given.tool_call_summary_formatter or self._summary_text
            text = "\n".join(map(form, calls, results))
            if may_say(text):
                return ToolCallSummaryMessage(
                    content=text, tool_calls=calls, results=results, **common
                )
        if not result.answered:
            return TextMessage(content=result.response, **common)
        if kind is None:
            return TextMessage(content=result.response, id=message_id, **common)
        return StructuredMessage[kind](
            content=kind.model_validate_json(result.response),
            format_string=self.given.output_content_type_format,
            id=message_id,
            **common,
        )

    def _summary_text(self, call: FunctionCall, result: FunctionExecutionResult) -> str:
        """How the answer reads where a turn ends with an action, as in AssistantAgent."""
        text = self.given.tool_call_summary_format
        text = text.replace("{tool_name}", call.name).replace("{arguments}", call.arguments)
        return text.replace("{is_error}", str(result.is_error)).replace("{result}", result.content)

    def _carried(
        self, done: Sequence[Executed], may_say: Callable[[str], bool]
    ) -> list[LLMMessage]:
        """The last calls and results that the rules let out, which go with a handoff."""
        carried = [
            one
            for one in done[-CARRIED:]
            if may_say(one.result) and may_say(call_arguments(one.arguments))
        ]
        if not carried:
            return []
        calls, results = calls_and_results(carried, {}, self.live.call_ids)
        return [
            AssistantMessage(content=calls, source=self.given.name),
            FunctionExecutionResultMessage(content=results),
        ]


def _memory_event(outcome: RetrievalOutcome, source: str) -> MemoryQueryEvent:
    content = [
        MemoryContent(
            content=hit.record.text,
            mime_type=MemoryMimeType.TEXT,
            metadata={"id": hit.record.id, "score": hit.score, "kind": hit.record.kind.value},
        )
        for hit in outcome.records
    ]
    return MemoryQueryEvent(source=source, content=content)


# ---- A phase as a thought ----
#
# Names of tools and constraints may come from elsewhere (an MCP server, say). In a sentence they
# are short, without control characters, and without square brackets: `RichConsole` takes those
# for markup and may raise.


_NAME = 80
"""Characters of a name in a sentence."""
_NONE = "nothing"
_BRACKETS = str.maketrans("[]", "()")


def _plain(name: str) -> str:
    return one_line(name, _NAME).translate(_BRACKETS)


def _phase_event(
    outcome: Outcome, memory: WorkingMemory, source: str, known: Collection[str]
) -> ThoughtEvent:
    text, detail = _sentence(outcome, memory, known)
    metadata = {"phase": outcome.phase.value, "cycle": str(outcome.cycle)}
    if detail:
        metadata["detail"] = detail[:METADATA_CHARACTERS]
    usage = request_usage(outcome.usage) if outcome.usage.calls else None
    return ThoughtEvent(content=text, source=source, models_usage=usage, metadata=metadata)


def _sentence(outcome: Outcome, memory: WorkingMemory, known: Collection[str]) -> tuple[str, str]:
    proposal = memory.cognitive_state.proposal
    names = {
        one.id: _plain(one.action) if one.action in known else "an unknown action"
        for one in (proposal.candidates if proposal else ())
    }
    match outcome:
        case RetrievalOutcome():
            return f"Retrieval: {len(outcome.records)} record(s) recalled.", outcome.query
        case ReasoningOutcome():
            text = f"Reasoning: the goal is {outcome.goal_status.value}, "
            return text + f"{len(outcome.risks)} risk(s) seen.", outcome.situation
        case ProposalOutcome():
            named = ": " + ", ".join(names.values()) if names else ""
            detail = json.dumps([c.model_dump(exclude_none=True) for c in outcome.candidates])
            return f"Proposal: {len(outcome.candidates)} candidate(s){named}.", detail
        case EvaluationOutcome():
            judged = outcome.evaluations
            text = f"{sum(one.survived for one in judged)} of {len(judged)} candidate(s) survived"
            deaths = [
                f"{names.get(one.candidate_id, _NONE)} rejected by {_plain(by.constraint)}"
                for one in judged
                if (by := one.rejected_by) is not None
            ]
            dumped = [one.model_dump(mode="json", exclude_none=True) for one in judged]
            return f"Evaluation: {'; '.join([text, *deaths])}.", json.dumps(dumped)
        case SelectionOutcome():
            if outcome.decided_by is None:
                return "Selection: an impasse, no candidate survived.", outcome.reason
            action = ", ".join(names.get(one, _NONE) for one in outcome.chosen)
            return f"Selection: {action}, decided by {outcome.decided_by.value}.", outcome.reason
        case ExecutionOutcome():
            ran = [_plain(done.action) for done in outcome.executed if done.action in known]
            action = ", ".join(ran) or _NONE
            return f"Execution: {action}, {outcome.status.value}.", outcome.result


def log_event(event: BaseAgentEvent | BaseChatMessage) -> None:
    """Writes tool calls and results to AutoGen's event log, as AssistantAgent does."""
    if isinstance(event, ToolCallRequestEvent | ToolCallExecutionEvent):
        _EVENTS.debug(event)
