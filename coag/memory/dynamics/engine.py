"""The dynamics of one memory: what `LongTermMemory` asks at each write, recall and removal."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from coag.errors import RecordStoreError
from coag.memory.facts import trust_of
from coag.memory.write_policy import Remembered
from coag.schema import Clock, Imported, Mood, Record, SystemClock, Trust, Value
from coag.store import RecordStore

from .aging import first_confidence, heard, schema_fits, with_schema
from .appraisal import Appraise, VaderAppraisal
from .archive import MemoryArchive
from .encoding import encode
from .features import ContentFeatures, read_features
from .file import DynamicsFile
from .forgetting import is_exempt, used
from .links import RecordLinks
from .matters import Matters
from .mood import MoodState
from .persona import Persona, note_owner
from .schemas import SchemaClusters
from .settings import MemoryDynamicsSettings, Preset, Traits
from .states import DAY, RecordState, RecordStates, seconds
from .vectors import RecordVectors
from .whole import StoreWithArchive

_LOG = logging.getLogger(__name__)
_SAME_RECALL = 60.0
"""Seconds in which a question with the same answer is the same recall: a turn asks it in every
cycle."""
_CONTAGION = 0.5
"""Share of the way to the feeling of a text of full valence that the mood goes."""
_QUESTIONS = 32
"""Questions that are remembered for that."""

_Fitting = Callable[[RecordState], RecordState]
"""What lets a new state fit what is known."""


class MemoryDynamics:
    """How the memory of one owner changes with time, mood and use.

    Args:
        settings: The mechanisms, or the name of a preset: `assistant`, `companion`, `npc`, `plain`.
        path: The file that stores the dynamics; None for RAM. Several owners may share one.
        owner: Whose dynamics these are, e.g. the agent's name.
        clock: Gives the time of everything that ages; None for that of the memory.
        appraise: Says what a text feels like; None for VADER where the settings have a mood.

    Raises:
        ConfigurationError: There is no such preset, or VADER is not installed.
    """

    def __init__(
        self,
        settings: MemoryDynamicsSettings | Preset = "assistant",
        *,
        path: Path | str | None = None,
        owner: str = "agent",
        clock: Clock | None = None,
        appraise: Appraise | None = None,
    ) -> None:
        self.given_settings: MemoryDynamicsSettings | Preset = settings
        preset = isinstance(settings, str)
        self.settings = MemoryDynamicsSettings.preset(settings) if preset else settings
        self._plain = self.settings.is_plain
        self.owner = owner
        self.given_clock = clock
        self.clock: Clock = clock or SystemClock()
        self.given_appraise = appraise
        self.appraise = appraise or (VaderAppraisal() if self.settings.mood else None)
        self.file = DynamicsFile(None if path is None else Path(path))
        note_owner(self.file, owner, self.settings)
        self.states = RecordStates(self.file, owner)
        self.archive = MemoryArchive(self.file)
        linked = self.settings.links
        self.links = None if linked is None else RecordLinks(self.file, owner, linked)
        """What ties records that were recalled together; None where that is off."""
        self.matters = None if self.settings.interference is None else Matters(self.file, owner)
        """Which records yield to others that say otherwise; None where that is off."""
        self.schemas = SchemaClusters(self.file, owner)
        self.persona = Persona(self.file, owner, self.settings.traits or Traits())
        """The versions of the personality; without traits in the settings it has no effect."""
        self.vectors = RecordVectors()
        self.random = random.Random(self.settings.seed)
        self._mood = MoodState(self.file, owner, self.settings.mood_half_life)
        self._asked: dict[tuple[str, ...], float] = {}

    @property
    def acts(self) -> bool:
        """Whether anything is at work; a plain memory is as one without dynamics."""
        return not self._plain

    def keeping_time(self, clock: Clock | None) -> Clock:
        """The clock for a memory that was given one or none; this follows it unless it has one."""
        if self.given_clock is None:
            self.clock = clock or self.clock
        return clock or self.clock

    # ---- Personality and mood ----

    @property
    def traits(self) -> Traits | None:
        """The personality that holds now; None where the settings have none."""
        return None if self.settings.traits is None else self.persona.traits

    @property
    def mood(self) -> Mood:
        """The mood now, as far as it has come back to the baseline of the personality."""
        return self._mood.now(self._now(), self.traits)

    def mood_at(self, now: float, traits: Traits | None) -> Mood | None:
        """The mood at a time, in POSIX seconds, of such a personality; None without moods."""
        return self._mood.now(now, traits) if self.settings.mood else None

    def feel(self, mood: Mood, share: float = 1.0) -> Mood:
        """Takes on a mood, or a share of it, and gives what it is then.

        Raises:
            ValueError: The share is not between 0 and 1.
        """
        return self._mood.feel(mood, share, self._now(), self.traits)

    def hear(self, text: str) -> Mood:
        """Takes on some of the feeling of what somebody says, and gives the mood then.

        The more a text pleases or saddens, the more of it; without a mood in the settings, nothing.
        """
        if not self.settings.mood or self.appraise is None or not text.strip():
            return self.mood
        said = self.appraise(text)
        share = _CONTAGION * abs(said.valence)
        return self.feel(said, share) if share else self.mood

    # ---- Writing ----

    async def encoded(
        self,
        results: Sequence[Remembered],
        said_by: Sequence[Trust],
        store: RecordStore,
        read: Mapping[str, ContentFeatures] | None = None,
    ) -> None:
        """Makes the states of remembered records; a repeated one is used, and as sure as at first.

        If the file cannot be written, that is logged: the records are stored, and get their
        states when they are first recalled.
        """
        records = list({one.record.id: one.record for one in results}.values())
        new = [one.record for one in results if one.new and not one.merged]
        try:
            if self.settings.retrieval_induced_forgetting is not None:
                await self.vectors.of(new, store)  # recalls compare them
            fits = await self._schema_fits(new, store)
            await self.run(lambda: self._encode(records, fits, read or {}))
            now, said = self._now(), zip(results, said_by, strict=True)
            await self.compare([(one.record, trust, now) for one, trust in said], store)
        except RecordStoreError as error:
            _LOG.warning("Records are stored, but have no state yet. %s", error)

    def _encode(
        self, records: Sequence[Record], fits: _Fitting, read: Mapping[str, ContentFeatures]
    ) -> None:
        now, traits = self._now(), self.traits
        mood = self.mood_at(now, traits)
        known = self.states.get([one.id for one in records])
        fresh = {
            one.id: fits(self._state_of(one, now, mood, traits, read.get(one.id)))
            for one in records
            if one.id not in known
        }
        with self.file.transaction():
            known = self.states.get(list(known))
            again = [
                self._heard(known[one.id], one, now)._replace(faded_at=None)
                for one in records
                if one.id in known
            ]
            self.states.put([*again, *fresh.values()])

    def _heard(self, state: RecordState, record: Record, now: float) -> RecordState:
        """The state of what is said again: what only untrusted sources say gets no surer by it."""
        sure = 1.0 if trust_of(record) is not Trust.UNTRUSTED else state.confidence
        return heard(used(state, now, self.settings), now, sure)

    async def compare(
        self, said: Iterable[tuple[Record, Trust, float]], store: RecordStore
    ) -> None:
        """Notes which records yield to what was said; see `Matters.compared`."""
        if self.matters is not None:
            await self.run(await self.matters.compared(said, store))

    async def _schema_fits(self, records: Sequence[Record], store: RecordStore) -> _Fitting:
        """What lets new states fit the clusters of what is known."""
        centroids = {} if self.settings.schema_encoding is None else self.schemas.centroids()
        if not centroids:
            return lambda state: state
        vectors = await self.vectors.of(records, store)
        fits = schema_fits(vectors, centroids, self.settings, self.traits)
        return lambda state: with_schema(state, fits.get(state.record), self.settings)

    def met(self, records: Sequence[Record], now: float) -> list[RecordState]:
        """The states of records that have none: they are as old as they are, and fade from now."""
        traits = self.traits if records else None
        return [
            self._state_of(
                one, min(seconds(one.created_at), now), one.dynamics.mood, traits
            )._replace(used_at=now)
            for one in records
        ]

    def _state_of(
        self,
        record: Record,
        at: float,
        mood: Mood | None,
        traits: Traits | None,
        features: ContentFeatures | None = None,
    ) -> RecordState:
        state = encode(
            record.id,
            features or read_features(record, self.appraise),
            at=at,
            settings=self.settings,
            traits=traits,
            mood=mood,
            importance=record.dynamics.importance,
            exempt=is_exempt(record, self.settings),
            may_flash=trust_of(record) is not Trust.UNTRUSTED,
        )
        sure = first_confidence(record, self.settings)
        return state if sure == state.confidence else state._replace(confidence=sure)

    # ---- Recall ----

    def repeats(self, query: str, kept: Iterable[str], now: float) -> bool:
        """Whether the same question was answered by the same records within a minute."""
        key = (query, *kept)
        before = self._asked.pop(key, None)
        repeated = before is not None and 0.0 <= now - before < _SAME_RECALL
        self._asked[key] = before if repeated and before is not None else now
        while len(self._asked) > _QUESTIONS:
            del self._asked[next(iter(self._asked))]
        return repeated

    def sample(self, most: int, now: float, age: float) -> list[RecordState]:
        """Some states of records that are so many days old at least, drawn at random.

        The ids of records are hashes, so those behind a random one are a random choice.
        """
        beginning = f"{self.random.getrandbits(128):032x}"
        return self.states.sample(beginning, now - age * DAY, most)

    # ---- Removal, and what comes back ----

    def whole(self, store: RecordStore) -> StoreWithArchive:
        """The store with its archive; what is removed there is removed everywhere here, too."""
        return StoreWithArchive(
            store, self.archive, self.returned, self.removed, self.states.distrust
        )

    def removed(self, ids: Sequence[str]) -> None:
        """Forgets all that was learned of records that are removed, of every owner.

        That is their states with their gists, and their links; the archive loses them with the
        store, see `whole`.

        Raises:
            RecordStoreError: The file cannot be written; then nothing must be removed.
        """
        with self.file.transaction():
            self.schemas.removed(ids)
            if self.matters is not None:
                self.matters.removed(ids)
            self.file.remove(ids)
        self.vectors.drop(ids)

    def returned(self, ids: Sequence[str]) -> None:
        """Notes that records came back from the archive: they count as used, and fade again."""
        with self.file.transaction():
            now = self._now()
            back = (used(one, now, self.settings) for one in self.states.get(ids).values())
            self.states.put([one._replace(faded_at=None) for one in back])

    # ---- The file ----

    async def run(self, work: Callable[[], None]) -> None:
        """Does short work on the file; in a thread where it has to wait for somebody who writes.

        To hand it to a thread takes longer than the work itself.
        """
        if not self.file.at_once(work):
            await asyncio.to_thread(work)

    def config(self) -> MemoryDynamicsConfig:
        """How to open them again; what those in RAM know is not part of it.

        Raises:
            ConfigurationError: The clock or the appraisal cannot be imported.
        """
        clock, appraise = self.given_clock, self.given_appraise
        return MemoryDynamicsConfig(
            settings=self.given_settings,
            path=None if self.file.path is None else str(self.file.path),
            owner=self.owner,
            clock=None if clock is None or type(clock) is SystemClock else Imported.of(clock),
            appraise=None if appraise is None else Imported.of(appraise),
        )

    def apart(self) -> MemoryDynamics:
        """The same mechanisms in RAM, which know nothing yet: for replays and forks."""
        return MemoryDynamics(
            self.settings, owner=self.owner, clock=self.given_clock, appraise=self.appraise
        )

    def close(self) -> None:
        """Lets go of the file; closing twice does no harm."""
        self.file.close()

    def _now(self) -> float:
        return seconds(self.clock.now())


class MemoryDynamicsConfig(Value):
    """The declarative form of `MemoryDynamics`: what is at work and where its file is."""

    settings: Preset | MemoryDynamicsSettings
    path: str | None = None
    """None for RAM."""
    owner: str = "agent"
    clock: Imported | None = None
    """None for that of the memory."""
    appraise: Imported | None = None
    """None for VADER where the settings have a mood."""

    def open(self) -> MemoryDynamics:
        """The dynamics.

        Raises:
            ConfigurationError: Something that it names does not exist.
        """
        return MemoryDynamics(
            self.settings,
            path=self.path,
            owner=self.owner,
            clock=None if self.clock is None else self.clock.get(),
            appraise=None if self.appraise is None else self.appraise.get(),
        )
