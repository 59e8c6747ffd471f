"""Taking back what changes of procedures brought, once what they rested on is revoked. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from ._history import Histories, History, next_version
from ._procedure import PendingRewrite, Procedure, ProcedureVersion, missing_placeholders
from ._rules import rules_of, with_rules

REVOCATION = "revocation"
"""Author of the versions that take a change back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What was taken back."""

    versions: tuple[tuple[str, ProcedureVersion], ...] = ()
    """The procedures that changed, with the version that now holds."""
    dropped: tuple[PendingRewrite, ...] = ()
    """Rewrites that waited for approval and rest on what was revoked."""


def without_origins(
    held: Histories,
    procedures: Mapping[str, Procedure],
    records: Collection[str],
    reason: str,
    at: datetime,
) -> tuple[Histories, Undone]:
    """The histories once nothing that holds or waits rests on these records."""
    gone = frozenset(records)
    dropped = tuple(one for one in held.pending if gone.intersection(one.origins))
    if dropped:
        held = held.with_pending(one for one in held.pending if one not in dropped)
    made: list[tuple[str, ProcedureVersion]] = []
    for name, procedure in sorted(procedures.items()):
        history = held.procedures[name]
        tainted = [n for n in in_force(history) if gone.intersection(history[n - 1].origins)]
        if tainted:
            version = _undoing(procedure, history, tainted, reason, at)
            held = held.with_version(name, version)
            made.append((name, version))
    return held, Undone(versions=tuple(made), dropped=dropped)


def in_force(history: History) -> list[int]:
    """The versions whose changes are part of the newest text, oldest first.

    A version with the text of an earlier one is a way back to it: what came between is undone.
    One that rests on records of its own is a change like any other, whatever its text.
    """
    first_with: dict[str, int] = {}
    parts: list[list[int]] = []
    for version in history:
        earlier = first_with.setdefault(version.text, version.version)
        if earlier < version.version and not version.origins:
            now = list(parts[earlier - 1])
        else:
            before = parts[-1] if parts else []
            now = [*(n for n in before if n not in version.undoes), version.version]
        parts.append(now)
    return parts[-1]


def _undoing(
    procedure: Procedure, history: History, tainted: list[int], reason: str, at: datetime
) -> ProcedureVersion:
    text = _without_rules(history, tainted)
    if text is None or missing_placeholders(procedure, text):
        undone = list(range(tainted[0], len(history) + 1))
        text = _last_sound(procedure, history, tainted[0])
    else:
        undone = tainted
    version = next_version(
        procedure.name,
        history,
        text,
        author=REVOCATION,
        reason=f"What version {', '.join(map(str, tainted))} rests on was revoked: {reason}",
        cycle=None,
        at=at,
    )
    return version.model_copy(update={"undoes": tuple(undone)})


def _without_rules(history: History, tainted: list[int]) -> str | None:
    """The newest text without the changes of these versions; None if that is not to be told."""
    text = history[-1].text
    rules = list(rules_of(text))
    for number in reversed(tainted):
        if number == 1:
            return None
        before, after = history[number - 2].text, history[number - 1].text
        old, new = rules_of(before), rules_of(after)
        if with_rules(before, ()) != with_rules(after, ()):
            return None
        for rule in (rule for rule in new if rule not in old):
            if rule not in rules:
                return None
            rules.remove(rule)
        rules += [rule for rule in old if rule not in new and rule not in rules]
    return with_rules(text, rules)


def _last_sound(procedure: Procedure, history: History, tainted: int) -> str:
    """The newest text from before a version that has every placeholder; else the developer's."""
    texts = (version.text for version in reversed(history[: tainted - 1]))
    return next((t for t in texts if not missing_placeholders(procedure, t)), procedure.text)
