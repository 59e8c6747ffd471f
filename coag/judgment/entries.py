"""Entries in the state: added, found for a task, tied to patterns, taken back, shown as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coag.errors import JudgmentError

from .graph import CapabilityGraph, words_of_task
from .patterns import RoutePattern
from .protocol import (
    DeadEnd,
    Externalisation,
    Insight,
    JudgmentEntry,
    Method,
    SelfProfile,
    entry_from,
    to_json,
)
from .reports import patterns_of

MOST_ENTRIES = 2_000
"""Entries that are kept; of more those of untrusted sources go first, then the shortest tier, the
oldest of them first."""
_TIER_ORDER = {"session": 0, "project": 1, "lasting": 2}
_SEVERAL = 3
"""Entries on one capability that ask for an insight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A route pattern with the entry that explains it."""

    pattern: RoutePattern
    why: str = ""
    fails_when: str = ""
    entry: str = ""
    """Id of the entry; empty where nobody has explained the pattern yet."""

    def __str__(self) -> str:
        """The pattern with why it works and when it fails, in a line."""
        if not self.entry:
            return f"{self.pattern.name}: not explained"
        return f"{self.pattern.name}: {self.why}; fails when {self.fails_when or 'nobody knows'}"


# ---- Stored, and taken back ----


def stored_entries(state: Mapping[str, Any]) -> list[JudgmentEntry]:
    """The entries of a state, oldest first.

    Raises:
        JudgmentError: One has a field that cannot be.
    """
    return [
        entry_from({name: value for name, value in one.items() if name != "id"})
        for one in state["entries"]
    ]


def add_entries(state: dict[str, Any], entries: Iterable[JudgmentEntry]) -> None:
    """Adds entries; one that is said again takes the place of itself.

    Raises:
        JudgmentError: One explains a pattern that is not there.
    """
    stored: dict[str, dict[str, Any]] = {one["id"]: one for one in state["entries"]}
    patterns = {one.name for one in patterns_of(state)}
    for one in entries:
        if isinstance(one, Method) and one.explains and one.explains not in patterns:
            known = "; ".join(sorted(patterns)) or "none yet"
            raise JudgmentError(f"There is no pattern {one.explains!r}. There are: {known}.")
        before: dict[str, Any] = stored.pop(one.id, {})
        record = one.record or before.get("record", "")
        stored[one.id] = {**to_json(one), "record": record, "id": one.id}
    kept = list(stored.values())
    while len(kept) > MOST_ENTRIES:
        kept.remove(min(kept, key=_worth))
    state["entries"] = kept


def _worth(stored: Mapping[str, Any]) -> tuple[bool, int]:
    """What an entry is kept by: a stranger who says much pushes out nobody but strangers."""
    return stored["origin"].get("trust") != "untrusted", _TIER_ORDER.get(stored.get("tier", ""), 1)


def remove_entries(state: dict[str, Any], source: str, ids: Iterable[str]) -> tuple[str, ...]:
    """Removes what a source stated, or what has these ids, and all that was derived from it."""
    gone, entries = set(ids), list(state["entries"])
    removed: list[str] = []
    while going := [one for one in entries if _stems_from(one, source, gone)]:
        removed += [one["id"] for one in going]
        gone |= {name for one in going for name in (one["id"], one["record"]) if name}
        entries = [one for one in entries if one not in going]
    state["entries"] = entries
    return tuple(removed)


def _stems_from(stored: Mapping[str, Any], source: str, gone: set[str]) -> bool:
    origin = stored["origin"]
    drawn_from = (*origin.get("derived_from", ()), *stored.get("across", ()))
    named = {stored["id"], stored["record"], *drawn_from} - {""}
    return bool(named & gone) or (bool(source) and origin["source"] == source)


# ---- Found for a task, and tied to patterns ----


def is_about(one: JudgmentEntry, words: frozenset[str], capabilities: Iterable[str] = ()) -> bool:
    """Whether an entry shares a capability, or two words (or the only one), with a task."""
    if set(capabilities) & set(one.capabilities):
        return True
    shared = words & words_of_task(f"{one.text} {' '.join(one.capabilities)}")
    return len(shared) >= min(2, max(1, len(words)))


def annotations_of(
    patterns: Iterable[RoutePattern], entries: Iterable[JudgmentEntry]
) -> list[Annotation]:
    """Every pattern with the last method that explains it."""
    methods = {one.explains: one for one in entries if isinstance(one, Method) and one.explains}
    return [
        Annotation(pattern=one)
        if (method := methods.get(one.name)) is None
        else Annotation(
            pattern=one,
            why=method.why or method.statement,
            fails_when=method.fails_when,
            entry=method.id,
        )
        for one in patterns
    ]


def waiting_for_insight(
    annotations: Iterable[Annotation], entries: Sequence[JudgmentEntry]
) -> list[str]:
    """Patterns that nobody has explained, and capabilities of which no insight was drawn."""
    waiting = [
        f"{one.pattern.name}: why does it work, and when does it fail?"
        for one in annotations
        if not one.entry
    ]
    drawn = {name for one in entries if isinstance(one, Insight) for name in one.across}
    about: dict[str, list[str]] = {}
    for one in entries:
        if not isinstance(one, Insight | SelfProfile) and one.id not in drawn:
            for name in one.capabilities:
                about.setdefault(name, []).append(one.id)
    return waiting + [
        f"{name}: what do its {len(ids)} entries have in common ({', '.join(ids[:5])})?"
        for name, ids in about.items()
        if len(ids) >= _SEVERAL
    ]


# ---- As text, for the next agent or person ----


def newest_first(entries: Iterable[JudgmentEntry]) -> list[JudgmentEntry]:
    """Trusted entries first, and of these the newest."""
    return sorted(
        entries, key=lambda one: (one.origin.trust == "untrusted", -one.origin.at.timestamp())
    )


def handover(
    task: str,
    entries: Sequence[JudgmentEntry],
    annotations: Sequence[Annotation],
    graph: CapabilityGraph,
) -> str:
    """What the next agent or person should know; what concerns the task comes first."""
    words = words_of_task(task)
    ordered = newest_first(entries)
    ordered.sort(key=lambda one: not is_about(one, words))
    dead = [one for one in ordered if isinstance(one, DeadEnd)]
    thoughts = [one for one in ordered if isinstance(one, Externalisation)]
    profiles = [one for one in ordered if isinstance(one, SelfProfile)]
    rest = [one for one in ordered if not isinstance(one, DeadEnd | Externalisation | SelfProfile)]
    closed = [_closed(one) for one in dead if not one.reopened]
    lines = [
        *_part("What was in the head when the context was cut", map(_said, thoughts[:3])),
        *_part("Dead ends: closed until something changes", closed[:20]),
        *_part("Dead ends that are open again", [_opened(one) for one in dead if one.reopened][:5]),
        *_part("What was learned", map(_said, rest[:20])),
        *_part("Configuration", map(_said, profiles[:1])),
        *_part("Routes that stand out", map(str, annotations[:10])),
        *_part("Routes that paid, or did not", _routes(graph)[:10]),
    ]
    return "\n".join(lines) or "Nothing was learned yet."


def _part(title: str, lines: Iterable[str]) -> list[str]:
    shown = [f"- {line}" for line in lines]
    return [f"{title}:", *shown] if shown else []


def _said(one: JudgmentEntry) -> str:
    text = one.text.replace("\n", "; ")
    return f"{one.operation} of {one.origin.source} ({one.origin.trust}): {text}"


def _closed(one: DeadEnd) -> str:
    when = " or ".join(map(str, one.reopen)) or "it is reopened by hand"
    only = "" if one.closes else " (a warning only: its source is not trusted)"
    return f"{one.topic}: {one.why_closed}; until {when}{only}"


def _opened(one: DeadEnd) -> str:
    return f"{one.topic}: it failed ({one.why_closed}); open again, since {one.reopened}"


def _routes(graph: CapabilityGraph) -> list[str]:
    used = [one for one in graph.edges() if one.tries]
    used.sort(key=lambda one: (-abs(one.weight), one.key))
    return [
        f"{one.source} > {one.target}: {one.weight:+.2f} after {one.tries} uses" for one in used
    ]
