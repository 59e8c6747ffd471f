"""Continuing from a run's trace: what it holds, and restoring it."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coag._util.secrets import REDACTED
from coag._util.validation import first_error
from coag.compat import read_result
from coag.context import WorkingMemory
from coag.cycle import close_cycle, commit, decided_at, perceive, return_percept
from coag.errors import CoagError, ResumeError, StateError, TraceError
from coag.memory import LongTermMemory, ProceduralMemory, ProcedureVersion, revoke_again, settled
from coag.schema import (
    RESUMED,
    ActionCall,
    ActionResult,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    Intent,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    Record,
    RetrievalOutcome,
    Snapshot,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Written,
    set_random,
)
from coag.tracing import read_trace

from .build import Mind

_TRACE = Path("trace.jsonl")


@contextmanager
def reading_trace(record: Snapshot | Written | None, field: str) -> Generator[None]:
    """Makes the error of a value that cannot be read a `TraceError` with its record and field.

    Args:
        record: The record; None where it is one of several snapshots.
        field: Its field.

    Raises:
        TraceError: The block failed at the value.
    """
    try:
        yield
    except (CoagError, ValueError, TypeError, LookupError, AttributeError) as error:
        if isinstance(error, CoagError) and not isinstance(error, StateError):
            raise
        problem = f"{type(error).__name__}: {error}"
        if isinstance(error, StateError):
            problem = str(error)
        elif isinstance(error, ValidationError):
            problem = first_error(error, "the whole")
        named = "a snapshot"
        if isinstance(record, Snapshot):
            named = f"the snapshot of cycle {record.cycle}"
        elif record is not None:
            named = f"the record that {record.id!r} was written"
        raise TraceError(_TRACE, f"{field!r} of {named} cannot be read: {problem}") from error


# ---- Memory that was in RAM only, written again from the trace ----


async def recover_memory(
    written: Sequence[Written], memory: LongTermMemory | None, procedures: ProceduralMemory
) -> None:
    """Writes again what a run had written, where it is gone; memory on a disk has it still."""
    held = _still_held(written)
    if memory is not None and held and not await memory.store.get([one.id for one in held]):
        for line in held:
            await _write_again(line, memory)
        for line in written:
            if line.what == "revoked" and line.content.get("source") is not None:
                with reading_trace(line, "content"):
                    await revoke_again(await memory.reaching_all(), line)
    _recover_versions([one for one in written if one.what == "procedure"], procedures)


def _still_held(written: Sequence[Written]) -> list[Written]:
    held: list[Written] = []
    for line in written:
        if line.what == "record":
            held.append(line)
        elif line.what == "revoked":
            gone = set(line.content.get("records", ()))
            held = [one for one in held if one.id not in gone]
    return held


async def _write_again(line: Written, memory: LongTermMemory) -> None:
    with reading_trace(line, "content"):
        record = Record.model_validate(line.content)
    others = await memory.store.get([record.supersedes or "", *record.lineage.contradicts])
    old = [other for other in others if other.id == record.supersedes]
    if old:
        await memory.store.supersede(old[0].id, record)
    else:
        await memory.store.add([record])
    if changed := settled(record, old, [other for other in others if other not in old]):
        await memory.store.update(changed)


def _recover_versions(written: Sequence[Written], procedures: ProceduralMemory) -> None:
    state = procedures.save_state()
    histories: dict[str, list[Any]] = state["procedures"]
    for line in written:
        name, _, version = line.id.rpartition("@")
        history = histories.get(name, [])
        with reading_trace(line, "id"):
            is_next = len(history) == int(version) - 1
        if is_next:
            with reading_trace(line, "content"):
                ProcedureVersion.model_validate(line.content)
            histories[name] = [*history, line.content]
    if written:
        with reading_trace(written[-1], "content"):
            procedures.load_state(state)


# ---- Continuing a run that a crash interrupted, from its folder alone ----


_NUMBERED = re.compile(r"\b([a-z]+)-(\d{6,})\b")
UNKNOWN = "The run broke off while this ran. It may or may not have had its effect."


@dataclass(slots=True)
class RecoveredState:
    """What a trace holds on where its run stopped."""

    snapshot: Snapshot | None = None
    since: list[TraceRecord] = field(default_factory=list[TraceRecord])
    """Records after the last snapshot."""
    procedures: dict[str, Any] | None = None
    """The state of procedural memory when it had last changed."""
    turn: int = 0
    turn_open: bool = False
    ended: TurnEnd | None = None
    """How the last turn ended, where it did."""
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    """Outcomes of the turn that was in progress."""
    intents: list[Intent] = field(default_factory=list[Intent])
    """Intents whose execution was not committed: one, or those of a batch."""
    receipts: dict[str, Receipt] = field(default_factory=dict[str, Receipt])
    """Their receipts by intent, where there are any."""
    ids: dict[str, int] = field(default_factory=dict[str, int])
    random: Any = None
    """State of the random source when it was last written."""
    environment: Any = None
    """State of the environment when it was last written."""
    written: list[Written] = field(default_factory=list[Written])
    """What went into long-term and procedural memory, from the run's beginning."""
    change: Callable[[Mind], None] = field(default=lambda mind: None)
    """What a fork changes once the mind is restored; it may raise, and then nothing begins."""
    begun: bool = False
    """True if there is any record."""
    said: list[Percept | ExecutionOutcome] = field(default_factory=list[Percept | ExecutionOutcome])
    """Messages and answers, from the run's beginning."""
    rules: tuple[str, ...] = ()
    """The constraints that were in force in the last cycle."""
    _content: bool = True
    """False right after a turn's start, until something of the turn is known."""

    def take(self, record: TraceRecord) -> None:
        """Takes in the next record."""
        self.begun = True
        resuming = isinstance(record, Note) and record.about == RESUMED
        self._content = not isinstance(record, TurnStart) and (self._content or not resuming)
        match record:
            case Snapshot():
                self.snapshot, self.since = record, []
                self.procedures = record.procedures.get("state", self.procedures)
                self.random = self.random if record.random is None else record.random
                if record.environment is not None:
                    self.environment = record.environment
            case TurnStart():
                self.turn, self.turn_open, self.outcomes = record.turn, True, []
                self.ended = None
            case TurnEnd():
                self.turn_open, self.ended = False, record
            case Intent():
                self.intents.append(record)
            case Receipt():
                self.receipts[record.intent_id] = record
            case Written():
                self.written.append(record)
            case _:
                self.since.append(record)
                self._take_step(record)
        if isinstance(record, Snapshot):
            self.ids = dict(record.ids)
            return
        for kind, number in _NUMBERED.findall(record.model_dump_json(exclude={"messages"})):
            self.ids[kind] = max(int(number), self.ids.get(kind, 0))

    def _take_step(self, record: TraceRecord) -> None:
        if record.record == "outcome":
            self.outcomes.append(record)
        match record:
            case Percept(kind=PerceptKind.MESSAGE):
                self.said.append(record)
            case RetrievalOutcome():
                self.rules = record.constraints
            case ExecutionOutcome():
                self.intents, self.receipts = [], {}
                if record.response is not None:
                    self.said.append(record)
            case _:
                pass

    def forget_bare_start(self) -> None:
        """A turn of which only the start is known has not begun: its messages are not here."""
        if not self._content:
            self.turn, self.turn_open = self.turn - 1, False


