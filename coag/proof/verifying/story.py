"""The story of a trace: working memory, rebuilt on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from pydantic import ValidationError

from coag.context import CognitiveState, WorkingMemory
from coag.schema import (
    PHASES,
    UNPERCEIVED,
    Entry,
    ExecutionOutcome,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    phase_after,
)
from coag.tracing import RunKind

from .book import Book, Rule, Taking, difference, fields_but, same_json, shown

# ---- Whether a rebuilt working memory is the one that a snapshot holds ----


def memory_difference(
    memory: WorkingMemory, record: Snapshot, *, old: bool
) -> tuple[str, object, object] | None:
    """The first difference between a rebuilt memory and the recorded one, with both values there.

    Args:
        memory: What percepts and outcomes have led to.
        record: What the trace says that they led to.
        old: Whether an older version of the format wrote it, which lacks what came later.
    """
    ours, theirs = memory.to_json(), record.working_memory
    if ours == theirs:
        return None
    if old:  # fields that came later are not in it
        ours = {name: held for name, held in ours.items() if name in theirs}
    found = difference(ours, theirs)
    if found is None:
        return None
    try:  # fields within that came later have their defaults
        read = WorkingMemory.model_validate(theirs).to_json()
    except ValidationError:
        return found
    return difference(ours, {name: held for name, held in read.items() if name in ours})


# ---- The records of a run in RAM: which kind of run they are of, and where they begin ----


def is_opening(first: TraceRecord) -> bool:
    """Whether a run begins with this record: a snapshot that says so."""
    return first.record == "snapshot" and first.reason is not SnapshotReason.CYCLE


def numbered(
    records: Iterable[Entry] | Iterable[TraceRecord],
) -> Iterator[tuple[int, TraceRecord]]:
    """Records with their numbers, whichever form they come in."""
    for number, one in enumerate(cast("Iterable[Entry | TraceRecord]", records)):
        yield (one.seq, one.body) if isinstance(one, Entry) else (number, one)


def kind_of(
    records: Iterator[tuple[int, TraceRecord]], before: list[tuple[int, TraceRecord]]
) -> RunKind:
    """Which kind of run this is, by the first record that only one of them has.

    What is read on the way is added to `before`.
    """
    for one in records:
        before.append(one)
        record = one[1]
        if record.record == "outcome":
            return "coag"
        if record.record == "note" and record.about == "constraint":
            return "plain"  # rules judge its calls outside of any cycle
        if record.record == "intent":
            return "plain" if record.candidate_id is None else "coag"
    return "coag" if any(it.record == "snapshot" for _, it in before) else "plain"


# ---- The run as its records tell it: the working memory that they lead to, cycle by cycle ----


_BEFORE = {phase: PHASES[n - 1] if n else Phase.EXECUTION for n, phase in enumerate(PHASES)}
_BY_PERCEIVING = frozenset(UNPERCEIVED)
"""Fields of a percept that are set when it is perceived."""
_QUEUED_ONLY = (PerceptKind.TOOL_RETURN, PerceptKind.UNKNOWN_OUTCOME, PerceptKind.IMPASSE)
"""Kinds that only an execution brings about."""
HOOKED = (
    PerceptKind.TOOL_RETURN,
    PerceptKind.PROPERTY_CHANGE,
    PerceptKind.SIGNAL,
    PerceptKind.UNKNOWN_OUTCOME,
    PerceptKind.SETTLED,
)
"""Kinds that a domain's hook reads; no other one changes the state."""

_REASONS_SINCE = 2
"""The version since which snapshots tell why they were written."""

Hook = Callable[[WorkingMemory, Percept], Percept]
"""Perceives a percept anew upon a working memory, as the domain does."""


