"""What is searched for, how hits are ranked, and which records pass a filter."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as given
from datetime import datetime
from heapq import nlargest
from typing import Any, NamedTuple, cast

from pydantic import Field

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record, Scalar, ScoreParts, Value, folded

from .lexicon import Entry

# ---- In which order records answer a query: pure rules over what is known of each ----
#
# The form of the score, its parts and their weights were found on two conversations of LoCoMo and
# measured on others (see docs/memory.md and `benchmarks/memory`). Each part is a general rule
# over fields of records; where a store's records lack the field, the part is zero.


_DAY = 86_400.0
_SAYS_MUCH = math.log1p(32)
"""A text of 32 words or more counts as one that says much; of fewer, by their logarithm."""
_BEST_OF_EPISODE = 3
_TELLING = 0.15
"""Share of a query's words, or weight of neighbours, from which on a record has to do with it."""


class Ranking(Value):
    """How much each part of a score weighs."""

    dense: float = Field(default=0.55, ge=0.0)
    """Of the cosine."""
    lexical: float = Field(default=0.45, ge=0.0)
    """Of the share of the query's words."""
    neighbours: tuple[float, ...] = (0.5, 0.2)
    """Of what stands one place before and after in the same episode, two places, and so on."""
    episode: float = Field(default=0.2, ge=0.0)
    """Of the mean of the three best records of its episode."""
    source: float = Field(default=0.18, ge=0.0)
    """For a record that stems from the one source which the query names."""
    question: float = Field(default=0.09, ge=0.0)
    """Taken from a record that asks: questions seldom answer."""
    length: float = Field(default=0.15, ge=0.0)
    """For a text that says much; a shorter one has a part of it."""
    recency: float = Field(default=0.02, ge=0.0)
    """For the newest record found; an older one has a part of it."""
    half_life: float = Field(default=30.0, gt=0.0)
    """Days after which recency has halved."""
    importance: float = Field(default=0.05, ge=0.0)
    """For a record of importance 1; taken from one of importance 0."""
    untrusted: float = Field(default=0.02, ge=0.0)
    """Taken from a record that is not to be trusted."""
    pool: int = Field(default=40, ge=1)
    """How many records each index proposes."""
    centres: int = Field(default=30, ge=1)
    """How many of the best have their neighbours looked at."""
    alike: float = Field(default=0.9, gt=0.0)
    """Of texts that share this part of their words, the first counts; the others come last."""

    @property
    def reach(self) -> int:
        """How far neighbours count, in places."""
        return len(self.neighbours)

    def own(self, candidate: Candidate) -> float:
        """What a record has by itself: its meaning and its words."""
        return self.dense * max(0.0, candidate.dense) + self.lexical * candidate.lexical


DEFAULT_RANKING = Ranking()
"""The weights that were measured."""


class Candidate(NamedTuple):
    """A record that may answer."""

    entry: Entry
    dense: float
    """Its cosine, or the least that was found where it was not among the nearest."""
    lexical: float
    """Its share of the query's words, 0..1."""


class Ranked(NamedTuple):
    """A record in its place."""

    entry: Entry
    parts: tuple[float, ...]
    """In the order of the fields of `ScoreParts`."""
    total: float

    def why(self) -> ScoreParts:
        """The parts by name."""
        named = zip(ScoreParts.model_fields, self.parts, strict=True)
        return ScoreParts(**{name: round(part, 4) for name, part in named})


def rank(
    candidates: Sequence[Candidate],
    ranking: Ranking,
    *,
    named: Sequence[str] = (),
    minimum: float = 0.0,
) -> list[Ranked]:
    """The candidates that have to do with the query, best first; then newest, then by id.

    Args:
        candidates: What may answer, and its neighbours.
        ranking: The weights.
        named: The sources that the query names; they count if it is one.
        minimum: Cosine below which meaning alone does not count.
    """
    own = [ranking.own(one) for one in candidates]
    around = Surroundings(candidates, own, ranking)
    newest = max((one.entry.created for one in candidates), default=0.0)
    asked_of = named[0] if len(named) == 1 else None
    ranked: list[Ranked] = []
    for one in candidates:
        neighbours = around.neighbours(one.entry)
        if one.dense >= minimum or one.lexical >= _TELLING or neighbours >= _TELLING:
            entry = one.entry
            parts = (
                ranking.dense * max(0.0, one.dense),
                ranking.lexical * one.lexical,
                neighbours,
                around.episode(entry),
                ranking.source if entry.source == asked_of else 0.0,
                _form(entry, ranking),
                ranking.recency * 0.5 ** ((newest - entry.created) / _DAY / ranking.half_life),
                ranking.importance * (2.0 * entry.importance - 1.0),
                0.0 if entry.trusted else -ranking.untrusted,
            )
            ranked.append(Ranked(entry, parts, round(sum(parts), 6)))
    return sorted(ranked, key=lambda one: (-one.total, -one.entry.created, one.entry.id))


