"""The end of a session, and the beginning of the next: nothing starts cold.

At the end, in five steps: an objective summary, a recap for each witness, the open threads, a
scenario for the next session, and the index of what exists. Each step is a record, or a few,
derived from its sources, so that it is trusted no more and revoked with them. A step that is done
is not done again: an interrupted end continues where it stopped. For games as for support cases,
lessons, or any domain with sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from coag._util.text import cut_to_tokens
from coag.memory.facts import concluded_by, rank_of
from coag.memory.long_term import LongTermMemory
from coag.memory.procedural import ProceduralMemory
from coag.memory.recall import records_of_type
from coag.memory.words import words
from coag.memory.write_policy import within_a_record
from coag.models import StructuredModel
from coag.schema import (
    MemoryKind,
    Provenance,
    Record,
    Scalar,
    Trust,
    Value,
    estimate_tokens,
    folded,
)

from .asking import MODEL_ERRORS, AnswerT, ask_for, one_a_line
from .compressor import telling_words
from .literals import invented
from .notes import IMPORTANCE, importance_of
from .perspectives import (
    ENTITIES,
    EVENT,
    PERSPECTIVE,
    SESSION,
    EventWitness,
    character_of,
)
from .scope_index import ScopeEntry, ScopeIndex, note_scope, scope_index
from .threads import (
    NarrativeThread,
    keep_threads,
    latest_threads,
    moved_on,
    moved_on_by_model,
    thread_states,
    threads_of,
)
from .voices import is_first_person

SESSION_SUMMARY = "session_summary"
"""The type of the records that keep summaries."""
SESSION_RECAP = "session_recap"
"""The type of the records that keep how a witness looks back at a session."""
SCENARIO = "session_scenario"
"""The type of the records that keep what is prepared for the next session."""
OTHERS = "Others"
"""The type, in the index, of what nobody gave a type."""
_KEY_EVENTS = 8
"""Events that a summary by rules quotes."""
_MEMORIES = 3
"""Perspectives that a recap by rules quotes."""
_STALE = 2
"""A thread that so many sessions have not touched is said to be out of sight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """What the end of a session left behind."""

    session: str
    summary: Record | None = None
    """None where nothing happened."""
    recaps: tuple[Record, ...] = ()
    threads: tuple[NarrativeThread, ...] = ()
    """All that is open now."""
    scenario: Record | None = None
    index: ScopeIndex = field(default_factory=ScopeIndex)
    problems: tuple[str, ...] = ()
    """Steps that were done by rules although there is a model, and what was left out; one
    sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart:
    """What the next session begins with."""

    scenario: Record | None = None
    recaps: tuple[tuple[str, tuple[Record, ...]], ...] = ()
    """By witness, the last ones, oldest first."""
    threads: tuple[NarrativeThread, ...] = ()
    index: ScopeIndex = field(default_factory=ScopeIndex)

    @property
    def trust(self) -> Trust:
        """The lowest trust of what is shown."""
        records = [one for _, some in self.recaps for one in some]
        records += [self.scenario] if self.scenario else []
        return min((self.index.trust, *(one.provenance.trust for one in records)), key=rank_of)

    def render(self, budget: int = 1_200) -> str:
        """All of it for a prompt, in at most so many tokens, headings counted.

        The scenario comes first and is cut if it must be; then the recaps, of which the oldest are
        left out first; the index has what room is left.
        """
        parts: list[str] = []
        left = budget

        def add(text: str) -> bool:
            nonlocal left
            cost = estimate_tokens(f"{text}\n\n")
            if text and cost <= left:
                parts.append(text)
                left -= cost
                return True
            return False

        if self.scenario is not None:
            heading = "## Where things stand\n"
            room = left // 2 - estimate_tokens(heading) - 1
            add(heading + cut_to_tokens(self.scenario.text, room) if room > 0 else "")
        most = max((len(some) for _, some in self.recaps), default=0)
        for shown in range(most, 0, -1):
            lines = [f"- {name}: {one.text}" for name, some in self.recaps for one in some[-shown:]]
            if add("\n".join(("## What they remember", *lines))):
                break
        add(self.index.render(max(0, left - 1)))
        return "\n\n".join(parts)


# ---- The forms of a model's answers ----


class SessionSummaryAnswer(Value):
    """What happened, objectively."""

    summary: Annotated[str, Field(min_length=1, max_length=1_500)]


class RecapAnswer(Value):
    """How one who took part looks back."""

    recap: Annotated[str, Field(min_length=1, max_length=1_000)]


class ScenarioAnswer(Value):
    """What the next session begins with."""

    situation: Annotated[str, Field(min_length=1, max_length=600)]
    """Where things stand."""
    hooks: Annotated[tuple[Annotated[str, Field(max_length=300)], ...], Field(max_length=3)]
    """What could happen next, one sentence each."""


# ---- The end ----


async def end_session(
    world: LongTermMemory,
    session: str,
    witnesses: Sequence[EventWitness] = (),
    *,
    model: StructuredModel | None = None,
    procedures: ProceduralMemory | None = None,
    exists: Sequence[ScopeEntry] = (),
) -> SessionEnd:
    """Ends a session: sums it up and prepares the next one.

    What happened are the records of the type `event` that name the session, e.g. those that
    `PerspectiveObserver.observe` kept. A session ends once: what is done already stays. A step for
    which the model fails is done by rules, and the result says so.

    Args:
        world: Where the events are, and where summary, threads, scenario and index go.
        session: Which session.
        witnesses: Who gets a recap, in their own memories: those of the tier `important`.
        model: Who writes; None for rules.
        procedures: Where the prompts `session_...` may be learned.
        exists: What the domain knows to exist; it also gives types to names in the events.

    Raises:
        ValueError: The session has no name.
        RecordStoreError: The store cannot be used; calling it again continues.
    """
    if not session.strip():
        raise ValueError(f"The session needs a name, not {session!r}.")
    ending = _Ending(world, session, model, procedures)
    events = await events_of(world, session)
    if not events:
        return SessionEnd(
            session=session, threads=await threads_of(world), index=await scope_index(world)
        )
    summary = await ending.summary(events)
    recaps = [one for each in witnesses if (one := await ending.recap(each)) is not None]
    threads = await ending.threads(events, summary)
    scenario = await ending.scenario(summary, threads, witnesses)
    index = await ending.index(events, exists)
    return SessionEnd(
        session=session,
        summary=summary,
        recaps=tuple(recaps),
        threads=threads,
        scenario=scenario,
        index=index,
        problems=tuple(ending.problems),
    )


async def events_of(world: LongTermMemory, session: str) -> list[Record]:
    """The events of a session, in order."""
    found = await _of_session(world, MemoryKind.EPISODIC, EVENT, session)
    return sorted(found, key=_place)


def _place(record: Record) -> tuple[float, int]:
    """The place of an event among those of its session: in the order in which they were kept."""
    order = None if record.event is None else record.event.order
    return record.created_at.timestamp(), order or 0


async def _of_session(
    memory: LongTermMemory, kind: MemoryKind, type: str, session: str | None
) -> list[Record]:
    """The current records of the own scope of a type, of one session or of all, newest first."""
    named = None if session is None else {SESSION: session}
    return await records_of_type(
        memory.store, memory.scope, kind, type, most=10_000, metadata=named
    )


class _Ending:
    def __init__(
        self,
        world: LongTermMemory,
        session: str,
        model: StructuredModel | None,
        procedures: ProceduralMemory | None,
    ) -> None:
        self.world = world
        self.session = session
        self.problems: list[str] = []
        self._model = model
        self._procedures = procedures

    async def summary(self, events: Sequence[Record]) -> Record:
        """What happened, objectively."""
        done = await _of_session(self.world, MemoryKind.EPISODIC, SESSION_SUMMARY, self.session)
        if done:
            return done[0]
        texts = [one.text for one in events]
        answer = await self._asked(
            "session_summary", "summary", {}, one_a_line(texts), SessionSummaryAnswer
        )
        written = "" if answer is None else self._true(answer.summary, texts, "summary")
        text = written or _weightiest(events, _KEY_EVENTS)
        importance = max(map(importance_of, events))
        return await self._kept(self.world, SESSION_SUMMARY, text, events, {IMPORTANCE: importance})

    async def recap(self, witness: EventWitness) -> Record | None:
        """How a witness looks back; None for one who remembers nothing of it."""
        if witness.tier != "important":
            return None
        memory = witness.memory
        done = await _of_session(memory, MemoryKind.EPISODIC, SESSION_RECAP, self.session)
        if done:
            return done[0]
        own = await _of_session(memory, MemoryKind.EPISODIC, PERSPECTIVE, self.session)
        if not own:
            return None
        own.sort(key=_place)
        text = await self._recap_by_model(witness, own) or _weightiest(own, _MEMORIES)
        return await self._kept(memory, SESSION_RECAP, text, own)

    async def _recap_by_model(self, witness: EventWitness, own: Sequence[Record]) -> str:
        values = {"name": witness.name, "character": character_of(witness)}
        texts, what = [one.text for one in own], f"recap of {witness.name}"
        answer = await self._asked("session_recap", what, values, one_a_line(texts), RecapAnswer)
        if answer is None:
            return ""
        if not is_first_person(answer.recap):
            self.problems.append(f"The model's {what} was left out: it is not in the first person.")
            return ""
        known = [*texts, " ".join(values.values())]
        return self._true(answer.recap, known, what)

    async def threads(
        self, events: Sequence[Record], summary: Record
    ) -> tuple[NarrativeThread, ...]:
        """All threads that are open after the session."""
        states = await thread_states(self.world)
        every = latest_threads(states, settled=True)
        done = {folded(one.title) for _, one in states if one.session == self.session}
        before = [one for one in every if folded(one.title) not in done]
        moved = {folded(one.title): one for one in moved_on(before, events, self.session)}
        if self._model is not None and not done:
            still_open = [one for one in before if one.status == "open"]
            try:
                found, problems = await moved_on_by_model(
                    self._model, still_open, events, self.session, self._procedures
                )
                self.problems += problems
                # what the events state themselves counts more than what a model reads there
                moved = {folded(one.title): one for one in found} | moved
            except MODEL_ERRORS as error:
                self._failed("threads", error)
        await keep_threads(
            self.world,
            [one for title, one in moved.items() if title not in done],
            provenance=self._own(self.world, events),
            derived_from=[summary.id],
        )
        return await threads_of(self.world)

    async def scenario(
        self,
        summary: Record,
        threads: Sequence[NarrativeThread],
        witnesses: Sequence[EventWitness],
    ) -> Record:
        """What the next session begins with; it takes the place of the last one's."""
        done = await _of_session(self.world, MemoryKind.SEMANTIC, SCENARIO, None)
        current = done[0] if done else None
        if current is not None and current.metadata.get(SESSION) == self.session:
            return current
        feelings = _attitudes(witnesses)
        known = [summary.text, *(one.describe() for one in threads), *feelings]
        situation = summary.text.removeprefix(f"{self.session}: ")
        hooks = [f"{one.title}: what comes next?" for one in threads[:3]]
        answer = await self._asked("session_scenario", "scenario", {}, known, ScenarioAnswer)
        if answer is not None:
            situation = self._true(answer.situation, known, "scenario") or situation
            new = [one for one in answer.hooks if not _is_one_of(one, known)]
            true = (self._true(one, known, "hook of the scenario") for one in new)
            hooks = [one for one in true if one] or hooks
        sessions = await self._sessions()
        lines = [f"After {self.session}: {situation}"]
        lines += [f"Open: {one.describe()}" for one in threads]
        lines += [
            f"Out of sight since {one.session}: {one.title}."
            for one in threads
            if one.session in sessions and len(sessions) - sessions.index(one.session) > _STALE
        ]
        lines += feelings
        lines += [f"Could come next: {one}" for one in hooks]
        stored = await self.world.remember(
            MemoryKind.SEMANTIC,
            within_a_record("\n".join(lines)),
            provenance=self._own(self.world, [summary]),
            type=SCENARIO,
            metadata={SESSION: self.session},
            derived_from=[summary.id, *(one.record for one in threads)],
            supersedes=None if current is None else current.id,
        )
        return stored.record

    async def _sessions(self) -> list[str]:
        """The sessions that were summed up, oldest first."""
        found = await _of_session(self.world, MemoryKind.EPISODIC, SESSION_SUMMARY, None)
        return [str(one.metadata.get(SESSION)) for one in reversed(found)]

    async def index(self, events: Sequence[Record], exists: Sequence[ScopeEntry]) -> ScopeIndex:
        """What exists, with the names that the events brought."""
        provenance = self._own(self.world, events)
        known = await scope_index(self.world)
        said = [one for one in exists if known.find(one.name) != one]
        await note_scope(self.world, said, provenance=provenance)
        known = await scope_index(self.world)
        for event in events:
            names = filter(None, str(event.metadata.get(ENTITIES, "")).split("; "))
            new = [
                ScopeEntry(kind=OTHERS, name=one, description=f"first met in {self.session}")
                for one in names
                if known.find(one) is None and one[0].isalpha()
            ]
            await note_scope(self.world, new, provenance=provenance, derived_from=[event.id])
            known = await scope_index(self.world) if new else known
        return known

    async def _asked(
        self,
        prompt: str,
        what: str,
        values: Mapping[str, str],
        lines: Iterable[str],
        form: type[AnswerT],
    ) -> AnswerT | None:
        """What the model answers for a step; None without one, or where it fails, which is said."""
        if self._model is None:
            return None
        try:
            return await ask_for(self._model, self._procedures, prompt, values, lines, form)
        except MODEL_ERRORS as error:
            self._failed(what, error)
            return None

    async def _kept(
        self,
        memory: LongTermMemory,
        type: str,
        written: str,
        of: Sequence[Record],
        more: Mapping[str, Scalar] | None = None,
    ) -> Record:
        """Remembers what was written of some records."""
        stored = await memory.remember(
            MemoryKind.EPISODIC,
            within_a_record(f"{self.session}: {written}"),
            provenance=self._own(memory, of),
            type=type,
            metadata={SESSION: self.session, **(more or {})},
            derived_from=[one.id for one in of],
        )
        return stored.record

    def _true(self, text: str, sources: Sequence[str], what: str) -> str:
        """A model's text, or nothing where it strays from its sources."""
        telling = telling_words(text)
        known = telling_words(" ".join(sources))
        if strange := invented(text, sources):
            why = f"nothing names {strange[0]!r}"
        elif not telling & known:
            why = f"it speaks of something else: {text[:60]!r}"
        else:
            return " ".join(text.split())
        self.problems.append(f"The model's {what} was left out, since {why}.")
        return ""

    def _failed(self, what: str, error: Exception) -> None:
        self.problems.append(f"The {what} was made by rules: {error}")

    def _own(self, memory: LongTermMemory, of: Sequence[Record]) -> Provenance:
        trust = min((one.provenance.trust for one in of), key=rank_of)
        run = of[0].provenance.run
        return concluded_by(memory.scope, trust, activity=self.session, run=run)


