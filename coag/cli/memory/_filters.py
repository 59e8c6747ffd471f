"""Which records a person means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from coag.errors import ConfigurationError
from coag.schema import MemoryKind, RecalledRecord, Record
from coag.store import (
    DEFAULT_RANKING,
    SHORT_ID_LENGTH,
    RecordStore,
    Search,
    parse_where,
    ranked,
    short_id,
)

from ._place import NothingFoundError

_MANY = 20
"""Records of one short id that are told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Filters as options give them."""

    scopes: tuple[str, ...] | None
    kinds: tuple[MemoryKind, ...]
    superseded: bool
    where: Mapping[str, Any]
    limit: int

    @classmethod
    def of(
        cls,
        *,
        scope: str | None,
        kind: str | None,
        type_: str | None,
        source: str | None,
        trust: str | None,
        superseded: bool,
        where: str | None,
        limit: int,
    ) -> Chosen:
        """The filters that options stand for.

        Raises:
            ConfigurationError: If `where` is no filter.
        """
        fields = {"type": type_, "source": source, "trust": trust}
        parts: list[Mapping[str, Any]] = [
            {name: str(value)} for name, value in fields.items() if value is not None
        ]
        if where is not None:
            parts.append(_filter(where))
        return cls(
            scopes=None if scope is None else (scope,),
            kinds=tuple(MemoryKind) if kind is None else (MemoryKind(kind),),
            superseded=superseded,
            where={"$and": parts} if len(parts) > 1 else (parts[0] if parts else {}),
            limit=limit,
        )

    async def found(
        self, store: RecordStore, text: str | None, *, k: int, min_score: float | None = None
    ) -> list[RecalledRecord]:
        """The best of them for a text, or for None the newest."""
        hits: list[RecalledRecord] = []
        for kind in self.kinds:
            search = Search(
                text=text,
                kind=kind,
                k=k,
                scopes=self.scopes,
                where=self.where or None,
                min_score=min_score,
                include_superseded=self.superseded,
                ranking=None if text is None else DEFAULT_RANKING,
            )
            hits += await store.search(search)
        return ranked(hits, k)


async def the_record(store: RecordStore, name: str, scope: str | None) -> Record:
    """The record that a person means by an id or the beginning of one.

    Raises:
        NothingFoundError: If there is none.
        ConfigurationError: If the name is too short, or several records are meant.
    """
    if len(name) < SHORT_ID_LENGTH:
        raise ConfigurationError(
            f"{name!r} is too short for an id; give at least its first {SHORT_ID_LENGTH} "
            "characters, as `coag memory ls` shows them."
        )
    found: list[Record] = []
    for kind in MemoryKind:
        search = Search(
            text=None,
            kind=kind,
            k=_MANY,
            scopes=None if scope is None else (scope,),
            where={"short_id": short_id(name)},
            include_superseded=True,
        )
        hits = await store.search(search)
        found += [hit.record for hit in hits if hit.record.id.startswith(name)]
    if not found:
        within = "" if scope is None else f" in scope {scope!r}"
        raise NothingFoundError(f"There is no record {name!r}{within}.")
    if len(found) > 1:
        named = ", ".join(f"{one.id} (scope {one.scope!r})" for one in found)
        raise ConfigurationError(f"{name!r} begins the ids of several records: {named}.")
    return found[0]


async def no_scope(store: RecordStore, name: str) -> str | None:
    """What to say if no record is of a scope, with those that there are; None if some is."""
    known: set[str] = set()
    async for records in store.scan():
        known.update(record.scope for record in records)
    if name in known:
        return None
    shown = ", ".join(map(repr, sorted(known)[:_MANY]))
    more = f" and {len(known) - _MANY} more" if len(known) > _MANY else ""
    return f"There is no scope {name!r}. There are: {shown}{more}."


def _filter(where: str) -> Mapping[str, Any]:
    try:
        parsed: object = json.loads(where)
        parse_where(cast("Mapping[str, Any]", parsed))
    except ValueError as error:
        raise ConfigurationError(
            f"--where {where!r} is no filter: {str(error).rstrip('.')}. It is JSON such as "
            '{"type": "obstacle", "x": {"$gte": 1}}.'
        ) from error
    return cast("Mapping[str, Any]", parsed)
