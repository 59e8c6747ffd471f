"""Execution: one action or one batch, checked again, begun at most once, and recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coag.context import dump_state, shortened
from coag.errors import ConfigurationError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    Clock,
    Evaluation,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    IdSource,
    Intent,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    Trust,
    Verdict,
)

from .actions import ARGUMENTS
from .approval import (
    APPROVAL,
    ApprovalDecision,
    ApprovalEvent,
    ApprovalOccasion,
    ApprovalPolicy,
    Approvals,
    ApproveFunction,
    Seen,
    memory_version,
)
from .checks import check, project
from .deps import AnyContext, Deps, GuardDeps, decided_at

# ---- What an agent perceives of its own external actions ----


def return_percept(call: ActionCall, result: ActionResult, deps: GuardDeps) -> Percept:
    """What the agent perceives of its own action: the tool's return, or that none came."""
    unknown = result.outcome_unknown
    return Percept(
        id=deps.ids("percept"),
        at=deps.clock.now(),
        kind=PerceptKind.UNKNOWN_OUTCOME if unknown else PerceptKind.TOOL_RETURN,
        source=call.action,
        trust=Trust.UNTRUSTED,
        content=result.content,
        data=result.data,
        caused_by=call.id,
        arguments=call.arguments,
        is_error=result.is_error,
        failure=result.failure,
    )


# ---- Running one action: intent, effect, receipt ----


RESULT_TEXT = 200_000
"""Characters of a result that are kept; tools' own outputs are cut to the window before."""
CANCELLED = "It was cancelled while it ran. It may or may not have had its effect."


@dataclass(frozen=True, slots=True)
class ActionRun:
    """What came of one selected action."""

    executed: Executed
    returned: ActionResult | None = None
    """What it brought back; None if it was not run."""
    refused_by: Verdict | None = None
    """What forbade it, if it was not run for that."""
    response: str | None = None
    """The answer, if the action ended the turn."""
    queued: tuple[Percept, ...] = ()
    broken: BaseException | None = None
    """What broke it off while it ran: a cancellation, or the process is to end."""


def begin(
    candidate: Candidate,
    arguments: dict[str, Any],
    context: AnyContext,
    deps: GuardDeps,
    *,
    internal: bool = False,
) -> ActionCall:
    """Writes down and flushes that the action is about to run."""
    number = ".".join(part for part in (deps.run(), deps.ids("intent")) if part)
    call = ActionCall(
        id=number, action=candidate.action, arguments=arguments, call_id=candidate.call_id
    )
    deps.trace.write(
        Intent(
            id=call.id,
            at=deps.clock.now(),
            cycle=context.working_memory.cycle,
            candidate_id=candidate.id,
            action=call.action,
            arguments=arguments,
            internal=internal,
        )
    )
    deps.trace.flush()
    return call


async def finish(
    candidate: Candidate,
    call: ActionCall,
    spec: ActionSpec,
    context: AnyContext,
    deps: GuardDeps,
) -> ActionRun:
    """Runs a begun action and writes its receipt, whatever happens meanwhile.

    What an internal one returns is no percept; that its outcome is not known, is one. A repeatable
    one of the agent's own memory or flow needs neither intent nor receipt.
    """
    internal, recorded = spec.internal, not (spec.internal and spec.repeatable)
    started = deps.clock.monotonic()
    try:
        result = await deps.actions.execute(call)
    except BaseException as broken:  # raised again once what else ran in this cycle is committed
        result = ActionResult(content=CANCELLED, is_error=True, outcome_unknown=True)
        executed, queued = _executed(candidate, call, result, internal=internal), ()
        if recorded:
            cancelled = isinstance(broken, asyncio.CancelledError)
            status = ReceiptStatus.CANCELLED if cancelled else ReceiptStatus.UNKNOWN
            _write_receipt(call.id, status, None, started, context, deps)
            queued = (return_percept(call, result, deps),)
        return ActionRun(executed, result, queued=queued, broken=broken)
    if result.outcome_unknown and spec.read_only:  # whether it ran or not, nothing is changed
        update = {"outcome_unknown": False, "failure": result.failure or Failure.TRANSIENT}
        result = result.model_copy(update=update)
    if recorded:
        _write_receipt(call.id, _status(result), result, started, context, deps)
    _note_result(call, result, context, deps)
    executed = _executed(candidate, call, result, internal=internal)
    response = result.content if internal and result.ends_turn else None
    queued = result.percepts if recorded else ()
    if recorded and (not internal or result.outcome_unknown):
        queued = (return_percept(call, result, deps), *queued)
    return ActionRun(executed, result, response=response, queued=queued)


