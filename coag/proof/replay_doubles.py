"""Doubles of models, rules, environment, memory and approvers: they answer from the tape."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from coag.agent import ReplayAnswer
from coag.context import WorkingMemory
from coag.cycle import (
    IDEMPOTENCY_KEY,
    NOT_OFFERED,
    OFFER,
    ApprovalAnswer,
    ApprovalRequest,
    ConstraintSet,
)
from coag.memory import EPISODIC_ACTION, SEMANTIC_ACTION, LongTermMemory, Recall
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionsListed,
    ActionSource,
    ActionSpace,
    ActionSpec,
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
    Record,
    RetrievalOutcome,
    Snapshot,
    TraceRecord,
    TurnEnd,
    Verdict,
    Written,
    parsed_arguments,
)
from coag.store import short_id

from .tape import CheckingSink, Tape

CANCELLED = "It was cancelled while it ran."
"""How the result of an action begins that was cancelled."""
_BROKEN_OFF = "The turn broke off: "
_PATIENCE = 2_000
"""Rounds of the event loop in which a record that must come first may come."""
_DROPPED = re.compile(r"(\d+) tool calls of one answer were too many")
_RecordT = TypeVar("_RecordT", bound=TraceRecord)

Perceive = Callable[[Percept], Awaitable[None]]
"""Perceives what came from outside in the middle of a turn."""


class Stage:
    """What the doubles share: the tape, and what arrives from outside meanwhile.

    Args:
        sink: Compares what is written.
        perceive: Perceives what came from outside.
        queued: Ids of the percepts that executions brought and that are yet to be perceived.
    """

    def __init__(
        self, sink: CheckingSink, perceive: Perceive, queued: Callable[[], set[str]]
    ) -> None:
        self.sink = sink
        self.tape = sink.tape
        self._perceive = perceive
        self._queued = queued

    async def pause(self) -> None:
        """Waits as the original waited: others run, and what arrives meanwhile is perceived."""
        await asyncio.sleep(0)
        self.sink.check()
        self.sink.settle()
        while self.is_input(head := self.tape.head) and isinstance(head, Percept):
            await self._perceive(head)
            self.sink.settle()

    def is_input(self, record: TraceRecord | None) -> bool:
        """Whether it is a percept that no execution brought."""
        return isinstance(record, Percept) and record.id not in self._queued()

    async def until(self, due: Callable[[TraceRecord | None], bool], what: str) -> None:
        """Waits until what is next on the tape is due, because others come before."""
        for _ in range(_PATIENCE):
            await self.pause()
            if due(self.tape.head):
                return
        head = self.tape.head
        found = "the end" if head is None else head.record
        self.sink.diverge("record", found, f"{what}, which is not next on the tape")

    def next_of(self, kind: type[_RecordT]) -> _RecordT | None:
        """The next record of a sort in this cycle."""
        return _next_of(self.tape, kind)


def _next_of(tape: Tape, kind: type[_RecordT]) -> _RecordT | None:
    return next((record for record in tape.in_cycle() if isinstance(record, kind)), None)


# ---- Actions: what came back of them ----


async def answered(stage: Stage, call: ActionCall) -> ActionResult:
    """What a begun action brought back then; raises what broke it off."""
    receipt = _receipt(stage, call)
    if receipt is None:
        await stage.until(lambda head: not isinstance(head, Receipt), "a receipt")
        stage.sink.diverge("record", "no receipt", f"the receipt of {call.action} ({call.id})")
    await stage.until(lambda head: head is receipt, f"the receipt of {call.action}")
    _break_off(stage, call, receipt)
    queued = _queued(stage, call)
    returned = queued[0] if queued and queued[0].caused_by == call.id else None
    ended = stage.tape.execution()
    ends = ended is not None and ended.ended_by == call.action
    was = executed_as(stage, call)
    failed = was.status is ExecutionStatus.FAILED if was else receipt.failure is not None
    return ActionResult(
        content=receipt.content,
        data=returned.data if returned else None,
        is_error=returned.is_error if returned else failed,
        failure=receipt.failure,
        outcome_unknown=receipt.status is ReceiptStatus.UNKNOWN,
        percepts=tuple(queued[1:] if returned else queued),
        ends_turn=ends,
    )


def _receipt(stage: Stage, call: ActionCall) -> Receipt | None:
    found = (r for r in stage.tape.in_cycle() if isinstance(r, Receipt))
    return next((each for each in found if each.intent_id == call.id), None)


def _break_off(stage: Stage, call: ActionCall, receipt: Receipt) -> None:
    """Raises what broke an action off, where something did."""
    if receipt.status is ReceiptStatus.CANCELLED:
        raise asyncio.CancelledError
    was = executed_as(stage, call)
    if was is None or not was.result.startswith(CANCELLED):
        return
    end = next((r for r in stage.tape.in_turn() if isinstance(r, TurnEnd)), None)
    error = end.response.removeprefix(_BROKEN_OFF) if end is not None else "KeyboardInterrupt: "
    name, _, text = error.partition(": ")
    raise type(name if name.isidentifier() else "BrokenOff", (BaseException,), {})(text)


def executed_as(stage: Stage, call: ActionCall) -> Executed | None:
    """How the recorded Execution has a call."""
    outcome = stage.tape.execution()
    done = outcome.executed if outcome is not None else ()
    by_id = [each for each in done if each.intent_id == call.id]
    alike = [e for e in done if e.action == call.action and e.arguments == call.arguments]
    return next(iter(by_id or alike), None)


def failure_of(stage: Stage, was: Executed) -> Failure:
    """Whether repeating a failed action could have helped: the next snapshot says so."""
    snapshots = (r for r in stage.tape.ahead() if isinstance(r, Snapshot))
    following = next(snapshots, None)
    failed = following.detector.values() if following is not None else ()
    failures = (each["failure"] for each in failed if each["text"] == was.result[:200])
    return Failure(next(failures, Failure.DETERMINISTIC))


def _queued(stage: Stage, call: ActionCall) -> list[Percept]:
    """The percepts that a call brought: its return, if that is one, and what came with it."""
    outcome = stage.tape.execution()
    if outcome is None:
        return []
    own: list[Percept] = []
    others = {each.intent_id for each in outcome.executed} - {call.id, None}
    mine = len(outcome.executed) == 1
    for percept in outcome.queued:
        if percept.caused_by == call.id and _is_return(percept):
            mine = True
        elif percept.caused_by in others or percept.kind is PerceptKind.IMPASSE:
            mine = False
        if mine:
            own.append(percept)
    return own


def _is_return(percept: Percept) -> bool:
    return percept.kind in (PerceptKind.TOOL_RETURN, PerceptKind.UNKNOWN_OUTCOME)


class TapeMemory(LongTermMemory):
    """A memory in RAM whose recall is the recorded one."""

    stage: Stage

    async def recall(self, query: str, **options: Any) -> Recall:
        """What was recalled then; the outcome shows whether the query is the same."""
        del query, options
        await self.stage.pause()
        outcome = self.stage.next_of(RetrievalOutcome)
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


class TapeActions:
    """The environment's actions: listed and answered as they were then.

    Args:
        stage: What doubles share.
        own: The actions that the agent's own code describes.
        on_percepts: Called with the percepts that an action brings beside its return.
        listed: The actions that were listed last; shared with the next process of the run.
    """

    def __init__(
        self,
        stage: Stage,
        own: ActionSpace,
        on_percepts: Callable[[Iterable[Percept]], None],
        listed: list[ActionSpec],
    ) -> None:
        self._stage = stage
        self._own = own
        self._on_percepts = on_percepts
        self._listed = listed

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be offered then."""
        return tuple(note.text for note in self._stage.tape.notes("actions"))

    async def specs(self) -> Sequence[ActionSpec]:
        """The actions that there were; those of the agent's own code as it has them now."""
        await self._stage.pause()
        if listed := self._stage.next_of(ActionsListed):
            self._listed[:] = listed.specs
        own = {spec.name: spec for spec in await self._own.specs()}
        names = [spec.name for spec in self._listed]
        return [
            *(own.get(spec.name, spec) for spec in self._listed),
            *(spec for name, spec in own.items() if name not in names),
        ]

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that were judged then, also where that was before they were completed."""
        outcome = self._stage.next_of(EvaluationOutcome)
        if outcome is None:
            return arguments  # in Execution, they are those that were evaluated
        given = {n: v for n, v in arguments.items() if n != IDEMPOTENCY_KEY}
        proposal = self._stage.tape.proposal
        alike = {
            one.id
            for one in (proposal.candidates if proposal is not None else ())
            if one.action == spec.name and parsed_arguments(one.raw_arguments) == given
        }
        judged = [one.arguments for one in outcome.evaluations if one.candidate_id in alike]
        if judged and judged[0] is not None:
            return {**judged[0], **{n: v for n, v in arguments.items() if n == IDEMPOTENCY_KEY}}
        if isinstance(self._own, CompletesArguments):
            return self._own.complete(spec, arguments)
        return arguments

    async def execute(self, call: ActionCall) -> ActionResult:
        """What came of it then."""
        result = await answered(self._stage, call)
        self._on_percepts(result.percepts)
        return result


class TapeSource:
    """A source of internal actions: what acts on the agent itself runs, the rest is answered.

    Args:
        source: The source.
        stage: What doubles share.
        memory: The memory of the replay.
        on_answered: Called with an action that did not run, and the percepts that it brought.
    """

    def __init__(
        self,
        source: ActionSource,
        stage: Stage,
        memory: TapeMemory,
        on_answered: Callable[[ActionCall, Iterable[Percept]], None],
    ) -> None:
        self._source = source
        self._stage = stage
        self._memory = memory
        self._on_answered = on_answered

    def action_specs(self) -> Sequence[ActionSpec]:
        """The actions of the source."""
        return self._source.action_specs()

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Runs or answers one of them."""
        specs = {spec.name: spec for spec in self.action_specs()}
        if call.action in specs and not specs[call.action].repeatable:
            result = await answered(self._stage, call)
            self._on_answered(call, result.percepts)
            return result
        was = executed_as(self._stage, call)
        if was is not None and was.result.startswith(CANCELLED):
            raise asyncio.CancelledError
        if call.action in (EPISODIC_ACTION, SEMANTIC_ACTION):
            return await self._remember(call, was)
        return await self._source.run_action(call)

    async def _remember(self, call: ActionCall, was: Executed | None) -> ActionResult:
        """Remembers, or gives the recorded result.

        The latter where the recorded memory knew, or failed at, what the tape does not show.
        """
        sink = self._stage.sink
        with sink.holding() as held:
            result = await self._source.run_action(call)
        sink.settle()
        written = None if was is None else _written_by(was, self._stage.tape.head)
        theirs = [] if written is None else [written.id]
        ours = [record.id for record in held if isinstance(record, Written)]
        if was is None or (theirs == ours and (ours or was.result == result.content)):
            for record in held:
                sink.write(record)
            return result
        sink.remark(
            f"The result of {call.action} in cycle {sink.cycle}: it rests on records of long-term "
            "memory that the trace does not show."
        )
        if written is not None:
            sink.accept()
            with suppress(ValueError):
                await self._memory.keep([Record.model_validate(written.content)])
        failed = was.status is ExecutionStatus.FAILED
        failure = failure_of(self._stage, was) if failed else None
        return ActionResult(content=was.result, is_error=failed, failure=failure)


