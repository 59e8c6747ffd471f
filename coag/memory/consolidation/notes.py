"""Notes of what was said and done: their six types, and the rules that find them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from coag._util.text import well_formed
from coag.memory.dynamics import Traits
from coag.memory.words import words
from coag.memory.write_policy import within_a_record
from coag.schema import Moment, Record, Trust, Value

from .literals import literals_of


class NoteType(StrEnum):
    """What a note says."""

    FACTUAL = "factual"
    EMOTIONAL = "emotional"
    COMMITMENT = "commitment"
    PREFERENCE = "preference"
    CREATIVE = "creative"
    CORRECTION = "correction"


_Heard = Annotated[str, AfterValidator(well_formed)]
"""A text from outside; half of a character in it, which no file can hold, becomes `?`."""


class HeardMessage(Value):
    """Something that was said, or what came of an action."""

    text: _Heard
    source: _Heard = "user"
    """Who said it, or the tool whose outcome it is."""
    trust: Trust = Trust.USER
    at: Moment | None = None
    """When; None for when it was received."""
    kind: Literal["said", "outcome"] = "said"
    succeeded: bool = True
    """For an outcome: whether the action did what it should."""


class ObservationNote(Value):
    """One thing worth knowing later."""

    type: NoteType
    text: str
    importance: float = Field(default=0.5, ge=0.0, le=1.0)


OBSERVATION = "observation"
"""The type of the records that keep notes."""
NOTE = "note"
"""The key of a record's metadata that says the type of its note."""
IMPORTANCE = "importance"
"""The key that says how important it is, 0..1."""
OUTCOME = "outcome"
"""The key that says, for what came of an action, `succeeded` or `failed`."""


def note_type_of(record: Record) -> NoteType | None:
    """The type of note that a record keeps; None for any other record."""
    value = record.metadata.get(NOTE)
    return NoteType(value) if record.type == OBSERVATION and value in set(NoteType) else None


def importance_of(record: Record) -> float:
    """How important a record was taken to be when it was noted; 0.5 where nothing was said."""
    value = record.metadata.get(IMPORTANCE)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return record.dynamics.importance
    return min(1.0, max(0.0, float(value)))


# ---- Which notes matter to whom ----

_TRAIT_OF: Mapping[NoteType, str] = {
    NoteType.EMOTIONAL: "emotionality",
    NoteType.COMMITMENT: "conscientiousness",
    NoteType.CREATIVE: "openness",
    NoteType.CORRECTION: "honesty",
    NoteType.PREFERENCE: "agreeableness",
    NoteType.FACTUAL: "conscientiousness",
}
_BIAS = 0.4
"""What the whole range of a trait adds to the importance of its notes."""


def priority_of(record: Record, traits: Traits) -> float:
    """The importance of a note to somebody of these traits, 0..1.

    Emotionality raises emotional notes, conscientiousness commitments and facts, openness ideas,
    honesty corrections, agreeableness what others prefer. Traits of 0.5 change nothing.
    """
    note = note_type_of(record)
    trait = 0.5 if note is None else float(getattr(traits, _TRAIT_OF[note]))
    return min(1.0, max(0.0, importance_of(record) + _BIAS * (trait - 0.5)))


# ---- Notes by rules: the sentences that say something, each by the first rule that it meets ----

