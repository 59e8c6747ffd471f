"""Reading any indented outline back into sections and items."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TAG = re.compile(r"</?[\w-]+(?:\s[^<>]*)?>")
_HEADING = re.compile(r"(?P<label>[^\W_][^:.!?]{0,40}):")
_LABELLED = re.compile(r"(?P<label>[^\W\d_][\w'/-]*(?: [\w'/-]+){0,3}): +(?P<rest>\S.*)")
_NOTE = re.compile(r"\[[^\[\]]*\]")
_BULLET = re.compile(r"[-*\u2022] |\d+[.)] ")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what stands under it, or beside it on its line."""

    heading: str
    items: tuple[str, ...]
    inline: bool = False
    """Whether the items stand on the heading's own line."""
    depths: tuple[int, ...] = ()
    """How far each item is indented beyond the first; all 0 for inline ones."""


@dataclass(slots=True)
class Outline:
    """A text as sections, with what is in none of them."""

    parts: list[Section | str] = field(default_factory=list[Section | str])
    """Sections, and lines of prose that are in none, in order."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections, in order."""
        return tuple(part for part in self.parts if isinstance(part, Section))

    @property
    def is_whole(self) -> bool:
        """Whether everything is in a section."""
        return bool(self.parts) and len(self.sections) == len(self.parts)

    @property
    def is_addressable(self) -> bool:
        """Whether each section can be asked for by its heading."""
        headings = [section.heading.casefold() for section in self.sections]
        return len(set(headings)) == len(headings)


def read_outline(text: str) -> Outline:
    """The sections of a text: headings that end in a colon with items under or beside them.

    Items under a heading are indented or have bullets; beside it they stand between commas that
    no bracket or quotation mark encloses. A line that is one tag, and a note in brackets at the
    margin, belong to the frame and to no section.
    """
    outline = Outline()
    under: str | None = None
    items: list[str] = []
    depths: list[int] = []

    def close() -> None:
        nonlocal under
        if under is not None:
            least = min(depths, default=0)
            outline.parts.append(
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
        said = line.strip()
        if not said or _TAG.fullmatch(said):
            continue
        depth = len(line) - len(line.lstrip())
        if under is not None and (depth > 0 or _BULLET.match(said)):
            items.append(said)
            depths.append(depth)
        elif heading := _HEADING.fullmatch(said):
            close()
            under = heading["label"]
        elif labelled := _LABELLED.fullmatch(said):
            close()
            outline.parts.append(
                Section(heading=labelled["label"], items=split_list(labelled["rest"]), inline=True)
            )
        elif not _NOTE.fullmatch(said):
            close()
            outline.parts.append(said)
    close()
    return outline


def parseable(text: str) -> float:
    """How far a program can read the text back: 1, a half, or 0.

    1 if everything is in sections that can be asked for by their headings and nothing is lost on
    the way back; a half if the headings repeat, as speakers do in a transcript: a program gets
    labelled turns, but no items to ask for; else 0.
    """
    outline = read_outline(text)
    if not outline.is_whole or _bare(write_outline(outline)) != _bare(_framed(text)):
        return 0.0
    return 1.0 if outline.is_addressable else 0.5


def write_outline(outline: Outline) -> str:
    """The text of the sections alone."""
    lines: list[str] = []
    for section in outline.sections:
        if section.inline:
            lines.append(f"{section.heading}: {', '.join(section.items)}")
        else:
            lines.append(f"{section.heading}:")
            lines += [
                " " * (2 + depth) + item
                for item, depth in zip(section.items, section.depths, strict=True)
            ]
    return "\n".join(lines)


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


def _framed(text: str) -> str:
    """The text without the lines of its frame."""
    lines = [line for line in text.splitlines() if not _TAG.fullmatch(line.strip())]
    return "\n".join(line for line in lines if not _NOTE.fullmatch(line) or line[:1].isspace())


def _bare(text: str) -> str:
    """The text with its blanks made alike; what is lost shows, how it was spaced does not."""
    return " ".join(text.split())