class Story:
    """Rebuilds working memory from percepts and outcomes, and holds snapshots against it.

    It is told of a record after the other rules, which see in `memory` how things stood before.

    Args:
        book: Takes what is found.
        version: Version of the trace's format.
        cut: Whether records before the first one at hand are missing.
        hook: Computes state changes again; None to take them from the records.
    """

    def __init__(self, book: Book, *, version: int, cut: bool, hook: Hook | None = None) -> None:
        self.book = book
        self.memory: WorkingMemory | None = None
        """The working memory before the record at hand; None as long as it is not known."""
        self.foreign = cut
        """Whether what is not in this trace led to the present state: a state was loaded, the
        run was forked, or its first records are gone."""
        self.shaken = False
        """After a violation that leaves the memory uncertain, until the next snapshot."""
        self._old = version < _REASONS_SINCE
        self._cut = cut
        self._hook = hook
        self._snapshots = 0
        self._ready = False
        self._told = False

    @property
    def takes(self) -> Taking:
        """Everything that is or changes the state."""
        return {
            "snapshot": self._snapshot,
            "percept": self._percept,
            "outcome": self._outcome,
            "turn_end": self._turn_end,
        }

    def end(self, *, finished: bool) -> None:
        """An unfinished cycle stands only at the end of an unfinished run."""
        memory = self.memory
        if finished and memory is not None and memory.in_cycle and not self.shaken:
            self.book.violate(
                Rule.PHASE,
                f"The run has ended, but its last cycle stops after {memory.phase}.",
            )

    # ---- snapshots ----

    def _snapshot(self, record: Snapshot) -> None:
        first = not self._snapshots
        self._snapshots += 1
        if record.reason is not SnapshotReason.CYCLE:
            self._begin_elsewhere(record, first=first)
            return
        self._ready = True
        self._all_perceived("the next cycle")
        memory = self.memory
        if memory is None or self.shaken:
            self._adopt(record)
            return
        if memory.in_cycle:
            self.book.violate(
                Rule.SNAPSHOT,
                f"A snapshot says that a cycle begins, but cycle {memory.cycle} has only come to "
                f"{memory.phase}.",
            )
        found = memory_difference(memory, record, old=self._old)
        if found is not None:
            where, ours, theirs = found
            self.book.violate(
                Rule.MEMORY,
                f"The snapshot says that working memory's {where} is {_told(theirs)}; the records "
                f"before it lead to {_told(ours)}.",
            )
            self._adopt(record)

    def _begin_elsewhere(self, record: Snapshot, *, first: bool) -> None:
        reason = record.reason
        if not first and reason is not SnapshotReason.LOADED:
            self.book.violate(
                Rule.SNAPSHOT,
                f"A snapshot of reason {shown(reason)} stands in the middle of the run; only its "
                "first one can be that.",
            )
        if reason is SnapshotReason.LOADED and not self._old:
            self.book.remark("A saved state was loaded here; what led to it is not in this trace.")
        self._ready = self._old  # version 1 tells a loaded state from a cycle's begin not always
        self._adopt(record)
        begun = self.memory is not None and (self.memory.cycle or self.memory.queued)
        if reason is not SnapshotReason.OPENED or begun:
            self.foreign = True

    def _adopt(self, record: Snapshot) -> None:
        """Goes on from what a snapshot says."""
        try:
            self.memory = WorkingMemory.model_validate(record.working_memory)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
            self.book.violate(
                Rule.SNAPSHOT, f"The snapshot's working memory cannot be read: {shown(where)}."
            )
            self.shaken = True
            return
        self.shaken = False
        if self.memory.cycle != record.cycle:
            self.book.violate(
                Rule.SNAPSHOT,
                f"The snapshot is of cycle {record.cycle}, its working memory of cycle "
                f"{self.memory.cycle}.",
            )

    # ---- percepts ----

    def _percept(self, record: Percept) -> None:
        memory = self.memory
        if memory is None:
            if not self._old and not self._cut and not self._told:
                self._told = True
                self.book.remark("The run does not begin with a snapshot, so this is not checked.")
            return
        self._check_origin(record, memory)
        if record.state_patch is None:
            self.book.violate(
                Rule.PERCEPT, f"Percept {shown(record.id)} does not say what it changed."
            )
            record = record.model_copy(update={"state_patch": {}})
        elif record.state_patch and record.kind not in HOOKED:
            self.book.violate(
                Rule.PERCEPT,
                f"Percept {shown(record.id)}, a {record.kind}, changed the perceptual state by "
                f"{shown(record.state_patch)}; messages and impasses may not.",
            )
        if self._hook is not None and not self.shaken:
            self._check_hook(record, memory, self._hook)
        self._check_settled(record, memory)
        self.memory = memory.perceive(record)

    def _check_settled(self, record: Percept, memory: WorkingMemory) -> None:
        """What is settled was open, and what is said to be settled is."""
        open_ones = {one.intent_id for one in memory.unsettled}
        unknown = [one for one in record.settles if one not in open_ones]
        settled = record.kind is PerceptKind.SETTLED
        if self.shaken or not (unknown or (settled and not record.settles)):
            return
        what = ", ".join(unknown) or record.caused_by or "nothing"
        self.book.violate(
            Rule.PERCEPT,
            f"Percept {shown(record.id)} settles {shown(what)}, whose outcome was not unknown.",
        )

    def _check_origin(self, record: Percept, memory: WorkingMemory) -> None:
        waiting = next((one for one in memory.queued if one.id == record.id), None)
        if waiting is None:
            if record.kind in _QUEUED_ONLY and not self.shaken:
                self.book.violate(
                    Rule.PERCEPT,
                    f"Percept {shown(record.id)}, a {record.kind} of {shown(record.source)}, was "
                    "brought by no execution, or was perceived before.",
                )
            return
        brought = fields_but(waiting, _BY_PERCEIVING)
        for name, value in fields_but(record, _BY_PERCEIVING).items():
            if not same_json(brought[name], value):
                self.book.violate(
                    Rule.PERCEPT,
                    f"Percept {shown(record.id)} was brought with {name} {shown(brought[name])} "
                    f"and perceived with {shown(value)}.",
                )

    def _check_hook(self, record: Percept, memory: WorkingMemory, hook: Hook) -> None:
        again = hook(memory, record.model_copy(update=UNPERCEIVED))
        for name in sorted(_BY_PERCEIVING):
            told, found = getattr(record, name), getattr(again, name)
            if not same_json(told, found):
                self.book.violate(
                    Rule.HOOK,
                    f"Percept {shown(record.id)} is recorded with {name} {shown(told)}; the "
                    f"domain's hook gives {shown(found)}.",
                )

    def _all_perceived(self, before: str) -> None:
        memory = self.memory
        if memory is None or not memory.queued:
            return
        if not self.shaken:
            ids = ", ".join(shown(percept.id) for percept in memory.queued)
            self.book.violate(
                Rule.PERCEPT, f"Brought by an execution and not perceived before {before}: {ids}."
            )
        self.memory, self.shaken = memory.model_copy(update={"queued": ()}), True

    def _turn_end(self, record: Any) -> None:
        del record
        self._all_perceived("the turn's end")
        memory = self.memory
        if memory is not None and memory.in_cycle and not self.shaken:
            self.book.violate(
                Rule.PHASE, f"The turn ends in cycle {memory.cycle}, after its {memory.phase}."
            )

    # ---- outcomes ----

    def _outcome(self, record: Outcome) -> None:
        if self.memory is None:
            self.book.violate(Rule.SNAPSHOT, "An outcome stands before the first snapshot.")
            self.memory, self.shaken = WorkingMemory(activity=""), True
        if record.phase is Phase.RETRIEVAL:
            self._all_perceived("the next cycle")
            if not self._ready and not self.shaken:
                self.book.violate(
                    Rule.SNAPSHOT, f"Cycle {record.cycle} does not begin with a snapshot."
                )
        self._ready = self._ready and record.phase is not Phase.RETRIEVAL
        memory = self._in_order(record, self.memory)
        if isinstance(record, ExecutionOutcome):
            memory = self._without_strangers(memory)
        self.memory = memory.commit(record)

    def _without_strangers(self, memory: WorkingMemory) -> WorkingMemory:
        """The memory without evaluations of what was not proposed, which `Ancestry` tells of."""
        cognitive = memory.cognitive_state
        if cognitive.proposal is None or cognitive.evaluation is None:
            return memory
        known = {one.id for one in cognitive.proposal.candidates}
        judged = cognitive.evaluation.evaluations
        if all(one.candidate_id in known for one in judged):
            return memory
        self.shaken = True
        kept = tuple(one for one in judged if one.candidate_id in known)
        evaluation = cognitive.evaluation.model_copy(update={"evaluations": kept})
        changed = cognitive.model_copy(update={"evaluation": evaluation})
        return memory.model_copy(update={"cognitive_state": changed})

    def _in_order(self, record: Outcome, memory: WorkingMemory) -> WorkingMemory:
        """The memory to which the outcome can be committed; says so if that is another one."""
        expected = phase_after(memory.phase)
        cycle = memory.cycle + 1 if expected is Phase.RETRIEVAL else memory.cycle
        if record.phase is expected and record.cycle == cycle:
            return memory
        if not (self.shaken and memory.phase is None):
            self.book.violate(
                Rule.PHASE,
                f"{record.phase} of cycle {record.cycle} stands where {expected} of cycle {cycle} "
                "must come next.",
            )
        self.shaken = True
        begins = record.phase is Phase.RETRIEVAL
        changes: dict[str, Any] = {
            "phase": _BEFORE[record.phase],
            "cycle": record.cycle - 1 if begins else record.cycle,
        }
        if record.cycle != memory.cycle:
            changes["cognitive_state"] = CognitiveState()
        return memory.model_copy(update=changes)


def _told(value: object) -> str:
    return "nothing" if value is None else shown(value)


def is_closing(outcome: ExecutionOutcome) -> bool:
    """Whether an execution ends a cycle that broke off, and is neither an act nor an impasse."""
    return outcome.action is None and not outcome.batch and outcome.result != "impasse"
