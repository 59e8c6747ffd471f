"""Cycles as scenes, and the story that they tell."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import ValidationError

from coag.schema import (
    Candidate,
    Entry,
    Evaluation,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    Record,
    RetrievalOutcome,
    SelectionOutcome,
    Settlement,
    Snapshot,
    TraceRecord,
    TurnEnd,
    Written,
    merge_patch,
)

from .causes import Circumstances, Claim, Domain, Evidence, Facts, short

# ---- From the records of a trace to scenes: one cycle each, with what it came to ----


RAW = 200
"""Characters of a model's answer that are kept."""


@dataclass(frozen=True, slots=True)
class Call:
    """A model call without its messages."""

    phase: Phase | None
    attempt: int
    error: str | None
    raw: str
    """The beginning of the answer."""
    empty: bool
    """True if the answer holds neither text nor tool calls."""


@dataclass(frozen=True, slots=True)
class Return:
    """What came back of an action, and the state that it led to."""

    seq: int
    percept: Percept
    before: Mapping[str, Any]
    """The perceptual state as it was."""
    after: Mapping[str, Any]
    """The perceptual state as it became."""


@dataclass(slots=True)
class Scene:
    """One cycle: what was known, what each phase gave, and what came back."""

    cycle: int
    state: Mapping[str, Any]
    """The perceptual state that it deliberated on."""
    goal: str
    outcomes: dict[Phase, tuple[int, Outcome]] = field(
        default_factory=dict[Phase, tuple[int, Outcome]]
    )
    """Each phase's outcome with its number."""
    calls: list[tuple[int, Call]] = field(default_factory=list[tuple[int, Call]])
    notes: list[tuple[int, Note]] = field(default_factory=list[tuple[int, Note]])
    intents: list[tuple[int, Intent]] = field(default_factory=list[tuple[int, Intent]])
    receipts: list[tuple[int, Receipt]] = field(default_factory=list[tuple[int, Receipt]])
    returns: list[Return] = field(default_factory=list[Return])
    written: list[tuple[int, Record]] = field(default_factory=list[tuple[int, Record]])
    end: tuple[int, TurnEnd] | None = None
    """The end of its turn, where it was the last cycle of one."""

    @property
    def retrieval(self) -> RetrievalOutcome | None:
        """What Retrieval gave."""
        found = self.outcomes.get(Phase.RETRIEVAL)
        return cast("RetrievalOutcome", found[1]) if found else None

    @property
    def reasoning(self) -> ReasoningOutcome | None:
        """What Reasoning gave."""
        found = self.outcomes.get(Phase.REASONING)
        return cast("ReasoningOutcome", found[1]) if found else None

    @property
    def proposal(self) -> ProposalOutcome | None:
        """What Proposal gave."""
        found = self.outcomes.get(Phase.PROPOSAL)
        return cast("ProposalOutcome", found[1]) if found else None

    @property
    def evaluation(self) -> EvaluationOutcome | None:
        """What Evaluation gave."""
        found = self.outcomes.get(Phase.EVALUATION)
        return cast("EvaluationOutcome", found[1]) if found else None

    @property
    def selection(self) -> SelectionOutcome | None:
        """What Selection gave."""
        found = self.outcomes.get(Phase.SELECTION)
        return cast("SelectionOutcome", found[1]) if found else None

    @property
    def execution(self) -> ExecutionOutcome | None:
        """What Execution gave."""
        found = self.outcomes.get(Phase.EXECUTION)
        return cast("ExecutionOutcome", found[1]) if found else None

    @property
    def executed(self) -> tuple[Executed, ...]:
        """What was run."""
        return self.execution.executed if self.execution else ()

    def candidate(self, name: str | None) -> Candidate | None:
        """The proposed candidate of this id."""
        proposed = self.proposal.candidates if self.proposal else ()
        return next((one for one in proposed if one.id == name), None)

    def judged(self, name: str | None) -> Evaluation | None:
        """What Evaluation found out about the candidate of this id."""
        judged = self.evaluation.evaluations if self.evaluation else ()
        return next((one for one in judged if one.candidate_id == name), None)

    def at(self, phase: Phase, text: str) -> Evidence:
        """A phase's outcome as evidence; the earliest record of the scene where it has none."""
        seq = self.outcomes[phase][0] if phase in self.outcomes else self.first
        return Evidence(seq=seq, cycle=self.cycle, phase=phase, text=text)

    def unanswered(self, phase: Phase) -> bool:
        """Whether a phase had to do without the model's answer: its last call failed."""
        calls = [call for _, call in self.calls if call.phase is phase]
        return bool(calls) and calls[-1].error is not None

    @property
    def first(self) -> int:
        """Number of its earliest record."""
        seqs = [seq for seq, _ in self.outcomes.values()] + [seq for seq, _ in self.calls]
        seqs += [seq for seq, _ in self.intents] + ([self.end[0]] if self.end else [])
        return min(seqs, default=0)


