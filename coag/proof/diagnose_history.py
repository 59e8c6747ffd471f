"""The cycles of a run as a diagnosis looks at them, and what is known when each is judged."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Self, cast

from pydantic import ValidationError

from coag._util.json_diff import merge_patch
from coag.schema import (
    Candidate,
    Entry,
    Intent,
    ModelCall,
    Note,
    Percept,
    PerceptKind,
    Phase,
    Record,
    RetrievalOutcome,
    Settlement,
    Snapshot,
    TraceRecord,
    Written,
)
from coag.tracing import summarize_cycle

from .causes import Cause, Circumstances, Claim, Diagnosis, DomainKnowledge, Evidence, Facts, short

AHEAD = 8
"""Cycles that are looked ahead before a change is judged."""
_OBSERVATIONS = 64
"""Observations of one fact that are remembered."""
_FACTS = 5_000
_RECORDS = 2_000
_REASON = 240
"""Characters of a reason that are quoted."""


@dataclass(frozen=True, slots=True)
class Return:
    """What came back of an action, and the state that it led to."""

    seq: int
    percept: Percept
    before: Mapping[str, Any]
    """The perceptual state as it was."""
    after: Mapping[str, Any]
    """The perceptual state as it became."""

    @property
    def data(self) -> Mapping[str, Any]:
        """What the tool returned, where it is an object."""
        data: Any = self.percept.data
        return cast("Mapping[str, Any]", data) if isinstance(data, dict) else {}

    def taken(self) -> set[tuple[str, str]]:
        """The tool, with each part of the state that changed to the value of its name."""
        before, after = self.before, self.after
        return {
            (self.percept.source, name)
            for name, value in self.data.items()
            if name in before and before[name] != after.get(name) == value
        }

    @property
    def why_failed(self) -> str:
        """The reason that a failed call gave, in short."""
        return short(str(self.data.get("reason") or self.percept.content), _REASON)


@dataclass(frozen=True, slots=True)
class ObservedFact:
    """One observation of a fact."""

    cycle: int
    seq: int
    value: Any
    own: bool
    """True if the agent's own action was expected to bring the fact about."""
    failed: bool = False
    """True if it came with an action that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRecord:
    """A record of long-term memory, and where the trace first shows it."""

    seq: int
    cycle: int
    record: Record


class ObservedCycle:
    """One cycle, of a plain run one turn: what was known, what each phase gave, what came back."""

    def __init__(
        self, run: RunHistory, cycle: int, state: Mapping[str, Any] | None = None, goal: str = ""
    ) -> None:
        self.run = run
        self.cycle = cycle
        self.state: Mapping[str, Any] = state or {}
        """The perceptual state that it deliberated on."""
        self.goal = goal
        self.entries: list[Entry] = []
        """Its records but snapshots and percepts."""
        self.returns: list[Return] = []
        self._recalled = self._decided = False

    def add(self, seq: int, record: TraceRecord) -> None:
        """Adds the next record."""
        self.entries.append(Entry.model_construct(seq=seq, body=record))
        self._recalled = self._recalled or isinstance(record, RetrievalOutcome)
        hook = isinstance(record, Note) and record.about == "hook"
        self._decided = self._decided or hook or record.record in ("outcome", "intent")

    def ends_before(self, record: TraceRecord) -> bool:
        """Whether a record is the first of the next cycle."""
        if isinstance(record, RetrievalOutcome):
            return self._decided
        return not self._recalled and _at_work(record) not in (None, self.cycle)

    # ---- what its phases gave ----

    def complete(self) -> Self:
        """Reads its records, of which there are no more."""
        summary = self.summary = summarize_cycle(
            (one.body for one in self.entries), cycle=self.cycle
        )
        retrieval, execution = summary.retrieval, summary.execution
        self.recalled = tuple(hit.record for hit in retrieval.records) if retrieval else ()
        self.constraints = retrieval.constraints if retrieval else ()
        self.evaluations = summary.evaluation.evaluations if summary.evaluation else ()
        self.chosen = summary.selection.candidate_id if summary.selection else None
        self.executed = execution.executed if execution else ()
        self.response = execution.response if execution else None
        kinds = ("outcome", "model_call", "intent", "turn_end")
        shown = (one.seq for one in self.entries if one.body.record in kinds)
        self.first = min(shown, default=0)
        """Number of its earliest record that shows it at work."""
        return self

    @cached_property
    def claims(self) -> list[Claim]:
        """What the recalled records say."""
        return [claim for one in self.recalled for claim in self.run.domain.record_claims(one)]

    def candidate(self, name: str | None) -> Candidate | None:
        """The proposed candidate of this id."""
        proposed = (one.candidate for one in self.summary.candidates)
        return next((one for one in proposed if one.id == name), None)

    def projection(self, name: str | None) -> dict[str, Any] | None:
        """What the candidate of this id was predicted to lead to."""
        judged = next((one for one in self.evaluations if one.candidate_id == name), None)
        return judged.projection if judged else None

    def calls(self, phase: Phase | None) -> list[ModelCall]:
        """The model calls of a phase, of a plain run those of none."""
        return [call for call in self.summary.calls if call.phase is phase]

    def unanswered(self, phase: Phase) -> bool:
        """Whether a phase had to do without the model's answer: its last call failed."""
        calls = self.calls(phase)
        return bool(calls) and calls[-1].error is not None

    # ---- what followed from that, as far as the domain knows ----

    def expected(self, returned: Return) -> Facts:
        """What the action behind a return was predicted to bring about."""
        cause = returned.percept.caused_by
        done = next((one for one in self.executed if one.intent_id == cause), None)
        projection = self.projection(done.candidate_id) if done else None
        return {} if projection is None else self.run.domain.expected(returned.before, projection)

    def circumstances(self, claims: Sequence[Claim], state: Any = None) -> Circumstances:
        """What was known in the cycle, these claims taken for true; or in another state."""
        return Circumstances(
            state=self.state if state is None else state,
            goal=self.goal,
            constraints=self.constraints,
            recalled=tuple(claims),
            observed=self.run.latest,
        )

    def remaining(self, claims: Sequence[Claim], state: Any = None) -> float | None:
        """Actions to the goal from the cycle's state, or from another one, some claims believed."""
        return self.run.domain.remaining(self.circumstances(claims, state))

    def has_way(self, claims: Sequence[Claim]) -> bool:
        """Whether there is a way to the goal, and it is not reached."""
        left = self.remaining(claims)
        return left is not None and 0 < left < inf

    def no_nearer(self, claims: Sequence[Claim]) -> bool:
        """Whether the action is predicted to bring the goal no nearer."""
        projection = self.projection(self.chosen)
        if projection is None or projection == self.state:
            return False
        before = self.remaining(claims)
        if not before or before == inf:
            return before == 0
        after = self.remaining(claims, projection)
        return after is not None and after >= before

    def wasted(self, claims: Sequence[Claim]) -> bool:
        """Whether what it did brought the goal no nearer, these claims taken for true."""
        return self.no_nearer(claims) if self.response is None else self.has_way(claims)

    # ---- evidence ----

    def at(self, phase: Phase, text: str) -> Evidence:
        """A phase's outcome as evidence; the earliest record of the cycle where it has none."""
        return self.shown_by(self.summary.outcomes.get(phase), text, phase)

    def shown_by(
        self, record: TraceRecord | None, text: str, phase: Phase | None = None
    ) -> Evidence:
        """One of its records as evidence."""
        seqs = (one.seq for one in self.entries if one.body is record)
        return Evidence(seq=next(seqs, self.first), cycle=self.cycle, phase=phase, text=text)

    def returned(self, one: Return, text: str) -> Evidence:
        """A return as evidence."""
        return Evidence(seq=one.seq, cycle=self.cycle, phase=Phase.EXECUTION, text=text)

    def failure(
        self, failure: str, cause: Cause | None, reason: str, *evidence: Evidence, fact: str = ""
    ) -> Diagnosis:
        """A diagnosis of this cycle."""
        return Diagnosis(
            cycle=self.cycle,
            failure=failure,
            cause=cause,
            reason=reason,
            evidence=evidence,
            fact=fact,
        )