class TapeApprover:
    """Whoever approves: answers each request as it was answered then.

    Args:
        stage: What doubles share.
        once: Sets the time that the clock gives next.
    """

    def __init__(self, stage: Stage, once: Callable[[datetime], None]) -> None:
        self._stage = stage
        self._once = once

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The answer that was given then."""
        await self._stage.pause()
        answer = self._answer(request)
        if answer is None:
            self._stage.sink.end()
        if answer.details["what"] == "withdrawn":
            await asyncio.Event().wait()  # whoever waits for it is about to be cancelled
        by: str = answer.details.get("by", "")
        if answer.details["what"] == "denied":
            await self._stage.until(lambda head: head is answer, "the denial of a request")
            self._set_time(answer, request)
            text = answer.text.removeprefix(f"{request.action}: ")
            return request.deny(by, text.removeprefix(f"{by} denied it: ") if by else text)
        self._set_time(answer, request)
        return request.grant(by)

    def _set_time(self, answer: Note, request: ApprovalRequest) -> None:
        expires = datetime.fromisoformat(answer.details["expires_at"])
        self._once(expires - timedelta(seconds=request.approval_seconds))

    def _answer(self, request: ApprovalRequest) -> Note | None:
        notes = (n for n in self._stage.tape.in_turn() if isinstance(n, Note))
        return next(
            (
                note
                for note in notes
                if note.about == "approval"
                and note.details.get("request") == request.id
                and note.details.get("what") != "asked"
            ),
            None,
        )


def _written_by(was: Executed, head: TraceRecord | None) -> Written | None:
    """The next record if it is what a memory action wrote, whose result names it."""
    if not isinstance(head, Written) or head.what != "record":
        return None
    return head if f" id {short_id(head.id)})" in was.result else None


# ---- Models: recorded requests answer those of the replay, in their order ----


class TapeAnswers:
    """Answers each request as it was answered then.

    Args:
        stage: What doubles share.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def answer(self) -> ReplayAnswer:
        """What came of the request that is next on the tape."""
        await self._stage.pause()
        head = self._stage.tape.head
        if head is None:
            self._stage.sink.end()
        if not isinstance(head, ModelCall):
            self._stage.sink.diverge("record", head.record, "a request to a model")
        return ReplayAnswer(
            call=head, refused=self._refused(head), thought=self._thought(), dropped=self._dropped()
        )

    def upcoming(self) -> Sequence[ModelCall]:
        """The requests up to the phase's outcome that ask for the same form."""
        calls: list[ModelCall] = []
        for record in self._stage.tape.in_cycle():
            if record.record == "outcome":
                break
            if isinstance(record, ModelCall) and (
                not calls or record.expected == calls[0].expected
            ):
                calls.append(record)
        return calls

    def _refused(self, call: ModelCall) -> bool:
        """Whether the same question was asked once more on a looser rung."""
        following = self.upcoming()[1:2]
        return any(
            (again.attempt, again.expected) == (call.attempt, call.expected)
            and again.rung is not call.rung
            for again in following
        )

    def _thought(self) -> str:
        for record in self._stage.tape.in_cycle():
            if isinstance(record, ReasoningOutcome | ProposalOutcome):
                return record.thought
        return ""

    def _dropped(self) -> int:
        for record in self._stage.tape.in_cycle():
            if record.record == "outcome":
                break
            if isinstance(record, Note) and (found := _DROPPED.match(record.text)):
                return int(found[1])
        return 0


