"""What a diagnosis remembers of a run: observations of facts, records of memory, own deeds."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coag.schema import Record, Settlement

from ._domain import Circumstances, Claim, Domain, Facts
from ._scene import Return, Scene

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
