"""A process of an agent in a replay: its mind behind doubles, turn by turn."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from coag.agent import (
    CoagAgent,
    RecoveredState,
    ReplayDoubles,
    reading_trace,
    restore,
    staged,
)
from coag.context import WorkingMemory
from coag.cycle import TurnResult, close_cycle, perceive, run_turn, write_snapshot
from coag.memory import revoke_again
from coag.schema import (
    UNPERCEIVED,
    ActionCall,
    ActionSource,
    ActionSpace,
    ActionSpec,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    Reconciliation,
    Record,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    UnsettledAction,
    Written,
    set_random,
)
from coag.store import HashEmbedder, open_store

from .replay_doubles import (
    CANCELLED,
    Stage,
    TapeActions,
    TapeAnswers,
    TapeApprover,
    TapeMemory,
    TapeRules,
    TapeSource,
)
from .tape import CheckingSink

_NUMBER = re.compile(r"([a-z]+)-(\d{6,})$")
_IMAGES_KEPT = 4
"""Images of a dialogue that a context shows; a snapshot names them, and does not hold them."""
_LEFT = "The cycle that selected this was left in the middle."


class Process:
    """The mind of a run behind doubles."""

    def __init__(
        self,
        agent: CoagAgent,
        run: str,
        sink: CheckingSink,
        *,
        memory: TapeMemory,
        listed: list[ActionSpec],
        later: bool,
        configuration: Mapping[str, Any],
        left_out: Sequence[str] = (),
    ) -> None:
        self._sink = sink
        self._listed = listed
        self._answered_by_tape = False
        self.stage = memory.stage = Stage(sink, self.perceive, self._working_memory)
        self._memory = memory
        memory.clock = sink
        mind = staged(
            agent,
            ReplayDoubles(
                run=run,
                clock=sink,
                trace=sink,
                answers=TapeAnswers(self.stage),
                memory=memory,
                approve=TapeApprover(self.stage),
                external=self._actions,
                around=self._around,
                reconcile=self._reconcile,
                proposal=configuration.get("settings", {}).get("proposal"),
                # Runs of older versions do not say: they always offered actions of memory.
                remembering=bool(configuration.get("remembering", True)),
                rewriting=bool(configuration.get("rewriting", True)),
            ),
        )
        rules = TapeRules(mind.deps.constraints, sink, from_outside=later, left_out=left_out)
        self._rules = rules
        mind.deps = replace(mind.deps, constraints=rules)
        self.mind = mind
        sink.on_taken = self._on_taken

    # ---- doubles ----

    def _actions(self, own: ActionSpace) -> ActionSpace:
        return TapeActions(self.stage, own, self._count, self._listed)

    def _around(self, source: ActionSource) -> ActionSource:
        return TapeSource(source, self.stage, self._memory, self._on_answered)

    async def _reconcile(self, action: UnsettledAction) -> Reconciliation:
        """Nobody is asked: what was found out then is on the tape, as a percept."""
        del action
        await self.stage.pause()
        return "unknown"

    def _on_answered(self, call: ActionCall, percepts: Iterable[Percept]) -> None:
        """A module did not act, so its state is not what it became."""
        self._count(percepts)
        self._answered_by_tape = True
        self._sink.remark(
            f"What {call.action} of a module did in cycle {self._sink.cycle}, and the states of "
            "modules after it."
        )

    def _count(self, percepts: Iterable[Percept]) -> None:
        """Counts the ids of what came from outside."""
        for percept in percepts:
            if match := _NUMBER.fullmatch(percept.id):
                self.mind.deps.ids.load({match[1]: int(match[2])})

    def _working_memory(self) -> WorkingMemory:
        return self.mind.context.working_memory

    async def perceive(self, percept: Percept) -> None:
        """Perceives what came from outside."""
        self._count([percept])
        await perceive([bare(percept)], self.mind.context, self.mind.deps)

    # ---- what came from outside between records ----

    def _on_taken(self, record: TraceRecord) -> None:
        del record
        self._sink.settle()
        head = self._sink.tape.head
        if isinstance(head, Snapshot) and head.reason is SnapshotReason.CYCLE:
            self.before_cycle(head)

    def before_cycle(self, snapshot: Snapshot) -> None:
        """Adopts changes from outside that the cycle's snapshot shows."""
        deps = self.mind.deps
        if self._answered_by_tape:
            self._answered_by_tape = False
            with reading_trace(snapshot, "modules"):
                deps.modules.load_state(snapshot.modules)
        mine, state = deps.procedures.pin(), snapshot.procedures.get("state")
        now: dict[str, int] = snapshot.procedures.get("versions", {})
        with reading_trace(snapshot, "procedures"):
            newer = [name for name, version in now.items() if version > mine.get(name, version)]
            if state is None or not newer:
                return
            deps.procedures.load_state(state)
        for name in newer:
            author = deps.procedures.get(name).author
            self._sink.remark(
                f"{name}@{now[name]} was written from outside, by {author}, before cycle "
                f"{snapshot.cycle + 1}."
            )

    # ---- what the process does ----

    async def begin(self, snapshot: Snapshot, remembered: Iterable[Record] = ()) -> None:
        """Starts with the state that the run began with, and with a fork's memory."""
        await self._memory.keep(remembered)
        self._restore(snapshot)
        self.mind.deps.snapshots.reset()
        if snapshot.reason is SnapshotReason.FORKED:
            memory = self.mind.context.working_memory
            self._rules.adapt(memory.cognitive_state.retrieval if memory.in_cycle else None)
        write_snapshot(self.mind.context, self.mind.deps, snapshot.reason)

    def load(self, snapshot: Snapshot) -> None:
        """Adopts a state that was loaded."""
        self._restore(snapshot)
        self._sink.remark("A saved state that was loaded: it is what the trace has of it.")
        write_snapshot(self.mind.context, self.mind.deps, snapshot.reason)

    async def resume(self, remains: RecoveredState) -> None:
        """Continues where another process had stopped."""
        await restore(self.mind, remains)

    @property
    def has_selected(self) -> bool:
        """Whether it is right before an Execution."""
        memory = self.mind.context.working_memory
        return memory.in_cycle and memory.phase is Phase.SELECTION

    async def stop(self, number: int, why: str) -> None:
        """Ends the cycle and its turn before an Execution that a fork does not run."""
        context, deps = self.mind.context, self.mind.deps
        await close_cycle(context, deps, why)
        cycle = context.working_memory.cycle
        at = deps.clock.now()
        deps.trace.write(TurnEnd(at=at, turn=number, cycle=cycle, reason="cancelled", response=why))

    async def take_back(self, line: Written) -> None:
        """Revokes what the owner revoked between turns; procedures follow by the next snapshot."""
        if line.what == "revoked":
            with reading_trace(line, "content"):
                await revoke_again(self._memory, line)

    async def turn(self, number: int, begun: Sequence[Outcome] | None) -> None:
        """Runs a turn, or what is left of one."""
        self._note_running()
        turn = run_turn(
            self._arriving(), self.mind.context, self.mind.deps, turn=number, begun=begun
        )
        before = cancelled_before(tuple(self._sink.tape.in_turn()))
        await self._sink.run(self._read(turn), before)

    async def _read(self, turn: AsyncGenerator[Outcome | TurnResult]) -> None:
        async with aclosing(turn):
            async for _ in turn:
                if self._sink.leave_turn():
                    return

    def _arriving(self) -> Iterator[Percept]:
        """The percepts of the turn that are next on the tape, one when it is asked for."""
        while True:
            self._sink.settle()
            head = self._sink.tape.head
            if not isinstance(head, Percept) or not self.stage.is_input(head):
                return
            self._count([head])
            yield bare(head)

    def _note_running(self) -> None:
        """What a loaded state was saved in the middle of; no snapshot has it."""
        if not self.mind.context.working_memory.in_cycle:
            return
        outcome = self._sink.tape.execution()
        for percept in outcome.queued if outcome is not None else ():
            if percept.content.startswith(_LEFT) and percept.caused_by is not None:
                call = ActionCall(
                    id=percept.caused_by,
                    action=percept.source,
                    arguments=percept.arguments or {},
                )
                self.mind.deps.actions.running[call.id] = call

    def _restore(self, snapshot: Snapshot) -> None:
        deps, context = self.mind.deps, self.mind.context
        with reading_trace(snapshot, "working_memory"):
            memory = WorkingMemory.model_validate(snapshot.working_memory)
            context.restore(memory)
        if snapshot.reason is not SnapshotReason.FORKED:
            named = (name for message in memory.dialogue for name in message.images)
            context.images.load(dict.fromkeys(list(dict.fromkeys(named))[-_IMAGES_KEPT:], "data:"))
        if (state := snapshot.procedures.get("state")) is not None:
            with reading_trace(snapshot, "procedures"):
                deps.procedures.load_state(state)
        with reading_trace(snapshot, "modules"):
            deps.modules.load_state(snapshot.modules)
        with reading_trace(snapshot, "detector"):
            deps.detector.load_state(snapshot.detector)
        deps.ids.load(snapshot.ids)
        if snapshot.random is not None:
            with reading_trace(snapshot, "random"):
                set_random(deps.random, snapshot.random)


