"""The gate of procedural memory: which rewrites are let through, and how they are taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from pydantic import Field

from coag.schema import Value, estimate_tokens

from .procedures import (
    History,
    Procedure,
    ProcedureVersion,
    missing_placeholders,
    next_version,
    rules_of,
    with_rules,
)
from .words import near_equal, shared_run


class GateSettings(Value):
    """How strict the gate is."""

    budget: int = Field(default=1_000, gt=0)
    """At most this many tokens (estimated) for one procedure, standing rules included."""
    requires_approval: bool = False
    """Whether a rewrite that passes waits until somebody approves of it."""
    untrusted_requires_approval: bool = True
    """Whether one waits that was made after untrusted text was shown, unless it says what the user
    said himself; or by an agent that keeps people's memories apart, since it would hold for all.
    Without it, only quotations are refused, and a paraphrase passes."""

    def lets_wait(self, *, tainted: bool) -> bool:
        """Whether a rewrite that passes waits."""
        return self.requires_approval or (tainted and self.untrusted_requires_approval)


def objections(
    procedure: Procedure, current: str, proposed: str, untrusted: Sequence[str], budget: int
) -> tuple[str, ...]:
    """Why a rewrite is refused, one sentence per rule that it breaks; none if it passes.

    `untrusted` are texts from outside that the agent has seen.
    """
    if proposed.strip() == current.strip():
        return ("It says what the procedure says already.",)
    found = [
        f"The placeholder {{{name}}} is missing; keep it."
        for name in missing_placeholders(procedure, proposed)
    ]
    size = estimate_tokens(proposed)
    if size > budget:
        found.append(
            f"The procedure would be {size} tokens long, and {budget} are allowed; "
            "shorten it, or remove a rule."
        )
    found += _repetitions(current, proposed)
    quotation = shared_run(proposed, untrusted, known=current)
    if quotation is not None:
        found.append(
            f"It quotes {quotation!r} from a text that came from outside; "
            "say in other words what you learned yourself."
        )
    return tuple(found)


def compiling_objections(
    text: str, *, untrusted: Sequence[str], gate: GateSettings
) -> tuple[str, ...]:
    """Why a call that succeeded again and again is not to become a compiled procedure.

    `untrusted` are texts from outside that the agent has seen. That there are some does not make it
    wait, as it does a text that the agent wrote: what it does was done, and judged, before.
    """
    found = objections(Procedure(name="compiled", text="-"), "", text, untrusted, gate.budget)
    if gate.requires_approval:
        return ("The gate wants every rewrite approved, and nobody is asked here.", *found)
    return found


def _repetitions(current: str, proposed: str) -> Iterator[str]:
    """Says of every rule that is new, or there more often, which other rule it repeats."""
    rules, before = rules_of(proposed), Counter(rules_of(current))
    new: list[bool] = []
    for number, rule in enumerate(rules, start=1):
        new.append(before[rule] == 0)
        before[rule] -= not new[-1]
        for earlier, other in enumerate(rules[: number - 1], start=1):
            if (new[-1] or new[earlier - 1]) and near_equal(rule, other):
                yield f"Rule {number} repeats rule {earlier}: {other!r}."


# ---- Taking back what depends on revoked records ----


REVOCATION = "revocation"
"""Author of the versions that take a change back."""


def in_force(history: History) -> list[int]:
    """The versions whose changes are part of the newest text, oldest first.

    A version with the text of an earlier one is a way back to it: what came between is undone.
    One that depends on records of its own is a change like any other, whatever its text.
    """
    first_with: dict[str, int] = {}
    parts: list[list[int]] = [[]]
    for version in history:
        earlier = first_with.setdefault(version.text, version.version)
        if earlier < version.version and not version.origins:
            parts.append(parts[earlier])
        else:
            kept = (n for n in parts[-1] if n not in version.undoes)
            parts.append([*kept, version.version])
    return parts[-1]


def undoing(
    procedure: Procedure, history: History, gone: Collection[str], reason: str, at: datetime
) -> ProcedureVersion | None:
    """The version without what depends on what is gone; None if nothing in force does.

    Rules that came by such a change are taken out, those that it took out come back. Where that
    cannot be done by rule, the newest sound text before the first such change holds again.
    """
    tainted = [n for n in in_force(history) if not set(gone).isdisjoint(history[n - 1].origins)]
    if not tainted:
        return None
    text, undone = _without_rules(history, tainted), tainted
    if text is None or missing_placeholders(procedure, text):
        undone = list(range(tainted[0], len(history) + 1))
        older = (version.text for version in reversed(history[: tainted[0] - 1]))
        sound = (one for one in older if not missing_placeholders(procedure, one))
        text = next(sound, procedure.text)
    numbers = ", ".join(map(str, tainted))
    return next_version(
        procedure.name,
        history,
        text,
        author=REVOCATION,
        reason=f"What version {numbers} rests on was revoked: {reason}",
        cycle=None,
        at=at,
        undoes=tuple(undone),
    )


def _without_rules(history: History, tainted: list[int]) -> str | None:
    """The newest text without the changes of these versions; None if that cannot be found out."""
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
