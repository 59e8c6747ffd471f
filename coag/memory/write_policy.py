"""The write policy: whether a text is kept, and whether it is new or said already. Pure rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from coag._util.text import cleaned, clip
from coag.schema import (
    Clock,
    Event,
    Fact,
    Lineage,
    MemoryKind,
    Provenance,
    Record,
    Scalar,
    Trust,
    Written,
    record_id,
)
from coag.store import check_metadata, short_id

from .facts import at_least, is_matter, one_matter, same_value, trust_of, with_trust
from .words import unseen

MAX_TEXT = 20_000
"""Characters of a record's text; what is longer is no record but a document."""

_SAYS_SO = 40
"""Characters that it takes to say that a text was cut."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, which no file can hold."""
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRemember:
    """A text that is to be remembered, with all that is known of it."""

    kind: MemoryKind
    """Episodic for what happened, semantic for what holds."""
    text: str
    provenance: Provenance
    """Where it comes from."""
    type: str = "note"
    """The domain's own sort of record; a filter can ask for it."""
    metadata: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """Values that a filter can ask for."""
    sensed: bool = False
    """Whether code read the metadata off a perceptual state; see `binding_metadata`."""
    supersedes: str | None = None
    """Id of the record whose place this one takes; a text becomes current again by superseding the
    one that had superseded it."""
    event: Event | None = None
    """What happened, and its place in its episode."""
    fact: Fact | None = None
    """The fact in parts: subject, attribute, value."""
    derived_from: Sequence[str] = ()
    """Ids of the records from which it was concluded: it is trusted no more than the least trusted
    of them, and revoked with each."""


class DecisionKind(StrEnum):
    """What the write policy decided."""

    NOVEL = "novel"
    """No record says this."""
    REPETITION = "repetition"
    """A record has the same text, or the same value of the same fact."""
    NEAR_DUPLICATE = "near_duplicate"
    """A record says the same in all but form."""
    REFUSED = "refused"
    """It is not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteDecision:
    """What the write policy decided, and why."""

    kind: DecisionKind
    why: str
    """One sentence."""
    record_id: str | None = None
    """The record that says it already."""

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The result of remembering a text."""

    record: Record
    """The record as it is stored; the older one, if the text was known."""
    new: bool
    """Whether this changed what is remembered; false for what was known before."""
    superseded: tuple[str, ...] = ()
    """Records that hold no longer because of this one."""
    contradicts: tuple[str, ...] = ()
    """Records that have another value and stay, being trusted more."""
    merged: bool = False
    """Whether it became a further origin of what is remembered already."""
    decision: WriteDecision | None = None
    """What the write policy said."""

    def written(self) -> Written:
        """The record of the trace for this write."""
        return Written(
            at=self.record.created_at,
            cycle=self.record.provenance.cycle,
            what="record",
            id=self.record.id,
            content=self.record.model_dump(mode="json"),
            decision="" if self.decision is None else str(self.decision),
        )


def refusal(text: str) -> str | None:
    """Why a text, trimmed and without control characters, is not kept, in one sentence."""
    if not text:
        return "There is nothing to remember: the text is empty."
    if len(text) > MAX_TEXT:
        return (
            f"The text has {len(text)} characters, and a record has at most {MAX_TEXT}; "
            "remember what matters of it."
        )
    if _HALF.search(text):
        return f"The text is no valid Unicode: {text[:40]!r}."
    if all(sign.isspace() or unseen(sign) for sign in text):
        return f"There is nothing to remember: the text shows nothing, {text[:40]!r}."
    return None


def within_a_record(text: str) -> str:
    """A text that was made of others; of one too long for a record the beginning, which says so."""
    return text if len(text) <= MAX_TEXT else clip(text, MAX_TEXT - _SAYS_SO)


def unfit(record: Record) -> str | None:
    """Why memory cannot keep a record that comes as it is, e.g. from a file, in one sentence."""
    if "\0" in record.text:  # memory leaves it out of texts, and keeps it elsewhere
        return f"Its text has the character U+0000, which no memory keeps: {record.text[:40]!r}."
    refused = refusal(cleaned(record.text).strip())
    if refused is not None:
        return refused
    try:
        check_metadata(record.metadata)
    except ValueError as error:
        return str(error)
    return None