def bare(percept: Percept) -> Percept:
    """A percept as it came, without what perceiving it adds."""
    hooked = percept.kind in (
        PerceptKind.TOOL_RETURN,
        PerceptKind.PROPERTY_CHANGE,
        PerceptKind.SIGNAL,
        PerceptKind.UNKNOWN_OUTCOME,
        PerceptKind.SETTLED,
    )
    patch = percept.state_patch if not hooked and percept.state_patch else None
    return percept.model_copy(update={**UNPERCEIVED, "state_patch": patch})


def empty_memory(agent: CoagAgent) -> TapeMemory:
    """A memory in RAM that knows nothing yet."""
    return TapeMemory(open_store(None, embedder=HashEmbedder(8)), scope=agent.name)


# ---- Where a turn was cancelled ----


def cancelled_before(records: Sequence[TraceRecord]) -> int | None:
    """Which of the records of a turn is the first after it was cancelled; None if it was not.

    Also None where the cancellation interrupted a model call or an action, which show it.
    """
    if not records or not isinstance(end := records[-1], TurnEnd) or end.reason != "cancelled":
        return None
    first = len(records) - 1
    while first and _closes(records[first - 1], end.response):
        first -= 1
    if first and any(map(_broke_off, records[max(0, first - 1) : first])):
        return None
    execution = next((r for r in records[first:] if isinstance(r, ExecutionOutcome)), None)
    if execution is not None and any(e.result.startswith(CANCELLED) for e in execution.executed):
        return None
    return first


def _closes(record: TraceRecord, reason: str) -> bool:
    """Whether a record may come after the cancellation."""
    match record:
        case Percept():
            return True
        case Note():
            return record.about in ("module", "hook") or record.details.get("what") == "withdrawn"
        case ExecutionOutcome():
            idle = record.status is ExecutionStatus.NONE and record.result == reason
            return idle or any(e.result.startswith(CANCELLED) for e in record.executed)
        case _:
            return record.record == "outcome" and _is_empty(record, reason)


def _is_empty(outcome: Outcome, reason: str) -> bool:
    """Whether it is the outcome of a phase that was closed without having run."""
    match outcome:
        case ReasoningOutcome():
            return outcome.situation == reason
        case SelectionOutcome():
            return outcome.reason == reason
        case ProposalOutcome():
            return outcome.proposed_by == "nobody"
        case EvaluationOutcome():
            return not outcome.evaluations
        case RetrievalOutcome():
            return not outcome.query
        case _:
            return True


def _broke_off(record: TraceRecord) -> bool:
    """Whether a record is of something that the cancellation interrupted."""
    if isinstance(record, ModelCall):
        return record.error == "cancelled"
    return isinstance(record, Receipt) and record.status is ReceiptStatus.CANCELLED
