"""What every candidate must pass: arguments, unsettled actions, projection, constraints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel

from coag._util.secrets import REDACTED
from coag._util.timeouts import LateError, SelfCancelledError, describe_error, within
from coag.context import WorkingMemory, dump_state
from coag.errors import StateError, UnknownNameError
from coag.memory import MEMORY_ACTIONS
from coag.schema import (
    ActionSpec,
    Candidate,
    Evaluation,
    Percept,
    PerceptKind,
    Reconciliation,
    Settlement,
    UnsettledAction,
    Verdict,
)

from .actions import IDEMPOTENCY_KEY, RESPOND, completed_arguments, existence, parse_arguments
from .approval import APPROVAL
from .constraints import UNCHANGED_ARGUMENTS
from .deps import AnyContext, AskReconciliation, Deps, GuardDeps, decided_at
from .time_limit import limited

# ---- Actions of unknown outcome: not repeated before it is known what became of them ----


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


def _unsettled_now(
    memory: WorkingMemory, specs: Mapping[str, ActionSpec]
) -> tuple[UnsettledAction, ...]:
    """The actions of unknown outcome that may have changed something."""
    harmless = {name for name, spec in specs.items() if spec.read_only}
    return tuple(one for one in memory.unsettled if one.action not in harmless)


def _unsettled_verdict(candidate: Candidate, spec: ActionSpec) -> Verdict:
    """Whether exactly this action may already have happened."""
    if not candidate.unsettled or spec.read_only or spec.idempotent:
        return _SETTLED
    mine = identity(candidate.action, candidate.arguments or {})
    for one in candidate.unsettled:
        theirs = identity(one.action, one.arguments)
        # What the trace does not keep may be the same.
        if one.action == candidate.action and (theirs == mine or REDACTED in theirs):
            return Verdict.forbid(
                f"exactly this began in cycle {one.cycle}, and it is not known whether it had its "
                "effect; it is not run again before that is known. Find out, or say that you "
                "do not know",
                UNSETTLED,
            )
    return _SETTLED


async def reconcile(context: AnyContext, deps: GuardDeps) -> tuple[Percept, ...]:
    """What can be found out now about actions of unknown outcome, as percepts to be perceived.

    The tool is asked first, then the domain. Whatever goes wrong leaves the outcome unknown, and
    is noted.
    """
    result: list[Percept] = []
    for action in context.working_memory.unsettled:
        for ask in deps.reconcilers:
            answer, problem = await _ask_once(ask, action)
            if problem:
                deps.note(context, "reconcile", f"{action.action}: {problem}", problem=problem)
            if answer != "unknown":
                result.append(_settlement(action, Settlement(answer), "reconciliation", deps))
                break
    return tuple(result)


def _settlement(action: UnsettledAction, became: Settlement, by: str, deps: GuardDeps) -> Percept:
    text = "It happened." if became is Settlement.HAPPENED else "It did not happen."
    return deps.percept(
        kind=PerceptKind.SETTLED,
        source=action.action,
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
    return _settlement(unsettled[intent_id], became, "a person", deps)


async def _ask_once(ask: AskReconciliation, action: UnsettledAction) -> tuple[Reconciliation, str]:
    try:
        answer: Any = await within(RECONCILE_SECONDS, lambda: ask(action.model_copy(deep=True)))
    except LateError:
        return "unknown", f"reconcile gave no answer within {RECONCILE_SECONDS:g} s"
    except SelfCancelledError:
        return "unknown", "reconcile was cancelled by itself"
    except Exception as error:  # a user's code; what it cannot say stays unknown
        return "unknown", f"reconcile raised {describe_error(error)}"
    if answer not in _ANSWERS:
        shown = answer if isinstance(answer, str) else type(answer).__name__
        return "unknown", f"reconcile returned {shown!r:.80} instead of one of {_ANSWERS}"
    return answer, ""


# ---- What code alone says of a candidate; Evaluation asks it, and Execution once more ----


PROJECTION = "projection"
IN_FORCE = "constraints_in_force"
CURRENT_STATE = "state_is_current"
"""The rule by which nothing acts while the state that the rules judge by is out of date."""
MEMORY_SCOPE = "memory_scope"
"""The rule by which nothing of one person's is remembered for another, or for nobody."""
_ANOTHER = "somebody else is served since this cycle began; think anew for whom it is"
_NOBODY = "it is not known whom you serve, so there is nobody to remember it for"
OFFER = "offer"
"""Id of a candidate that nobody proposed: a call that is judged before it is offered."""
_NO_KEY = "0" * 32
"""Used as idempotency key until the other arguments are known."""
_IN_FORCE = Verdict(allowed=True, constraint=IN_FORCE)
_PROJECTED = Verdict(allowed=True, constraint=PROJECTION)


