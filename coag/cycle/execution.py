"""Execution: one action or one batch, checked again, begun at most once, and recorded.

`run_selected` is the one way in which anything acts, in a cycle and for plain agents alike.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coag._util.timeouts import until_done
from coag.context import dump_state, shortened
from coag.errors import ConfigurationError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    Clock,
    Constraint,
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
    Verdict,
)

from .actions import ARGUMENTS
from .approval import (
    APPROVAL,
    ApprovalEvent,
    ApprovalOccasion,
    ApprovalPolicy,
    Approvals,
    ApproveFunction,
    Seen,
    memory_version,
)
from .checks import check, project
from .constraints import written_rule
from .deps import AnyContext, Deps, GuardDeps, decided_at

RESULT_TEXT = 200_000
"""Characters of a result that are kept; tools' own outputs are cut to the window before."""
CANCELLED = "It was cancelled while it ran. It may or may not have had its effect."
NOT_RUN = "Not run: {action} had ended the turn."
Judged = Callable[[Candidate, Evaluation], None]
"""Gets the evaluation of a candidate."""


def return_percept(call: ActionCall, result: ActionResult, deps: GuardDeps) -> Percept:
    """What the agent perceives of its own action: the tool's return, or that none came."""
    unknown = result.outcome_unknown
    return deps.percept(
        kind=PerceptKind.UNKNOWN_OUTCOME if unknown else PerceptKind.TOOL_RETURN,
        source=call.action,
        content=result.content,
        data=result.data,
        caused_by=call.id,
        arguments=call.arguments,
        is_error=result.is_error,
        failure=result.failure,
        counts=result.is_error and not unknown and not result.nothing_done,
    )


def _inner_percept(content: str, deps: GuardDeps) -> Percept:
    """That something was not done, as the agent perceives it."""
    return deps.percept(kind=PerceptKind.IMPASSE, source="cycle", content=content)


def approvals_of(
    policy: ApprovalPolicy | None,
    approve: ApproveFunction | None,
    clock: Clock,
    ids: IdSource,
    rules: Iterable[Constraint] = (),
) -> Approvals | None:
    """Who approves of which actions; None if nobody has to.

    Rules that ask for approval, as those of a policy file do, are added to the policy.

    Raises:
        ConfigurationError: There is a policy and nobody to ask.
    """
    written = (one for one in map(written_rule, rules) if one is not None)
    asking = tuple(one.approval for one in written if one.approval is not None)
    if asking and policy is None:
        policy = ApprovalPolicy(name="rules", when=asking, require=frozenset())
    elif asking and policy is not None:
        policy = policy.model_copy(update={"when": (*policy.when, *asking)})
    if approve is not None:
        return Approvals(approve, policy, clock=clock, ids=ids)
    if policy is not None:
        needs = f"approval={policy.label!r} needs somebody to ask"
        raise ConfigurationError(f"{needs}: give approve=, e.g. ConsoleApprover() of coag.compat.")
    return None


@dataclass(frozen=True, slots=True)
class ActionRun:
    """What came of one selected action."""

    executed: Executed
    returned: ActionResult | None = None
    """What it brought back; None if it was not run."""
    response: str | None = None
    """The answer, if the action ended the turn."""
    suspends: bool = False
    """Whether the action ended the turn to wait."""
    queued: tuple[Percept, ...] = ()
    broken: BaseException | None = None
    """What broke it off while it ran: a cancellation, or the process is to end."""
    refused_by: Verdict | None = None
    """What forbade it, if it was not run for that."""


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

    @property
    def recorded(self) -> bool:
        """Whether it needs intent and receipt; a repeatable one of the agent's own does not."""
        return not (self.spec.internal and self.spec.repeatable)


