"""Doubles of models, rules, environment, memory and approvers: they answer from the tape."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, cast

from coag.agent import Mind
from coag.compat import ended_as
from coag.context import WorkingMemory
from coag.cycle import (
    IDEMPOTENCY_KEY,
    NOT_OFFERED,
    OFFER,
    ApprovalAnswer,
    ApprovalRequest,
    ConstraintSet,
    perceive,
)
from coag.memory import EPISODIC_ACTION, SEMANTIC_ACTION, LongTermMemory, Recall
from coag.schema import (
    UNPERCEIVED,
    ActionCall,
    ActionResult,
    ActionsListed,
    ActionSource,
    ActionSpace,
    ActionSpec,
    AnswerDetails,
    Candidate,
    CompletesArguments,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    ModelCall,
    Note,
    Percept,
    PerceptKind,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    Reconciliation,
    Record,
    RetrievalOutcome,
    Snapshot,
    TraceRecord,
    TurnEnd,
    UnsettledAction,
    Verdict,
    Written,
    parsed_arguments,
)
from coag.store import short_id

from .findings import HOOKED
from .tape import CANCELLED, CheckingSink, Tape, cancelled_in

_PATIENCE = 2_000
"""Rounds of the event loop in which a record that must come first may come."""
_NUMBER = re.compile(r"([a-z]+)-(\d{6,})$")
_DROPPED = re.compile(r"(\d+) tool calls of one answer were too many")


class Stage:
    """What the doubles share: the tape, the mind they are around, and what arrives meanwhile.

    It is itself the double of models, approver, the environment's actions, and sensing modules.
    """

    mind: Mind
    own: ActionSpace
    """The actions that the agent's own code describes."""

    def __init__(self, sink: CheckingSink, listed: list[ActionSpec]) -> None:
        self.sink = sink
        self.tape = sink.tape
        self.answered = False
        """Whether a module did not act, so that its state is not what it became."""
        self._listed = listed

    @property
    def memory(self) -> WorkingMemory:
        """The mind's working memory."""
        return self.mind.context.working_memory

    async def perceive(self, percept: Percept) -> None:
        """Perceives what came from outside."""
        self.count([percept])
        await perceive([bare(percept)], self.mind.context, self.mind.deps)

    def count(self, percepts: Iterable[Percept]) -> None:
        """Counts the ids of what came from outside."""
        for percept in percepts:
            if match := _NUMBER.fullmatch(percept.id):
                self.mind.deps.ids.load({match[1]: int(match[2])})

    async def take_percepts(self) -> Sequence[Percept]:
        """What arrived before the cycle that begins."""
        self.sink.settle()
        arrived = takewhile(self.is_input, self.tape.ahead())
        percepts = [one for one in arrived if isinstance(one, Percept)]
        self.count(percepts)
        return [bare(one) for one in percepts]

    async def pause(self) -> None:
        """Waits as the original waited: others run, and what arrives meanwhile is perceived."""
        await asyncio.sleep(0)
        self.sink.check()
        self.sink.settle()
        while self.is_input(head := self.tape.head) and isinstance(head, Percept):
            await self.perceive(head)
            self.sink.settle()

    def is_input(self, record: TraceRecord | None) -> bool:
        """Whether it is a percept that no execution brought."""
        queued = (percept.id for percept in self.memory.queued)
        return isinstance(record, Percept) and record.id not in queued

    async def until(self, due: Callable[[TraceRecord | None], bool], what: str) -> None:
        """Waits until what is next on the tape is due, because others come before."""
        for _ in range(_PATIENCE):
            await self.pause()
            if due(self.tape.head):
                return
        head = self.tape.head
        recorded = "the end" if head is None else head.record
        self.sink.diverge("record", recorded, f"{what}, which is not next on the tape")

    def executed_as(self, call: ActionCall) -> Executed | None:
        """How the recorded Execution has a call."""
        outcome = self.tape.next_of(ExecutionOutcome)
        done = outcome.executed if outcome is not None else ()
        by_id = [each for each in done if each.intent_id == call.id]
        alike = [e for e in done if e.action == call.action and e.arguments == call.arguments]
        return next(iter(by_id or alike), None)

    # ---- what came back of an action ----

    async def brought(self, call: ActionCall) -> ActionResult:
        """What a begun action brought back then; raises what broke it off."""
        receipts = (r for r in self.tape.in_cycle() if isinstance(r, Receipt))
        receipt = next((each for each in receipts if each.intent_id == call.id), None)
        if receipt is None:
            await self.until(lambda head: not isinstance(head, Receipt), "a receipt")
            self.sink.diverge("record", "no receipt", f"the receipt of {call.action} ({call.id})")
        await self.until(lambda head: head is receipt, f"the receipt of {call.action}")
        was, ended = self.executed_as(call), self.tape.next_of(ExecutionOutcome)
        self._break_off(was, receipt)
        brought = [] if ended is None else _percepts_of(call, ended)
        returned = brought[0] if brought and brought[0].caused_by == call.id else None
        failed = was.status is ExecutionStatus.FAILED if was else receipt.failure is not None
        return ActionResult(
            content=receipt.content,
            data=returned.data if returned else None,
            is_error=returned.is_error if returned else failed,
            failure=receipt.failure,
            outcome_unknown=receipt.status is ReceiptStatus.UNKNOWN,
            nothing_done=returned is None or not returned.counts,
            percepts=tuple(brought[1:] if returned else brought),
            ends_turn=ended is not None and ended.ended_by == call.action,
            suspends=ended is not None and ended.suspended and ended.ended_by == call.action,
        )

    def _break_off(self, was: Executed | None, receipt: Receipt) -> None:
        if receipt.status is ReceiptStatus.CANCELLED:
            raise asyncio.CancelledError
        if was is None or not was.result.startswith(CANCELLED):
            return
        end = next((r for r in self.tape.in_turn() if isinstance(r, TurnEnd)), None)
        error = end.response.removeprefix("The turn broke off: ") if end else "KeyboardInterrupt: "
        name, _, text = error.partition(": ")
        raise type(name if name.isidentifier() else "BrokenOff", (BaseException,), {})(text)

    # ---- the environment's actions, listed and answered as they were then ----

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be offered then."""
        return tuple(note.text for note in self.tape.notes("actions"))

    async def specs(self) -> Sequence[ActionSpec]:
        """The actions that there were; those of the agent's own code as it has them now."""
        await self.pause()
        if listed := self.tape.next_of(ActionsListed):
            self._listed[:] = listed.specs
        own = {spec.name: spec for spec in await self.own.specs()}
        then = {spec.name: own.get(spec.name, spec) for spec in self._listed}
        return list((then | own).values())

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that were judged then, also where that was before they were completed."""
        outcome = self.tape.next_of(EvaluationOutcome)
        if outcome is None:
            return arguments  # in Execution, they are those that were evaluated
        plain = {n: v for n, v in arguments.items() if n != IDEMPOTENCY_KEY}
        proposal = self.memory.cognitive_state.proposal
        alike = {
            one.id
            for one in (proposal.candidates if proposal is not None else ())
            if one.action == spec.name and parsed_arguments(one.raw_arguments) == plain
        }
        judged = [one.arguments for one in outcome.evaluations if one.candidate_id in alike]
        if judged and judged[0] is not None:
            return {**judged[0], **{n: v for n, v in arguments.items() if n == IDEMPOTENCY_KEY}}
        if isinstance(self.own, CompletesArguments):
            return self.own.complete(spec, arguments)
        return arguments

    async def execute(self, call: ActionCall) -> ActionResult:
        """What came of it then."""
        result = await self.brought(call)
        self.count(result.percepts)
        return result

    async def reconcile(self, action: UnsettledAction) -> Reconciliation:
        """Nobody is asked: what was found out then is on the tape, as a percept."""
        del action
        await self.pause()
        return "unknown"

    # ---- approvals ----

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The answer that was given then."""
        await self.pause()
        notes = (note for note in self.tape.in_turn() if isinstance(note, Note))
        answers = (
            note
            for note in notes
            if note.about == "approval"
            and note.details.get("request") == request.id
            and note.details.get("what") != "asked"
        )
        answer = next(answers, None)
        if answer is None:
            self.sink.end()
        if answer.details["what"] == "withdrawn":
            await asyncio.Event().wait()  # its waiting caller is about to be cancelled
        by: str = answer.details.get("by", "")
        denied = answer.details["what"] == "denied"
        if denied:
            await self.until(lambda head: head is answer, "the denial of a request")
        expires = datetime.fromisoformat(answer.details["expires_at"])
        self.sink.once(expires - timedelta(seconds=request.approval_seconds))
        if not denied:
            return request.grant(by)
        text = answer.text.removeprefix(f"{request.action}: ")
        return request.deny(by, text.removeprefix(f"{by} denied it: ") if by else text)

    # ---- models: recorded requests answer those of the replay, in their order ----

    async def answer(self) -> ModelCall:
        """The request that is next on the tape, with what the records around it say."""
        await self.pause()
        call = self.tape.head
        if call is None:
            self.sink.end()
        if not isinstance(call, ModelCall):
            self.sink.diverge("record", call.record, "a request to a model")
        if ended_as(call) == "cancelled" and cancelled_in(tuple(self.tape.in_turn())):
            await self.sink.interrupt()
        again = self.upcoming()[1:2]  # the same question once more on a looser rung: refused
        refused = any(
            (one.attempt, one.expected) == (call.attempt, call.expected)
            and one.rung is not call.rung
            for one in again
        )
        given = call.given or AnswerDetails(ended=ended_as(call))
        changes = {"thought": given.thought or self._thought()}
        details = given.model_copy(update=changes | ({"fault": "refused"} if refused else {}))
        calls = (*call.tool_calls, *(call.tool_calls[-1:] * self._dropped()))
        return call.model_copy(update={"given": details, "tool_calls": calls})

    def upcoming(self) -> Sequence[ModelCall]:
        """The requests up to the phase's outcome that ask for the same form."""
        calls = [record for record in self._in_phase() if isinstance(record, ModelCall)]
        return [call for call in calls if call.expected == calls[0].expected]

    def _in_phase(self) -> Iterable[TraceRecord]:
        return takewhile(lambda record: record.record != "outcome", self.tape.in_cycle())

    def _thought(self) -> str:
        for record in self.tape.in_cycle():
            if isinstance(record, ReasoningOutcome | ProposalOutcome):
                return record.thought
        return ""

    def _dropped(self) -> int:
        for record in self._in_phase():
            if isinstance(record, Note) and (match := _DROPPED.match(record.text)):
                return int(match[1])
        return 0