def recover_state(trace: Path) -> RecoveredState:
    """The state the run had reached; a truncated last line, which caused nothing, is left out.

    A run that was interrupted before its trace was made has none; it is at its start.
    """
    recovered = RecoveredState()
    if not trace.exists():
        return recovered
    for entry in read_trace(trace, on_problem=lambda problem: None):
        recovered.take(entry.body)
    recovered.forget_bare_start()
    return recovered


async def restore(mind: Mind, recovered: RecoveredState) -> None:
    """Brings a freshly built mind to the run's last state; what it starts with is perceived.

    An intent without a receipt becomes an unknown-outcome percept, never a retry (invariant 6).

    Raises:
        TraceError: What the trace says of the mind's state cannot be read.
    """
    deps, context = mind.deps, mind.context
    deps.ids.load(recovered.ids)
    if recovered.random is not None:
        with reading_trace(None, "random"):
            set_random(deps.random, recovered.random)
    if recovered.procedures is not None:
        with reading_trace(None, "procedures"):
            deps.procedures.load_state(recovered.procedures)
    await recover_memory(recovered.written, deps.memory, deps.procedures)
    if (snapshot := recovered.snapshot) is not None:
        with reading_trace(snapshot, "working_memory"):
            context.restore(WorkingMemory.model_validate(snapshot.working_memory))
        with reading_trace(snapshot, "detector"):
            deps.detector.load_state(snapshot.detector)
        with reading_trace(snapshot, "modules"):
            deps.modules.load_state(snapshot.modules)
    for record in recovered.since:
        if record.record == "percept" or record.record == "outcome":  # noqa: PLR1714 - narrows the type
            await _replay_record(record, mind)
    context.restore_dialogue(recovered.said)
    deps.constraints.pin()
    if recovered.intents and context.working_memory.in_cycle:
        outcome = _finish_intents(recovered.intents, recovered.receipts, mind)
        recovered.outcomes.append(outcome)
        _note_results(outcome, mind)
        await commit(outcome, context, deps)
    if context.working_memory.in_cycle and REDACTED in str(context.working_memory.to_json()):
        await close_cycle(context, deps, "The cycle held a secret that the trace does not keep.")
    await perceive(context.working_memory.queued, context, deps)
    recovered.change(mind)


