"""Asking for approval of what was selected, right before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coag.context import dump_state
from coag.errors import ConfigurationError
from coag.schema import Candidate, Clock, IdSource, Percept

from ._approval import Approvals
from ._approval_events import ApprovalEvent, ApprovalOccasion, Seen
from ._approval_policy import ApprovalPolicy
from ._approval_values import ApproveFunction, memory_version
from ._approval_wishes import APPROVAL, Decision
from ._checking import project
from ._guard_deps import AnyContext, GuardDeps

Wanted = tuple[Candidate, Mapping[str, Any]]


async def decided(
    wanted: Sequence[Wanted],
    context: AnyContext,
    deps: GuardDeps,
    brought: Sequence[Percept] = (),
) -> tuple[Decision, ...] | None:
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

    def tell(event: ApprovalEvent) -> None:
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
    return await approvals.decisions(wanted, occasion, tell)


def unasked(wanted: Wanted, deps: GuardDeps) -> Callable[[], str]:
    """Tells why something that nobody had to approve may not run without any more, if so."""
    candidate, arguments = wanted

    def lapse() -> str:
        needed = deps.approvals and deps.approvals.need(candidate.action, arguments)
        return f"it needs approval by now: {needed.reason}" if needed else ""

    return lapse


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