def _weightiest(records: Sequence[Record], most: int) -> str:
    """The texts of the most important records, in their order."""
    best = sorted(records, key=lambda one: -importance_of(one))[:most]
    return " ".join(one.text for one in records if one in best)


def _is_one_of(text: str, sources: Sequence[str]) -> bool:
    """Whether a text is a part of a source, word for word."""
    wanted = " ".join(words(text))
    return any(wanted in " ".join(words(one)) for one in sources)


def _attitudes(witnesses: Sequence[EventWitness]) -> list[str]:
    lines: list[str] = []
    for one in witnesses:
        felt = [
            f"{'trusts' if feeling > 0 else 'distrusts'} {whom}"
            for whom, feeling in one.feelings.items()
            if feeling
        ]
        if felt:
            lines.append(f"{one.name} {', '.join(felt)}.")
    return lines


# ---- The beginning ----


async def start_session(
    world: LongTermMemory, witnesses: Sequence[EventWitness] = (), *, recaps: int = 3
) -> SessionStart:
    """What the next session begins with.

    Raises:
        ValueError: `recaps` is negative.
    """
    if recaps < 0:
        raise ValueError(f"recaps must not be negative, not {recaps!r}.")
    scenarios = await _of_session(world, MemoryKind.SEMANTIC, SCENARIO, None)
    remembered: list[tuple[str, tuple[Record, ...]]] = []
    for one in witnesses:
        own = await _of_session(one.memory, MemoryKind.EPISODIC, SESSION_RECAP, None)
        if own and recaps:
            remembered.append((one.name, tuple(reversed(own[:recaps]))))
    return SessionStart(
        scenario=scenarios[0] if scenarios else None,
        recaps=tuple(remembered),
        threads=await threads_of(world),
        index=await scope_index(world),
    )