class Surroundings:
    """What stands around each candidate in its episode.

    Args:
        candidates: All that is known.
        own: What each has by itself.
        ranking: The weights.
    """

    def __init__(
        self, candidates: Sequence[Candidate], own: Sequence[float], ranking: Ranking
    ) -> None:
        self._weights = tuple(enumerate(ranking.neighbours, start=1))
        self._episodes: dict[int, dict[int, float]] = {}
        for one, score in zip(candidates, own, strict=True):
            if one.entry.episode:
                places = self._episodes.setdefault(one.entry.episode, {})
                places[one.entry.place] = max(score, places.get(one.entry.place, score))
        self._usual = math.fsum(own) / len(own) if own else 0.0
        self._best = {
            episode: ranking.episode * (_best_of(scores.values()) - self._usual)
            for episode, scores in self._episodes.items()
        }

    def neighbours(self, entry: Entry) -> float:
        """What the records before and after it add, as far as they say more than usual."""
        scores = self._episodes.get(entry.episode)
        if scores is None:
            return 0.0
        usual = self._usual
        found = 0.0
        for step, weight in self._weights:
            before = scores.get(entry.place - step, usual)
            found += weight * (before + scores.get(entry.place + step, usual) - 2.0 * usual)
        return found

    def episode(self, entry: Entry) -> float:
        """What its episode as a whole adds."""
        return self._best.get(entry.episode, 0.0)


def _best_of(scores: Iterable[float]) -> float:
    best = nlargest(_BEST_OF_EPISODE, scores)
    return sum(best) / len(best)


def _form(entry: Entry, ranking: Ranking) -> float:
    much = min(1.0, math.log1p(entry.length) / _SAYS_MUCH)
    return ranking.length * much - (ranking.question if entry.asks else 0.0)


# ---- What is asked of a store ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A question to a store of records."""

    text: str | None
    """What to look for; None lists whatever matches the rest, newest first, with score 1."""
    kind: MemoryKind
    k: int = 5
    """At most this many records come back."""
    scopes: tuple[str, ...] | None = None
    """Whose records; None for everyone's."""
    where: Mapping[str, Any] | None = None
    """A filter over fields and metadata, see `parse_where`."""
    min_score: float | None = None
    """Records less similar are left out; None takes the embedder's own minimum."""
    include_superseded: bool = False
    """Whether records that another one superseded come back too."""
    ranking: Ranking | None = None
    """How to weigh meaning, words and the rest; None for the cosine alone."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k must be at least 1, not {self.k!r}.")
        if self.min_score is not None and not 0.0 <= self.min_score <= 1.0:
            raise ValueError(f"min_score must be between 0 and 1, not {self.min_score!r}.")
        if self.scopes == ():
            raise ValueError("scopes is empty and would match nothing; give None for all scopes.")

    @property
    def is_empty(self) -> bool:
        """True for a text of nothing but white space: it is similar to nothing."""
        return self.text is not None and not self.text.strip()


# ---- The flat fields of a record: what filters can ask for, the same in every store ----


FIXED_FIELDS = (
    "type",
    "scope",
    "source",
    "source_kind",
    "trust",
    "run",
    "activity",
    "cycle",
    "created_at",
    "short_id",
    "subject",
    "attribute",
)
"""Names that a filter reads from the record itself; every other name is a metadata key."""

FOLDED_FIELDS = frozenset({"subject", "attribute"})
"""Those of which the folded form is kept, of facts only; filters fold what they compare with."""

SHORT_ID_LENGTH = 8
"""Length of the short form of an id that models are shown."""

CURRENT = "current"
"""Field that is true while no other record superseded this one."""

_METADATA_PREFIX = "m."
_LARGEST_EXACT = 2**53


def short_id(record_id: str) -> str:
    """The short form of a record's id, as models are shown it."""
    return record_id[:SHORT_ID_LENGTH]


def field_name(name: str) -> str:
    """Under which name the flat fields hold what a filter calls `name`."""
    return name if name in FIXED_FIELDS else _METADATA_PREFIX + name


