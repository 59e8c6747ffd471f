"""The write policy: what becomes of a text that somebody wants remembered. Pure rules."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from coag.schema import Event, Record, Scalar, Trust, cleaned
from coag.store import check_metadata, short_id

from ._facts import is_matter, one_matter
from ._lineage import at_least, trust_of
from ._stretches import same_value
from ._words import unseen

MAX_TEXT = 20_000
"""Characters of a record's text; what is longer is no record but a document."""

_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


class DecisionKind(StrEnum):
    """What the write policy decided."""

    NOVEL = "novel"
    """Nothing that is remembered says this."""
    REPETITION = "repetition"
    """The same text, or the same value of the same fact, is remembered."""
    NEAR_DUPLICATE = "near_duplicate"
    """What is remembered says the same in all but form."""
    REFUSED = "refused"
    """It is not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the write policy decided, and why."""

    kind: DecisionKind
    why: str
    """One sentence."""
    record_id: str | None = None
    """The record that says it already."""

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.why}"


def fit_text(text: str) -> str:
    """The text as it is kept: without control characters, trimmed.

    Raises:
        ValueError: If it is refused; says why.
    """
    kept = cleaned(text).strip()
    refused = refusal(kept)
    if refused is not None:
        raise ValueError(refused.why)
    return kept


def refusal(text: str) -> Decision | None:
    """Why a text is not kept, or None.

    Args:
        text: Without control characters and trimmed.
    """
    why = ""
    if not text:
        why = "There is nothing to remember: the text is empty."
    elif len(text) > MAX_TEXT:
        why = (
            f"The text has {len(text)} characters, and a record has at most {MAX_TEXT}; "
            "remember what matters of it."
        )
    elif not _encodable(text):
        why = f"The text is no valid Unicode: {text[:40]!r}."
    elif not any(map(_shows, text)):
        why = f"There is nothing to remember: the text shows nothing, {text[:40]!r}."
    return Decision(kind=DecisionKind.REFUSED, why=why) if why else None


def unfit(record: Record) -> str | None:
    """Why a record is none that memory keeps, in one sentence, or None.

    For records that come as they are, e.g. from a file.
    """
    if "\\u0000" in record.model_dump_json().replace("\\\\", ""):
        return f"It holds the character U+0000, which no memory keeps: {record.text[:40]!r}."
    refused = refusal(cleaned(record.text).strip())
    if refused is not None:
        return refused.why
    try:
        check_metadata(record.metadata)
    except ValueError as error:
        return str(error)
    return None


def _encodable(text: str) -> bool:
    """Whether a text has no half of a pair that stands alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decided(new: Record, known: Record | None, nearest: Iterable[Record] = ()) -> Decision:
    """What becomes of a record that is to be written.

    Args:
        new: The record.
        known: What is stored under its id, or None.
        nearest: The current records that are most similar to it.
    """
    if known is not None:
        return repetition_of(known)
    twin = next((one for one in nearest if is_twin(new, one)), None)
    if twin is not None:
        return Decision(
            kind=DecisionKind.NEAR_DUPLICATE,
            why=f"Record {short_id(twin.id)} says the same in all but form.",
            record_id=twin.id,
        )
    if new.provenance.trust is Trust.UNTRUSTED:
        why = "It is new; it stays data, since where it comes from is not trusted."
    else:
        why = "It is new."
    return Decision(kind=DecisionKind.NOVEL, why=why)


def repetition_of(known: Record) -> Decision:
    """The decision for what a record says already."""
    return Decision(
        kind=DecisionKind.REPETITION,
        why=f"Record {short_id(known.id)} says the same.",
        record_id=known.id,
    )


def is_twin(new: Record, old: Record) -> bool:
    """Whether an older record, trusted no less, says all that a new one would.

    They must be of one type and tell the same values, and nothing else may part them: neither a
    fact nor time, place and order of an event.
    """
    return (
        old.id != new.id
        and (old.type, _typed(old), old.fact) == (new.type, _typed(new), new.fact)
        and at_least(trust_of(old), new.provenance.trust)
        and _one_happening(new.event, old.event)
        and says_the_same(new.text, old.text)
    )


def repeats(new: Record, one: Record) -> bool:
    """Whether a record says what a new one says: the same value, or the same in all but form."""
    if is_matter(new.fact) and one_matter(new.fact, one.fact):
        return same_value(new, one)
    return one.id == new.id or says_the_same(new.text, one.text)


def says_the_same(text: str, other: str) -> bool:
    """Whether two texts differ in nothing but form, beyond doubt.

    White space, typographic quotes, a capital at the very beginning and one full stop at the end
    do not count; every other sign does, since it may change what is said.
    """
    one = _form_folded(text)
    return bool(one) and one == _form_folded(other)


def _form_folded(text: str) -> str:
    plain = " ".join(unicodedata.normalize("NFC", text).translate(_QUOTES).split())
    if plain.endswith(".") and not plain.endswith(".."):
        plain = plain[:-1].rstrip()
    return plain[:1].casefold() + plain[1:]


def _typed(record: Record) -> dict[str, tuple[type, Scalar]]:
    """Metadata in which 1 and true differ."""
    return {key: (type(value), value) for key, value in record.metadata.items()}


def _one_happening(one: Event | None, other: Event | None) -> bool:
    if one is None or other is None:
        return one is other
    told = [(one.at, other.at), (one.order, other.order)]
    if any(a != b for a, b in told if a is not None or b is not None):
        return False
    return (one.episode, one.place, one.action, one.outcome) == (
        *(other.episode, other.place, other.action, other.outcome),
    )


def _shows(sign: str) -> bool:
    return not sign.isspace() and not unseen(sign)
