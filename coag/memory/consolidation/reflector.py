"""The reflector: what notes show beyond one conversation, kept as semantic records.

A reflection is derived from its notes: it is trusted no more than the least trusted of them, is
revoked with each, and lies in the memory's own scope, where default recall finds it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from coag.memory.dynamics import DynamicsFile, Traits
from coag.memory.facts import concluded_by
from coag.memory.long_term import LongTermMemory
from coag.memory.procedural import ProceduralMemory
from coag.memory.recall import records_of_type
from coag.memory.write_policy import MAX_TEXT, within_a_record
from coag.models import StructuredModel
from coag.schema import MemoryKind, Record, Trust, Value
from coag.store import Search

from .asking import MODEL_ERRORS, ask_for, numbered
from .compressor import compress, related, telling_words
from .journal import NoteQueue, file_of
from .literals import invented, literals_of, with_literals
from .notes import IMPORTANCE, OBSERVATION, OUTCOME, NoteType, importance_of, note_type_of
from .steps import SleepWork, StepBatch

REFLECTION = "reflection"
"""The type of the records that keep reflections."""
ASPECT = "reflection"
"""The key of a record's metadata that says the kind of its reflection."""
SUMMARY = "observation_summary"
"""The type of the records that keep merged notes."""
_LEAST = 2
"""Notes that make a pattern."""
_TO_MERGE = 3
"""Related notes that are merged."""
_AT_ONCE = 40
"""Notes in one question."""
_HABITUAL = "always usually often every never again each daily weekly"
_PATTERN_WORDS = frozenset(_HABITUAL.split())


_SAME = 0.6
"""Share of the shorter one's telling words by which two reflections speak of the same."""


class ReflectionKind(StrEnum):
    """What a reflection is about."""

    PREFERENCE = "preference"
    BEHAVIOUR = "behaviour"
    CAPABILITY = "capability"
    RELATIONSHIP = "relationship"
    GOAL = "goal"


