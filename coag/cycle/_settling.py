"""Actions of unknown outcome: not repeated before it is known what became of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast, get_args

from coag.context import WorkingMemory
from coag.errors import UnknownNameError
from coag.schema import (
    ActionSpec,
    Candidate,
    Percept,
    PerceptKind,
    Reconciliation,
    Settlement,
    Trust,
    UnsettledAction,
    Verdict,
)
from coag.tracing import REDACTED

from ._arguments import IDEMPOTENCY_KEY
from ._guard_deps import AnyContext, AskReconciliation, GuardDeps
from ._timed import LateError, SelfCancelledError, told, within

UNSETTLED = "unsettled"
"""The rule by which an action of unknown outcome is not repeated."""
RECONCILE_SECONDS = 10.0
"""Time that a tool or domain has to find out what became of an action."""
_ANSWERS = get_args(Reconciliation)
_SETTLED = Verdict(allowed=True, constraint=UNSETTLED)


def idempotency_key(memory: WorkingMemory, action: str, arguments: Mapping[str, Any]) -> str:
    """A key that is the same for the same action and arguments within a goal, for one person."""
    goal = f"{memory.goal_id or memory.activity}{memory.memory_scope}"
    return hashlib.sha256(f"{goal} {identity(action, arguments)}".encode()).hexdigest()[:32]


def identity(action: str, arguments: Mapping[str, Any]) -> str:
    """What makes a call the same call: its action and arguments, without the idempotency key.

    A missing argument and None are the same.
    """
    plain = {name: value for name, value in arguments.items() if name != IDEMPOTENCY_KEY}
    return f"{action} {json.dumps(_canonical(plain), sort_keys=True)}"


def _canonical(value: Any) -> Any:
    """The same value for the same number, 60 and 60.0, and without what is None."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_canonical(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name: _canonical(item) for name, item in items if item is not None}
    return value


def unsettled_now(
    memory: WorkingMemory, specs: Mapping[str, ActionSpec]
) -> tuple[UnsettledAction, ...]:
    """The actions of unknown outcome that may have changed something."""
    return tuple(
        one
        for one in memory.unsettled
        if (spec := specs.get(one.action)) is None or not spec.read_only
    )


def unsettled_verdict(candidate: Candidate, spec: ActionSpec) -> Verdict:
    """Whether exactly this action may already have happened."""
    if not candidate.unsettled or spec.read_only or spec.idempotent:
        return _SETTLED
    mine = identity(candidate.action, candidate.arguments or {})
    for one in candidate.unsettled:
        if one.action != candidate.action:
            continue
        theirs = identity(one.action, one.arguments)
        if theirs == mine or REDACTED in theirs:  # what the trace does not keep may be the same
            reason = (
                f"exactly this began in cycle {one.cycle}, and it is not known whether it had its "
                "effect; it is not run again before that is known. Find out, or say that you "
                "do not know"
            )
            return Verdict(allowed=False, constraint=UNSETTLED, reason=reason)
    return _SETTLED


async def reconcile(context: AnyContext, deps: GuardDeps) -> tuple[Percept, ...]:
    """What can be found out now about actions of unknown outcome, as percepts to be perceived.

    The tool is asked first, then the domain. Whatever goes wrong leaves the outcome unknown, and
    is noted.
    """
    found: list[Percept] = []
    for action in context.working_memory.unsettled:
        for ask in deps.reconcilers:
            answer, problem = await _asked(ask, action)
            if problem:
                deps.note(context, "reconcile", f"{action.action}: {problem}", problem=problem)
            if answer != "unknown":
                found.append(settlement(action, Settlement(answer), "reconciliation", deps))
                break
    return tuple(found)


def settlement(action: UnsettledAction, became: Settlement, by: str, deps: GuardDeps) -> Percept:
    """That it is known what became of an action."""
    text = "It happened." if became is Settlement.HAPPENED else "It did not happen."
    return Percept(
        id=deps.ids("percept"),
        at=deps.clock.now(),
        kind=PerceptKind.SETTLED,
        source=action.action,
        trust=Trust.UNTRUSTED,
        content=f"{text} Found out by {by}.",
        data={"settlement": became.value, "by": by},
        caused_by=action.intent_id,
        arguments=action.arguments,
        settlement=became,
    )


def settled_by_person(
    intent_id: str, *, happened: bool, context: AnyContext, deps: GuardDeps
) -> Percept:
    """What a person found out about an action of unknown outcome, to be perceived.

    Raises:
        UnknownNameError: No action with this intent is of unknown outcome.
    """
    unsettled = {one.intent_id: one for one in context.working_memory.unsettled}
    if intent_id not in unsettled:
        raise UnknownNameError("action of unknown outcome", intent_id, unsettled)
    became = Settlement.HAPPENED if happened else Settlement.DID_NOT_HAPPEN
    return settlement(unsettled[intent_id], became, "a person", deps)


async def _asked(ask: AskReconciliation, action: UnsettledAction) -> tuple[Reconciliation, str]:
    """What came of asking once, and what went wrong."""
    try:
        answer: Any = await within(RECONCILE_SECONDS, lambda: ask(action.model_copy(deep=True)))
    except LateError:
        return "unknown", f"reconcile gave no answer within {RECONCILE_SECONDS:g} s"
    except SelfCancelledError:
        return "unknown", "reconcile was cancelled by itself"
    except Exception as error:  # a user's code; what it cannot tell stays unknown
        return "unknown", f"reconcile raised {told(error)}"
    if answer not in _ANSWERS:
        shown = answer if isinstance(answer, str) else type(answer).__name__
        return "unknown", f"reconcile returned {shown!r:.80} instead of one of {_ANSWERS}"
    return answer, ""
