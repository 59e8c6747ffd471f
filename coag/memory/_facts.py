"""How facts on one matter stand to each other when the world, or what is said of it, changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coag.schema import Fact, Record
from coag.store import folded

from ._lineage import contradicting
from ._stretches import ended_by, same_value


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
        now = ended_by(old, record)
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
            and not same_value(record, other)
        ]
        now = contradicting(record, against)
        changed += [now] if now != record else []
    return changed