def exact(value: object, *, what: str) -> str | float | bool:
    """The value as stores compare it: numbers as floats, so that 1 and 1.0 are equal.

    Args:
        value: A value of metadata or of a filter.
        what: Names the value in the error.

    Raises:
        ValueError: If no store could keep the value exactly.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(value, what=what)
    if isinstance(value, datetime):
        return value.timestamp()
    if not isinstance(value, int | float):
        raise ValueError(f"{what} must be text, a number or a truth value, not {value!r}.")
    if abs(value) > _LARGEST_EXACT or math.isnan(value):
        raise ValueError(f"{what} is {value!r}; give numbers beyond 2**53 and NaN as text.")
    return float(value)


def flat_fields(record: Record) -> dict[str, str | float | bool]:
    """What filters see of a record.

    Raises:
        ValueError: If a metadata value or a text cannot be kept exactly.
    """
    origin = record.provenance
    for name, text in _texts(record):
        _encodable(text, what=name)
    fixed: dict[str, object] = {
        "type": record.type,
        "scope": record.scope,
        "source": origin.source,
        "source_kind": origin.source_kind,
        "trust": origin.trust.value,
        "run": origin.run,
        "activity": origin.activity,
        "cycle": origin.cycle,
        "created_at": record.created_at,
        "short_id": short_id(record.id),
        CURRENT: record.superseded_by is None,
    }
    if record.fact is not None:
        fixed["subject"] = folded(record.fact.subject)
        fixed["attribute"] = folded(record.fact.attribute)
    flat = {name: exact(value, what=f"Field {name!r}") for name, value in fixed.items()}
    for key, value in record.metadata.items():
        _encodable(key, what="A metadata key")
        flat[_METADATA_PREFIX + key] = exact(value, what=f"Metadata {key!r}")
    return flat


def check_metadata(metadata: Mapping[str, Scalar]) -> None:
    """Refuses metadata that a store could not keep, or that a filter could not reach.

    Raises:
        ValueError: Naming the key.
    """
    for key, value in metadata.items():
        if key in FIXED_FIELDS:
            raise ValueError(
                f"Metadata key {key!r} is the name of a field of every record; "
                f"choose another than: {', '.join(FIXED_FIELDS)}."
            )
        exact(value, what=f"Metadata {key!r}")


def to_json(record: Record) -> str:
    """Everything of a record but its text."""
    return record.model_dump_json(exclude={"text"})


class Row(NamedTuple):
    """A record as stores write it: made once, written to every index."""

    record: Record
    flat: dict[str, str | float | bool]
    """See `flat_fields`."""
    rest: str
    """See `to_json`."""


def row_of(record: Record) -> Row:
    """A record as it is to be written.

    Raises:
        ValueError: If it holds what no store could keep exactly.
    """
    return Row(record, flat_fields(record), to_json(record))


def from_json(text: str, rest: str) -> Record:
    """The record of which `to_json` gave `rest`.

    Raises:
        RecordStoreError: If it gave no such thing.
    """
    try:
        # as one JSON text, which pydantic reads in half the time of a dict
        return Record.model_validate_json(f'{{"text":{json.dumps(text)},{rest[1:]}')
    except ValueError as error:
        raise RecordStoreError(
            f"The record with text {text[:60]!r} cannot be read: {error}. Another program or "
            "version wrote it; remove it by its id (`RecordStore.delete`)."
        ) from error


def _texts(record: Record) -> Iterator[tuple[str, str]]:
    """What a record says in words besides its fields, with a name for it."""
    yield "The text of a record", record.text
    if (event := record.event) is not None:
        said = (event.episode, event.situation, event.action, event.outcome, event.place)
        yield "What a record tells of an event", "\n".join(said)
    if (fact := record.fact) is not None:
        yield "What a record tells of a fact", f"{fact.subject}\n{fact.attribute}\n{fact.value}"


def _encodable(text: str, *, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is {text!r}, which is no valid Unicode text.") from None
    return text


# ---- Filters over records: a small language, read once, meaning the same in every store ----


Fields = Mapping[str, str | float | bool]

_RANGES: dict[str, Callable[[float, float], bool]] = {
    "$gt": lambda stored, bound: stored > bound,
    "$gte": lambda stored, bound: stored >= bound,
    "$lt": lambda stored, bound: stored < bound,
    "$lte": lambda stored, bound: stored <= bound,
}
_COMPARISONS = ("$eq", "$in", *_RANGES)
_COMBINATIONS = ("$and", "$or")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """The field has one of these values; text, numbers and truth values are never equal."""

    field: str
    values: tuple[str | float | bool, ...]
    _typed: frozenset[tuple[type, str | float | bool]] = given(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        typed = frozenset((type(value), value) for value in self.values)
        object.__setattr__(self, "_typed", typed)

    def matches(self, fields: Fields) -> bool:
        """Whether a record with these flat fields passes."""
        stored = fields.get(self.field)
        return (type(stored), stored) in self._typed


@dataclass(frozen=True, slots=True, kw_only=True)
class InRange:
    """The field is a number on one side of a bound."""

    field: str
    operator: str
    bound: float

    def matches(self, fields: Fields) -> bool:
        """Whether a record with these flat fields passes."""
        stored = fields.get(self.field)
        return type(stored) is float and _RANGES[self.operator](stored, self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """Every part passes; without parts, everything does."""

    parts: tuple[Condition, ...]

    def matches(self, fields: Fields) -> bool:
        """Whether a record with these flat fields passes."""
        return all(part.matches(fields) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """At least one part passes."""

    parts: tuple[Condition, ...]

    def matches(self, fields: Fields) -> bool:
        """Whether a record with these flat fields passes."""
        return any(part.matches(fields) for part in self.parts)


Condition = OneOf | InRange | AllOf | AnyOf


def parse_where(where: Mapping[str, Any] | None) -> Condition:
    """Reads a filter.

    `{"type": "obstacle", "x": {"$gte": 2, "$lt": 5}}` holds where all of it holds. Values are
    compared with `$eq` (or just by giving them), `$in`, `$gt`, `$gte`, `$lt`, `$lte`; whole
    filters are combined with `$and` and `$or`. The names in `FIXED_FIELDS` read the record
    itself (`created_at` in seconds since 1970, or a datetime; `subject` and `attribute` of its
    fact, see `folded`), others its metadata. A record without the key does not pass.

    Raises:
        ValueError: Naming what is malformed and what is known.
    """
    if where is None:
        return AllOf(parts=())
    if not isinstance(where, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # user input
        raise ValueError(f"A filter must be a mapping of fields, not {where!r}.")
    parts = [part for name, value in where.items() for part in _parse_entry(name, value)]
    return parts[0] if len(parts) == 1 else AllOf(parts=tuple(parts))


def condition_of(search: Search) -> Condition:
    """Everything that a search asks of a record besides similarity.

    Raises:
        ValueError: If its filter is malformed.
    """
    parts = [parse_where(search.where)]
    if search.scopes is not None:
        parts.append(OneOf(field="scope", values=search.scopes))
    if not search.include_superseded:
        parts.append(OneOf(field=CURRENT, values=(True,)))
    return AllOf(parts=tuple(parts))


def _parse_entry(name: str, value: Any) -> list[Condition]:
    if name in _COMBINATIONS:
        parts = tuple(parse_where(part) for part in _filled_list(name, value))
        return [AllOf(parts=parts) if name == "$and" else AnyOf(parts=parts)]
    if name.startswith("$"):
        raise ValueError(f"Unknown operator {name!r}. Known here: {', '.join(_COMBINATIONS)}.")
    if not isinstance(value, Mapping):
        return [OneOf(field=field_name(name), values=(_comparable(name, value),))]
    if not value:
        raise ValueError(f"The comparison of {name!r} is empty; give it a value.")
    comparisons = cast("Mapping[str, Any]", value)
    return [_parse_comparison(name, key, operand) for key, operand in comparisons.items()]


def _parse_comparison(name: str, operator: str, operand: Any) -> Condition:
    if operator == "$eq":
        return OneOf(field=field_name(name), values=(_comparable(name, operand),))
    if operator == "$in":
        operands = _filled_list(f"$in of {name!r}", operand)
        return OneOf(
            field=field_name(name), values=tuple(_comparable(name, one) for one in operands)
        )
    if operator not in _RANGES:
        raise ValueError(
            f"Unknown operator {operator!r} for {name!r}. Known: {', '.join(_COMPARISONS)}."
        )
    bound = _comparable(name, operand)
    if not isinstance(bound, float):
        raise ValueError(f"{operator} of {name!r} compares numbers, not {operand!r}.")
    return InRange(field=field_name(name), operator=operator, bound=bound)


def _comparable(name: str, value: object) -> str | float | bool:
    if name in FOLDED_FIELDS and isinstance(value, str):
        value = folded(value)
    return exact(value, what=f"The value to compare {name!r} with")


def _filled_list(what: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{what} takes a list with at least one entry, not {value!r}.")
    return cast("Sequence[Any]", value)


# ---- The one order in which records come back, the same from every store and every source ----


def ranked(hits: Iterable[RecalledRecord], k: int) -> list[RecalledRecord]:
    """The k best: by score, then newest first, then by id."""
    return sorted(hits, key=_place)[:k]


def listed(records: Iterable[Record], k: int) -> list[RecalledRecord]:
    """The k newest, each with score 1."""
    return ranked((RecalledRecord(record=record, score=1.0) for record in records), k)


def best_with_ties(best_first: Iterable[RecalledRecord], k: int) -> list[RecalledRecord]:
    """The first k of hits that come best first, and those that tie with the last of them."""
    kept: list[RecalledRecord] = []
    for hit in best_first:
        if len(kept) >= k and hit.score < kept[-1].score:
            break
        kept.append(hit)
    return kept


def _place(hit: RecalledRecord) -> tuple[float, float, str]:
    return (-hit.score, -hit.record.created_at.timestamp(), hit.record.id)


# ---- What it means that a record supersedes another, as a pure rule ----


def superseded_pair(
    old_id: str, old: Record | None, new: Record, known: Record | None
) -> tuple[Record, Record]:
    """Both records as they stand once `new` has superseded `old`.

    Args:
        old_id: Which record is to be superseded.
        old: That record as it is stored, or None.
        new: The record that takes its place.
        known: What is stored under the new record's id, or None. It is kept, not overwritten,
            and becomes current again if it had been superseded.

    Returns:
        The old and the new record to store; equal to what is stored if all is done already.

    Raises:
        RecordStoreError: If this may not be.
    """
    if old is None:
        raise RecordStoreError(f"There is no record {old_id!r} to supersede.")
    if old.id == new.id:
        raise RecordStoreError(f"Record {old_id!r} cannot supersede itself: the text is the same.")
    if (old.kind, old.scope) != (new.kind, new.scope):
        raise RecordStoreError(
            f"Record {old_id!r} is {old.kind.value} in scope {old.scope!r}; a {new.kind.value} "
            f"record in scope {new.scope!r} cannot supersede it."
        )
    if old.superseded_by == new.id and known is not None:
        return old, known
    if old.superseded_by is not None:
        raise RecordStoreError(
            f"Record {old_id!r} was superseded by {old.superseded_by!r} before; "
            "supersede that one instead."
        )
    marked = old.model_copy(update={"superseded_by": new.id})
    current = (known or new).model_copy(update={"supersedes": old_id, "superseded_by": None})
    return marked, current


# ---- Which changes of stored records are allowed, and how all are gone through: pure rules ----


_FIXED = ("kind", "scope", "text")
"""What makes a record the one it is."""


def checked_update(records: Sequence[Record], stored: Mapping[str, Record]) -> dict[str, Record]:
    """The records to be written over those that are stored, by id.

    Raises:
        RecordStoreError: If one is not stored, or is another one than what is stored.
        ValueError: If its metadata cannot be stored exactly.
    """
    for record in records:
        flat_fields(record)
        old = stored.get(record.id)
        if old is None:
            raise RecordStoreError(
                f"There is no record {record.id!r} to update; none was written. Add it instead."
            )
        for name in _FIXED:
            if getattr(record, name) != getattr(old, name):
                raise RecordStoreError(
                    f"Field {name!r} of record {record.id!r} cannot be changed from "
                    f"{_short(getattr(old, name))} to {_short(getattr(record, name))}; none was "
                    "written. Supersede it by another record instead."
                )
    return {record.id: record for record in records}


def scanned(
    kind: MemoryKind | None, scopes: Sequence[str] | None, batch: int
) -> tuple[tuple[MemoryKind, ...], Condition]:
    """The kinds that a scan goes through, and what it asks of their records.

    Raises:
        ValueError: If `batch` is below 1, or `scopes` is empty.
    """
    if batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch!r}.")
    if scopes is not None and not scopes:
        raise ValueError("scopes is empty and would match nothing; give None for all scopes.")
    kinds = tuple(MemoryKind) if kind is None else (kind,)
    if scopes is None:
        return kinds, AllOf(parts=())
    return kinds, OneOf(field="scope", values=tuple(scopes))


def _short(value: object) -> str:
    shown = repr(str(value))
    return shown if len(shown) <= 80 else shown[:77] + "...'"