def _status(result: ActionResult) -> ReceiptStatus:
    if result.outcome_unknown:
        return ReceiptStatus.UNKNOWN
    return ReceiptStatus.FAILED if result.is_error else ReceiptStatus.DONE


def _write_receipt(
    intent_id: str,
    status: ReceiptStatus,
    result: ActionResult | None,
    started: float,
    context: AnyContext,
    deps: GuardDeps,
) -> None:
    deps.trace.write(
        Receipt(
            intent_id=intent_id,
            at=deps.clock.now(),
            cycle=context.working_memory.cycle,
            status=status,
            content=result.content if result else "",
            failure=result.failure if result else None,
            seconds=round(deps.clock.monotonic() - started, 6),
        )
    )
    deps.trace.flush()


def _note_result(
    call: ActionCall, result: ActionResult, context: AnyContext, deps: GuardDeps
) -> None:
    failure = (result.failure or Failure.TRANSIENT) if result.is_error else None
    key = context.progress_key()
    at = decided_at(context, deps)
    deps.detector.note_result((call.action, call.arguments), key, failure, result.content, at)


def _executed(
    candidate: Candidate, call: ActionCall, result: ActionResult, *, internal: bool
) -> Executed:
    return Executed(
        candidate_id=candidate.id,
        action=call.action,
        arguments=call.arguments,
        status=ExecutionStatus.FAILED if result.is_error else ExecutionStatus.DONE,
        internal=internal,
        intent_id=None if internal else call.id,
        result=shortened(result.content, RESULT_TEXT),
    )


# ---- Asking for approval of what was selected, right before it runs ----


Wanted = tuple[Candidate, Mapping[str, Any]]


async def decided(
    wanted: Sequence[Wanted],
    context: AnyContext,
    deps: GuardDeps,
    brought: Sequence[Percept] = (),
) -> tuple[ApprovalDecision, ...] | None:
    """What was decided about each; None if nobody had to be asked, and so nobody waited.

    Args:
        wanted: What is to run.
        context: Whose state it is decided upon.
        deps: Who is asked.
        brought: What has run in this cycle brought, which is not perceived yet.
    """
    approvals = deps.approvals
    if approvals is None or not any(approvals.need(c.action, given) for c, given in wanted):
        return None

    def notify(event: ApprovalEvent) -> None:
        deps.note(context, APPROVAL, event.text, **event.details())
        deps.trace.flush()

    def version() -> str:
        with context.supposing(brought):
            return memory_version(context.working_memory)

    def seen(candidate: Candidate) -> Seen:
        with context.supposing(brought):
            state = dict(context.working_memory.perceptual_state)
            projection, _ = project(candidate, context, deps.constraints.seconds)
        return state, None if projection is None else dump_state(projection)

    occasion = ApprovalOccasion(
        agent=deps.agent,
        goal=context.working_memory.goal,
        cycle=context.working_memory.cycle,
        memory_version=version,
        seen=seen,
    )
    return await approvals.decisions(wanted, occasion, notify)


def unasked(wanted: Wanted, deps: GuardDeps) -> Callable[[], str]:
    """Tells why something that nobody had to approve may not run without any more, if so."""
    candidate, arguments = wanted

    def reason() -> str:
        needed = deps.approvals and deps.approvals.need(candidate.action, arguments)
        return f"it needs approval by now: {needed.reason}" if needed else ""

    return reason


def approvals_of(
    policy: ApprovalPolicy | None,
    approve: ApproveFunction | None,
    clock: Clock,
    ids: IdSource,
) -> Approvals | None:
    """Who approves of which actions; None if nobody has to.

    Raises:
        ConfigurationError: There is a policy and nobody to ask.
    """
    if approve is None:
        if policy is not None:
            raise ConfigurationError(
                f"approval={policy.label!r} needs somebody to ask: give approve=, e.g. "
                "ConsoleApprover() of coag.compat."
            )
        return None
    return Approvals(approve, policy, clock=clock, ids=ids)


# ---- The guard: judges selected actions once more, has them approved, runs and records them ----
#
# The one way in which anything acts, in a cycle and for plain agents alike.


NOT_RUN = "Not run: {action} had ended the turn."