def bare(percept: Percept) -> Percept:
    """A percept as it came, without what perceiving it adds."""
    patch = percept.state_patch if percept.kind not in HOOKED and percept.state_patch else None
    return percept.model_copy(update={**UNPERCEIVED, "state_patch": patch})


def _percepts_of(call: ActionCall, outcome: ExecutionOutcome) -> list[Percept]:
    """The percepts that a call brought: its return, if that is one, and what came with it."""
    own: list[Percept] = []
    others = {each.intent_id for each in outcome.executed} - {call.id, None}
    mine = len(outcome.executed) == 1
    for percept in outcome.queued:
        returned = percept.kind in (PerceptKind.TOOL_RETURN, PerceptKind.UNKNOWN_OUTCOME)
        if percept.caused_by == call.id and returned:
            mine = True
        elif percept.caused_by in others or percept.kind is PerceptKind.IMPASSE:
            mine = False
        if mine:
            own.append(percept)
    return own


# ---- Memory, and sources of internal actions ----


class TapeMemory(LongTermMemory):
    """A memory in RAM whose recall is the recorded one."""

    stage: Stage

    async def recall(self, query: str, **options: Any) -> Recall:
        """What was recalled then; the outcome shows whether the query is the same."""
        del query, options
        await self.stage.pause()
        outcome = self.stage.tape.next_of(RetrievalOutcome)
        if outcome is None:
            return Recall()
        await self.keep(hit.record for hit in outcome.records)
        problems = [note.text for note in self.stage.tape.notes("memory")]
        return Recall(records=outcome.records, problems=tuple(problems), left_out=outcome.left_out)

    async def keep(self, records: Iterable[Record]) -> None:
        """Makes the memory hold records that the tape shows."""
        for record in records:
            if not await self.store.get([record.id]):
                await self.store.add([record])