class Scenes:
    """Reads records and gives a scene when the next one begins; holds one at a time."""

    def __init__(self) -> None:
        self._state: dict[str, Any] = {}
        self._goal = ""
        self._known = False
        self._scene: Scene | None = None

    def of(self, entries: Iterable[Entry | TraceRecord]) -> Iterator[Scene]:
        """The scenes of a trace, in order."""
        for index, entry in enumerate(entries):
            seq, record = (entry.seq, entry.body) if isinstance(entry, Entry) else (index, entry)
            if isinstance(record, Snapshot):
                self._take_snapshot(record)
                continue
            if self._begins(record):
                if self._scene is not None:
                    yield self._scene
                self._scene = self._new(record)
            self._take(seq, record)
        if self._scene is not None:
            yield self._scene

    def _begins(self, record: TraceRecord) -> bool:
        """Retrieval begins a cycle; of a plain run, the first record of a turn does."""
        if isinstance(record, RetrievalOutcome):
            return self._scene is None or bool(self._scene.outcomes) or bool(self._scene.intents)
        if isinstance(record, ModelCall | Intent):
            return self._scene is None or (
                record.cycle != self._scene.cycle and Phase.RETRIEVAL not in self._scene.outcomes
            )
        return False

    def _new(self, record: TraceRecord) -> Scene:
        cycle = 0 if isinstance(record, Percept) else record.cycle
        return Scene(cycle=cycle, state=self._state, goal=self._goal)

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        if snapshot.reason == "cycle" and self._known:
            return
        memory = snapshot.working_memory
        self._state = dict(memory.get("perceptual_state") or {})
        self._goal = str(memory.get("goal") or "")
        self._known = True

    def _take(self, seq: int, record: TraceRecord) -> None:
        if isinstance(record, Percept):
            self._perceive(seq, record)
            return
        scene = self._scene
        if scene is None:
            return
        if isinstance(record, ModelCall):
            empty = not record.raw.strip() and not record.tool_calls
            call = Call(record.phase, record.attempt, record.error, record.raw[:RAW], empty)
            scene.calls.append((seq, call))
        elif isinstance(record, TurnEnd):
            scene.end = (seq, record)
        elif isinstance(record, Written):
            if record.what == "record":
                with suppress(ValidationError):  # a trace may hold anything; `verify` tells of it
                    scene.written.append((seq, Record.model_validate(record.content)))
        elif record.record == "outcome":
            scene.outcomes[record.phase] = (seq, record)
        else:
            _keep(scene, seq, record)

    def _perceive(self, seq: int, percept: Percept) -> None:
        before = self._state
        if percept.state_patch:
            self._state = merge_patch(self._state, percept.state_patch)
        if percept.sets_goal:
            self._goal = percept.content
        if percept.kind is PerceptKind.MESSAGE or self._scene is None:
            return
        self._scene.returns.append(Return(seq, percept, before, self._state))


def _keep(scene: Scene, seq: int, record: TraceRecord) -> None:
    if isinstance(record, Note):
        scene.notes.append((seq, record))
    elif isinstance(record, Intent):
        scene.intents.append((seq, record))
    elif isinstance(record, Receipt):
        scene.receipts.append((seq, record))


