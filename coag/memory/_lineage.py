"""Where records come from and what hangs on them: pure rules over their lineage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from coag.schema import Lineage, Provenance, Record, Scalar, Trust

ORIGINS_KEPT = 20
"""Further origins that a record keeps, the newest ones, beside the one that is trusted best."""

CONCLUSION = "agent"
"""The kind of source of what an agent concluded itself."""

_RANKS = {Trust.UNTRUSTED: 0, Trust.USER: 1, Trust.DEVELOPER: 2}


def rank_of(trust: Trust) -> int:
    """The place of a trust among the others, from the lowest."""
    return _RANKS[trust]


def at_least(trust: Trust, other: Trust) -> bool:
    """Whether one trust is no lower than another."""
    return _RANKS[trust] >= _RANKS[other]


def lowest(trust: Trust, others: Iterable[Trust]) -> Trust:
    """The lowest of them all."""
    return min((trust, *others), key=_RANKS.__getitem__)


def trust_of(record: Record) -> Trust:
    """How far what a record says may be trusted: as far as the best of its origins."""
    return max((one.trust for one in origins(record)), key=_RANKS.__getitem__)


def origins(record: Record) -> tuple[Provenance, ...]:
    """Every origin of a record, the best trusted one first, the others oldest first."""
    return (record.provenance, *record.lineage.also_from)


def with_origin(record: Record, origin: Provenance) -> Record:
    """The record with one more origin, unless it has it already.

    The first of those that are trusted best is the record's provenance, so that this tells how
    far the record may be trusted; it always stays.
    """
    if origin in origins(record):
        return record
    return _stated_by(record, (*origins(record), origin))


def without_source(record: Record, source: str) -> Record | None:
    """The record without what one source said of it, or what was concluded after it was shown.

    None if nobody else said it.
    """
    left = tuple(one for one in origins(record) if source not in (one.source, *one.shown))
    return _stated_by(record, left) if left else None


def trusted_at_most(record: Record, trust: Trust) -> Record:
    """The record, none of whose origins is trusted more than this."""
    lowered = [
        one.model_copy(update={"trust": lowest(one.trust, [trust])}) for one in origins(record)
    ]
    return _stated_by(record, lowered)


def _stated_by(record: Record, every: Sequence[Provenance]) -> Record:
    best = max(every, key=lambda one: _RANKS[one.trust])
    kept = [one for one in every if one is not best][-ORIGINS_KEPT:]
    return with_lineage(record.model_copy(update={"provenance": best}), also_from=tuple(kept))


def binding_metadata(record: Record) -> Mapping[str, Scalar]:
    """The metadata of a record by which a hard rule may go; empty where nobody vouches for them.

    The agent's own code vouches for what it read off its perceptual state (`Record.sensed`), and
    the user or the developer where all that the record stems from is theirs. A stranger's record
    may be recalled and read, but must forbid nothing.
    """
    return record.metadata if record.sensed or is_trusted(record) else {}


def is_trusted(record: Record) -> bool:
    """Whether nobody untrusted had a part in a record."""
    return all(one.trust is not Trust.UNTRUSTED for one in origins(record))


def concludes(record: Record) -> bool:
    """Whether a new record says what its agent concluded, and not what somebody told it."""
    return record.provenance.source_kind == CONCLUSION


def no_better_than(record: Record, said: Iterable[Record]) -> Record:
    """A conclusion trusted no more than the records that say the same already, if there are any.

    Repeating them is no further witness of what they say.
    """
    known = [trust_of(one) for one in said]
    if not known:
        return record
    best = max(known, key=_RANKS.__getitem__)
    trust = lowest(record.provenance.trust, [best])
    return record.model_copy(
        update={"provenance": record.provenance.model_copy(update={"trust": trust})}
    )


def contradicting(record: Record, others: Iterable[str]) -> Record:
    """The record, naming these others as what says otherwise besides those it names."""
    named = tuple(dict.fromkeys((*record.lineage.contradicts, *others)))
    if named == record.lineage.contradicts:
        return record
    return with_lineage(record, contradicts=named)


def with_lineage(record: Record, **changed: object) -> Record:
    """The record with some of its lineage changed."""
    lineage = record.lineage.model_copy(update=changed)
    return record.model_copy(update={"lineage": lineage})


def lineage_from(record_id: str, sources: Sequence[Record]) -> Lineage:
    """The lineage of a new record that is concluded from others; nothing rests on itself."""
    ids = dict.fromkeys(source.id for source in sources if source.id != record_id)
    return Lineage(derived_from=tuple(ids))


def derived_levels(
    roots: str | Collection[str], sources: Mapping[str, Collection[str]]
) -> list[list[str]]:
    """The roots and all that rests on them, level by level.

    Every record stands in one level only, behind one of those it was concluded from, so that
    whoever takes the last level away first can begin again from the roots at any time.

    Args:
        roots: The record, or the records, at which to begin.
        sources: For each record, what it was concluded from.
    """
    first = [roots] if isinstance(roots, str) else list(roots)
    resting: dict[str, list[str]] = {}
    for record, its_sources in sources.items():
        for source in its_sources:
            resting.setdefault(source, []).append(record)
    levels, seen = [first], set(first)
    while levels[-1]:
        found = (name for source in levels[-1] for name in resting.get(source, ()))
        level = sorted(set(found) - seen)
        seen.update(level)
        levels.append(level)
    return levels[:-1]