Judged = Callable[[Candidate, Evaluation], None]
"""Gets the evaluation of a candidate."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of selected candidates."""

    ran: tuple[ActionRun, ...]
    """One per candidate, in their order."""
    ended_by: str | None = None
    """The action that ended the turn."""
    broken: BaseException | None = None
    """What broke an action off while it ran: a cancellation, or the process is to end."""


@dataclass(frozen=True, slots=True)
class ReadyCandidate:
    """A selected candidate that may run now, and how."""

    candidate: Candidate
    arguments: dict[str, Any]
    spec: ActionSpec
    invalidation_reason: Callable[[], str] = lambda: ""
    """Tells why its approval is not valid any more; empty as long as it is."""


@dataclass(slots=True)
class PendingPercepts:
    """What the actions that have run in this cycle brought, until the caller perceives it."""

    context: AnyContext
    percepts: list[Percept] = field(default_factory=list[Percept])

    def add(self, ran: ActionRun) -> ActionRun:
        """Takes in what an action brought, with the change of state that it makes."""
        with self.context.supposing(self.percepts):
            queued = self.context.read(ran.queued)
        self.percepts += queued
        return replace(ran, queued=queued)


def _nobody(candidate: Candidate, evaluation: Evaluation) -> None:
    """Drops an evaluation."""


async def run_selected(
    selected: Sequence[Candidate],
    context: AnyContext,
    deps: GuardDeps,
    *,
    judged: Judged = _nobody,
) -> BatchResult:
    """Runs what was selected under guard, each action at most once.

    Right before an action runs, code judges it: existence, arguments, progress, projection and the
    pinned constraints; then whoever must approve is asked, after which code judges again. What
    passes runs between intent and receipt, all but repeatable internal actions.

    Actions of a batch run one after the other, external ones first, and each is judged by the
    state after the one before. Side by side run only those that are declared `read_only`, or all
    where neither a rule, a forward model nor an approver reads the state, and no people are kept
    apart by it. One that ends the turn is the last.

    What the actions brought back is not perceived yet: that is left to the caller, who must do it
    before anything else is judged by the state.

    Args:
        selected: One candidate, or the members of a batch.
        context: Whose state they are judged by.
        deps: What may be called.
        judged: Gets every evaluation, before anything runs.

    Raises:
        TraceError: An intent or a receipt cannot be written.
    """
    specs = await deps.actions.specs()
    brought = PendingPercepts(context)
    ran: dict[str, ActionRun] = {}
    broken: BaseException | None = None
    ended_by: str | None = None
    for group in _groups(selected, specs, context, deps):
        if broken is not None or ended_by is not None:
            why = ended_by or "the cancellation"
            ran |= {one.id: _left_out(one, why, specs) for one in group}
            continue
        try:
            done = await _run_group(group, context, deps, judged, brought)
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit) as stop:
            if not ran:  # nothing has been done; while somebody was asked, say
                raise
            broken = stop
            ran |= {one.id: _left_out(one, "the cancellation", specs) for one in group}
            continue
        last = len(ran) + len(done) == len(selected)
        for one in done:
            ran[one.executed.candidate_id or ""] = one if last else brought.add(one)
            broken = broken or one.broken
            ended_by = one.executed.action if one.response is not None else ended_by
    return BatchResult(tuple(ran[candidate.id] for candidate in selected), ended_by, broken)


def _groups(
    selected: Sequence[Candidate],
    specs: Mapping[str, ActionSpec],
    context: AnyContext,
    deps: GuardDeps,
) -> list[list[Candidate]]:
    """The candidates in the order in which they run; those of one group run side by side."""
    read = context.has_forward_model or context.keeps_people_apart
    free = not deps.constraints.pinned and not read and deps.approvals is None
    groups: list[list[Candidate]] = []
    beside = False
    for candidate in selected:
        spec = specs.get(candidate.action)
        if spec is not None and spec.internal:
            continue
        together = free or (spec is not None and spec.read_only)
        if together and beside:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
        beside = together
    internal = [c for c in selected if (spec := specs.get(c.action)) and spec.internal]
    return [*groups, *([candidate] for candidate in internal)]


async def _run_group(
    group: Sequence[Candidate],
    context: AnyContext,
    deps: GuardDeps,
    judged: Judged,
    brought: PendingPercepts,
) -> list[ActionRun]:
    """Judges a group by the state after what has run before, has it approved, and runs it."""
    checked = await _check(group, context, deps, judged, brought)
    entries = await _approved(checked, context, deps, judged, brought)
    if isinstance(entries[0], ReadyCandidate) and entries[0].spec.internal:
        entry = _in_time(entries[0], deps)
        return [entry if isinstance(entry, ActionRun) else await _internal(entry, context, deps)]
    return await _external(entries, context, deps)