async def _replay_record(record: Percept | Outcome, mind: Mind) -> None:
    """Takes in a record of the trace as the run did, without writing it again."""
    context, deps = mind.context, mind.deps
    leaves = context.working_memory.leaves_person(record)
    of_another = isinstance(record, Percept) and context.working_memory.of_another(record)
    if isinstance(record, ExecutionOutcome):
        _note_results(record, mind)
    if isinstance(record, Percept):
        deps.detector.perceive(record)
        context.restore(context.working_memory.perceive(record))
    else:
        context.commit(record)
    if leaves:
        deps.modules.reset_state()
    if not of_another:
        await deps.modules.observe(record)


def refuse_missing_rules(mind: Mind, rules: Sequence[str], run: Path) -> None:
    """Refuses a mind that lacks a rule which the run obeyed."""
    known = mind.deps.constraints.pin()
    missing = [name for name in rules if name not in known]
    if missing:
        names = ", ".join(map(repr, missing))
        lacking = f"The recipe of {run} does not make {names}, which was in force"
        raise ResumeError(f"{lacking}. Let its factory give the agent every rule of the run.")


def _note_results(outcome: ExecutionOutcome, mind: Mind) -> None:
    failures = {p.caused_by: p.failure for p in outcome.queued if p.failure is not None}
    for done in outcome.executed:
        if done.status is ExecutionStatus.REFUSED:
            continue
        failed = done.status is ExecutionStatus.FAILED
        failure = failures.get(done.intent_id, Failure.TRANSIENT) if failed else None
        call, at = (done.action, done.arguments or {}), decided_at(mind.context, mind.deps)
        mind.deps.detector.note_result(call, mind.context.progress_key(), failure, done.result, at)


def _finish_intents(
    intents: Sequence[Intent], receipts: Mapping[str, Receipt], mind: Mind
) -> ExecutionOutcome:
    """The outcome that could not be committed, from the receipts, or unknown without one."""
    done: list[Executed] = []
    queued: list[Percept] = []
    for intent in intents:
        call = ActionCall(id=intent.id, action=intent.action, arguments=intent.arguments)
        result = _result_of(receipts.get(intent.id))
        done.append(
            Executed(
                candidate_id=intent.candidate_id,
                action=intent.action,
                arguments=intent.arguments,
                status=ExecutionStatus.FAILED if result.is_error else ExecutionStatus.DONE,
                internal=intent.internal,
                intent_id=None if intent.internal else intent.id,
                result=result.content,
            )
        )
        if not intent.internal or result.outcome_unknown:
            queued.append(return_percept(call, result, mind.deps))
    return ExecutionOutcome.of(
        done, cycle=intents[0].cycle, at=mind.deps.clock.now(), queued=tuple(queued)
    )


def _result_of(receipt: Receipt | None) -> ActionResult:
    if receipt is None or receipt.status in (ReceiptStatus.UNKNOWN, ReceiptStatus.CANCELLED):
        rest = f" {receipt.content}" if receipt and receipt.content else ""
        return ActionResult(content=UNKNOWN + rest, is_error=True, outcome_unknown=True)
    failed = receipt.status is ReceiptStatus.FAILED
    result = read_result(receipt.content, is_error=failed, limit=len(receipt.content))
    return result.model_copy(update={"failure": receipt.failure})
