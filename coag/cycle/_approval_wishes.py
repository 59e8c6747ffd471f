"""What approval is wanted for, what came of asking, and the verdict in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coag.schema import Candidate, Verdict, well_formed

from ._approval_events import ApprovalOccasion, Tell, event_of
from ._approval_policy import ApprovalPolicy
from ._approval_values import Approval, ApprovalRequest, json_copy

APPROVAL = "approval"
"""The constraint's name in verdicts, and the word that notes are about."""
REASON = 500
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an action may run, and whether that still holds."""

    verdict: Verdict
    lapse: Callable[[], str]
    """Tells why a verdict that allows does not hold any more; empty as long as it does."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody is to approve."""

    candidate: Candidate
    arguments: Mapping[str, Any]
    occasion: ApprovalOccasion
    tell: Tell

    def bound(self, request: ApprovalRequest, policy: ApprovalPolicy) -> ApprovalRequest:
        """The request with the parts that an approval is bound to, as they are now."""
        given = self.candidate.model_copy(update={"arguments": dict(self.arguments)})
        state, projection = self.occasion.seen(given)
        return request.model_copy(
            update={
                "state": state,
                "projection": projection,
                "action": self.candidate.action,
                "arguments": json_copy(self.arguments),
                "memory_version": self.occasion.memory_version(),
                "policy": policy.label,
                "policy_digest": policy.digest(),
            }
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of one look at one action."""

    policy: ApprovalPolicy
    """The policy that it was looked at by."""
    request: ApprovalRequest | None = None
    """What was asked; None where nobody had to be, or could be, asked."""
    approval: Approval | None = None
    problem: str = ""
    """Why nobody could be asked."""


async def at_once(looks: Sequence[Coroutine[Any, Any, Settled]]) -> list[Settled]:
    """What all of them bring; where one raises, the others are withdrawn and its error stays."""
    tasks = [asyncio.create_task(look) for look in looks]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def verdict_of(settled: Settled | None, tell: Tell, asks: int, lapse: str) -> Verdict:
    """The verdict in the end; None where no answer held until then."""
    if settled is None:
        return _verdict(False, f"it was asked about {asks} times, and each time: {lapse}")
    request, approval = settled.request, settled.approval
    if request is None or approval is None:
        return _verdict(not settled.problem, settled.problem)
    if not approval.granted:
        return _verdict(False, denial(approval))
    tell(event_of("granted", f"{approval.by} approved it", request, approval))
    return _verdict(True, f"{approval.by} approved it. {approval.reason}".strip())


def denial(approval: Approval) -> str:
    if not approval.by:
        return approval.reason
    return f"{approval.by} denied it: {approval.reason or 'no reason was given'}"


def _verdict(allowed: bool, reason: str) -> Verdict:
    told = well_formed(reason)
    kept = told if len(told) <= REASON else f"{told[: REASON - 1]}…"
    return Verdict(allowed=allowed, constraint=APPROVAL, reason=kept)
