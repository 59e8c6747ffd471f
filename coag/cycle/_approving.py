"""Asking for approval of what was selected, right before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coag.schema import Candidate, Verdict

from ._approval import APPROVAL
from ._approval_events import ApprovalEvent, ApprovalOccasion
from ._approval_values import memory_version
from ._deps import AnyContext, Deps

Wanted = tuple[Candidate, Mapping[str, Any]]


async def denials(
    wanted: Sequence[Wanted], context: AnyContext, deps: Deps
) -> dict[str, Verdict] | None:
    """The denied ones by candidate; None if nobody had to be asked, and so nobody waited."""
    approvals = deps.approvals
    if approvals is None or not any(approvals.need(c.action, given) for c, given in wanted):
        return None

    def tell(event: ApprovalEvent) -> None:
        deps.note(context, APPROVAL, event.text, **event.details())
        deps.trace.flush()

    occasion = ApprovalOccasion(
        agent=deps.agent,
        goal=context.working_memory.goal,
        cycle=context.working_memory.cycle,
        memory_version=lambda: memory_version(context.working_memory),
    )
    verdicts = await approvals.verdicts(wanted, occasion, tell)
    asked = zip(wanted, verdicts, strict=True)
    return {c.id: verdict for (c, _), verdict in asked if not verdict.allowed}