class TapeSource:
    """A source of internal actions: what acts on the agent itself runs, the rest is answered."""

    def __init__(self, source: ActionSource, stage: Stage, memory: TapeMemory) -> None:
        self._source = source
        self._stage = stage
        self._memory = memory

    def action_specs(self) -> Sequence[ActionSpec]:
        """The actions of the source."""
        return self._source.action_specs()

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Runs or answers one of them."""
        specs = {spec.name: spec for spec in self.action_specs()}
        if call.action in specs and not specs[call.action].repeatable:
            result = await self._stage.execute(call)
            self._stage.answered = True
            self._stage.sink.remark(
                f"What {call.action} of a module did in cycle {self._stage.sink.cycle}, and the "
                "states of modules after it."
            )
            return result
        was = self._stage.executed_as(call)
        if was is not None and was.result.startswith(CANCELLED):
            raise asyncio.CancelledError
        if call.action in (EPISODIC_ACTION, SEMANTIC_ACTION):
            return await self._remember(call, was)
        return await self._source.run_action(call)

    async def _remember(self, call: ActionCall, was: Executed | None) -> ActionResult:
        """Remembers; the recorded result where the recorded memory knew what the tape does not."""
        sink, tape = self._stage.sink, self._stage.tape
        with sink.holding() as held:
            result = await self._source.run_action(call)
        sink.settle()
        head = tape.head
        written = None
        if was is not None and isinstance(head, Written) and head.what == "record":
            written = head if f" id {short_id(head.id)})" in was.result else None
        theirs = [] if written is None else [written.id]
        ours = [record.id for record in held if isinstance(record, Written)]
        if was is None or (theirs == ours and (ours or was.result == result.content)):
            for record in held:
                sink.write(record)
            return result
        sink.remark(
            f"The result of {call.action} in cycle {sink.cycle}: it is based on records of "
            "long-term memory that the trace does not show."
        )
        if written is not None:
            sink.accept()
            with suppress(ValueError):
                await self._memory.keep([Record.model_validate(written.content)])
        failed = was.status is ExecutionStatus.FAILED
        failure = _failure_of(tape, was) if failed else None
        return ActionResult(content=was.result, is_error=failed, failure=failure)


def _failure_of(tape: Tape, was: Executed) -> Failure:
    """Whether repeating a failed action could have helped: the next snapshot says so."""
    following = next((r for r in tape.ahead() if isinstance(r, Snapshot)), None)
    failed = following.detector.values() if following is not None else ()
    failures = (each["failure"] for each in failed if each["text"] == was.result[:200])
    return Failure(next(failures, Failure.DETERMINISTIC))


# ---- Rules that were put in or out of force from outside ----


class RecordedRule:
    """A constraint that no longer exists: it gives the recorded verdicts."""

    def __init__(self, name: str, tape: Tape) -> None:
        self.name = name
        self._tape = tape

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """The recorded verdict."""
        if candidate.id == OFFER:
            return self._offered(candidate)
        for record in self._tape.in_cycle():
            if isinstance(record, EvaluationOutcome):
                return self._evaluated(candidate, record)
            if isinstance(record, ExecutionOutcome):
                return self._refused(candidate, record)
        return Verdict.allow()

    def _offered(self, candidate: Candidate) -> Verdict:
        """Before a call is offered, a verdict is only recorded where it forbids."""
        note = next(iter(self._tape.notes(NOT_OFFERED)), None)
        forbidden: Any = None if note is None else note.details.get("forbidden")
        sought = {
            "action": candidate.action,
            "arguments": candidate.raw_arguments,
            "constraint": self.name,
        }
        for each in cast("list[Any]", forbidden) if isinstance(forbidden, list) else []:
            fields = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
            if sought.items() <= fields.items():
                return Verdict.forbid(str(fields.get("reason")))
        return Verdict.allow()

    def _evaluated(self, candidate: Candidate, outcome: EvaluationOutcome) -> Verdict:
        verdicts = (
            verdict
            for evaluation in outcome.evaluations
            if evaluation.candidate_id == candidate.id
            for verdict in evaluation.verdicts
            if verdict.constraint == self.name
        )
        return next(verdicts, Verdict.allow())

    def _refused(self, candidate: Candidate, outcome: ExecutionOutcome) -> Verdict:
        """Right before an action runs, a verdict is only recorded where it forbids."""
        for done in outcome.executed:
            refused = done.status is ExecutionStatus.REFUSED and done.candidate_id == candidate.id
            _, found, reason = done.result.partition(f" {self.name}: ")
            if refused and found:
                return Verdict.forbid(reason)
        return Verdict.allow()


class TapeRules(ConstraintSet):
    """The agent's constraints, with what was put in or out of force from outside."""

    def __init__(
        self,
        rules: ConstraintSet,
        sink: CheckingSink,
        *,
        from_outside: bool,
        left_out: Iterable[str],
    ) -> None:
        self.__dict__ = rules.__dict__
        self._left_out.update(left_out)
        self._sink = sink
        self._from_outside = from_outside

    def pin(self) -> tuple[str, ...]:
        """Fixes what is in force, as it was in force then."""
        was = self._sink.tape.next_of(RetrievalOutcome)
        adapts, self._from_outside = self._from_outside, True
        if was is None or not adapts or not (was.query or was.constraints):
            return super().pin()
        return self.adapt(was)

    def adapt(self, was: RetrievalOutcome | None) -> tuple[str, ...]:
        """Fixes what was in force in a Retrieval; without one what is in force anyway."""
        pinned = super().pin()
        if was is None:
            return pinned
        lacking = [name for name in was.constraints if name not in pinned]
        own = [name for name in self.names() if name not in self._left_out]
        removed = [name for name in own if name not in was.constraints]
        for name in lacking:
            self.add(RecordedRule(name, self._sink.tape), name=name)
            self._sink.remark(
                f"The constraint {name} was put in force from outside before cycle {was.cycle}; "
                "its recorded verdicts are used."
            )
        for name in removed:
            self.remove(name)
            self._sink.remark(
                f"The constraint {name} was taken out of force from outside before cycle "
                f"{was.cycle}."
            )
        return super().pin()
