"""The gate: which rewriting of a procedure is let through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
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
class Wish:
    """A wish to change a procedure."""

    edit: Callable[[str], str]
    """The new text, made from the one that stands; ValueError if that cannot be."""
    author: str
    reason: str
    cycle: int | None
    untrusted: tuple[str, ...] = ()
    tainted: bool = False
    """Whether untrusted text was shown before it was made."""
    origins: tuple[str, ...] = ()
    """On what it rests; see `ProcedureVersion.origins`."""
    blind: bool = False
    """True if the edit makes sense whatever the text is that it is made from."""


def rewritten(
    held: Histories,
    procedure: Procedure,
    wish: Wish,
    *,
    seen: int,
    gate: GateSettings,
    at: datetime,
) -> tuple[Histories, ProcedureVersion | PendingRewrite]:
    """Carries out a wish that passes the gate, or lets it wait.

    Args:
        held: All histories as they stand.
        procedure: Which procedure is to change.
        wish: How.
        seen: The newest version that the author can have read.
        gate: How strict to be.
        at: Now.

    Raises:
        ProcedureRejected: If the gate refuses, or a newer version stands than was read.
    """
    name, history = procedure.name, held.procedures[procedure.name]
    done = _done_before(held, name, wish)
    if done is not None:
        return held, done
    if len(history) != seen and not wish.blind:
        newest = history[-1]
        raise ProcedureRejected(
            name, [f"{newest.author!r} wrote version {newest.version} meanwhile; read it first."]
        )
    current = history[-1].text
    text = _edited(name, wish, current)
    reasons = objections(procedure, current, text, untrusted=wish.untrusted, settings=gate)
    if reasons:
        raise ProcedureRejected(name, reasons)
    if gate.lets_wait(tainted=wish.tainted):
        waiting = _waiting(name, history, text, wish, at)
        return held.with_pending((*held.pending, waiting)), waiting
    made = next_version(
        name,
        history,
        text,
        author=wish.author,
        reason=wish.reason,
        cycle=wish.cycle,
        at=at,
        origins=wish.origins,
    )
    return held.with_version(name, made), made


def _waiting(name: str, history: History, text: str, wish: Wish, at: datetime) -> PendingRewrite:
    """A change that passed the gate and waits for approval."""
    return PendingRewrite(
        id=content_id(name, str(len(history)), text, wish.author, str(wish.cycle))[:8],
        procedure=name,
        base=len(history),
        text=text,
        author=wish.author,
        reason=wish.reason,
        cycle=wish.cycle,
        at=at,
        diff=difference(name, history[-1].text, text),
        origins=wish.origins,
    )


def rolled_back(
    held: Histories, procedure: Procedure, version: int, wish: Wish, at: datetime
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
        raise ProcedureRejected(name, [f"Version {version} is what stands already."])
    made = next_version(
        name, history, text, author=wish.author, reason=wish.reason, cycle=wish.cycle, at=at
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
            name, [f"It was made from version {waiting.base}, and {len(history)} stands now."]
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
    held: Histories, name: str, wish: Wish
) -> ProcedureVersion | PendingRewrite | None:
    """What the same wish brought about before, if nothing has happened since."""
    history = held.procedures[name]
    newest = history[-1]
    if len(history) > 1 and _same(wish, newest):
        before = history[-2].text
        return newest if _edits_to(wish, before, newest.text) else None
    for waiting in held.pending:
        if waiting.procedure == name and waiting.base == len(history) and _same(wish, waiting):
            return waiting if _edits_to(wish, newest.text, waiting.text) else None
    return None


def _same(wish: Wish, made: ProcedureVersion | PendingRewrite) -> bool:
    return (wish.author, wish.reason, wish.cycle) == (made.author, made.reason, made.cycle)


def _edits_to(wish: Wish, before: str, after: str) -> bool:
    try:
        return wish.edit(before) == after
    except ValueError:
        return False


def _edited(name: str, wish: Wish, current: str) -> str:
    try:
        return wish.edit(current)
    except ValueError as error:
        raise ProcedureRejected(name, [str(error)]) from error
