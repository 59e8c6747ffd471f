"""The compressor: related notes merged into one short text, 3 to 10 times shorter.

What matters to whom is decided by the traits: `critical` notes are kept first and whole,
`important` ones while there is room, `informational` ones only by their names, dates and amounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from coag.memory.dynamics import Traits
from coag.memory.procedural import ProceduralMemory
from coag.memory.words import words
from coag.models import StructuredModel
from coag.schema import Record, Value

from .asking import MODEL_ERRORS, ask_for, numbered
from .literals import invented, literals_of, with_literals
from .notes import priority_of

_STOP_WORDS = (
    "a an the and or but if so of to in on at by for from with as is are was were be been am i "
    "me my we us our you your he him his she her it its they them their this that these those "
    "there then than not no do does did have has had will would can could should may might must "
    "just very really too also about into over after before up down out said says user what "
    "when who how all any some more most one s t ll ve re d m"
)
_STOP = frozenset(_STOP_WORDS.split())
_ALIKE = 0.2
"""Share of the rarer note's telling words that two related notes have in common, at least."""
_LEAST_COMMON = 2


class Triage(StrEnum):
    """How much of a note is kept."""

    CRITICAL = "critical"
    IMPORTANT = "important"
    INFORMATIONAL = "informational"


def triage_of(record: Record, traits: Traits) -> Triage:
    """How much of a note is kept for somebody of these traits."""
    priority = priority_of(record, traits)
    if priority >= 0.75:
        return Triage.CRITICAL
    return Triage.IMPORTANT if priority >= 0.5 else Triage.INFORMATIONAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Several notes in one text."""

    text: str
    notes: tuple[str, ...]
    """Ids of the records that it merges."""
    ratio: float
    """How many times fewer words it has than these."""
    by_model: bool = False
    problem: str = ""
    """Why it was made by rules although there was a model; empty if it was not."""


class CompressionAnswer(Value):
    """One text in place of several notes."""

    text: str = Field(min_length=1, max_length=2_000)


def telling_words(text: str, without: Collection[str] = ()) -> frozenset[str]:
    """The words of a text by which it can be compared: stems, without what every text has."""
    return frozenset(
        _stem(one)
        for one in words(text)
        if one not in _STOP and one not in without and len(one) > 1
    )


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def related(records: Sequence[Record]) -> list[list[Record]]:
    """The records in groups that speak of the same: by their telling words, in their order.

    Two records are related if they have two telling words in common, or one where it is a tenth of
    the records' or rarer, and a fifth of the shorter one's words. Who speaks does not count.
    """
    telling = [telling_words(one.text, words(one.provenance.source)) for one in records]
    counts = Counter(word for one in telling for word in one)
    rare = max(2, len(records) // 10)
    group = list(range(len(records)))

    def root(place: int) -> int:
        while group[place] != place:
            place = group[place]
        return place

    for later, one in enumerate(telling):
        for earlier in range(later):
            common = one & telling[earlier]
            least = min(len(one), len(telling[earlier]))
            if not common or len(common) < _ALIKE * least:
                continue
            if len(common) >= _LEAST_COMMON or any(counts[word] <= rare for word in common):
                group[root(later)] = root(earlier)
    groups: dict[int, list[Record]] = {}
    for place, record in enumerate(records):
        groups.setdefault(root(place), []).append(record)
    return list(groups.values())


async def compress(
    notes: Sequence[Record],
    *,
    traits: Traits | None = None,
    model: StructuredModel | None = None,
    ratio: float = 3.0,
    procedures: ProceduralMemory | None = None,
) -> Compressed:
    """Related notes in one text, at least so many times shorter where their literals allow it.

    Names, dates and amounts are kept: those that the text lost follow it in brackets. A
    model that fails, invents a name or a number, or is too long, is replaced by the rules.

    Args:
        notes: What to merge, oldest first; at least one.
        traits: Whose triage it is; None for nobody's.
        model: Who merges; None for rules.
        ratio: How many times fewer words, 1 to 10.
        procedures: Where the prompt `compress` may be learned.

    Raises:
        ValueError: There are no notes, or the ratio is out of range.
    """
    if not notes:
        raise ValueError("There are no notes to compress; give at least one.")
    if not 1.0 <= ratio <= 10.0:
        raise ValueError(f"ratio must be between 1 and 10, not {ratio!r}.")
    traits, texts = traits or Traits(), [one.text for one in notes]
    total = sum(len(text.split()) for text in texts)
    room = max(5, int(total / ratio))
    text, problem = None, ""
    if model is not None:
        try:
            values, lines = {"words": str(room)}, numbered(texts)
            answer = await ask_for(model, procedures, "compress", values, lines, CompressionAnswer)
            text, problem = _checked(answer.text, texts, total)
        except MODEL_ERRORS as error:
            problem = str(error)
    merged = with_literals(text, texts) if text else _by_rules(notes, traits, room)
    return Compressed(
        text=merged,
        notes=tuple(one.id for one in notes),
        ratio=total / max(1, len(merged.split())),
        by_model=bool(text),
        problem=problem,
    )


def _checked(text: str, texts: Sequence[str], total: int) -> tuple[str | None, str]:
    """A model's text if it can be taken, else None and why it cannot."""
    strange = invented(text, texts)
    if strange:
        return None, f"The model wrote of {strange[0]!r}, which no note names."
    if len(text.split()) > total:
        return None, "The model's text is longer than the notes."
    return " ".join(text.split()) or None, ""


def _by_rules(notes: Sequence[Record], traits: Traits, room: int) -> str:
    """The weightiest notes whole while there is room; of all others their literals."""
    order = sorted(
        range(len(notes)),
        key=lambda place: (-priority_of(notes[place], traits), -place),  # the newest first
    )
    literals = {literal for one in notes for literal in literals_of(one.text)}
    left = room - sum(len(one.split()) for one in literals) // 2
    kept: list[int] = []
    for place in order:
        length = len(notes[place].text.split())
        critical = triage_of(notes[place], traits) is Triage.CRITICAL
        if not kept or length <= left or (critical and length <= room):
            kept.append(place)
            left -= length
            room -= length
    text = " ".join(notes[place].text for place in sorted(kept))
    return with_literals(text, [one.text for one in notes])
