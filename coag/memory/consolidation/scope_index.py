"""What exists in a world: a typed list of names, within a budget of tokens.

Models that see what exists invent no people or places. A newer entry of a name replaces the older.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from coag.memory.facts import at_least, rank_of, trust_of
from coag.memory.long_term import LongTermMemory
from coag.memory.recall import records_of_type
from coag.schema import Fact, MemoryKind, Provenance, Record, Trust, Value, estimate_tokens, folded

SCOPE_ENTRY = "scope_entry"
"""The type of the records that keep entries."""
_KIND = "scope_kind"
_NAME = "scope_name"
_SHORT = 40
"""Characters of a shortened description."""


class ScopeEntry(Value):
    """Something that exists in a world."""

    kind: str = Field(min_length=1)
    """Its type, in the plural, e.g. `People`; it is the heading under which it is listed."""
    name: str = Field(min_length=1)
    description: str = ""
    """What it is, in a few words."""
    trust: Trust = Trust.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeIndex:
    """All that is known to exist."""

    entries: tuple[ScopeEntry, ...] = ()

    def find(self, name: str) -> ScopeEntry | None:
        """The entry of this name, whatever its case; None if nothing is known to have it."""
        return next((one for one in self.entries if folded(one.name) == folded(name)), None)

    @property
    def trust(self) -> Trust:
        """The lowest trust of its entries."""
        return min((Trust.USER, *(one.trust for one in self.entries)), key=rank_of)

    def render(self, budget: int = 500) -> str:
        """The list in at most so many tokens, headings counted; empty where nothing fits.

        What does not fit is shortened: first descriptions, then they are left out, and at last
        the later names of each type, whose number is said.
        """
        kinds: dict[str, list[ScopeEntry]] = {}
        for one in self.entries:
            kinds.setdefault(one.kind, []).append(one)
        for lines in _forms(kinds) if kinds else ():
            text = "\n".join(("## What exists", *lines))
            if estimate_tokens(text) <= budget:
                return text
        return ""


def _forms(kinds: Mapping[str, Sequence[ScopeEntry]]) -> Iterable[list[str]]:
    """The lines of a list, in ever shorter forms."""
    yield _full(kinds, None)
    yield _full(kinds, _SHORT)
    shown = max(map(len, kinds.values()))
    while shown >= 1:
        yield [_names(kind, some, shown) for kind, some in kinds.items()]
        shown = shown - 1 if shown <= _SHORT else int(shown * 0.9)
    yield [f"- {kind}: {len(some)}" for kind, some in kinds.items()]


def _full(kinds: Mapping[str, Sequence[ScopeEntry]], longest: int | None) -> list[str]:
    lines: list[str] = []
    for kind, some in kinds.items():
        lines.append(f"### {kind} ({len(some)})")
        for one in some:
            said = one.description
            cut = longest is not None and len(said) > longest
            said = f"{said[:longest].rstrip()}…" if cut else said
            lines.append(f"- {one.name}: {said}" if said else f"- {one.name}")
    return lines


def _names(kind: str, some: Sequence[ScopeEntry], shown: int) -> str:
    names = ", ".join(one.name for one in some[:shown])
    more = f" and {len(some) - shown} more" if len(some) > shown else ""
    return f"- {kind} ({len(some)}): {names}{more}"


async def note_scope(
    world: LongTermMemory,
    entries: Iterable[ScopeEntry],
    *,
    provenance: Provenance,
    derived_from: Sequence[str] = (),
) -> None:
    """Notes what exists; a new entry replaces the earlier one of its name.

    Raises:
        ValueError: An entry cannot be remembered, or a record to derive from is not there.
    """
    for one in entries:
        said = one.description or f"one of the {one.kind.casefold()}"
        await world.remember(
            MemoryKind.SEMANTIC,
            f"{one.name} ({one.kind}): {said}",
            provenance=provenance,
            type=SCOPE_ENTRY,
            metadata={_KIND: one.kind, _NAME: one.name},
            fact=Fact(subject=one.name, attribute="what it is", value=one.description or one.kind),
            derived_from=derived_from,
        )


async def scope_index(world: LongTermMemory) -> ScopeIndex:
    """All that was noted to exist, by type, in the order in which it was first noted.

    Of a name it has what was said last by those who are trusted best.
    """
    latest: dict[str, Record] = {}
    kept = await records_of_type(world.store, world.scope, MemoryKind.SEMANTIC, SCOPE_ENTRY)
    for record in kept:  # the newest first
        name = folded(str(record.metadata.get(_NAME, "")))
        if not at_least(trust_of(latest.setdefault(name, record)), trust_of(record)):
            latest[name] = record
    return ScopeIndex(entries=tuple(map(_entry_of, reversed(latest.values()))))


def _entry_of(record: Record) -> ScopeEntry:
    kind = str(record.metadata.get(_KIND, "Others"))
    value = "" if record.fact is None else record.fact.value
    return ScopeEntry(
        kind=kind,
        name=str(record.metadata.get(_NAME, record.text)),
        description="" if value == kind else value,
        trust=record.provenance.trust,
    )