_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|Mr|Mrs|Ms|Dr|St|No|vs)\.$")
_I = r"\b(?:i|we)\b"
_NOT = r"(?:really |just |also |only |do |would |'d |so |absolutely )*"
_FEELING = (
    r"(?:happy|glad|sad|angry|afraid|scared|terrified|frightened|anxious|worried|nervous|upset"
    r"|excited|thrilled|proud|ashamed|lonely|grateful|thankful|relieved|disappointed|frustrated"
    r"|annoyed|furious|jealous|guilty|overwhelmed|stressed|exhausted|miserable|delighted|heartbroken"
    r"|hurt|shocked|devastated|depressed|hopeful|confident|embarrassed)"
)
_RULES: tuple[tuple[NoteType, float, re.Pattern[str]], ...] = tuple(
    (kind, importance, re.compile(pattern, re.IGNORECASE))
    for kind, importance, pattern in (
        (
            NoteType.CORRECTION,
            0.8,
            r"^actually\b|\b(?:that|this|it) (?:is|was|'s)? ?(?:not|n't) (?:right|true|correct)\b"
            r"|\bthat'?s (?:wrong|incorrect|not what i)\b|\b(?:i|we) meant\b|^correction\b"
            r"|\b(?:i was|you were|you are|you're) (?:wrong|mistaken)\b|\bnot \w+(?: \w+)?, but\b"
            r"|^no, (?:it|the|that|i|my|we|he|she|they)\b|\bsorry, i (?:meant|mean)\b"
            r"|\bno longer\b|\binstead of\b.*\bnow\b",
        ),
        (
            NoteType.COMMITMENT,
            0.7,
            rf"{_I}(?:'ll| will| shall| promise| must| have to| need to|'m going to"
            r"| am going to| are going to|'ve got to)\b|\bremind (?:me|us)\b|\bdeadline\b"
            r"|\b(?:don't|do not|must not) (?:let me )?forget\b|\b(?:is|are) due (?:on|by|at)\b"
            r"|\bappointment\b|\bpromised\b",
        ),
        (
            NoteType.PREFERENCE,
            0.6,
            rf"{_I} {_NOT}(?:prefer|like|love|hate|dislike|enjoy|can't stand|cannot stand"
            r"|don't like|do not like|don't want|do not want|want|rather)\b"
            r"|\b(?:my|our) (?:favou?rite|preferred)\b|\bplease (?:always|never|don't|do not)\b",
        ),
        (
            NoteType.EMOTIONAL,
            0.6,
            rf"\b(?:feel|feels|felt|am|i'm|was|were|is|makes? (?:me|us)|made (?:me|us)) "
            rf"(?:so |very |really |quite |too |a bit |rather )?{_FEELING}\b"
            r"|\b(?:miss|missed) (?:him|her|you|them)\b",
        ),
        (
            NoteType.CREATIVE,
            0.4,
            r"\bwhat if\b|\bimagine\b|\b(?:i|we) (?:have|had|'ve) an idea\b|\bmy idea\b"
            r"|\blet'?s (?:invent|write|make up|design|draw|compose|build)\b|\bhow about\b"
            r"|\b(?:i|we) (?:wrote|composed|invented|designed|painted|drew)\b",
        ),
    )
)
_REMEMBER = re.compile(r"\b(?:please )?(?:remember|note|keep in mind)\b(?: that|:)?", re.IGNORECASE)
_STATES = re.compile(
    r"\b(?:is|are|was|were|has|have|had|lives?|works?|got|means|costs?|called|named|born|moved"
    r"|owns?|went|did|made|came|took|gave|said|left|began|ended|bought|sold|opened|closed)\b",
    re.IGNORECASE,
)
_LEAST_WORDS = 3
_REQUEST = re.compile(
    r"^(?:can|could|would|will) you\b"
    r"|^(?:hi|hello|thanks|thank you|ok(?:ay)?|sure|yes|no)\b[^.]{0,20}$",
    re.IGNORECASE,
)


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text, trimmed, in order."""
    held = ""
    for part in _SENTENCES.split(text):
        held = f"{held} {part}".strip()
        if held and not _ABBREVIATION.search(held):
            yield held
            held = ""
    if held:
        yield held


def notes_of(message: HeardMessage) -> list[ObservationNote]:
    """The notes that rules take of a message: its telling sentences, word for word.

    Questions, greetings and what states nothing give no note. What came of an action is one
    factual note, more important where it failed.
    """
    if message.kind == "outcome":
        came = "succeeded" if message.succeeded else "failed"
        importance = 0.5 if message.succeeded else 0.7
        when = "" if message.at is None else f" at {message.at:%Y-%m-%d %H:%M:%S}"
        text = f"{message.source} {came}{when}: {' '.join(message.text.split())}"
        kept = within_a_record(text)
        return [ObservationNote(type=NoteType.FACTUAL, text=kept, importance=importance)]
    notes: list[ObservationNote] = []
    for sentence in sentences_of(message.text):
        typed = _type_of(sentence)
        if typed is not None:
            note, importance = typed
            text = within_a_record(f"{message.source}: {sentence}")
            notes.append(ObservationNote(type=note, text=text, importance=importance))
    return notes


def _type_of(sentence: str) -> tuple[NoteType, float] | None:
    """The type and importance of what a sentence says; None where it says nothing to keep."""
    asked_to_remember = _REMEMBER.search(sentence) is not None
    if not asked_to_remember and (sentence.endswith("?") or _REQUEST.search(sentence)):
        creative = _RULES[-1]
        return creative[:2] if creative[2].search(sentence) else None
    if len(words(sentence)) < _LEAST_WORDS:
        return None
    for note, importance, pattern in _RULES:
        if pattern.search(sentence):
            return note, max(importance, 0.9) if asked_to_remember else importance
    telling = bool(literals_of(sentence)) or _STATES.search(sentence) is not None
    if asked_to_remember:
        return NoteType.FACTUAL, 0.9
    return (NoteType.FACTUAL, 0.5) if telling else None