def check(
    candidate: Candidate, specs: Mapping[str, ActionSpec], context: AnyContext, deps: GuardDeps
) -> Evaluation:
    """The verdicts of code alone: existence, arguments, progress, projection, constraints."""
    verdicts, ready = [existence(candidate, specs)], None
    if verdicts[-1].allowed:
        ready, verdict = _ready(candidate, specs, context, deps)
        verdicts.append(verdict)
    if ready is None:
        return Evaluation(candidate_id=candidate.id, arguments=None, verdicts=tuple(verdicts))
    memory, spec, projection = context.working_memory, specs[candidate.action], None
    verdicts += _may_run_now(ready, spec, context, deps)
    if verdicts[-1].allowed:
        projection, verdict = project(ready, context, deps.constraints.seconds)
        verdicts.append(verdict)
    if verdicts[-1].allowed:
        verdicts.append(_in_force(context, deps))
    if verdicts[-1].allowed:
        now = decided_at(context, deps)
        verdicts += deps.constraints.judge(ready, context.state, projection, memory, spec, now)
    gain = None
    if projection is not None:
        try:
            gain = context.gain(projection)
        except Exception as error:  # a domain's hook: a prediction it cannot weigh is none
            reason = f"the domain's value of the prediction raised {type(error).__name__}: {error}"
            verdicts.append(Verdict.forbid(reason, PROJECTION))
    return Evaluation(
        candidate_id=candidate.id,
        arguments=ready.arguments,
        verdicts=tuple(verdicts),
        projection=None if projection is None else dump_state(projection),
        gain=gain,
    )


def judge_calls(
    calls: Iterable[tuple[str, str]],
    specs: Mapping[str, ActionSpec],
    context: AnyContext,
    deps: GuardDeps,
) -> Iterator[tuple[Candidate, Evaluation]]:
    """Calls that nobody proposed, each an action with its arguments, and what code says of them."""
    for action, arguments in calls:
        offer = Candidate(id=OFFER, action=action, raw_arguments=arguments)
        yield offer, check(offer, specs, context, deps)


def may_say(text: str, context: AnyContext, deps: GuardDeps) -> Verdict:
    """What the rules in force say of a text that is to leave the turn without being an action."""
    if not deps.constraints.pinned:  # the turn ended before its first cycle
        deps.constraints.pin()
    if not deps.constraints.pinned and deps.approvals is None and not context.has_forward_model:
        return _IN_FORCE  # there is nobody to ask
    arguments, memory = {"text": text}, context.working_memory
    said = Candidate(
        id="said",
        action=RESPOND.name,
        raw_arguments=json.dumps(arguments, ensure_ascii=False),
        arguments=arguments,
        unsettled=memory.unsettled,
    )
    needed = deps.approvals and deps.approvals.need(said.action, arguments)
    if needed:
        return Verdict.forbid(f"it needs approval: {needed.reason}", APPROVAL)
    projection, verdict = project(said, context, deps.constraints.seconds)
    if not verdict.allowed:
        return verdict
    now = decided_at(context, deps)
    verdicts = deps.constraints.judge(said, context.state, projection, memory, RESPOND, now)
    return next((one for one in verdicts if not one.allowed), verdict)


