"""A text as statements: sentences of prose and of speakers, items of outlines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ._cues import WATCHED
from ._outline import Section, read_outline

_SENTENCE = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bDr\.)[\"')\]]*\s+")
_CLAUSE = re.compile(
    r"[,;:]\s+(?:and\s+|but\s+|then\s+)*|\s+[-\u2013\u2014]\s+|\s+(?:but|then|while|whereas)\s+|"
    r"\s+and\s+(?=(?:then|now|later|also|finally|is|was|has|wants?|asks?|asked|returned|switched|"
    r"feels?|felt)\b)",
    re.I,
)
_TAGS = re.compile(r"^(?:- )?((?:\[[^\[\]]*\]\s*)+)")
_USERS = frozenset(("user", "human", "customer", "client", "me", "person", "caller", "q"))
_ASSISTANTS = frozenset(("assistant", "agent", "bot", "ai", "system", "model", "helper", "you"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence or an item, with what stands over it."""

    text: str
    heading: str = ""
    """Of its section; empty for prose and speech."""
    under: str = ""
    """The item that it is indented under."""
    speaker: str = ""
    """`user` or `assistant` where the text is a transcript."""
    turn: int = 0
    """The speaker's how many-th line it is of, from 1; 0 outside of transcripts."""
    before: str = ""
    """The sentence before it in the same line; what is spoken of often stands there."""

    @property
    def said(self) -> str:
        """The text with its heading."""
        return f"{self.heading}: {self.text}" if self.heading else self.text

    @property
    def passage(self) -> str:
        """The text with the sentence before it."""
        return f"{self.before} {self.text}".strip()

    @property
    def label(self) -> str:
        """What the form says of it: its heading, and the tags in brackets before it."""
        tags = _TAGS.match(self.text)
        return f"{self.heading} {tags[1] if tags else ''}".strip()

    @property
    def is_prose(self) -> bool:
        """Whether it is a sentence of nobody's."""
        return not self.heading and not self.speaker

    @property
    def clauses(self) -> tuple[str, ...]:
        """Its parts; an item of an outline has one."""
        if self.heading:
            return (self.text,)
        return tuple(part.strip() for part in _CLAUSE.split(self.text) if part.strip())


def statements_of(text: str) -> tuple[Statement, ...]:
    """The statements of a text, in order."""
    found: list[Statement] = []
    turns = {"user": 0, "assistant": 0}
    for part in read_outline(text).parts:
        if isinstance(part, str):
            found += _sentences(part)
        elif part.inline and (speaker := _speaker(part.heading)):
            turns[speaker] += 1
            found += _sentences(", ".join(part.items), speaker, turns[speaker])
        else:
            found += _items(part)
    return tuple(found)


def of_user(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements that can tell of the user's state.

    Not what an assistant says in a transcript, and not what a list watches for: that has not
    happened.
    """
    return tuple(
        one for one in statements if one.speaker != "assistant" and not WATCHED.search(one.heading)
    )


def last_turn(statements: Sequence[Statement], speaker: str = "user") -> int:
    """The number of a speaker's last line; 0 where there is none."""
    return max((one.turn for one in statements if one.speaker == speaker), default=0)


def _sentences(passage: str, speaker: str = "", turn: int = 0) -> Iterator[Statement]:
    before = ""
    for part in _SENTENCE.split(passage):
        if text := part.strip():
            yield Statement(text=text, speaker=speaker, turn=turn, before=before)
            before = text


def _speaker(heading: str) -> str:
    word = heading.casefold()
    return "user" if word in _USERS else "assistant" if word in _ASSISTANTS else ""


def _items(section: Section) -> Iterator[Statement]:
    if section.inline:
        for item in section.items:
            yield Statement(text=item, heading=section.heading)
        return
    above: list[tuple[int, str]] = []
    for item, depth in zip(section.items, section.depths, strict=True):
        while above and above[-1][0] >= depth:
            above.pop()
        under = above[-1][1] if above else ""
        yield Statement(text=item, heading=section.heading, under=under)
        above.append((depth, item))
