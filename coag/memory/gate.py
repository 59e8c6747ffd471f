"""The gate of procedural memory: which rewrites are let through, and how they are taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from coag.errors import ProcedureRejected, UnknownNameError
from coag.schema import Value, content_id, estimate_tokens

from .procedures import (
    Histories,
    History,
    PendingRewrite,
    Procedure,
    ProcedureVersion,
    difference,
    missing_placeholders,
    next_version,
    rules_of,
    with_rules,
)
from .words import near_equal, shared_run

# ---- The gate of procedural memory: which rewrites are refused ----


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
    procedure: Procedure,
    current: str,
    proposed: str,
    *,
    untrusted: Sequence[str],
    settings: GateSettings,
) -> tuple[str, ...]:
    """Why a rewrite is refused, one sentence per rule that it breaks; none if it passes.

    Args:
        procedure: Whose text is to change; says which placeholders must stay.
        current: Its text now.
        proposed: Its text after the rewrite.
        untrusted: Texts from outside that the agent has seen.
        settings: How strict to be.
    """
    if proposed.strip() == current.strip():
        return ("It says what the procedure says already.",)
    found = [
        f"The placeholder {{{name}}} is missing; keep it."
        for name in missing_placeholders(procedure, proposed)
    ]
    size = estimate_tokens(proposed)
    if size > settings.budget:
        found.append(
            f"The procedure would be {size} tokens long, and {settings.budget} are allowed; "
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


def _repetitions(current: str, proposed: str) -> list[str]:
    """Says of every rule that is new which other rule it repeats."""
    rules = rules_of(proposed)
    new = _new_ones(rules_of(current), rules)
    return [
        f"Rule {number} repeats rule {earlier}: {rules[earlier - 1]!r}."
        for number, rule in enumerate(rules, start=1)
        for earlier, other in enumerate(rules[: number - 1], start=1)
        if (number in new or earlier in new) and near_equal(rule, other)
    ]


def _new_ones(before: Sequence[str], rules: Sequence[str]) -> set[int]:
    """Numbers of the rules that were not there before, or not so often."""
    left = Counter(before)
    new: set[int] = set()
    for number, rule in enumerate(rules, start=1):
        if left[rule] == 0:
            new.add(number)
        else:
            left[rule] -= 1
    return new


# ---- What a change does to the histories of procedures: pure, before anything is saved ----


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRequest:
    """A request to change a procedure."""

    edit: Callable[[str], str]
    """Makes the new text from the current one; ValueError if that cannot be."""
    author: str
    reason: str
    cycle: int | None
    untrusted: tuple[str, ...] = ()
    tainted: bool = False
    """Whether untrusted text was shown before it was made."""
    origins: tuple[str, ...] = ()
    """What it depends on; see `ProcedureVersion.origins`."""
    blind: bool = False
    """True if the edit makes sense whatever the text is that it is made from."""


def rewritten(
    held: Histories,
    procedure: Procedure,
    request: RewriteRequest,
    *,
    seen: int,
    gate: GateSettings,
    at: datetime,
) -> tuple[Histories, ProcedureVersion | PendingRewrite]:
    """Carries out a request that passes the gate, or lets it wait.

    `seen` is the newest version that the author can have read.

    Raises:
        ProcedureRejected: If the gate refuses, or there is a newer version than was read.
    """
    name, history = procedure.name, held.procedures[procedure.name]
    done = _done_before(held, name, request)
    if done is not None:
        return held, done
    if len(history) != seen and not request.blind:
        newest = history[-1]
        raise ProcedureRejected(
            name, [f"{newest.author!r} wrote version {newest.version} meanwhile; read it first."]
        )
    current = history[-1].text
    text = _edited(name, request, current)
    reasons = objections(procedure, current, text, untrusted=request.untrusted, settings=gate)
    if reasons:
        raise ProcedureRejected(name, reasons)
    if gate.lets_wait(tainted=request.tainted):
        waiting = _waiting(name, history, text, request, at)
        return held.with_pending((*held.pending, waiting)), waiting
    made = next_version(
        name,
        history,
        text,
        author=request.author,
        reason=request.reason,
        cycle=request.cycle,
        at=at,
        origins=request.origins,
    )
    return held.with_version(name, made), made


def _waiting(
    name: str, history: History, text: str, request: RewriteRequest, at: datetime
) -> PendingRewrite:
    """A change that passed the gate and waits for approval."""
    return PendingRewrite(
        id=content_id(name, str(len(history)), text, request.author, str(request.cycle))[:8],
        procedure=name,
        base=len(history),
        text=text,
        author=request.author,
        reason=request.reason,
        cycle=request.cycle,
        at=at,
        diff=difference(name, history[-1].text, text),
        origins=request.origins,
    )


def rolled_back(
    held: Histories, procedure: Procedure, version: int, request: RewriteRequest, at: datetime
) -> tuple[Histories, ProcedureVersion]:
    """Makes an old version current again.

    Raises:
        ProcedureRejected: If it lacks a placeholder or is the current one.
    """
    name, history = procedure.name, held.procedures[procedure.name]
    text = history[version - 1].text
    missing = missing_placeholders(procedure, text)
    if missing:
        raise ProcedureRejected(name, [f"Version {version} lacks {', '.join(missing)}."])
    if history[-1].text == text:
        raise ProcedureRejected(name, [f"Version {version} is the current one already."])
    made = next_version(
        name,
        history,
        text,
        author=request.author,
        reason=request.reason,
        cycle=request.cycle,
        at=at,
    )
    return held.with_version(name, made), made


def approved(
    held: Histories, rewrite_id: str, by: str, at: datetime
) -> tuple[Histories, ProcedureVersion]:
    """Puts a waiting rewrite in force.

    Raises:
        UnknownNameError: If nothing of this id waits.
        ProcedureRejected: If the procedure has changed since.
    """
    rest, waiting = dropped(held, rewrite_id)
    name, history = waiting.procedure, held.procedures[waiting.procedure]
    if len(history) != waiting.base:
        raise ProcedureRejected(
            name, [f"It was made from version {waiting.base}, and {len(history)} is current now."]
        )
    made = next_version(
        name,
        history,
        waiting.text,
        author=waiting.author,
        reason=f"{waiting.reason} (approved by {by})",
        cycle=waiting.cycle,
        at=at,
        origins=waiting.origins,
    )
    return rest.with_version(name, made), made


def dropped(held: Histories, rewrite_id: str) -> tuple[Histories, PendingRewrite]:
    """Drops a waiting rewrite.

    Raises:
        UnknownNameError: If nothing of this id waits.
    """
    waiting = {one.id: one for one in held.pending}
    if rewrite_id not in waiting:
        raise UnknownNameError("waiting rewrite", rewrite_id, waiting)
    rest = (one for one in held.pending if one.id != rewrite_id)
    return held.with_pending(rest), waiting[rewrite_id]


def _done_before(
    held: Histories, name: str, request: RewriteRequest
) -> ProcedureVersion | PendingRewrite | None:
    """What the same request led to before, if nothing has happened since."""
    history = held.procedures[name]
    newest = history[-1]
    if len(history) > 1 and _same(request, newest):
        before = history[-2].text
        return newest if _edits_to(request, before, newest.text) else None
    for waiting in held.pending:
        if waiting.procedure == name and waiting.base == len(history) and _same(request, waiting):
            return waiting if _edits_to(request, newest.text, waiting.text) else None
    return None


def _same(request: RewriteRequest, made: ProcedureVersion | PendingRewrite) -> bool:
    return (request.author, request.reason, request.cycle) == (made.author, made.reason, made.cycle)


def _edits_to(request: RewriteRequest, before: str, after: str) -> bool:
    try:
        return request.edit(before) == after
    except ValueError:
        return False


def _edited(name: str, request: RewriteRequest, current: str) -> str:
    try:
        return request.edit(current)
    except ValueError as error:
        raise ProcedureRejected(name, [str(error)]) from error


# ---- Taking back what depends on revoked records ----


REVOCATION = "revocation"
"""Author of the versions that take a change back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What was taken back."""

    versions: tuple[tuple[str, ProcedureVersion], ...] = ()
    """The procedures that changed, with the version that now holds."""
    dropped: tuple[PendingRewrite, ...] = ()
    """Rewrites that waited for approval and depend on what was revoked."""

    def and_then(self, other: Undone) -> Undone:
        """What was taken back in two steps."""
        return Undone(
            versions=(*self.versions, *other.versions), dropped=(*self.dropped, *other.dropped)
        )


def without_origins(
    held: Histories,
    procedures: Mapping[str, Procedure],
    records: Collection[str],
    reason: str,
    at: datetime,
) -> tuple[Histories, Undone]:
    """The histories once nothing in force or waiting depends on these records."""
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
    One that depends on records of its own is a change like any other, whatever its text.
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


def _last_sound(procedure: Procedure, history: History, tainted: int) -> str:
    """The newest text from before a version that has every placeholder; else the developer's."""
    texts = (version.text for version in reversed(history[: tainted - 1]))
    return next((t for t in texts if not missing_placeholders(procedure, t)), procedure.text)
