"""Several witnesses of one event: each keeps it as it was to him or her; the event itself is kept.

The objective event is a record of its own, and each perspective is derived from it: it is trusted
no more, and revoked with it. A witness reads the perspective alone, since the event lies in another
scope. Not every event is worth a rewriting: three gates decide, and the report says what they did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Field

from coag.errors import ConfigurationError
from coag.memory.dynamics import Appraise, Traits
from coag.memory.facts import concluded_by
from coag.memory.long_term import LongTermMemory
from coag.memory.procedural import ProceduralMemory
from coag.memory.scopes import Scopes
from coag.memory.write_policy import says_the_same, within_a_record
from coag.models import StructuredModel
from coag.schema import (
    Event,
    MemoryKind,
    Moment,
    Mood,
    Provenance,
    Record,
    Scalar,
    Value,
    record_id,
)

from .asking import MODEL_ERRORS, ask_for, numbered
from .literals import holds_literal, literals_of
from .notes import IMPORTANCE, sentences_of
from .voices import describe, in_first_person, is_first_person, told_by

EVENT = "event"
"""The type of the records that keep objective events."""
PERSPECTIVE = "perspective"
"""The type of the records that keep how a witness remembers one."""
SESSION = "session"
"""The key of a record's metadata that names its session."""
ENTITIES = "entities"
"""The key that names who and what took part, divided by semicolons."""
THREAD, PROGRESS, SETTLES = "thread", "thread_progress", "thread_settled"
"""Keys of an event: the matter across sessions that it belongs to, how far that is, whether it ends
with it."""
_AT_ONCE = 10
"""Events in one question."""
_CHARACTERS = 500
"""Of a memory that a model writes; it may be cut off there, within a sentence."""
_SENTENCE_END = re.compile(r"[.!?][\"')\u201d]?(?=\s|$)")

Tier = Literal["important", "combatant", "background"]
"""`important` witnesses get perspectives, `combatant` ones the objective event, others nothing."""