AHEAD = 8
"""Cycles that are looked ahead before a change is judged."""
KEPT = 64
"""Observations of one fact that are kept."""
FACTS_KEPT = 5_000
RECORDS_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation of a fact."""

    cycle: int
    seq: int
    value: Any
    own: bool
    """True if the agent's own action was expected to bring the fact about."""
    failed: bool = False
    """True if it came with an action that failed."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What a cycle came to, in a form that can be compared with another cycle's."""

    rejected: frozenset[tuple[str, str, str]]
    """Action, arguments and fatal constraint of each rejected candidate."""
    done: tuple[tuple[str, str, str], ...]
    """Action, arguments and result of what was executed."""


@dataclass(slots=True)
class Story:
    """The run so far and a few cycles ahead, as far as rules need it."""

    domain: Domain
    ahead: deque[Scene] = field(default_factory=deque[Scene])
    """The scenes that follow the one that is judged."""
    records: OrderedDict[str, tuple[int, int, Record]] = field(
        default_factory=OrderedDict[str, tuple[int, int, Record]]
    )
    """Records that exist: number and cycle where the trace first shows each, and the record."""
    recalled_before: dict[str, float] = field(default_factory=dict[str, float])
    """The latest score of each recalled record."""
    failed_calls: dict[str, str] = field(default_factory=dict[str, str])
    """For plain runs: why calls failed, by the call."""
    achieved: set[str] = field(default_factory=set[str])
    """Facts that own actions changed."""
    misperceived: dict[str, int] = field(default_factory=dict[str, int])
    """The last cycle in which a wrong value of a fact was perceived, by the fact."""
    _seen: OrderedDict[str, deque[Seen]] = field(default_factory=OrderedDict[str, deque[Seen]])
    _latest: dict[str, Any] = field(default_factory=dict[str, Any])
    _goal: str = ""
    _before: Deed | None = None
    """What the cycle before came to; None where it ended its turn."""

    def know(self, records: Iterable[Record]) -> None:
        """Takes in records that are known to exist, besides those of the trace."""
        for record in records:
            self._keep(0, 0, record)

    def begin(self, scene: Scene) -> None:
        """Takes in what a scene starts from, before it is judged."""
        if scene.goal != self._goal:
            self._goal = scene.goal
            for name, value in self.domain.goal_facts(scene.goal).items():
                self._note(name, Seen(scene.cycle, scene.first, value, own=False))
        if not self._seen or len(self._seen) == len(self.domain.goal_facts(scene.goal)):
            for name, value in self.domain.facts(scene.state).items():
                self._note(name, Seen(scene.cycle, scene.first, value, own=False))

    def end(self, scene: Scene) -> None:
        """Takes in what a judged scene brought."""
        self._before = _deed(scene) if scene.end is None else None
        for returned in scene.returns:
            expected = self.expected(scene, returned)
            before: Facts = self.domain.facts(returned.before) if expected else {}
            for name, value in self.domain.facts(returned.after).items():
                own = _own(name, value, expected, returned)
                self._note(name, Seen(scene.cycle, returned.seq, value, own=own))
                if own and before.get(name) != value:
                    self.achieved.add(name)
        retrieval = scene.retrieval
        for hit in retrieval.records if retrieval else ():
            seq = scene.outcomes[retrieval.phase][0] if retrieval else scene.first
            self._keep(seq, scene.cycle, hit.record)
            self.recalled_before[hit.record.id] = hit.score
        for seq, record in scene.written:
            self._keep(seq, scene.cycle, record)

    def expected(self, scene: Scene, returned: Return) -> Facts:
        """What the action behind a return was predicted to bring about."""
        done = next(
            (one for one in scene.executed if one.intent_id == returned.percept.caused_by), None
        )
        judged = scene.judged(done.candidate_id) if done else None
        if judged is None or judged.projection is None:
            return {}
        return self.domain.expected(returned.before, judged.projection)

    def misled_by(self, fact: str) -> int | None:
        """The cycle that last told of a fact, if what it told was not so; None otherwise."""
        seen, wrong = self._seen.get(fact), self.misperceived.get(fact)
        return wrong if seen and seen[-1].cycle == wrong else None

    def history(self, fact: str) -> Sequence[Seen]:
        """What was observed of a fact so far, the oldest first."""
        return tuple(self._seen.get(fact, ()))

    def later(self, fact: str, scene: Scene, after: int) -> list[Seen]:
        """What is observed of a fact in what follows, until an own action is to change it."""
        found: list[Seen] = []
        for following in (scene, *self.ahead):
            for returned in following.returns:
                if returned.seq <= after:
                    continue
                expected = self.expected(following, returned)
                facts = self.domain.facts(returned.after)
                if fact in facts:
                    own = _own(fact, facts[fact], expected, returned)
                    failed = returned.percept.is_error
                    found.append(
                        Seen(following.cycle, returned.seq, facts[fact], own=own, failed=failed)
                    )
        return found

    def settled(self, scene: Scene, intent: str | None) -> Settlement | None:
        """What became of an action of unknown outcome, where the next cycles tell."""
        for following in (scene, *self.ahead):
            for returned in following.returns:
                percept = returned.percept
                if percept.settlement is not None and intent == percept.caused_by:
                    return percept.settlement
        return None

    def recurs(self, scene: Scene) -> bool:
        """Whether a cycle repeats the one before it, in its turn, a rejection included."""
        before, now = self._before, _deed(scene)
        return (
            before is not None
            and bool(now.done)
            and before.done == now.done
            and bool(before.rejected & now.rejected)
        )

    def circumstances(
        self, scene: Scene, state: Mapping[str, Any], claims: Sequence[Claim] | None = None
    ) -> Circumstances:
        """What was known in a scene; the claims of what was recalled, if no others are given."""
        retrieval = scene.retrieval
        recalled = self.recalled_claims(scene) if claims is None else claims
        return Circumstances(
            state=state,
            goal=scene.goal,
            constraints=retrieval.constraints if retrieval else (),
            recalled=tuple(recalled),
            observed=self._latest,
        )

    def recalled_claims(self, scene: Scene) -> list[Claim]:
        """What the records say that were recalled in a scene."""
        hits = scene.retrieval.records if scene.retrieval else ()
        return [claim for hit in hits for claim in self.domain.record_claims(hit.record)]

    def _keep(self, seq: int, cycle: int, record: Record) -> None:
        self.records.setdefault(record.id, (seq, cycle, record))
        while len(self.records) > RECORDS_KEPT:
            gone, _ = self.records.popitem(last=False)
            self.recalled_before.pop(gone, None)

    def _note(self, name: str, seen: Seen) -> None:
        self._seen.setdefault(name, deque(maxlen=KEPT)).append(seen)
        self._latest[name] = seen.value
        while len(self._seen) > FACTS_KEPT:
            gone, _ = self._seen.popitem(last=False)
            self._latest.pop(gone, None)


