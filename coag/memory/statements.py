"""What becomes of a text that is remembered: new, the same again, or another value."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from coag.schema import (
    Clock,
    Event,
    Fact,
    MemoryKind,
    Provenance,
    RecalledRecord,
    Record,
    Scalar,
    Trust,
    Written,
    cleaned,
    record_id,
)
from coag.store import check_metadata, short_id

from .facts import (
    CONCLUSION,
    Place,
    at_least,
    begin_of,
    end_of,
    ended_by,
    holding_again,
    holds,
    is_dated,
    is_last,
    is_matter,
    lineage_from,
    lowest,
    one_matter,
    origins,
    placed,
    rank_of,
    same_value,
    saying_so,
    trust_of,
    with_earlier,
    with_origin,
    without,
)
from .records import Records
from .words import unseen

# ---- The write policy: what becomes of a text that somebody wants remembered. Pure rules ----


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


# ---- What memory answers: what became of a text, and what a query brought back ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of something to be remembered."""

    record: Record
    """The record as it is stored; the older one, if the text was known."""
    new: bool
    """Whether this changed what is remembered; false for what was known before."""
    superseded: tuple[str, ...] = ()
    """Records that hold no longer because of this one."""
    contradicts: tuple[str, ...] = ()
    """Records that say otherwise and stay, being trusted more."""
    merged: bool = False
    """Whether it became a further origin of what is remembered already."""
    decision: Decision | None = None
    """What the write policy said."""

    def written(self) -> Written:
        """The line of the trace that says so."""
        return Written(
            at=self.record.created_at,
            cycle=self.record.provenance.cycle,
            what="record",
            id=self.record.id,
            content=self.record.model_dump(mode="json"),
            decision="" if self.decision is None else str(self.decision),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a query brought back."""

    records: tuple[RecalledRecord, ...] = ()
    """Best first, whatever memory they come from; behind each those that say otherwise."""
    problems: tuple[str, ...] = ()
    """One sentence per memory that could not be asked."""
    contradictions: tuple[tuple[str, str], ...] = ()
    """Pairs of ids among the records that hold at the same time and say otherwise."""
    left_out: tuple[str, ...] = ()
    """Ids of records for which the prompt had no room, best first."""


# ---- What somebody wants remembered, and the record that is made of it ----


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRemember:
    """All there is to say of something that is to be remembered."""

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
    """Whether the metadata were read off a perceptual state; see `Record.sensed`."""
    supersedes: str | None = None
    """Id of the record whose place this one takes."""
    event: Event | None = None
    """What happened, and its place in its episode."""
    fact: Fact | None = None
    """What is so, and of what."""
    derived_from: Sequence[str] = ()
    """Ids of the records from which it was concluded."""


def record_of(given: ToRemember, scope: str, clock: Clock) -> Record:
    """The record of something, as it is if nothing else is known.

    Raises:
        ValueError: If the kind is none, the text is empty, too long or shows nothing, or the
            metadata cannot be kept.
    """
    if given.kind not in tuple(MemoryKind):
        raise ValueError(
            f"kind must be MemoryKind.EPISODIC or MemoryKind.SEMANTIC, not {given.kind!r}."
        )
    text = fit_text(given.text)
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
    """The record as one that was concluded from others: trusted no more than the least of them.

    Args:
        record: The record by itself.
        names: Ids of what it was concluded from.
        found: Those of them that there are and that may be read.

    Raises:
        ValueError: If one of them is not there.
    """
    known = {source.id for source in found}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"Nothing can be derived from {unknown[0]!r}: scope {record.scope!r} has no such "
            "record, nor has any other that is read here."
        )
    trust = lowest(record.provenance.trust, map(trust_of, found))
    return record.model_copy(
        update={
            "provenance": record.provenance.model_copy(update={"trust": trust}),
            "lineage": lineage_from(record.id, found),
        }
    )


def is_old_call(new: Record, known: Record, since: Iterable[Record]) -> bool:
    """Whether a word is the repetition of a call after which something else was said.

    The moment of which it tells decides, if it tells one (`valid_from`, or the event's `at`).
    Else its cycle does, in one run and activity: cycles only count up. An agent says a thing once
    a cycle, so that it repeats its call where others spoke in between, in runs of their own.
    Where nothing tells the two apart, it is a new call, later than what was said before.

    Args:
        new: The word.
        known: What is stored of it, superseded by now.
        since: What was said otherwise since.
    """
    if _tells_moment(new):
        return begin_of(new) <= begin_of(known)
    origin = new.provenance
    if not origin.run or origin not in origins(known):
        return False
    here = [
        one.cycle
        for record in since
        for one in origins(record)
        if (one.run, one.activity) == (origin.run, origin.activity)
    ]
    if here:
        return max(here) > origin.cycle
    return origin.source_kind == CONCLUSION


def moves(new: Record, known: Record, by: Record | None, others: Iterable[Record]) -> bool:
    """Whether a known text is said to hold since another time than before.

    It has one stretch: the last of those that the best trusted of its sources tell. A word that
    is trusted more than all before, and so ends what was trusted more than they, begins its own.

    Args:
        new: The word.
        known: What is stored of it.
        by: What took its place, if something did.
        others: What else is current on the matter.
    """
    trust, was, at = new.provenance.trust, trust_of(known), new.created_at
    if not is_matter(known.fact) or not at_least(trust, was):
        return False
    better = rank_of(trust) > rank_of(was)
    if is_dated(new):
        first, second = begin_of(known), begin_of(new)
        return second != first if better else second > first
    if by is not None:
        return not is_old_call(new, known, [by, *others])
    if not holds(known, at) or not better:
        return not holds(known, at)
    return any(
        rank_of(was) < rank_of(trust_of(one)) <= rank_of(trust) and not same_value(one, known)
        for one in others
    )


def _tells_moment(record: Record) -> bool:
    return is_dated(record) or (record.event is not None and record.event.at is not None)


# ---- What becomes of a text that is known when it is said again ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Restated:
    """What becomes of a known text."""

    place: Place
    repeated: bool
    """Whether nothing was said but what the same origin had said before."""


async def restated(
    records: Records, new: Record, known: Record, others: Sequence[Record]
) -> Restated:
    """Puts a known text in its place now that it is said again.

    Args:
        records: What there is.
        new: The word.
        known: What is stored of it.
        others: What else is current on its matter.

    Raises:
        RecordStoreError: If the store cannot be reached.
    """
    record = with_origin(known, new.provenance)
    if record.fact is None and at_least(new.provenance.trust, trust_of(known)):
        record = record.model_copy(update={"fact": new.fact})
    if new.fact is None or known.fact is None:
        others = await records.on_matter(record)
    by = await superseder(records, known) or _follower(known, others, new)
    gone = known.superseded_by is not None and by is None
    place: Place | None = None
    if gone or _becomes_matter(record, known) or moves(new, known, by, others):
        place = await _moved(records, new, known, record, certain=gone or is_dated(new))
    repeated = place is None and new.provenance in origins(known)
    if place is None and repeated:
        place = await _completed(records, new, known, record, others)
    place = place or _staying(new, known, record, others)
    said = others if by is None else [by, *others]
    now = with_earlier(place.record, new, known, said)
    return Restated(place=replace(place, record=now), repeated=repeated)


async def superseder(records: Records, record: Record) -> Record | None:
    """What superseded a record, if something did and is there."""
    name = record.superseded_by
    return None if name is None else next(iter(await records.get([name])), None)


async def every_word(records: Records, word: Record, others: Sequence[Record]) -> Sequence[Record]:
    """All that has to do with the place of a word: superseded ones too, where it is not the last.

    Args:
        records: What there is.
        word: The word.
        others: What is current on its matter.
    """
    if is_last(word, others):
        return others
    return await records.all_on_matter(word)


async def _moved(
    records: Records, new: Record, known: Record, record: Record, *, certain: bool
) -> Place | None:
    """The text as it holds since another time; None if what holds stays.

    Args:
        records: What there is.
        new: The word.
        known: What is stored of it.
        record: The same with the new origin.
        certain: Whether it has a place for sure, beside what is trusted more.
    """
    every = await records.all_on_matter(record)
    word, rest = record, list(every)
    if known.fact is not None:
        word = holding_again(record, begin_of(new))
        rest = without(known, every)
    word = _with_end_of(new, word)
    linked = any(one.id == known.supersedes for one in every)
    links = {"superseded_by": None, "supersedes": None if linked else known.supersedes}
    how = placed(word.model_copy(update=links), rest, new.created_at)
    if not certain and known.superseded_by is not None:
        same = saying_so(word, [one for one in rest if one.superseded_by is None])
        if same is not None and at_least(trust_of(same), new.provenance.trust):
            heir = next((one for one in every if one.id == known.superseded_by), None)
            if heir is None or at_least(trust_of(heir), trust_of(record)):
                return None
            # Now that it is trusted more than what took its place, it gives way to its like.
            return Place(record=record.model_copy(update={"superseded_by": same.id}))
        if how.contradicts and not how.superseded:
            return None
    before = {one.id: one for one in every}
    after = {one.id: one for one in (*rest, *how.changed)}
    changed = tuple(one for name, one in after.items() if one != before[name])
    return replace(how, changed=changed)


async def _completed(
    records: Records, new: Record, known: Record, record: Record, others: Sequence[Record]
) -> Place:
    """What was begun when the very same was said, and perhaps broken off."""
    if known.superseded_by is not None and not is_dated(known):
        return Place(record=record)
    word = record
    if is_dated(known):
        every = await every_word(records, known, others)
        word = _with_end_of(new, holding_again(record))
    else:  # what was said since is no part of it
        every = [one for one in others if one.created_at <= known.created_at]
    how = placed(word, every, new.created_at)
    changed = list(how.changed)
    if known.supersedes is not None and not changed:
        half = await records.get([known.supersedes])
        olds = [old for old in half if old.superseded_by == known.id]
        changed = [now for old in olds if (now := ended_by(old, known)) != old]
    return replace(how, changed=tuple(changed))


def _with_end_of(new: Record, record: Record) -> Record:
    """A record whose fact ends when a word on it says so."""
    if record.fact is None or new.fact is None:
        return record
    times = {"valid_until": new.fact.valid_until}
    return record.model_copy(update={"fact": record.fact.model_copy(update=times)})


def _staying(new: Record, known: Record, record: Record, others: Sequence[Record]) -> Place:
    """The text where it is, beside those that it ends now that one more says it."""
    if known.superseded_by is not None or not is_matter(record.fact):
        return Place(record=record)
    how = placed(_word(record, new), others, new.created_at)
    links = {"supersedes": record.supersedes or how.record.supersedes}
    later = None if how.later is None else how.later.id
    changed = tuple(one for one in how.changed if one.id != later)
    return replace(how, record=record.model_copy(update=links), changed=changed, later=None)


def _word(record: Record, new: Record) -> Record:
    """What is said by saying a known text again: the same, of the time of which it tells now."""
    fact = record.fact
    if fact is not None:
        times = {
            "valid_from": None if new.fact is None else new.fact.valid_from,
            "valid_until": None if new.fact is None else new.fact.valid_until,
        }
        fact = fact.model_copy(update=times)
    update = {
        "provenance": new.provenance,
        "lineage": new.lineage,
        "created_at": new.created_at,
        "event": new.event,
        "fact": fact,
        "supersedes": None,
        "superseded_by": None,
    }
    return record.model_copy(update=update)


def _becomes_matter(record: Record, known: Record) -> bool:
    return known.fact is None and is_matter(record.fact)


def _follower(known: Record, others: Sequence[Record], new: Record) -> Record | None:
    """What took a record's place once its time had come, not being said anew since."""
    found = (
        one
        for one in others
        if one.supersedes == known.id
        and begin_of(one) == end_of(known)
        and begin_of(one) <= new.created_at
    )
    return next(found, None)
