"""Doubles of the environment, of memory and of whoever approves: they answer from the tape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from coag.cycle import IDEMPOTENCY_KEY, ApprovalAnswer, ApprovalRequest
from coag.memory import EPISODIC_ACTION, SEMANTIC_ACTION, LongTermMemory, Recall
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionsListed,
    ActionSource,
    ActionSpace,
    ActionSpec,
    CompletesArguments,
    EvaluationOutcome,
    Executed,
    ExecutionStatus,
    Note,
    Percept,
    Record,
    RetrievalOutcome,
    TraceRecord,
    Written,
    parsed_arguments,
)
from coag.store import short_id

from ._results import CANCELLED, answered, executed_as, failure_of
from ._stage import Stage


class TapeMemory(LongTermMemory):
    """A memory in RAM whose recall is the recorded one."""

    stage: Stage

    async def recall(self, query: str, **options: Any) -> Recall:
        """What was recalled then; the outcome tells whether the query is the same."""
        del query, options
        await self.stage.pause()
        found = (r for r in self.stage.tape.in_cycle() if isinstance(r, RetrievalOutcome))
        outcome = next(found, None)
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
        on_percepts: Is told of the percepts that an action brings beside its return.
        listed: The actions that were listed last; given on to whoever goes on with the run.
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
        ahead = (r for r in self._stage.tape.in_cycle() if isinstance(r, ActionsListed))
        if listed := next(ahead, None):
            self._listed[:] = listed.specs
        own = {spec.name: spec for spec in await self._own.specs()}
        names = [spec.name for spec in self._listed]
        return [
            *(own.get(spec.name, spec) for spec in self._listed),
            *(spec for name, spec in own.items() if name not in names),
        ]

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that were judged then, also where that was before they were completed."""
        ahead = list(self._stage.tape.in_cycle())
        outcome = next((r for r in ahead if isinstance(r, EvaluationOutcome)), None)
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
        on_answered: Is told of an action that did not run, and of the percepts that it brought.
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
        """Remembers, or tells what came of it then.

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
        once: Has the clock tell a time at its next look.
    """

    def __init__(self, stage: Stage, once: Callable[[datetime], None]) -> None:
        self._stage = stage
        self._once = once

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The answer that was given then."""
        await self._stage.pause()
        fate = self._fate(request)
        if fate is None:
            self._stage.sink.end()
        if fate.details["what"] == "withdrawn":
            await asyncio.Event().wait()  # whoever waits for it is about to be cancelled
        by: str = fate.details.get("by", "")
        if fate.details["what"] == "denied":
            await self._stage.until(lambda head: head is fate, "the denial of a request")
            self._tell_time(fate, request)
            told = fate.text.removeprefix(f"{request.action}: ")
            return request.deny(by, told.removeprefix(f"{by} denied it: ") if by else told)
        self._tell_time(fate, request)
        return request.grant(by)

    def _tell_time(self, fate: Note, request: ApprovalRequest) -> None:
        expires = datetime.fromisoformat(fate.details["expires_at"])
        self._once(expires - timedelta(seconds=request.approval_seconds))

    def _fate(self, request: ApprovalRequest) -> Note | None:
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
    """The next record if it tells what a memory action wrote, whose result names it."""
    if not isinstance(head, Written) or head.what != "record":
        return None
    return head if f" id {short_id(head.id)})" in was.result else None