def _deed(scene: Scene) -> Deed:
    rejected: list[tuple[str, str, str]] = []
    for judged in scene.evaluation.evaluations if scene.evaluation else ():
        candidate, died = scene.candidate(judged.candidate_id), judged.died_of
        if candidate is not None and died is not None:
            rejected.append((candidate.action, candidate.raw_arguments, died.constraint))
    done = tuple((one.action, str(one.arguments), one.result) for one in scene.executed)
    return Deed(frozenset(rejected), done)


def _own(fact: str, value: Any, expected: Facts, returned: Return) -> bool:
    """Whether the agent's own action was to bring the fact about, and did not fail."""
    return not returned.percept.is_error and fact in expected and expected[fact] == value


# ---- What a return says, for the rules about what came back ----


_REASON = 240
"""Characters of a reason that are told."""


def told(returned: Return) -> Mapping[str, Any]:
    """What a tool gave back, where it is an object."""
    data: Any = returned.percept.data
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else {}


def why_failed(returned: Return) -> str:
    """The reason that a failed call gave, in short."""
    reason = told(returned).get("reason")
    return short(str(reason or returned.percept.content), _REASON)


def seen_in(returned: Return, scene: Scene, text: str) -> Evidence:
    """A return as evidence."""
    return Evidence(seq=returned.seq, cycle=scene.cycle, phase=Phase.EXECUTION, text=text)