_FRAME = frozenset({*ReflectionKind, "noted", "times"})
"""Words that rules put around what they quote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """What notes show together."""

    kind: ReflectionKind
    text: str
    notes: tuple[str, ...]
    """Ids of the records that it is based on."""
    confidence: float = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflected:
    """What one run of `reflect` did."""

    reflections: tuple[Record, ...] = ()
    summaries: tuple[Record, ...] = ()
    """Merged notes."""
    looked_at: int = 0
    """Notes that were looked at for the first time."""
    calls: int = 0
    """Questions to the model, failed ones included."""
    problems: tuple[str, ...] = ()
    """Why notes wait for the next time, or a conclusion was left out; one sentence each."""


# ---- The form of a model's answer ----


class ModelReflection(Value):
    """What notes show together."""

    kind: ReflectionKind
    text: Annotated[str, Field(min_length=1, max_length=400)]
    notes: Annotated[tuple[int, ...], Field(max_length=_AT_ONCE)]
    """Numbers of the notes that it rests on."""
    confidence: Annotated[float, Field(ge=0.0, le=1.0)]


class ReflectionsAnswer(Value):
    """The conclusions; none where the notes show nothing."""

    reflections: Annotated[tuple[ModelReflection, ...], Field(max_length=10)]


# ---- Reflection ----


async def reflect(
    memory: LongTermMemory,
    model: StructuredModel | None = None,
    *,
    file: DynamicsFile | None = None,
    traits: Traits | None = None,
    procedures: ProceduralMemory | None = None,
    least: int = 2,
    most: int = 400,
    dry_run: bool = False,
) -> Reflected:
    """Concludes from the notes that were not looked at yet, and remembers what they show.

    Some notes at a time are merged, reflected on, and then marked as looked at: where a model fails
    or the process is killed, the others wait for the next time. Nothing is stored twice.

    Args:
        memory: Whose notes, and where the reflections go: into its own scope.
        model: Who merges and concludes; None for rules.
        file: Where the observer's notes wait; None for the file of the memory's dynamics or, where
            it has none, for what lineage tells: notes that showed nothing are then looked at again.
        traits: Whose triage merges the notes.
        procedures: Where the prompts `reflect` and `compress` may be learned.
        least: Fewer new notes than this wait.
        most: Notes looked at in one run.
        dry_run: Whether to store nothing: the result has no records, only what would be looked at.
    """
    file = file or file_of(memory)
    queue = None if file is None else NoteQueue(file, memory)
    fresh, gone = await _waiting(memory, queue, most)
    enough = len(fresh) >= least
    if dry_run:
        return Reflected(looked_at=len(fresh) if enough else 0)
    if queue is not None:
        queue.remove(gone)
    if not enough:
        return Reflected()
    result = Reflected()
    for start in range(0, len(fresh), _AT_ONCE):
        some = fresh[start : start + _AT_ONCE]
        try:
            one = await _reflect_on(memory, some, model, traits or Traits(), procedures)
        except MODEL_ERRORS as error:
            waits = f"{len(fresh) - start} note(s) wait for the model: {error}"
            return replace(result, calls=result.calls + 1, problems=(*result.problems, waits))
        if queue is not None:
            queue.remove([note.id for note in some])
        result = Reflected(
            reflections=(*result.reflections, *one.reflections),
            summaries=(*result.summaries, *one.summaries),
            looked_at=result.looked_at + len(some),
            calls=result.calls + one.calls,
            problems=(*result.problems, *one.problems),
        )
    return result


class ReflectStep:
    """The step of sleep that reflects on the notes of the observer, by rules without a model."""

    name = "reflect"

    async def batches(self, work: SleepWork, cursor: str) -> AsyncGenerator[StepBatch]:
        """See `SleepStep`; there is no cursor, since the notes that wait are kept elsewhere."""
        while True:
            done = await reflect(
                work.memory,
                work.model,
                file=work.dynamics.file,
                traits=work.dynamics.traits,
                most=min(_AT_ONCE, max(_LEAST, work.batch)),
                dry_run=work.dry_run,
            )
            work.model_calls += done.calls
            over = work.dry_run or not done.looked_at
            if done.looked_at or done.problems:
                yield StepBatch(
                    last=over,
                    examined=done.looked_at,
                    changed=[one.id for one in (*done.reflections, *done.summaries)],
                    notes=done.problems,
                )
            if over:
                return


async def _waiting(
    memory: LongTermMemory, queue: NoteQueue | None, most: int
) -> tuple[list[Record], list[str]]:
    """The notes that wait longest, by their queue or by lineage; and ids of those that are gone."""
    store, scope = memory.store, memory.scope
    if queue is not None:
        ids = queue.first(most)
        found = {one.id: one for one in await store.get(ids)}
        return [found[one] for one in ids if one in found], [one for one in ids if one not in found]
    looked: set[str] = set()
    for kind, type in ((MemoryKind.SEMANTIC, REFLECTION), (MemoryKind.EPISODIC, SUMMARY)):
        for one in await records_of_type(store, scope, kind, type):
            looked.update(one.lineage.derived_from)
    notes = await records_of_type(store, scope, MemoryKind.EPISODIC, OBSERVATION)
    fresh = [one for one in notes if one.id not in looked]
    return sorted(fresh, key=lambda one: (one.created_at, one.id))[:most], []


async def _reflect_on(
    memory: LongTermMemory,
    notes: Sequence[Record],
    model: StructuredModel | None,
    traits: Traits,
    procedures: ProceduralMemory | None,
) -> Reflected:
    """Reflects on some notes, those of each trust by themselves."""
    problems: list[str] = []
    reflections: list[Record] = []
    summaries: list[Record] = []
    calls = 0
    by_trust: defaultdict[Trust, list[Record]] = defaultdict(list)
    for one in notes:
        by_trust[one.provenance.trust].append(one)
    for trust, same in by_trust.items():
        if model is None:
            found = reflections_of(same)
        else:
            found = await _by_model(model, same, problems, procedures)
            calls += 1
        for one in found:
            reflections.append(await _remembered(memory, one, trust))
        for group in related(same):
            if len(group) >= _TO_MERGE:
                short = await compress(group, traits=traits, model=model, procedures=procedures)
                problems += [short.problem] if short.problem else []
                calls += model is not None
                if len(short.text) > MAX_TEXT:  # a part would lose names and amounts
                    problems.append(f"{len(group)} notes were not merged: together too long.")
                    continue
                summaries.append(await _merged(memory, short.text, group, trust))
    return Reflected(
        reflections=tuple(reflections),
        summaries=tuple(summaries),
        calls=calls,
        problems=tuple(problems),
    )


async def _by_model(
    model: StructuredModel,
    notes: Sequence[Record],
    problems: list[str],
    procedures: ProceduralMemory | None,
) -> list[Reflection]:
    texts = [one.text for one in notes]
    answer = await ask_for(model, procedures, "reflect", {}, numbered(texts), ReflectionsAnswer)
    found: list[Reflection] = []
    for one in answer.reflections:
        of = [notes[n - 1] for n in sorted(set(one.notes)) if 1 <= n <= len(notes)]
        if not of:
            problems.append(f"A conclusion based on no note was left out: {one.text[:80]!r}.")
            continue
        if strange := invented(one.text, [note.text for note in of]):
            problems.append(f"A conclusion was left out, since no note names {strange[0]!r}.")
            continue
        found.append(
            Reflection(
                kind=one.kind,
                text=" ".join(one.text.split()),
                notes=tuple(note.id for note in of),
                confidence=one.confidence,
            )
        )
    return found


async def _remembered(memory: LongTermMemory, one: Reflection, trust: Trust) -> Record:
    """Stores a reflection, in the place of an earlier one of its kind on the same."""
    one = replace(one, text=within_a_record(one.text))
    before = await _earlier(memory, one)
    stored = await memory.remember(
        MemoryKind.SEMANTIC,
        one.text,
        provenance=concluded_by(memory.scope, trust, activity=REFLECTION),
        type=REFLECTION,
        metadata={ASPECT: one.kind.value, "confidence": one.confidence},
        derived_from=one.notes,
        supersedes=before,
    )
    return stored.record


async def _earlier(memory: LongTermMemory, new: Reflection) -> str | None:
    """The id of an earlier reflection that speaks of the same; None where there is none."""
    where = {"type": REFLECTION, ASPECT: new.kind.value}
    search = Search(
        text=new.text, kind=MemoryKind.SEMANTIC, k=3, scopes=(memory.scope,), where=where
    )
    telling = telling_words(new.text, _FRAME)
    for hit in await memory.store.search(search):
        before = telling_words(hit.record.text, _FRAME)
        least = min(len(telling), len(before))
        if hit.record.text != new.text and len(telling & before) >= max(2, _SAME * least):
            return hit.record.id
    return None


async def _merged(
    memory: LongTermMemory, text: str, notes: Sequence[Record], trust: Trust
) -> Record:
    stored = await memory.remember(
        MemoryKind.EPISODIC,
        text,
        provenance=concluded_by(memory.scope, trust, activity=REFLECTION),
        type=SUMMARY,
        metadata={IMPORTANCE: max(map(importance_of, notes))},
        event=notes[-1].event,
        derived_from=[one.id for one in notes],
    )
    return stored.record


# ---- Reflection by rules: what is said or done more than once ----


def reflections_of(notes: Sequence[Record]) -> list[Reflection]:
    """What rules conclude: from notes of one type that speak of the same, quoted word for word.

    A preference, or a promise, counts from the first time where it is important, and otherwise from
    the second; how an action went, and how somebody feels about somebody, from the second; a habit
    where it is said to be one, or three times.
    """
    of_type: defaultdict[NoteType, list[Record]] = defaultdict(list)
    outcomes: defaultdict[str, list[Record]] = defaultdict(list)
    for one in notes:
        note = note_type_of(one)
        if OUTCOME in one.metadata:
            outcomes[one.provenance.source].append(one)
        elif note is not None:
            of_type[note].append(one)
    found: list[Reflection] = []
    found += _grouped(of_type[NoteType.PREFERENCE], ReflectionKind.PREFERENCE, _is_pattern)
    found += _grouped(of_type[NoteType.COMMITMENT], ReflectionKind.GOAL, _is_pattern)
    found += _grouped(of_type[NoteType.FACTUAL], ReflectionKind.BEHAVIOUR, _is_habit)
    found += _relationships(of_type[NoteType.EMOTIONAL])
    found += [
        _capability(name, some) for name, some in sorted(outcomes.items()) if len(some) >= _LEAST
    ]
    return found


_IMPORTANT = 0.8


def _is_pattern(group: Sequence[Record]) -> bool:
    return len(group) >= _LEAST or importance_of(group[0]) >= _IMPORTANT


def _is_habit(group: Sequence[Record]) -> bool:
    said = any(_PATTERN_WORDS & set(one.text.casefold().split()) for one in group)
    return said or len(group) > _LEAST


def _grouped(
    notes: Sequence[Record],
    kind: ReflectionKind,
    shows: Callable[[Sequence[Record]], bool],
) -> list[Reflection]:
    """A reflection for each group of related notes that shows something: the newest, quoted."""
    found: list[Reflection] = []
    for group in related(notes):
        if not shows(group):
            continue
        newest, times = group[-1], len(group)
        how_often = "" if times == 1 else f" (noted {times} times)"
        text = f"{kind.value.capitalize()}{how_often}: {newest.text}"
        found.append(
            Reflection(
                kind=kind,
                text=with_literals(text, [one.text for one in group]),
                notes=tuple(one.id for one in group),
                confidence=min(1.0, 0.5 + 0.1 * times),
            )
        )
    return found


def _relationships(notes: Sequence[Record]) -> list[Reflection]:
    about: defaultdict[str, list[Record]] = defaultdict(list)
    for one in notes:
        for name in literals_of(one.text):
            if name[0].isupper() and not name[-1].isdigit() and name != one.provenance.source:
                about[name].append(one)
    found: list[Reflection] = []
    for name, some in about.items():
        if len(some) < _LEAST:
            continue
        quotes = " ".join(one.text for one in some[-2:])
        text = f"Relationship to {name} (noted {len(some)} times): {quotes}"
        ids = tuple(one.id for one in some)
        found.append(Reflection(kind=ReflectionKind.RELATIONSHIP, text=text, notes=ids))
    return found


def _capability(name: str, outcomes: Sequence[Record]) -> Reflection:
    counts = Counter(str(one.metadata[OUTCOME]) for one in outcomes)
    text = f"Capability: {name} succeeded {counts['succeeded']} of {len(outcomes)} times."
    failed = [one for one in outcomes if one.metadata[OUTCOME] == "failed"]
    if failed:
        text += f" The last failure: {failed[-1].text}"
    return Reflection(
        kind=ReflectionKind.CAPABILITY,
        text=text,
        notes=tuple(one.id for one in outcomes),
        confidence=min(1.0, 0.5 + 0.1 * len(outcomes)),
    )