@dataclass(slots=True)
class RunHistory:
    """The run so far and a few cycles ahead, as far as rules need it."""

    domain: DomainKnowledge
    ahead: deque[ObservedCycle] = field(default_factory=deque[ObservedCycle])
    """The cycles that follow the one that is judged."""
    records: OrderedDict[str, KnownRecord] = field(default_factory=OrderedDict[str, KnownRecord])
    """Records that exist, by id."""
    failed_calls: dict[str, str] = field(default_factory=dict[str, str])
    """For plain runs: why calls failed, by the call."""
    achieved: set[str] = field(default_factory=set[str])
    """Facts that own actions changed."""
    misperceived: dict[str, int] = field(default_factory=dict[str, int])
    """The last cycle in which a wrong value of a fact was perceived, by the fact."""
    taken: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Tools, each with a part of the state that took a value of its name from a return."""
    latest: dict[str, Any] = field(default_factory=dict[str, Any])
    """The last observation of each fact."""
    _observed: OrderedDict[str, deque[ObservedFact]] = field(
        default_factory=OrderedDict[str, deque[ObservedFact]]
    )
    _goal: str = ""
    _before: ObservedCycle | None = None
    """The cycle before; None where it ended its turn."""

    def cycles(self, entries: Iterable[Entry | TraceRecord]) -> Iterator[ObservedCycle]:
        """The cycles of a trace, in order; one is held at a time.

        What is perceived belongs to the cycle before, since that is judged by it. A cycle begins
        with its Retrieval; of a plain run, a turn with its first model call, verdicts or intent.
        """
        state, goal, known = dict[str, Any](), "", False
        cycle: ObservedCycle | None = None
        for index, entry in enumerate(entries):
            seq, record = (entry.seq, entry.body) if isinstance(entry, Entry) else (index, entry)
            if isinstance(record, Snapshot):
                if record.reason != "cycle" or not known:
                    memory, known = record.working_memory, True
                    state = dict(memory.get("perceptual_state") or {})
                    goal = str(memory.get("goal") or "")
            elif isinstance(record, Percept):
                before = state
                state = merge_patch(state, record.state_patch) if record.state_patch else state
                goal = record.content if record.sets_goal else goal
                if cycle is not None and record.kind is not PerceptKind.MESSAGE:
                    cycle.returns.append(Return(seq, record, before, state))
            else:
                if cycle is not None and cycle.ends_before(record):
                    yield cycle.complete()
                    cycle = None
                begun = _at_work(record)
                if cycle is None and begun is not None:
                    cycle = ObservedCycle(self, begun, state, goal)
                if cycle is not None:
                    cycle.add(seq, record)
        if cycle is not None:
            yield cycle.complete()

    def know(self, record: Record, seq: int = 0, cycle: int = 0) -> None:
        """Adds a record that is known to exist."""
        self.records.setdefault(record.id, KnownRecord(seq=seq, cycle=cycle, record=record))
        while len(self.records) > _RECORDS:
            self.records.popitem(last=False)

    def begin(self, cycle: ObservedCycle) -> None:
        """Adds what a cycle starts from, before it is judged."""
        facts = self.domain.goal_facts(cycle.goal)
        begun: list[Facts] = []
        if cycle.goal != self._goal:
            self._goal = cycle.goal
            begun.append(facts)
        if not self._observed or len(self._observed) == len(facts):
            begun.append(self.domain.facts(cycle.state))
        for name, value in (item for one in begun for item in one.items()):
            self._note(name, ObservedFact(cycle.cycle, cycle.first, value, own=False))

    def end(self, cycle: ObservedCycle) -> None:
        """Adds what a judged cycle brought."""
        self._before = cycle if cycle.summary.turn_end is None else None
        for returned in cycle.returns:
            if len(self.taken) < _FACTS:
                self.taken |= returned.taken()
            expected = cycle.expected(returned)
            before: Facts = self.domain.facts(returned.before) if expected else {}
            for name, value in self.domain.facts(returned.after).items():
                own = _own(name, value, expected, returned)
                self._note(name, ObservedFact(cycle.cycle, returned.seq, value, own=own))
                if own and before.get(name) != value:
                    self.achieved.add(name)
        retrieval = cycle.at(Phase.RETRIEVAL, "")
        for record in cycle.recalled:
            self.know(record, retrieval.seq, cycle.cycle)
        for entry in cycle.entries:
            if isinstance(entry.body, Written) and entry.body.what == "record":
                with suppress(ValidationError):  # a trace may hold anything; `verify` reports it
                    record = Record.model_validate(entry.body.content)
                    self.know(record, entry.seq, cycle.cycle)

    def misled_by(self, fact: str) -> int | None:
        """The cycle of the last observation of a fact, if that was wrong; None otherwise."""
        observed, wrong = self._observed.get(fact), self.misperceived.get(fact)
        return wrong if observed and observed[-1].cycle == wrong else None

    def history(self, fact: str) -> Sequence[ObservedFact]:
        """What was observed of a fact so far, the oldest first."""
        return tuple(self._observed.get(fact, ()))

    def later(self, fact: str, cycle: ObservedCycle, after: int) -> list[ObservedFact]:
        """What is observed of a fact in the cycles ahead, from a record on."""
        found: list[ObservedFact] = []
        for following in (cycle, *self.ahead):
            for returned in (one for one in following.returns if one.seq > after):
                facts = self.domain.facts(returned.after)
                if fact in facts:
                    own = _own(fact, facts[fact], following.expected(returned), returned)
                    failed = returned.percept.is_error
                    at = following.cycle, returned.seq
                    found.append(ObservedFact(*at, facts[fact], own=own, failed=failed))
        return found

    def settled(self, cycle: ObservedCycle, intent: str | None) -> Settlement | None:
        """What became of an action of unknown outcome, where the next cycles show it."""
        for following in (cycle, *self.ahead):
            for percept in (returned.percept for returned in following.returns):
                if percept.settlement is not None and intent == percept.caused_by:
                    return percept.settlement
        return None

    def takes(self, cycle: ObservedCycle, source: str, name: str) -> bool:
        """Whether a return of a tool, earlier or in the cycles ahead, set this part of the state.

        That is: to the value of this name that it gave.
        """
        ahead = (one for following in (cycle, *self.ahead) for one in following.returns)
        return (source, name) in self.taken or any((source, name) in one.taken() for one in ahead)

    def recurs(self, cycle: ObservedCycle) -> bool:
        """Whether a cycle repeats the one before it, in its turn, a rejection included."""
        if self._before is None or not cycle.executed:
            return False
        (rejected, done), (now_rejected, now_done) = _essence(self._before), _essence(cycle)
        return done == now_done and bool(rejected & now_rejected)

    def _note(self, name: str, observation: ObservedFact) -> None:
        self._observed.setdefault(name, deque(maxlen=_OBSERVATIONS)).append(observation)
        self.latest[name] = observation.value
        while len(self._observed) > _FACTS:
            oldest, _ = self._observed.popitem(last=False)
            self.latest.pop(oldest, None)


def _essence(cycle: ObservedCycle) -> tuple[set[tuple[str, ...]], list[tuple[str, ...]]]:
    """What a cycle rejected and what it did, in a form that can be compared with another's."""
    rejected = {
        (one.candidate.action, one.candidate.raw_arguments, one.rejected_by.constraint)
        for one in cycle.summary.rejected
        if one.rejected_by is not None
    }
    return rejected, [(one.action, str(one.arguments), one.result) for one in cycle.executed]


def _at_work(record: TraceRecord) -> int | None:
    """The cycle that a record shows at work, if it may be the first of one."""
    if isinstance(record, Note):
        begins = record.about == "hook" or "verdicts" in record.details
        return record.cycle if begins else None
    return record.cycle if isinstance(record, RetrievalOutcome | ModelCall | Intent) else None


def _own(fact: str, value: Any, expected: Facts, returned: Return) -> bool:
    """Whether the agent's own action was to bring the fact about, and did not fail."""
    return not returned.percept.is_error and fact in expected and expected[fact] == value
