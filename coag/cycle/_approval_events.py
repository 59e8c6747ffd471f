"""Who asks for approval, and what the trace is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from coag.schema import Candidate

from ._approval_values import Approval, ApprovalRequest

What = Literal["asked", "granted", "denied", "reused", "expired", "changed", "withdrawn"]


Seen = tuple[dict[str, Any], dict[str, Any] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalOccasion:
    """Who wants to act, and upon what."""

    agent: str
    """Name of the agent or workbench; an approval is for this one only."""
    goal: str = ""
    cycle: int = 0
    memory_version: Callable[[], str]
    """The version of working memory now; asked again after every wait. See `memory_version`."""
    seen: Callable[[Candidate], Seen] = lambda candidate: ({}, None)
    """The perceptual state now, and the one that the forward model predicts for a candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalEvent:
    """One thing that happened to a request, for the trace."""

    what: What
    """`asked`; `granted` and `denied` by an answer; `reused`, an earlier answer still holds;
    `expired` and `changed`, so it is asked about again; `withdrawn`, the waiter was cancelled."""
    text: str
    """A sentence about it."""
    request: ApprovalRequest
    approval: Approval | None = None
    """The answer that it is about, if there is one."""

    def details(self) -> dict[str, Any]:
        """What a note about it says besides the text; the arguments stand in the proposal."""
        details: dict[str, Any] = {
            "what": self.what,
            "request": self.request.id,
            "digest": self.request.digest,
            "action": self.request.action,
            "risk": self.request.risk,
            "policy": self.request.policy,
            "attempt": self.request.attempt,
        }
        if self.approval is not None:
            details["by"] = self.approval.by
            details["expires_at"] = self.approval.expires_at.isoformat()
        return details


Tell = Callable[[ApprovalEvent], None]


def event_of(
    what: What, text: str, request: ApprovalRequest, approval: Approval | None = None
) -> ApprovalEvent:
    """What happened to a request, as a sentence about its action."""
    return ApprovalEvent(
        what=what, text=f"{request.action}: {text}", request=request, approval=approval
    )
