"""What was said before the dialogue that working memory keeps: in short, by rules."""

from __future__ import annotations

import re
from collections.abc import Iterable

from coag.schema import Trust, Value, one_line

DIALOGUE = "dialogue"
"""The name by which all that was said before is asked for."""
CHARACTERS = 1_600
"""Characters of the notes that are kept, and of a summary that a model wrote."""
_NOTE = 200
"""Characters of one note."""
_SENTENCES = 40
"""Sentences of one message that are looked at."""
_END = re.compile(r"(?<=[.!?])\s+|\n+")
_OWN = re.compile(r"\b(?:i|i'm|i've|i'd|my|mine|me|we|we're|our|us)\b", re.IGNORECASE)
_LASTING = re.compile(
    r"\b(?:always|never|must|only|allerg\w*|prefer\w*|remember|call me|name|named|born|live|lives|"
    r"need|needs|want|wants|deadline|budget|vegan|vegetarian|hate|love|cannot|can't|don't|agreed|"
    r"decided|password|address|because)\b",
    re.IGNORECASE,
)
_EXACT = re.compile(r"\d|\b[A-Z][a-z]+ [A-Z][a-z]+")


class Remark(Value):
    """One sentence of an earlier message that is worth keeping."""

    number: int
    """Which message it is from, counted from the first."""
    speaker: str
    text: str
    weight: int
    """How likely it matters later; the least likely go first."""


class Earlier(Value):
    """What left the dialogue: how much, and what of it is kept in short."""

    messages: int = 0
    untrusted: bool = False
    """True if somebody untrusted said some of it."""
    summary: str = ""
    """What a model made of the older part, where one was asked."""
    summarized: int = 0
    """Messages that the summary covers, the oldest ones."""
    remarks: tuple[Remark, ...] = ()
    """What rules kept of the rest."""

    def lines(self) -> tuple[str, ...]:
        """The summary, then the remarks in the order in which they were made."""
        told = tuple(f"{one.speaker}: {one.text}" for one in self.remarks)
        return (self.summary, *told) if self.summary else told

    def with_message(
        self, speaker: str, text: str, trust: Trust, *, own: bool, characters: int = CHARACTERS
    ) -> Earlier:
        """With one more message that has left.

        Args:
            speaker: Who said it.
            text: What was said.
            trust: How far whoever said it is trusted.
            own: Whether the agent itself did.
            characters: Characters that the remarks may have, with their speakers.
        """
        number = self.messages + 1
        found = tuple(_remarks(number, speaker, text, own=own))
        room = min(characters, CHARACTERS) - len(self.summary) // 2
        kept = _worthiest((*self.remarks, *found), room)
        untrusted = self.untrusted or trust is Trust.UNTRUSTED
        return self.model_copy(update={"messages": number, "untrusted": untrusted, "remarks": kept})

    def summed_up(self, summary: str, messages: int) -> Earlier:
        """With a model's summary of so many messages in the place of the remarks on them."""
        rest = tuple(one for one in self.remarks if one.number > messages)
        changes = {"summary": summary[:CHARACTERS], "summarized": messages, "remarks": rest}
        return self.model_copy(update=changes)


def _remarks(number: int, speaker: str, text: str, *, own: bool) -> Iterable[Remark]:
    """The sentences of a message that may matter; of the agent's own ones the first."""
    sentences = [part.strip() for part in _END.split(text[:20_000]) if part.strip()]
    for place, sentence in enumerate(sentences[: 1 if own else _SENTENCES]):
        weight = _weight(sentence, own=own) + (1 if place == 0 else 0)
        if weight:
            yield Remark(
                number=number, speaker=speaker, text=one_line(sentence, _NOTE), weight=weight
            )


def _weight(sentence: str, *, own: bool) -> int:
    if own:
        return 0
    asks = sentence.endswith("?")
    return (
        (0 if asks else 2 * bool(_OWN.search(sentence)))
        + 2 * bool(_LASTING.search(sentence))
        + bool(_EXACT.search(sentence))
    )


def _worthiest(remarks: tuple[Remark, ...], characters: int) -> tuple[Remark, ...]:
    """The remarks that matter most, the newer of two alike, in so many characters."""
    kept: list[Remark] = []
    for remark in sorted(remarks, key=lambda one: (-one.weight, -one.number)):
        characters -= len(remark.text) + len(remark.speaker) + 3
        if characters < 0:
            break
        kept.append(remark)
    return tuple(sorted(kept, key=lambda one: one.number))