class RecordedRule:
    """A constraint that no longer exists: it gives the recorded verdicts.

    Args:
        name: Its name.
        tape: The tape.
    """

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
            found = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
            if sought.items() <= found.items():
                return Verdict.forbid(str(found.get("reason")))
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
    """The agent's constraints, with what was put in or out of force from outside.

    Args:
        rules: The agent's own.
        sink: Knows what is next on the tape.
        from_outside: Whether constraints of the first cycle may have come from outside.
        left_out: Names of those that a fork leaves out.
    """

    def __init__(
        self,
        rules: ConstraintSet,
        sink: CheckingSink,
        *,
        from_outside: bool,
        left_out: Iterable[str] = (),
    ) -> None:
        super().__init__()
        self._rules = rules
        self._gone = frozenset(left_out)
        for name in self._gone:
            rules.leave_out(name)
        self._sink = sink
        self._from_outside = from_outside

    def names(self) -> tuple[str, ...]:
        """Names of the agent's own constraints."""
        return self._rules.names()

    def pin(self) -> tuple[str, ...]:
        """Fixes what is in force, as it was in force then."""
        pinned = self._rules.pin()
        was = _next_of(self._sink.tape, RetrievalOutcome)
        adapts, self._from_outside = self._from_outside, True
        if was is None or not adapts or not (was.query or was.constraints):
            return pinned
        return self._adapted(pinned, was)

    def begin_fork(self, retrieval: RetrievalOutcome | None) -> None:
        """Fixes what is in force where a fork begins, in the middle of a cycle or before one."""
        if retrieval is None:
            self._rules.pin()
        else:
            self._adapted(self._rules.pin(), retrieval)

    def _adapted(self, pinned: tuple[str, ...], was: RetrievalOutcome) -> tuple[str, ...]:
        lacking = [name for name in was.constraints if name not in pinned]
        own = [name for name in self._rules.names() if name not in self._gone]
        removed = [name for name in own if name not in was.constraints]
        for name in lacking:
            self._rules.add(RecordedRule(name, self._sink.tape), name=name)
            self._sink.remark(
                f"The constraint {name} was put in force from outside before cycle {was.cycle}; "
                "its recorded verdicts stand for it."
            )
        for name in removed:
            self._rules.remove(name)
            self._sink.remark(
                f"The constraint {name} was taken out of force from outside before cycle "
                f"{was.cycle}."
            )
        return self._rules.pin() if lacking or removed else pinned

    @property
    def pinned(self) -> tuple[str, ...]:
        """Names of what is in force in this cycle."""
        return self._rules.pinned

    def judge(
        self,
        candidate: Candidate,
        state: Any,
        projection: Any | None,
        memory: WorkingMemory | None = None,
        spec: ActionSpec | None = None,
    ) -> tuple[Verdict, ...]:
        """Verdicts of what is in force in this cycle."""
        return self._rules.judge(candidate, state, projection, memory, spec)
