"""Foreign text in a diagnosis: cut at a word, and never with two ends to a sentence."""

from __future__ import annotations

_SENTENCE = 600
"""Characters of a sentence, about."""
_QUOTED = 160
_ENDS = (".", "!", "?", "…")
_CLOSING = "'\")]}"


def short(text: str, limit: int = _SENTENCE) -> str:
    """The beginning of a text on one line, cut at a word; an ellipsis says that it was cut."""
    line = " ".join(text[: limit * 4].split())
    if len(line) <= limit and len(text) <= limit * 4:
        return line
    head = line[: limit + 1]
    word = head.rfind(" ")
    kept = head[:word] if word > limit // 2 else head[:limit]
    return f"{kept.rstrip(' ,;:')}…"


def quoted(text: str, limit: int = _QUOTED) -> str:
    """The beginning of a text in quotation marks."""
    return repr(short(text, limit))


def shown(value: object) -> str:
    """The beginning of a fact's value."""
    return short(repr(value), _QUOTED)


def ended(text: str) -> str:
    """A sentence with its full stop, if it does not end by itself or was cut."""
    return text if text.rstrip(_CLOSING).endswith(_ENDS) else f"{text}."
