"""How facts on one matter stand to each other when the world, or what is said of it, changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from coag.schema import Fact, Record, Trust
from coag.store import folded

from ._lineage import at_least, contradicting, rank_of, trust_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a word on some matter stands to what holds on it."""

    same: Record | None = None
    """What says the same, best trusted first."""
    supersedes: tuple[Record, ...] = ()
    """What no longer holds now that this is said."""
    contradicts: tuple[Record, ...] = ()
    """What says otherwise and is trusted more; both stay."""
    later: Record | None = None
    """What holds since a later time than this tells of."""


def is_matter(fact: Fact | None) -> bool:
    """Whether a fact says a value of a property, so that another can say otherwise."""
    return fact is not None and bool(fact.attribute.strip() and fact.value.strip())


def one_matter(one: Fact | None, other: Fact | None) -> bool:
    """Whether two facts are about the same property of the same thing."""
    if one is None or other is None:
        return False
    return (folded(one.subject), folded(one.attribute)) == (
        *(folded(other.subject), folded(other.attribute)),
    )


def takes_on(fact: Fact | None, record: Record) -> bool:
    """Whether a fact says otherwise than a record, or the same: it does not rest on that one."""
    return is_matter(fact) and one_matter(fact, record.fact)


def standing(fact: Fact, trust: Trust, at: datetime, others: Iterable[Record]) -> Standing:
    """How a word stands to the current records on its matter.

    A value takes the place of another if it is trusted no less, and of itself if it is trusted
    more and changes something. One that tells of an earlier time than what holds changes nothing.

    Args:
        fact: What is said.
        trust: How far it may be trusted.
        at: When it is said.
        others: Current records on the same matter, besides the one that says it.
    """
    held = sorted(
        (one for one in others if one.fact is not None and holds(one.fact, at)),
        key=lambda one: (rank_of(trust_of(one)), one.created_at),
        reverse=True,
    )
    if not holds(fact, at):
        return Standing()
    later = next(
        (one for one in held if not same_value(one.fact, fact) and _earlier(fact, one)), None
    )
    if later is not None and at_least(trust_of(later), trust):
        return Standing(later=later)
    otherwise = [one for one in held if not same_value(one.fact, fact)]
    beaten = tuple(one for one in otherwise if at_least(trust, trust_of(one)))
    return Standing(
        same=next((one for one in held if same_value(one.fact, fact)), None),
        supersedes=beaten,
        contradicts=tuple(one for one in otherwise if one not in beaten),
    )


def holds(fact: Fact, at: datetime) -> bool:
    """Whether a fact has not ceased to hold by then."""
    return fact.valid_until is None or fact.valid_until > at


def ended(old: Record, by: Record) -> Record:
    """A record whose fact ceased to hold when another began to."""
    if old.fact is None or old.fact.valid_until is not None:
        return old
    fact = old.fact.model_copy(update={"valid_until": begin_of(by)})
    return old.model_copy(update={"fact": fact})


def begin_of(record: Record) -> datetime:
    """Since when what a record says holds: as is told, else when it happened or was made."""
    fact = record.fact
    return record.happened_at if fact is None or fact.valid_from is None else fact.valid_from


def holding_again(record: Record, since: datetime | None = None) -> Record:
    """A record whose fact holds again, from then on if that is given."""
    if record.fact is None:
        return record
    update: dict[str, object] = {"valid_until": None}
    if since is not None:
        update["valid_from"] = since
    return record.model_copy(update={"fact": record.fact.model_copy(update=update)})


def settled(
    record: Record, superseded: Iterable[Record], contradicted: Iterable[Record]
) -> list[Record]:
    """The other records as they stand beside a written one; only those that change.

    Args:
        record: What was written.
        superseded: Whose place it takes.
        contradicted: What says otherwise and stays.
    """
    changed: list[Record] = []
    for old in superseded:
        now = ended(old.model_copy(update={"superseded_by": record.id}), record)
        changed += [now] if now != old else []
    for other in contradicted:
        now = contradicting(other, [record.id])
        changed += [now] if now != other else []
    return changed


def parted(records: Sequence[Record]) -> list[Record]:
    """Records on one matter, those that say otherwise naming each other; only those that change.

    For facts that hold again after what had taken their place is gone.
    """
    changed: list[Record] = []
    for record in records:
        against = [
            other.id
            for other in records
            if one_matter(record.fact, other.fact)
            and is_matter(record.fact)
            and not same_value(record.fact, other.fact)
        ]
        now = contradicting(record, against)
        changed += [now] if now != record else []
    return changed


def same_value(one: Fact | None, other: Fact | None) -> bool:
    """Whether two facts on one matter say the same of it."""
    return one is not None and other is not None and folded(one.value) == folded(other.value)


def _earlier(fact: Fact, held: Record) -> bool:
    """Whether a fact tells of an earlier time than one that holds."""
    return fact.valid_from is not None and fact.valid_from < begin_of(held)
