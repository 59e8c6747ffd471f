"""A text as statements: an outline's items, sentences of prose, and lines of speakers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .cues import WATCHED

_TAG = re.compile(r"</?[\w-]+(?:\s[^<>]*)?>")
_HEADING = re.compile(r"(?P<label>[^\W_][^:.!?]{0,40}):")
_LABELLED = re.compile(r"(?P<label>[^\W\d_][\w'/-]*(?: [\w'/-]+){0,3}): +(?P<rest>\S.*)")
_NOTE = re.compile(r"\[[^\[\]]*\]")
_BULLET = re.compile(r"[-*\u2022] |\d+[.)] ")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and the text under it, or beside it on its line."""

    heading: str
    items: tuple[str, ...]
    inline: bool = False
    """Whether the items stand on the heading's own line."""
    depths: tuple[int, ...] = ()
    """How far each item is indented beyond the first; all 0 for inline ones."""


def read_outline(text: str) -> list[Section | str]:
    """The sections of a text, and lines of prose that are in none, in order.

    Headings end in a colon and have items under or beside them.

    Items under a heading are indented or have bullets; beside it they stand between commas that
    no bracket or quotation mark encloses. A line that is one tag, and a note in brackets at the
    margin, belong to the frame and to no section.
    """
    parts: list[Section | str] = []
    under: str | None = None
    items: list[str] = []
    depths: list[int] = []

    def close() -> None:
        nonlocal under
        if under is not None:
            least = min(depths, default=0)
            parts.append(
                Section(
                    heading=under,
                    items=tuple(items),
                    depths=tuple(depth - least for depth in depths),
                )
            )
        under = None
        items.clear()
        depths.clear()

    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or _TAG.fullmatch(stripped):
            continue
        depth = len(line) - len(line.lstrip())
        if under is not None and (depth > 0 or _BULLET.match(stripped)):
            items.append(stripped)
            depths.append(depth)
        elif heading := _HEADING.fullmatch(stripped):
            close()
            under = heading["label"]
        elif labelled := _LABELLED.fullmatch(stripped):
            close()
            parts.append(
                Section(heading=labelled["label"], items=split_list(labelled["rest"]), inline=True)
            )
        elif not _NOTE.fullmatch(stripped):
            close()
            parts.append(stripped)
    close()
    return parts


def parseable(text: str) -> float:
    """How far a program can read the text back: 1, a half, or 0.

    1 if everything is in sections that can be asked for by their headings; a half if the headings
    repeat, as speakers do in a transcript: a program gets labelled turns, but no items to ask
    for; else 0.
    """
    parts = read_outline(text)
    headings = [part.heading.casefold() for part in parts if isinstance(part, Section)]
    if not parts or len(headings) < len(parts):
        return 0.0
    return 1.0 if len(set(headings)) == len(headings) else 0.5


def split_list(text: str) -> tuple[str, ...]:
    """The parts of an inline list: commas that no bracket or quotation mark encloses part them."""
    parts, depth, quoted, start = list[str](), 0, False, 0
    for at, mark in enumerate(text):
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark in _OPEN:
            depth += 1
        elif not quoted and mark in _CLOSE:
            depth = max(0, depth - 1)
        elif mark == "," and not quoted and depth == 0 and text[at + 1 : at + 2] == " ":
            parts.append(text[start:at])
            start = at + 2
    return (*parts, text[start:])


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
    """A sentence or an item, with its headings."""

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
    """The sentence before it in the same line; it often names the subject."""

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
    for part in read_outline(text):
        if isinstance(part, str):
            found += _sentences(part)
        elif part.inline and (speaker := _speaker(part.heading)):
            turns[speaker] += 1
            found += _sentences(", ".join(part.items), speaker, turns[speaker])
        else:
            found += _items(part)
    return tuple(found)


def of_user(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements that can be about the user's state.

    Not what an assistant says in a transcript, and not what a list watches for: that has not
    happened.
    """
    return tuple(
        one for one in statements if one.speaker != "assistant" and not WATCHED.search(one.heading)
    )


def last_turn(statements: Sequence[Statement]) -> int:
    """The number of the user's last line; 0 where there is none."""
    return max((one.turn for one in statements if one.speaker == "user"), default=0)


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
