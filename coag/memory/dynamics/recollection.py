"""One recall under dynamics: what is weighed before the choice, and what the recall changes.

`weighed` comes between the search and the choice: what has faded is left out, and strength and
mood add to the scores. `finished` comes behind the choice: what was kept counts as used, its mood
moves, its rivals lose stability, links grow; and what is felt, and what comes unasked, is added.
All changes of one recall are one transaction on the newest states, so that two processes lose none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coag.errors import RecordStoreError
from coag.memory.facts import at_least, trust_of
from coag.schema import FeltRecord, Mood, RecalledRecord, RecalledState, Record, Trust
from coag.store import RecordStore, ranked

from .aging import confidence_now, is_left_out
from .engine import MemoryDynamics
from .forgetting import has_faded, strength_now, used
from .interference import asks_for_earlier, may_yield
from .links import scored_anew
from .recalling import felt, moved_feeling, pick_involuntary, rivals, suppressed
from .settings import InvoluntaryRecall, Traits
from .states import RecordState, days_since, seconds

_SPARE = 2
"""Records that are asked for beside those wanted: spares of what faded, rivals, what is felt. Each
takes the store a little longer; where both memories are asked, half of what comes is not kept."""
_SAMPLE = 50
"""States from which what comes unasked is chosen."""
_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollected:
    """What the dynamics add to a recall."""

    records: tuple[RecalledRecord, ...]
    """The records that were recalled, each with its state."""
    doubted: tuple[str, ...] = ()
    """Ids of those that were left out, being neither trusted nor sure enough."""
    felt: tuple[FeltRecord, ...] = ()
    unasked: tuple[RecalledRecord, ...] = ()
    problems: tuple[str, ...] = ()


class Recollection:
    """What the dynamics of one owner do in the course of one recall.

    `may_come` says whether a record may come unasked: its scope may be read, and it holds.
    """

    def __init__(
        self, dynamics: MemoryDynamics, query: str, may_come: Callable[[Record], bool]
    ) -> None:
        self._dynamics = dynamics
        self._settings = dynamics.settings
        self._query = query
        self._now = seconds(dynamics.clock.now())
        self._may_come = may_come
        self._states: dict[str, RecordState] = {}
        self._new: set[str] = set()
        """Ids of records that had no state yet."""
        self._strange: list[Record] = []
        self._yielding: dict[str, str] = {}
        """By id the id of what a record yields to, and these in turn."""
        self._doubted: dict[str, None] = {}
        self._problems: dict[str, None] = {}
        self.links = dynamics.links
        """What ties records; None where that is off or cannot be read."""
        self._traits: Traits | None = None
        self._mood: Mood | None = None
        self._edition: tuple[int, int] | None = None
        """That of the file before any state was read."""
        if self.links is not None:
            try:
                self.links.check()
            except RecordStoreError as error:
                self._go_without(error)
                self.links = None

    def begin(self) -> None:
        """Reads who recalls, and in which mood; once, and before anything is weighed."""
        if self._edition is not None:
            return
        dynamics, self._edition = self._dynamics, (0, 0)
        try:
            self._traits = dynamics.traits
            self._mood = dynamics.mood_at(self._now, self._traits)
            self._edition = dynamics.file.edition()
        except RecordStoreError as error:
            self._go_without(error)

    def _go_without(self, error: RecordStoreError) -> None:
        """Notes why recall continues by the records alone."""
        self._problems[f"dynamics: {error}"] = None

    def fetch(self, k: int) -> int:
        """How many records to ask the store for where k are wanted."""
        return k + _SPARE

    async def weighed(
        self, hits: Sequence[RecalledRecord], store: RecordStore
    ) -> list[RecalledRecord]:
        """Those that are kept and not doubted too much, with what strength and mood add.

        What replaced one of them comes too, before it.
        """
        self.begin()
        standing = await self._standing(hits, store)
        self._look_up([hit.record for hit in (*hits, *standing.values())])
        known = {hit.record.id: hit.record for hit in (*hits, *standing.values())}
        found: dict[str, RecalledRecord] = {}
        for hit in hits:
            state = self._states.get(hit.record.id)
            if state is None:
                found[hit.record.id] = hit
            elif self._is_kept(state):
                self._doubt(state, hit.record, known)
                found[hit.record.id] = self._raised(hit, state)
        placed = self._in_place(found, standing) if standing else list(found.values())
        return [hit for hit in placed if hit.record.id not in self._doubted]

    def _is_kept(self, state: RecordState) -> bool:
        return state.faded_at is None and not has_faded(state, self._now, self._settings)

    async def finished(
        self,
        recalled: Sequence[RecalledRecord],
        kept: Sequence[RecalledRecord],
        others: Sequence[RecalledRecord],
        store: RecordStore,
    ) -> Recollected:
        """Does what a recall does to memory, and says what there is to say."""
        own = [hit for hit in kept if hit.record.id in self._states]
        beside = [hit for hit in others if hit.record.id in self._states]
        names = [hit.record.id for hit in own]
        try:
            if not self._dynamics.repeats(self._query, names, self._now):
                weaker = await self._rivals(own, beside, store)
                await self._dynamics.run(lambda: self._change(names, weaker))
                if self._strange:
                    said = [(one, trust_of(one), seconds(one.created_at)) for one in self._strange]
                    await self._dynamics.compare(sorted(said, key=lambda one: one[2]), store)
            unasked = await self._unasked({hit.record.id for hit in recalled}, store)
        except RecordStoreError as error:
            self._go_without(error)
            unasked = ()
        self._look_up([hit.record for hit in recalled], own_only=True)
        return Recollected(
            records=tuple(map(self._shown, recalled)),
            felt=tuple(felt(beside, self._settings, self._traits)),
            unasked=unasked,
            doubted=tuple(self._doubted),
            problems=tuple(self._problems),
        )

    # ---- Before the choice ----

    def _look_up(self, records: Sequence[Record], *, own_only: bool = False) -> None:
        missing = [one for one in records if one.id not in self._states]
        if not missing:
            return
        try:
            known = self._dynamics.states.get([one.id for one in missing])
        except RecordStoreError as error:
            self._go_without(error)
            return
        self._states |= known
        if own_only:
            return
        strange = [record for record in missing if record.id not in known]
        self._states |= {one.record: one for one in self._dynamics.met(strange, self._now)}
        self._new |= {record.id for record in strange}
        self._strange += strange

    async def _standing(
        self, hits: Sequence[RecalledRecord], store: RecordStore
    ) -> dict[str, RecalledRecord]:
        """By id of a hit that yields, the record valid in its place, if it may be recalled."""
        matters = self._dynamics.matters
        stated = [hit.record.id for hit in hits if may_yield(hit.record)]
        if matters is None or not stated:
            return {}
        try:
            self._yielding |= matters.yielding(stated)
        except RecordStoreError as error:
            self._go_without(error)
            return {}
        last = {one: _last(one, self._yielding) for one in stated if one in self._yielding}
        if not last:
            return {}
        here = {hit.record.id: hit for hit in hits}
        missing = [one for one in dict.fromkeys(last.values()) if one not in here]
        for record in await store.get(missing) if missing else ():
            if self._may_come(record):
                here[record.id] = RecalledRecord(record=record, score=0.0)
        return {
            one: here[to]
            for one, to in last.items()
            if to in here and at_least(trust_of(here[to].record), trust_of(here[one].record))
        }

    def _doubt(self, state: RecordState, record: Record, known: Mapping[str, Record]) -> None:
        """Notes a record that is left out: untrusted, and less sure than it must be."""
        if trust_of(record) is not Trust.UNTRUSTED:
            return
        better = known.get(_last(record.id, self._yielding), record)
        contradicted = trust_of(better) is not Trust.UNTRUSTED
        sure = confidence_now(state, record, self._now, self._settings, self._traits)
        if is_left_out(sure, record, self._settings, contradicted=contradicted):
            self._doubted[record.id] = None

    def _in_place(
        self, found: Mapping[str, RecalledRecord], standing: Mapping[str, RecalledRecord]
    ) -> list[RecalledRecord]:
        """The hits with what replaced them: it has at least their score, and they have less.

        Where a question is about what was before, both have their own.
        """
        how, placed = self._settings.interference, dict(found)
        for one, other in standing.items():
            hit, state = found.get(one), self._states.get(other.record.id)
            gone = state is not None and not self._is_kept(state)
            if hit is None or how is None or gone or other.record.id in self._doubted:
                continue
            if asks_for_earlier(self._query, hit.record.text, other.record.text):
                continue
            name = other.record.id
            now = placed.get(name, other)
            if now.score < hit.score:
                more = round(hit.score - now.score, _DIGITS)
                placed[name] = scored_anew(now, hit.score - now.score, outdated=more)
            placed[one] = scored_anew(hit, -how.weight, outdated=-how.weight)
        return ranked(placed.values(), len(placed))

    def _raised(self, hit: RecalledRecord, state: RecordState) -> RecalledRecord:
        forgetting, by_strength, by_mood = self._settings.forgetting, 0.0, 0.0
        if forgetting is not None and forgetting.weight:
            left = strength_now(state, self._now, self._settings)
            by_strength = round(forgetting.weight * (2 * left - 1), _DIGITS)
        if self._mood is not None:
            congruence = max(0.0, self._mood.valence * state.valence)
            by_mood = round(self._settings.mood_weight * congruence, _DIGITS)
        if not by_strength and not by_mood:
            return hit
        return scored_anew(hit, by_strength + by_mood, strength=by_strength, mood=by_mood)

    # ---- Behind the choice ----

    async def _rivals(
        self, kept: Sequence[RecalledRecord], others: Sequence[RecalledRecord], store: RecordStore
    ) -> tuple[str, ...]:
        """The rivals of what was kept; what is untrusted weakens none, or it could be made to."""
        how = self._settings.retrieval_induced_forgetting
        if how is None or not kept or not others:
            return ()
        others = others[: how.most]  # the best: to compare takes a vector of each
        trusted = [hit for hit in kept if trust_of(hit.record) is not Trust.UNTRUSTED]
        records = [hit.record for hit in (*trusted, *others)]
        vectors = await self._dynamics.vectors.of(records, store)
        winners, losers = ([hit.record.id for hit in some] for some in (trusted, others))
        return rivals(winners, losers, vectors, self._settings)

    def _change(self, kept: Sequence[str], weaker: Sequence[str]) -> None:
        dynamics, settings, traits = self._dynamics, self._settings, self._traits
        with dynamics.file.transaction():
            there = {one: self._states[one] for one in self._states.keys() - self._new}
            if dynamics.file.edition() != self._edition:
                there = dynamics.states.get(list({*kept, *weaker, *self._new}))
            new = {one: self._states[one] for one in self._new if one not in there}
            newest, changed = new | there, dict[str, RecordState]()
            for one in kept:
                if one in newest:  # else it was removed meanwhile
                    state = newest[one]
                    feeling = moved_feeling(state, self._mood, settings, traits)
                    changed[one] = used(state, self._now, settings, **feeling)
            for one in weaker:
                if one in newest:
                    changed[one] = suppressed(newest[one], settings, traits)
            if new:
                dynamics.states.put(new.values())
            dynamics.states.use(changed.values())
            if dynamics.links is not None and len(kept) > 1:
                best = [one for one in kept if one in newest][: dynamics.links.settings.most]
                dynamics.links.learned(best)
        self._states |= changed

    async def _unasked(self, shown: set[str], store: RecordStore) -> tuple[RecalledRecord, ...]:
        how = self._settings.involuntary_recall
        if how is None:
            return ()
        sample: list[RecordState] = []

        def drawn() -> Iterator[RecordState]:  # read only if chance wills it
            sample.extend(self._dynamics.sample(_SAMPLE, self._now, how.age))
            yield from sample

        chance, settings = self._dynamics.random, self._settings
        picked = pick_involuntary(drawn(), self._now, settings, chance, self._traits)
        if picked is None:
            return ()
        records = {one.id: one for one in await store.get([one.record for one in sample])}
        for one in sample:
            if one.record in records:
                self._doubt(one, records[one.record], {})
        left = {one for one in records if one not in shown and one not in self._doubted}
        able = [
            _calm_if_untrusted(one, records[one.record])
            for one in sample
            if one.record in left and self._may_come(records[one.record])
        ]
        if picked not in able:
            surely = InvoluntaryRecall(chance=1.0, age=how.age)
            settings = settings.model_copy(update={"involuntary_recall": surely})
            picked = pick_involuntary(able, self._now, settings, chance)
        if picked is None:
            return ()
        self._states[picked.record] = picked
        hit = self._shown(RecalledRecord(record=records[picked.record], score=0.0))
        state = None if hit.state is None else hit.state.model_copy(update={"unasked": True})
        return (hit.model_copy(update={"state": state}),)

    def _shown(self, hit: RecalledRecord) -> RecalledRecord:
        record = hit.record
        state = self._states.get(record.id)
        if state is None:
            return hit
        confidence = confidence_now(state, record, self._now, self._settings, self._traits)
        how, last = self._settings.source_confidence, _last(record.id, self._yielding)
        shown = RecalledState(
            gist=state.gist,
            strength=round(strength_now(state, self._now, self._settings), _DIGITS),
            confidence=round(confidence, _DIGITS),
            doubtful=how is not None and confidence < how.shown_below,
            age=round(days_since(state.encoded_at, self._now), _DIGITS),
            flashbulb=state.flashbulb,
            unconfirmed=how is not None and trust_of(record) is Trust.UNTRUSTED,
            yields_to=None if last == record.id else last,
        )
        return RecalledRecord(record=record, score=hit.score, why=hit.why, state=shown)


def _last(name: str, yielding: Mapping[str, str]) -> str:
    """The last record of the chain to which a record yields."""
    seen = {name}
    while (to := yielding.get(name)) is not None and to not in seen:
        seen.add(to)
        name = to
    return name


def _calm_if_untrusted(state: RecordState, record: Record) -> RecordState:
    """The state by which a record may come unasked: the stirring words of strangers count not."""
    return state._replace(arousal=0.0) if trust_of(record) is Trust.UNTRUSTED else state