def _ready(
    candidate: Candidate, specs: Mapping[str, ActionSpec], context: AnyContext, deps: GuardDeps
) -> tuple[Candidate | None, Verdict]:
    """The candidate as it is judged: with what it will be run with, and what is not known."""
    memory, spec = context.working_memory, specs[candidate.action]
    arguments, verdict = parse_arguments(
        candidate, spec, lambda given: deps.ready.holds(spec, given, memory.cycle)
    )
    if arguments is not None and not deps.ready.holds(spec, arguments, memory.cycle):
        given = {IDEMPOTENCY_KEY: _NO_KEY, **arguments} if spec.idempotency_key else arguments
        arguments, verdict = completed_arguments(given, deps.actions.complete, spec)
        if arguments is not None and spec.idempotency_key:
            # By what the action gets, not by what was written.
            key = idempotency_key(memory, candidate.action, arguments)
            keyed = {**arguments, IDEMPOTENCY_KEY: key}
            arguments, again = completed_arguments(keyed, deps.actions.complete, spec)
            verdict = verdict if again.allowed else again
        if arguments is not None:
            deps.ready.add(spec, arguments, memory.cycle)
    if arguments is None:
        return None, verdict
    update = {"arguments": arguments, "unsettled": _unsettled_now(memory, specs)}
    return candidate.model_copy(update=update), verdict


def _may_run_now(
    ready: Candidate, spec: ActionSpec, context: AnyContext, deps: GuardDeps
) -> list[Verdict]:
    """Whether the state is current, the same action may not be done already, and not in vain."""
    stale = context.working_memory.stale
    if stale is not None and not (spec.internal and spec.repeatable):
        reason = f"the state is out of date, and nothing acts until it is reset: {stale}"
        return [Verdict.forbid(reason, CURRENT_STATE)]
    problem = _person_problem(ready, context)
    if problem:
        return [Verdict.forbid(problem, MEMORY_SCOPE)]
    verdicts = [_unsettled_verdict(ready, spec)] if ready.unsettled else []
    if not verdicts or verdicts[-1].allowed:
        now = decided_at(context, deps)
        verdicts.append(deps.detector.verdict(ready, context.progress_key(), now))
    return verdicts


def _person_problem(ready: Candidate, context: AnyContext) -> str:
    """Why it may not be remembered for, or answered to, the person served now; else empty.

    Nothing is remembered while nobody is served. A person who logs in then may be answered.
    Once it is perceived that somebody else is served, nothing of this cycle may act.
    """
    memory = context.working_memory
    retrieval = memory.cognitive_state.retrieval
    started = None if retrieval is None else retrieval.memory_scope
    if started is None:
        return ""
    if memory.memory_scope != started:
        return _ANOTHER
    remembers = ready.action in MEMORY_ACTIONS
    if not remembers and not (started and ready.action == RESPOND.name):
        return ""
    try:
        another = context.memory_scope() != started
    except StateError as error:
        return str(error)
    if another:
        return _ANOTHER
    return _NOBODY if remembers and not started else ""


def _in_force(context: AnyContext, deps: GuardDeps) -> Verdict:
    """Whether the constraints that the cycle began under are the ones that judge now.

    They are not where an agent without one of them continues a cycle.
    """
    retrieval = context.working_memory.cognitive_state.retrieval
    promised = retrieval.constraints if retrieval else ()
    missing = ", ".join(name for name in promised if name not in deps.constraints.pinned)
    if not missing:
        return _IN_FORCE
    return Verdict.forbid(f"this cycle began under {missing}, which nobody can ask now", IN_FORCE)


def project(
    candidate: Candidate, context: AnyContext, seconds: float | None
) -> tuple[Any | None, Verdict]:
    """The state that a candidate would lead to, and whether its prediction may be relied on."""
    if not context.has_forward_model:
        return None, _PROJECTED
    own = candidate.model_copy(deep=True)
    try:
        projection = limited(lambda: context.project(own), seconds)
    except Exception as error:  # a domain's hook: without its prediction nothing may pass
        reason = f"the domain's projection raised {type(error).__name__}: {error}"
        return None, Verdict.forbid(reason, PROJECTION)
    if projection is not None and not isinstance(projection, BaseModel):
        reason = f"the domain's projection is {projection!r}, not a state or None"
        return None, Verdict.forbid(reason, PROJECTION)
    changed = own.arguments != candidate.arguments
    return projection, UNCHANGED_ARGUMENTS if changed else _PROJECTED


def batched(candidates: Sequence[Candidate], deps: Deps) -> bool:
    """Whether the candidates are one batch, to be run as one, rather than alternatives."""
    batches = {candidate.batch for candidate in candidates}
    return deps.settings.parallel and len(batches) == 1 and None not in batches