class WitnessedEvent(Value):
    """What happened, objectively."""

    text: str = Field(min_length=1)
    importance: float = Field(default=0.5, ge=0.0, le=1.0)
    entities: tuple[str, ...] = ()
    """Who and what took part; empty for the names in the text."""
    at: Moment | None = None
    place: str = ""
    thread: str = ""
    """The matter across sessions that it belongs to; see `sessions.py`."""
    progress: float | None = Field(default=None, ge=0.0, le=1.0)
    """How far that matter is with it."""
    settles: bool = False
    """Whether that matter ends with it."""

    @property
    def who(self) -> tuple[str, ...]:
        """Who and what took part."""
        return self.entities or literals_of(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWitness:
    """One who may have seen what happened."""

    name: str
    memory: LongTermMemory
    """Where the perspectives go: into its own scope, in the same store as the events."""
    traits: Traits = field(default_factory=Traits)
    mood: Mood | None = None
    feelings: Mapping[str, float] = field(default_factory=dict[str, float])
    """Relationships: whom and what the witness knows, each with a feeling from -1 to 1."""
    tier: Tier = "important"

    def knows(self, event: WitnessedEvent) -> bool:
        """Whether the witness, or somebody whom the witness knows, took part."""
        known = {one.casefold() for one in (self.name, *self.feelings)}
        if event.entities:
            return any(one.casefold() in known for one in event.entities)
        return any(holds_literal(event.text, one) for one in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Perspective:
    """What one witness keeps of one event."""

    witness: str
    event: str
    """The id of the event's record."""
    how: Literal["model", "rules", "objective", "nothing"]
    reason: str = ""
    """Why it is no perspective, or not the model's; empty if it is what was asked for."""
    record: Record | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PerspectiveReport:
    """What became of some events."""

    events: tuple[Record, ...] = ()
    """The objective events."""
    perspectives: tuple[Perspective, ...] = ()
    """One for each witness and event, by witness."""
    calls: int = 0
    """Questions to the model, failed ones included."""


# ---- The form of a model's answer ----


class RememberedEvent(Value):
    """How one event is remembered."""

    number: int
    """Number of the event."""
    text: Annotated[str, Field(max_length=_CHARACTERS)]
    """What is remembered, in the first person."""


class PerspectivesAnswer(Value):
    """One memory for each event."""

    memories: Annotated[tuple[RememberedEvent, ...], Field(max_length=_AT_ONCE)]


class PerspectiveObserver:
    """Keeps events, and how each witness saw them.

    Args:
        events: Where the objective events go.
        model: Who writes the perspectives; None for rules.
        least_importance: Less important events are remembered as they are; 0 to 1.
        appraise: Tells the rules whether an event is good or bad; None for a list of words.
        procedures: Where the prompt `perspective` may be learned.

    Raises:
        ValueError: `least_importance` is out of range.
    """

    def __init__(
        self,
        events: LongTermMemory,
        *,
        model: StructuredModel | None = None,
        least_importance: float = 0.3,
        appraise: Appraise | None = None,
        procedures: ProceduralMemory | None = None,
    ) -> None:
        if not 0.0 <= least_importance <= 1.0:
            raise ValueError(f"least_importance must be 0 to 1, not {least_importance!r}.")
        self.events = events
        self._model = model
        self._least = least_importance
        self._appraise = appraise
        self._procedures = procedures

    async def observe(
        self,
        events: Sequence[WitnessedEvent],
        witnesses: Sequence[EventWitness],
        *,
        provenance: Provenance,
        session: str = "",
    ) -> PerspectiveReport:
        """Keeps events, then how each witness saw them; what was interrupted can be repeated.

        The gates, in order: the witness's tier is `important`; the event's importance is at least
        `least_importance`; the witness or somebody whom he or she knows took part. A witness
        who fails one keeps the objective event, or, in the background, nothing. Where the model
        fails or leaves an event out, rules write that event alone.

        Args:
            events: What happened, in order.
            witnesses: Who was there.
            provenance: Where the events come from; perspectives are trusted no more.
            session: The session they belong to.

        Raises:
            ConfigurationError: A witness's memory is over another store than the events.
            ValueError: An event's text cannot be remembered.
        """
        for one in witnesses:
            if one.memory.store is not self.events.store:
                raise ConfigurationError(
                    f"The memory of witness {one.name!r} is over another store than the events. "
                    "Give both the same store: a perspective is derived from its event."
                )
        kept = [
            await self._keep(event, provenance, session, order)
            for order, event in enumerate(events, 1)
        ]
        report = PerspectiveReport(events=tuple(kept))
        for witness in witnesses:
            report = await self._of_witness(report, witness, list(zip(events, kept, strict=True)))
        return report

    async def _keep(
        self, event: WitnessedEvent, provenance: Provenance, session: str, order: int
    ) -> Record:
        """The record of an event; one in the words of an earlier session's says that it is new."""
        text = event.text
        twin = record_id(MemoryKind.EPISODIC, self.events.scope, text)
        known = await self.events.store.get([twin])
        if known and known[0].metadata.get(SESSION, "") != session:
            text = f"{text} (Again, in {session or 'no session'}.)"
        metadata: dict[str, Scalar] = {IMPORTANCE: event.importance, SESSION: session}
        metadata |= {ENTITIES: "; ".join(event.who)} if event.who else {}
        if event.thread:
            metadata |= {THREAD: event.thread, SETTLES: event.settles}
            metadata |= {} if event.progress is None else {PROGRESS: event.progress}
        stored = await self.events.remember(
            MemoryKind.EPISODIC,
            text,
            provenance=provenance,
            type=EVENT,
            metadata=metadata,
            event=Event(at=event.at, episode=session, order=order, place=event.place),
        )
        return stored.record

    async def _of_witness(
        self,
        report: PerspectiveReport,
        witness: EventWitness,
        events: Sequence[tuple[WitnessedEvent, Record]],
    ) -> PerspectiveReport:
        worth = [one for one in events if not self._gate(witness, one[0])]
        written: dict[str, tuple[str, str]] = {}
        calls = 0
        if self._model is not None:
            for start in range(0, len(worth), _AT_ONCE):
                calls += 1
                written |= await self._by_model(
                    self._model, witness, worth[start : start + _AT_ONCE]
                )
        kept = [await self._kept(witness, event, record, written) for event, record in events]
        own = [one.record.id for one in kept if one.record and one.how in ("model", "rules")]
        dynamics = witness.memory.dynamics
        if dynamics is not None and own:
            states = dynamics.states.get(own).values()
            dynamics.states.put(  # perspectives drift half as fast
                one._replace(perspective=True) for one in states if not one.perspective
            )
        every = (*report.perspectives, *kept)
        return replace(report, perspectives=every, calls=report.calls + calls)

    def _gate(self, witness: EventWitness, event: WitnessedEvent) -> str:
        """Why an event is not rewritten for a witness; empty if it is."""
        if witness.tier != "important":
            return f"{witness.name} is of the tier {witness.tier!r}."
        if event.importance < self._least:
            return f"Its importance {event.importance:g} is below {self._least:g}."
        if not witness.knows(event):
            return f"{witness.name} knows nobody who took part."
        return ""

    async def _by_model(
        self,
        model: StructuredModel,
        witness: EventWitness,
        events: Sequence[tuple[WitnessedEvent, Record]],
    ) -> dict[str, tuple[str, str]]:
        """For each event what the model wrote, or nothing and why; by the ids of the records."""
        values = {"name": witness.name, "character": character_of(witness)}
        lines = numbered(in_first_person(record.text, witness.name) for _, record in events)
        try:
            answer = await ask_for(
                model, self._procedures, "perspective", values, lines, PerspectivesAnswer
            )
        except MODEL_ERRORS as error:
            return {record.id: ("", str(error)) for _, record in events}
        texts = {one.number: _whole_sentences(one.text) for one in answer.memories}
        happened = [record.text for _, record in events]
        happened += [in_first_person(one, witness.name) for one in happened]
        written: dict[str, tuple[str, str]] = {}
        for number, (_, record) in enumerate(events, 1):
            text, reason = texts.get(number, ""), ""
            if not text:
                reason = "The model wrote nothing about it."
            elif _repeats(text, happened):
                reason = "The model repeated the event."
            elif not is_first_person(text):
                reason = "The model did not write in the first person."
            elif any(text == one for one, _ in written.values()):
                reason = "The model wrote the same of another event."
            written[record.id] = "" if reason else text, reason
        return written

    async def _kept(
        self,
        witness: EventWitness,
        event: WitnessedEvent,
        record: Record,
        written: Mapping[str, tuple[str, str]],
    ) -> Perspective:
        if witness.tier == "background":
            return Perspective(
                witness=witness.name,
                event=record.id,
                how="nothing",
                reason=self._gate(witness, event),
            )
        how: Literal["model", "rules", "objective"] = "objective"
        text, reason = record.text, self._gate(witness, event)
        if not reason:
            text, reason = written.get(record.id, ("", ""))
            how = "model" if text else "rules"
            text = text or self._by_rules(witness, event)
        of = record.provenance
        source = of.source if how == "objective" else witness.name
        provenance = concluded_by(
            source, of.trust, activity=of.activity, run=of.run, cycle=of.cycle
        )
        stored = await reaching(witness.memory, self.events.scope).remember(
            MemoryKind.EPISODIC,
            within_a_record(text),
            provenance=provenance,
            type=EVENT if how == "objective" else PERSPECTIVE,
            metadata=record.metadata,
            event=record.event,
            derived_from=[record.id],
        )
        return Perspective(
            witness=witness.name, event=record.id, how=how, reason=reason, record=stored.record
        )

    def _by_rules(self, witness: EventWitness, event: WitnessedEvent) -> str:
        here = {one.casefold() for one in event.entities}
        feelings = {
            name: one
            for name, one in witness.feelings.items()
            if name.casefold() in here or holds_literal(event.text, name)
        }
        return told_by(
            witness.name,
            event.text,
            traits=witness.traits,
            mood=witness.mood,
            feelings=feelings,
            appraise=self._appraise,
        )


def _repeats(text: str, others: Sequence[str]) -> bool:
    """Whether a text has no sentence that is not one of these texts'."""
    known = [sentence for one in others for sentence in sentences_of(one)]
    return all(any(says_the_same(one, other) for other in known) for one in sentences_of(text))


def _whole_sentences(text: str) -> str:
    """A text on one line without a last sentence that was cut off; one that has none as it is."""
    line = " ".join(text.split())
    ends = [found.end() for found in _SENTENCE_END.finditer(line)]
    return line[: ends[-1]] if ends and len(text) >= _CHARACTERS else line


def character_of(witness: EventWitness) -> str:
    """A witness's character in sentences, for a prompt."""
    return describe(witness.name, witness.traits, witness.mood, witness.feelings)


def reaching(memory: LongTermMemory, scope: str) -> LongTermMemory:
    """The same memory, which reads one more scope: to derive from what is there."""
    one = copy(memory)
    reads = tuple(dict.fromkeys((*memory.scopes.reads, scope)))
    one.scopes = Scopes(own=memory.scopes.own, reads=reads, writes=memory.scopes.writes)
    return one