def record_of(given: ToRemember, scope: str, clock: Clock) -> Record:
    """The record of a text, as it is if nothing else is known."""
    if given.kind not in tuple(MemoryKind):
        raise ValueError(
            f"kind must be MemoryKind.EPISODIC or MemoryKind.SEMANTIC, not {given.kind!r}."
        )
    text = cleaned(given.text).strip()
    refused = refusal(text)
    if refused is not None:
        raise ValueError(refused)
    check_metadata(given.metadata)
    return Record(
        id=record_id(given.kind, scope, text),
        kind=given.kind,
        text=text,
        scope=scope,
        created_at=clock.now(),
        provenance=given.provenance,
        type=given.type,
        metadata=dict(given.metadata),
        sensed=given.sensed and bool(given.metadata),
        event=given.event,
        fact=given.fact,
    )


def derived(record: Record, names: Sequence[str], found: Sequence[Record]) -> Record:
    """A record concluded from others, of which `found` are there and may be read.

    It is trusted no more than the least trusted of them, and never derived from itself.
    """
    ids = dict.fromkeys(source.id for source in found)
    unknown = next((name for name in names if name not in ids), None)
    if unknown is not None:
        raise ValueError(
            f"Nothing can be derived from {unknown!r}: scope {record.scope!r} has no such "
            "record, nor has any other that is read here."
        )
    lineage = Lineage(derived_from=tuple(one for one in ids if one != record.id))
    return with_trust(record.model_copy(update={"lineage": lineage}), map(trust_of, found))


def decided(new: Record, known: Record | None, nearest: Iterable[Record] = ()) -> WriteDecision:
    """The decision on a record that is to be written, beside the one that has its id already.

    `nearest` are the current records that are most similar to it.
    """
    if known is not None:
        return repetition_of(known)
    twin = next((one for one in nearest if _is_twin(new, one)), None)
    if twin is not None:
        return WriteDecision(
            kind=DecisionKind.NEAR_DUPLICATE,
            why=f"Record {short_id(twin.id)} says the same in all but form.",
            record_id=twin.id,
        )
    untrusted = new.provenance.trust is Trust.UNTRUSTED
    rest = "; it stays data, since where it comes from is not trusted." if untrusted else "."
    return WriteDecision(kind=DecisionKind.NOVEL, why=f"It is new{rest}")


def repetition_of(known: Record) -> WriteDecision:
    """The decision for what a record says already."""
    return WriteDecision(
        kind=DecisionKind.REPETITION,
        why=f"Record {short_id(known.id)} says the same.",
        record_id=known.id,
    )


def repeats(new: Record, one: Record) -> bool:
    """Whether a record says what a new one says: the same value, or the same in all but form."""
    if is_matter(new.fact) and one_matter(new.fact, one.fact):
        return same_value(new, one)
    return one.id == new.id or says_the_same(new.text, one.text)


def says_the_same(text: str, other: str) -> bool:
    """Whether two texts differ in nothing but form, beyond doubt.

    White space, typographic quotes, a capital at the very beginning and one full stop at the end
    do not count; every other character does, since it may change what is said.
    """
    one = _form_folded(text)
    return bool(one) and one == _form_folded(other)


def _form_folded(text: str) -> str:
    plain = " ".join(unicodedata.normalize("NFC", text).translate(_QUOTES).split())
    if plain.endswith(".") and not plain.endswith(".."):
        plain = plain[:-1].rstrip()
    return plain[:1].casefold() + plain[1:]


def _is_twin(new: Record, old: Record) -> bool:
    """Whether an older record, trusted no less, says all that a new one would.

    They must have the same type, metadata and fact, and the same event but for the situation.
    """
    return (
        old.id != new.id
        and _particulars(old) == _particulars(new)
        and at_least(trust_of(old), new.provenance.trust)
        and says_the_same(new.text, old.text)
    )


def _particulars(record: Record) -> tuple[object, ...]:
    """What twins have in common besides their texts; in metadata, 1 and true differ."""
    typed = {key: (type(value), value) for key, value in record.metadata.items()}
    event = record.event and record.event.model_copy(update={"situation": ""})
    return record.type, typed, record.fact, event