async def _check(
    candidates: Sequence[Candidate],
    context: AnyContext,
    deps: GuardDeps,
    judged: Judged,
    brought: PendingPercepts,
) -> list[ReadyCandidate | ActionRun]:
    """The candidates judged right before they are to run."""
    specs = await deps.actions.specs()
    entries: list[ReadyCandidate | ActionRun] = []
    for candidate in candidates:
        with context.supposing(brought.percepts):
            result = check(candidate, specs, context, deps)
        judged(candidate, result)
        if result.died_of is not None or result.arguments is None:
            entries.append(_refused(candidate, result.died_of or _invalid(), deps))
        else:
            judged_as = as_judged(candidate, result.arguments)
            entries.append(ReadyCandidate(judged_as, result.arguments, specs[candidate.action]))
    return entries


def as_judged(candidate: Candidate, arguments: Mapping[str, Any] | None) -> Candidate:
    """The candidate that asks for just what was judged, whenever it is judged again."""
    if arguments is None:
        return candidate
    written = json.dumps(arguments, ensure_ascii=False)
    return candidate.model_copy(update={"raw_arguments": written})


def _invalid() -> Verdict:
    return Verdict(allowed=False, constraint=ARGUMENTS, reason="its arguments are invalid")


async def _approved(
    entries: list[ReadyCandidate | ActionRun],
    context: AnyContext,
    deps: GuardDeps,
    judged: Judged,
    brought: PendingPercepts,
) -> list[ReadyCandidate | ActionRun]:
    """The entries after whoever must approve was asked, and the rules once more after a wait."""
    waiting = [entry for entry in entries if isinstance(entry, ReadyCandidate)]
    wanted = [(entry.candidate, entry.arguments) for entry in waiting]
    decisions = await decided(wanted, context, deps, brought.percepts)
    if decisions is None:
        again: list[ReadyCandidate | ActionRun] = [
            replace(entry, invalidation_reason=unasked(one, deps))
            for entry, one in zip(waiting, wanted, strict=True)
        ]
    else:
        candidates = [entry.candidate for entry in waiting]
        again = await _check(candidates, context, deps, judged, brought)
        for n, (entry, decision) in enumerate(zip(again, decisions, strict=True)):
            if not decision.verdict.allowed:
                again[n] = _refused(waiting[n].candidate, decision.verdict, deps)
            elif isinstance(entry, ReadyCandidate):
                again[n] = replace(entry, invalidation_reason=decision.invalidation_reason)
    checked = iter(again)
    return [next(checked) if isinstance(entry, ReadyCandidate) else entry for entry in entries]


def _in_time(entry: ReadyCandidate | ActionRun, deps: GuardDeps) -> ReadyCandidate | ActionRun:
    """The entry, refused if its approval does not hold at this moment."""
    if isinstance(entry, ActionRun) or not (invalid := entry.invalidation_reason()):
        return entry
    late = Verdict(allowed=False, constraint=APPROVAL, reason=invalid)
    return _refused(entry.candidate, late, deps)


async def _external(
    entries: Sequence[ReadyCandidate | ActionRun], context: AnyContext, deps: GuardDeps
) -> list[ActionRun]:
    """Runs what is ready side by side, each between its intent and its receipt."""
    ran: list[ActionRun | None] = []
    started: dict[int, tuple[ReadyCandidate, ActionCall]] = {}
    for n, entry in enumerate(entries):
        now = _in_time(entry, deps)
        ran.append(now if isinstance(now, ActionRun) else None)
        if isinstance(now, ReadyCandidate):
            started[n] = now, begin(now.candidate, now.arguments, context, deps)
    deps.announce([call for _, call in started.values()])
    for n, done in zip(
        started, await _together(list(started.values()), context, deps), strict=True
    ):
        ran[n] = done
    return [done for done in ran if done is not None]


async def _internal(entry: ReadyCandidate, context: AnyContext, deps: GuardDeps) -> ActionRun:
    """Runs an action of the agent's own; between intent and receipt unless it is repeatable."""
    candidate, arguments = entry.candidate, entry.arguments
    if entry.spec.repeatable:
        number = deps.ids("internal")
        call = ActionCall(id=number, action=candidate.action, arguments=arguments)
    else:
        call = begin(candidate, arguments, context, deps, internal=True)
    return await finish(candidate, call, entry.spec, context, deps)