async def run_selected(
    selected: Sequence[Candidate],
    context: AnyContext,
    deps: GuardDeps,
    *,
    judged: Judged = lambda candidate, evaluation: None,
) -> BatchResult:
    """Runs what was selected under guard, each action at most once.

    Right before an action runs, code judges it: existence, arguments, progress, projection and the
    pinned constraints; then approvers are asked, after which code judges again. What
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
    return await GuardedRun(context, deps, judged).run(selected)


@dataclass(slots=True)
class GuardedRun:
    """Judges selected actions once more, has them approved, runs and records them."""

    context: AnyContext
    deps: GuardDeps
    judged: Judged
    brought: list[Percept] = field(default_factory=list[Percept])
    """What the actions that have run brought, read but not perceived yet."""

    async def run(self, selected: Sequence[Candidate]) -> BatchResult:
        """See `run_selected`."""
        specs = await self.deps.actions.specs()
        ran: dict[str, ActionRun] = {}
        broken: BaseException | None = None
        ended_by: str | None = None
        for group in self._groups(selected, specs):
            if broken is None and ended_by is None:
                try:
                    done = await self._run_group(group)
                except (asyncio.CancelledError, KeyboardInterrupt, SystemExit) as stop:
                    if not ran:  # nothing has been done; while somebody was asked, say
                        raise
                    broken = stop
                else:
                    last = len(ran) + len(done) == len(selected)
                    for one in done:
                        ran[one.executed.candidate_id or ""] = one if last else self._brought(one)
                        broken = broken or one.broken
                        if one.response is not None or one.suspends:
                            ended_by = one.executed.action
                    continue
            why = ended_by or "the cancellation"
            ran |= {one.id: _left_out(one, why, specs) for one in group}
        return BatchResult(tuple(ran[candidate.id] for candidate in selected), ended_by, broken)

    def _groups(
        self, selected: Sequence[Candidate], specs: Mapping[str, ActionSpec]
    ) -> list[list[Candidate]]:
        """The candidates in the order in which they run; those of one group run side by side."""
        deps, context = self.deps, self.context
        read = context.has_forward_model or context.keeps_people_apart
        free = not deps.constraints.pinned and not read and deps.approvals is None
        external: list[list[Candidate]] = []
        internal: list[list[Candidate]] = []
        beside = False
        for candidate in selected:
            spec = specs.get(candidate.action)
            if spec is not None and spec.internal:
                internal.append([candidate])
                continue
            together = free or (spec is not None and spec.read_only)
            together = together and not deps.constraints.counts(candidate.action)
            if together and beside:
                external[-1].append(candidate)
            else:
                external.append([candidate])
            beside = together
        return [*external, *internal]

    def _brought(self, ran: ActionRun) -> ActionRun:
        """Takes in what an action brought, with the change of state that it makes."""
        with self.context.supposing(self.brought):
            queued = self.context.read(ran.queued)
        self.brought += queued
        return replace(ran, queued=queued)

    async def _run_group(self, group: Sequence[Candidate]) -> list[ActionRun]:
        """Judges a group by the state after what has run before, has it approved, and runs it."""
        entries = await self._approved(await self._check(group))
        ran: list[ActionRun | None] = []
        begun: list[tuple[ReadyCandidate, ActionCall]] = []
        for entry in entries:
            if isinstance(entry, ReadyCandidate) and (late := entry.invalidation_reason()):
                ran.append(self._refused(entry.candidate, Verdict.forbid(late, APPROVAL)))
            elif isinstance(entry, ReadyCandidate):
                ran.append(None)
                begun.append((entry, self._begin(entry)))
            else:
                ran.append(entry)
        external = [call for one, call in begun if not one.spec.internal]
        if external:
            self.deps.announce(external)
        done = iter(await self._together(begun))
        return [next(done) if one is None else one for one in ran]

    async def _check(self, candidates: Sequence[Candidate]) -> list[ReadyCandidate | ActionRun]:
        specs = await self.deps.actions.specs()
        entries: list[ReadyCandidate | ActionRun] = []
        for candidate in candidates:
            with self.context.supposing(self.brought):
                result = check(candidate, specs, self.context, self.deps)
            self.judged(candidate, result)
            if result.rejected_by is not None or result.arguments is None:
                invalid = Verdict.forbid("its arguments are invalid", ARGUMENTS)
                entries.append(self._refused(candidate, result.rejected_by or invalid))
            else:
                written = _as_judged(candidate, result.arguments)
                entries.append(ReadyCandidate(written, result.arguments, specs[candidate.action]))
        return entries

    # ---- asking for approval, right before it runs ----

    async def _approved(
        self, entries: list[ReadyCandidate | ActionRun]
    ) -> list[ReadyCandidate | ActionRun]:
        """The entries after approvers were asked; after a wait, the rules once more."""
        approvals = self.deps.approvals
        if approvals is None:
            return entries
        waiting = [entry for entry in entries if isinstance(entry, ReadyCandidate)]
        wanted = [(entry.candidate, entry.arguments) for entry in waiting]
        again: list[ReadyCandidate | ActionRun] = []
        if any(approvals.need(one.action, given) for one, given in wanted):
            decisions = await approvals.decisions(wanted, self._occasion(), self._note_approval)
            again = await self._check([entry.candidate for entry in waiting])
            for n, (entry, decision) in enumerate(zip(again, decisions, strict=True)):
                if not decision.verdict.allowed:
                    again[n] = self._refused(waiting[n].candidate, decision.verdict)
                elif isinstance(entry, ReadyCandidate):
                    again[n] = replace(entry, invalidation_reason=decision.invalidation_reason)
        else:  # nobody had to be asked, and so nobody waited
            again += [
                replace(entry, invalidation_reason=_unasked(entry, approvals)) for entry in waiting
            ]
        checked = iter(again)
        return [next(checked) if isinstance(entry, ReadyCandidate) else entry for entry in entries]

    def _occasion(self) -> ApprovalOccasion:
        """Upon which state it is decided: with what has run in this cycle brought."""
        context = self.context

        def version() -> str:
            with context.supposing(self.brought):
                return memory_version(context.working_memory)

        def seen(candidate: Candidate) -> Seen:
            with context.supposing(self.brought):
                state = dict(context.working_memory.perceptual_state)
                projection, _ = project(candidate, context, self.deps.constraints.seconds)
            return state, None if projection is None else dump_state(projection)

        return ApprovalOccasion(
            agent=self.deps.agent,
            goal=context.working_memory.goal,
            cycle=context.working_memory.cycle,
            memory_version=version,
            seen=seen,
        )

    def _note_approval(self, event: ApprovalEvent) -> None:
        self.deps.note(self.context, APPROVAL, event.text, **event.details())
        self.deps.trace.flush()

    # ---- intent, effect, receipt ----

    def _begin(self, ready: ReadyCandidate) -> ActionCall:
        """The call, of which is written down and flushed that it is about to run."""
        deps, candidate = self.deps, ready.candidate
        if not ready.recorded:
            number = deps.ids("internal")
            return ActionCall(id=number, action=candidate.action, arguments=ready.arguments)
        call = ActionCall(
            id=".".join(part for part in (deps.run(), deps.ids("intent")) if part),
            action=candidate.action,
            arguments=ready.arguments,
            call_id=candidate.call_id,
        )
        intent = Intent(
            id=call.id,
            at=deps.clock.now(),
            cycle=self.context.working_memory.cycle,
            candidate_id=candidate.id,
            action=call.action,
            arguments=call.arguments,
            internal=ready.spec.internal,
        )
        deps.trace.write(intent)
        deps.trace.flush()
        return call

    async def _together(
        self, begun: Sequence[tuple[ReadyCandidate, ActionCall]]
    ) -> list[ActionRun]:
        """Runs the begun actions at the same time; each has its receipt, also if interrupted."""
        running = [self._finish(one, call) for one, call in begun]
        if len(running) == 1:
            return [await running[0]]
        tasks = [asyncio.create_task(one) for one in running]
        cancelled = await until_done(tasks, cancel=True)
        ran = [task.result() for task in tasks]
        return [replace(one, broken=one.broken or cancelled) for one in ran]

    async def _finish(self, ready: ReadyCandidate, call: ActionCall) -> ActionRun:
        """Runs a begun action and writes its receipt, whatever happens meanwhile.

        What an internal one returns is no percept; that its outcome is not known, is one.
        """
        spec, deps, broken = ready.spec, self.deps, None
        started = deps.clock.monotonic()
        try:
            result = await deps.actions.execute(call)
        except BaseException as error:  # raised again once what else ran here is committed
            broken = error
            result = ActionResult(content=CANCELLED, is_error=True, outcome_unknown=True)
        if broken is None and result.outcome_unknown and spec.read_only:
            # Whether it ran or not, nothing is changed.
            update = {"outcome_unknown": False, "failure": result.failure or Failure.TRANSIENT}
            result = result.model_copy(update=update)
        if ready.recorded:
            self._write_receipt(call, result, started, broken)
        if broken is None:
            failure = (result.failure or Failure.TRANSIENT) if result.is_error else None
            key, at = self.context.progress_key(), decided_at(self.context, deps)
            did = (call.action, call.arguments)
            deps.detector.note_result(did, key, failure, result.content, at)
        executed = Executed(
            candidate_id=ready.candidate.id,
            action=call.action,
            arguments=call.arguments,
            status=ExecutionStatus.FAILED if result.is_error else ExecutionStatus.DONE,
            internal=spec.internal,
            intent_id=None if spec.internal else call.id,
            result=shortened(result.content, RESULT_TEXT),
        )
        response = result.content if spec.internal and result.ends_turn else None
        queued = result.percepts if ready.recorded else ()
        if ready.recorded and (not spec.internal or result.outcome_unknown):
            queued = (return_percept(call, result, deps), *queued)
        suspends = spec.internal and result.suspends and response is None
        return ActionRun(executed, result, response, suspends, queued, broken)

    def _write_receipt(
        self, call: ActionCall, result: ActionResult, started: float, broken: BaseException | None
    ) -> None:
        if isinstance(broken, asyncio.CancelledError):
            status = ReceiptStatus.CANCELLED
        elif result.outcome_unknown:
            status = ReceiptStatus.UNKNOWN
        else:
            status = ReceiptStatus.FAILED if result.is_error else ReceiptStatus.DONE
        clock = self.deps.clock
        receipt = Receipt(
            intent_id=call.id,
            at=clock.now(),
            cycle=self.context.working_memory.cycle,
            status=status,
            content=result.content if broken is None else "",
            failure=result.failure,
            seconds=round(clock.monotonic() - started, 6),
        )
        self.deps.trace.write(receipt)
        self.deps.trace.flush()

    def _refused(self, candidate: Candidate, verdict: Verdict) -> ActionRun:
        why = f"{verdict.constraint}: {verdict.reason}"
        content = f"{candidate.action} was refused right before it was to run. {why}"[:RESULT_TEXT]
        executed = Executed(
            candidate_id=candidate.id,
            action=candidate.action,
            status=ExecutionStatus.REFUSED,
            result=content,
        )
        percept = _inner_percept(content, self.deps)
        return ActionRun(executed, refused_by=verdict, queued=(percept,))


def _unasked(ready: ReadyCandidate, approvals: Approvals) -> Callable[[], str]:
    """Tells why something that nobody had to approve may not run without any more, if so."""

    def reason() -> str:
        needed = approvals.need(ready.candidate.action, ready.arguments)
        return f"it needs approval by now: {needed.reason}" if needed else ""

    return reason


def _as_judged(candidate: Candidate, arguments: Mapping[str, Any] | None) -> Candidate:
    """The candidate that asks for just what was judged, whenever it is judged again."""
    if arguments is None:
        return candidate
    written = json.dumps(arguments, ensure_ascii=False)
    return candidate.model_copy(update={"raw_arguments": written})


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


# ---- The phase ----


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
    selected, memory = selected_candidates(context), context.working_memory
    if not selected:
        evaluation = memory.cognitive_state.evaluation
        rejected_by = [one.rejected_by for one in (evaluation.evaluations if evaluation else ())]
        reasons = "; ".join(f"{one.constraint}: {one.reason}" for one in rejected_by if one)
        content = f"No candidate survived. {reasons}".strip()[:RESULT_TEXT]
        return ExecutionOutcome(
            cycle=memory.cycle,
            at=deps.clock.now(),
            status=ExecutionStatus.NONE,
            result="impasse",
            queued=(_inner_percept(content, deps),),
        )
    ended = await run_selected(selected, context, deps)
    outcome = ExecutionOutcome.of(
        [done.executed for done in ended.ran],
        cycle=memory.cycle,
        at=deps.clock.now(),
        response=next((done.response for done in ended.ran if done.response is not None), None),
        ended_by=ended.ended_by,
        suspended=any(done.suspends for done in ended.ran),
        queued=tuple(percept for done in ended.ran for percept in done.queued),
    )
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
    return tuple(_as_judged(by_id[one], judged.get(one)) for one in chosen)
