"""The observer: notes from what was said and done, kept as records of long-term memory.

Messages wait in a buffer that survives restarts. They leave it only after the notes of them are
stored: a model that fails, or a process that is killed, loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

from pydantic import Field

from coag.memory.dynamics import DynamicsFile, Traits
from coag.memory.facts import CONCLUSION
from coag.memory.long_term import LongTermMemory
from coag.memory.procedural import ProceduralMemory
from coag.memory.write_policy import ToRemember
from coag.models import StructuredModel
from coag.schema import (
    Event,
    MemoryKind,
    Provenance,
    Record,
    Scalar,
    Trust,
    Value,
    estimate_tokens,
)

from .asking import MODEL_ERRORS, ask_for, numbered
from .journal import NoteQueue, file_of
from .literals import invented
from .notes import (
    IMPORTANCE,
    NOTE,
    OBSERVATION,
    OUTCOME,
    HeardMessage,
    NoteType,
    ObservationNote,
    notes_of,
)

_HEARD = """
CREATE TABLE IF NOT EXISTS heard (
  number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, tokens INTEGER NOT NULL,
  message TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS heard_of ON heard (owner, number)
"""
_BATCH = 30
"""Messages in one question."""
_BATCH_TOKENS = 3_000
_MOST_TOKENS = 200_000
"""Above this, what is oldest is noted by rules even where there is a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one look at the buffer gave."""

    notes: tuple[Record, ...] = ()
    """The records of the notes, in the order of the messages."""
    problems: tuple[str, ...] = ()
    """Why something still waits in the buffer, or was noted by rules; one sentence each."""
    waiting: int = 0
    """Messages that are left in the buffer."""


# ---- The form of a model's answer ----


class ModelNote(Value):
    """One thing worth knowing later."""

    type: NoteType
    text: Annotated[str, Field(min_length=1, max_length=400)]
    importance: Annotated[float, Field(ge=0.0, le=1.0)]
    lines: Annotated[tuple[int, ...], Field(max_length=_BATCH)]
    """Numbers of the lines that it is taken from."""


class NotesAnswer(Value):
    """The notes of some lines; none where nothing is worth it."""

    notes: Annotated[tuple[ModelNote, ...], Field(max_length=_BATCH)]


_FOCUS = {
    "emotionality": "Look closely at feelings.",
    "conscientiousness": "Look closely at promises, tasks and dates.",
    "openness": "Look closely at ideas and at what is new.",
    "agreeableness": "Look closely at what others like and need.",
    "extraversion": "Look closely at people and what they do together.",
    "honesty": "Look closely at what was wrong and is put right.",
}
_MARKED = 0.6
"""A trait above this adds its line to the prompt."""


class MemoryObserver:
    """Takes notes for one memory.

    Args:
        memory: Where the notes are remembered, as episodic records of the type `observation`.
        model: Who takes the notes; None for rules.
        file: Where the buffer is; None for the file of the memory's dynamics or, where it has none,
            for RAM, which a restart empties.
        traits: The observer's traits: what a model is asked to look at closely.
        procedures: Where the prompt `observe` may be learned.
        threshold: Tokens in the buffer from which on `observe` looks at it.
        run: The run that is written into the provenance of each note.
        episode: The stretch of experience that the notes belong to, e.g. a session.
    """

    def __init__(
        self,
        memory: LongTermMemory,
        *,
        model: StructuredModel | None = None,
        file: DynamicsFile | None = None,
        traits: Traits | None = None,
        procedures: ProceduralMemory | None = None,
        threshold: int = 2_000,
        run: str = "",
        episode: str = "",
    ) -> None:
        self.memory = memory
        self.model = model
        self.episode = episode
        self._file = file or file_of(memory) or DynamicsFile()
        self._file.create(_HEARD, scopes=("heard.owner",), sources=("heard.message",))
        self._queue = NoteQueue(self._file, memory)
        self._traits = traits or Traits()
        self._procedures = procedures
        self._threshold = threshold
        self._run = run

    def hear(self, *messages: HeardMessage) -> None:
        """Puts messages into the buffer; one without a time was said now."""
        now = self.memory.clock.now()
        timed = [
            one if one.at is not None else one.model_copy(update={"at": now}) for one in messages
        ]
        rows = [
            (self.memory.scope, estimate_tokens(one.text), one.model_dump_json()) for one in timed
        ]
        self._file.write("INSERT INTO heard (owner, tokens, message) VALUES (?, ?, ?)", rows)

    @property
    def waiting_tokens(self) -> int:
        """About how many tokens wait in the buffer."""
        return self._waiting()[1]

    def _waiting(self) -> tuple[int, int]:
        """How many messages wait, and about how many tokens."""
        query = "SELECT COUNT(*), COALESCE(SUM(tokens), 0) FROM heard WHERE owner = ?"
        messages, tokens = self._file.rows(query, self.memory.scope)[0]
        return messages, tokens

    async def observe(self, *, force: bool = False) -> Observed:
        """Takes notes of what waits, some at a time, and empties the buffer of what is noted.

        A model that fails leaves its messages in the buffer for the next time, and says so. Only
        a buffer of more than 200,000 tokens is then noted by rules.

        Args:
            force: Whether to look at a buffer below the threshold too.

        Raises:
            RecordStoreError: The store or the file cannot be used; nothing is lost.
        """
        notes: list[Record] = []
        problems: list[str] = []
        if force or self.waiting_tokens >= self._threshold:
            while batch := self._next_batch():
                messages = list(batch.values())
                taken = await self._taken(messages, problems)
                if taken is None:
                    break
                wishes = [self._wish(note, of) for note, of in taken]
                stored = [one async for some in self.memory.remember_all(wishes) for one in some]
                self._drain(batch, [one.record for one in stored])
                notes += [one.record for one in stored]
        messages, _ = self._waiting()
        return Observed(notes=tuple(notes), problems=tuple(problems), waiting=messages)

    def _next_batch(self) -> dict[int, HeardMessage]:
        """The oldest messages of one trust that still wait, by their places in the buffer.

        What is trusted less is never shown together with what is trusted more: its notes would
        be trusted like it.
        """
        query = "SELECT * FROM heard WHERE owner = ? ORDER BY number LIMIT ?"
        rows = self._file.rows(query, self.memory.scope, _BATCH)
        read = [
            (row["number"], row["tokens"], HeardMessage.model_validate_json(row["message"]))
            for row in rows
        ]
        _, first = next(groupby(read, key=lambda one: one[2].trust), (None, iter(())))
        batch: dict[int, HeardMessage] = {}
        tokens = 0
        for number, size, message in first:
            tokens += size
            if batch and tokens > _BATCH_TOKENS:
                break
            batch[number] = message
        return batch

    def _drain(self, numbers: Iterable[int], notes: Sequence[Record]) -> None:
        """In one step: the messages leave the buffer, and their notes wait for the reflector."""
        with self._file.transaction():
            self._queue.add([one.id for one in notes])
            self._file.write("DELETE FROM heard WHERE number = ?", [(one,) for one in numbers])

    async def _taken(
        self, messages: Sequence[HeardMessage], problems: list[str]
    ) -> list[tuple[ObservationNote, list[HeardMessage]]] | None:
        """Notes with the messages that each is taken from; None where these have to wait."""
        if self.model is not None:
            try:
                return await self._by_model(self.model, messages, problems)
            except MODEL_ERRORS as error:
                if self.waiting_tokens <= _MOST_TOKENS:
                    problems.append(f"{len(messages)} message(s) wait for the model: {error}")
                    return None
                problems.append(f"{len(messages)} message(s) were noted by rules: {error}")
        return [(note, [message]) for message in messages for note in notes_of(message)]

    async def _by_model(
        self, model: StructuredModel, messages: Sequence[HeardMessage], problems: list[str]
    ) -> list[tuple[ObservationNote, list[HeardMessage]]]:
        marked = [line for trait, line in _FOCUS.items() if getattr(self._traits, trait) > _MARKED]
        said = [
            f"{one.source} {'said' if one.kind == 'said' else _came(one)}: {one.text}"
            for one in messages
        ]
        values, lines = {"focus": " ".join(marked)}, numbered(said)
        answer = await ask_for(model, self._procedures, "observe", values, lines, NotesAnswer)
        taken: list[tuple[ObservationNote, list[HeardMessage]]] = []
        for note in answer.notes:
            places = sorted({one for one in note.lines if 1 <= one <= len(messages)})
            of = [messages[one - 1] for one in places] or list(messages)
            strange = invented(note.text, [f"{one.source} {one.text}" for one in of])
            if strange:
                problems.append(f"A note was left out, since nobody said {strange[0]!r}.")
                continue
            kept = ObservationNote(type=note.type, text=note.text, importance=note.importance)
            taken.append((kept, of))
        return taken

    def _wish(self, note: ObservationNote, of: Sequence[HeardMessage]) -> ToRemember:
        sources = list(dict.fromkeys(one.source for one in of))
        untrusted = of[0].trust is Trust.UNTRUSTED
        single = len(sources) == 1
        provenance = Provenance(
            run=self._run,
            activity=self.episode,
            cycle=0,
            source=sources[0] if single else self.memory.scope,
            source_kind="message" if single else CONCLUSION,
            trust=Trust.UNTRUSTED if untrusted else Trust.USER,
            shown=tuple(sources) if untrusted else (),
        )
        metadata: dict[str, Scalar] = {NOTE: note.type.value, IMPORTANCE: note.importance}
        if all(one.kind == "outcome" for one in of):
            metadata[OUTCOME] = "succeeded" if all(one.succeeded for one in of) else "failed"
        return ToRemember(
            kind=MemoryKind.EPISODIC,
            text=note.text,
            provenance=provenance,
            type=OBSERVATION,
            metadata=metadata,
            event=Event(at=of[0].at, episode=self.episode),
        )


def _came(message: HeardMessage) -> str:
    return "succeeded" if message.succeeded else "failed"
