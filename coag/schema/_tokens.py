"""A local estimate of how many tokens a text is; no tokenizer, no network."""

from __future__ import annotations

BYTES_PER_TOKEN = 4
"""English prose has about four bytes of UTF-8 a token with the tokenizers in use today."""


def estimate_tokens(text: str) -> int:
    """About how many tokens the text is: its UTF-8 bytes over four, rounded up."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def cut_to_tokens(text: str, budget: int) -> str:
    """The text, or its beginning with a note of how much is missing, within `budget` tokens.

    A budget too small for the note gives the beginning alone.
    """
    if estimate_tokens(text) <= budget:
        return text
    missing = estimate_tokens(text) - budget
    note = f" [… {missing} tokens cut]"
    room = budget * BYTES_PER_TOKEN - len(note.encode())
    if room < 0:
        note, room = "", budget * BYTES_PER_TOKEN
    kept = text.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore")
    return kept + note


def well_formed(text: str) -> str:
    """The text with characters that UTF-8 cannot carry (lone surrogates) replaced by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")