async def _together(
    begun: Sequence[tuple[ReadyCandidate, ActionCall]], context: AnyContext, deps: GuardDeps
) -> list[ActionRun]:
    """Runs the begun actions at the same time; each has its receipt, also if it was interrupted."""
    running = [finish(one.candidate, call, one.spec, context, deps) for one, call in begun]
    if len(running) == 1:
        return [await running[0]]
    tasks = [asyncio.create_task(one) for one in running]
    if tasks:
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
    return [task.result() for task in tasks]


def _refused(candidate: Candidate, verdict: Verdict, deps: GuardDeps) -> ActionRun:
    """What is forbidden now is not run, and the agent perceives why."""
    why = f"{verdict.constraint}: {verdict.reason}"
    content = f"{candidate.action} was refused right before it was to run. {why}"[:RESULT_TEXT]
    return ActionRun(
        Executed(
            candidate_id=candidate.id,
            action=candidate.action,
            status=ExecutionStatus.REFUSED,
            result=content,
        ),
        refused_by=verdict,
        queued=(inner_percept(content, deps),),
    )


def _left_out(candidate: Candidate, by: str, specs: Mapping[str, ActionSpec]) -> ActionRun:
    spec = specs.get(candidate.action)
    return ActionRun(
        Executed(
            candidate_id=candidate.id,
            action=candidate.action,
            status=ExecutionStatus.REFUSED,
            internal=spec is not None and spec.internal,
            result=NOT_RUN.format(action=by),
        )
    )


def inner_percept(content: str, deps: GuardDeps) -> Percept:
    """That something was not done, as the agent perceives it."""
    return Percept(
        id=deps.ids("percept"),
        at=deps.clock.now(),
        kind=PerceptKind.IMPASSE,
        source="cycle",
        trust=Trust.UNTRUSTED,
        content=content,
    )


class ActionBrokenOff(BaseException):
    """The turn was cancelled, or ended by the process, while an action ran.

    The cycle commits what is known of it and raises what broke it off.
    """

    def __init__(self, outcome: ExecutionOutcome, by: BaseException) -> None:
        self.outcome = outcome
        self.by = by
        super().__init__(outcome.result)


async def execute(context: AnyContext, deps: Deps) -> ExecutionOutcome:
    """Runs what was selected under guard; an impasse runs nothing and says so."""
    selected = selected_candidates(context)
    if not selected:
        return _impasse(context, deps)
    ended = await run_selected(selected, context, deps)
    outcome = _outcome(ended, context, deps)
    if ended.broken is not None:
        raise ActionBrokenOff(outcome, ended.broken)
    return outcome


def selected_candidates(context: AnyContext) -> tuple[Candidate, ...]:
    """The candidates that this cycle's Selection chose, in order."""
    cognitive = context.working_memory.cognitive_state
    if cognitive.selection is None or cognitive.proposal is None:
        return ()
    by_id = {candidate.id: candidate for candidate in cognitive.proposal.candidates}
    evaluations = cognitive.evaluation.evaluations if cognitive.evaluation else ()
    judged = {one.candidate_id: one.arguments for one in evaluations}
    chosen = (one for one in cognitive.selection.chosen if one in by_id)
    return tuple(as_judged(by_id[one], judged.get(one)) for one in chosen)


def _impasse(context: AnyContext, deps: Deps) -> ExecutionOutcome:
    memory = context.working_memory
    evaluation = memory.cognitive_state.evaluation
    reasons = "; ".join(
        f"{e.died_of.constraint}: {e.died_of.reason}"
        for e in (evaluation.evaluations if evaluation else ())
        if e.died_of is not None
    )
    content = f"No candidate survived. {reasons}".strip()[:RESULT_TEXT]
    return ExecutionOutcome(
        cycle=memory.cycle,
        at=deps.clock.now(),
        status=ExecutionStatus.NONE,
        result="impasse",
        queued=(inner_percept(content, deps),),
    )


def _outcome(ended: BatchResult, context: AnyContext, deps: Deps) -> ExecutionOutcome:
    ran = ended.ran
    return ExecutionOutcome.of(
        [done.executed for done in ran],
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        response=next((done.response for done in ran if done.response is not None), None),
        ended_by=ended.ended_by,
        queued=tuple(percept for done in ran for percept in done.queued),
    )
