"""Human approval: asked for right before an action runs, bound to exactly what was asked."""

from __future__ import annotations

from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from coag.schema import Candidate, Clock, CountingIds, IdSource, SystemClock, Verdict, well_formed

from ._approval_asking import answer_of
from ._approval_policy import ApprovalNeed, ApprovalPolicy
from ._approval_values import (
    Approval,
    ApprovalRequest,
    ApproveFunction,
    NotJsonError,
    json_copy,
    still_holds,
)

APPROVAL = "approval"
"""The constraint's name in verdicts, and the word that notes are about."""
KEPT = 256
"""Answers that are kept for reuse; the oldest is dropped first."""
REASON = 500
"""Characters of a reason that are kept."""


What = Literal["asked", "granted", "denied", "reused", "expired", "changed", "withdrawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalOccasion:
    """Who wants to act, and upon what."""

    agent: str
    """Name of the agent or workbench; an approval is for this one only."""
    goal: str = ""
    cycle: int = 0
    memory_version: Callable[[], str]
    """The version of working memory now; asked again after every wait. See `memory_version`."""


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


def _nobody(event: ApprovalEvent) -> None:
    """Tells nobody."""


class Approvals:
    """Has actions approved before they run.

    An approval is bound to agent, action, arguments, version of working memory and policy. If
    any of them has changed by the time the answer is there, or the approval has expired, the
    action is asked about again, `policy.asks` times at most; then it is denied. Requests that
    wait at the same time know nothing of each other. Nothing is kept beyond this object: an
    agent that is resumed asks again.

    Args:
        approver: Whom to ask.
        policy: What to ask about; every action except `respond` if left out.
        clock: Tells when an approval expires.
        ids: Gives the ids of requests.
    """

    def __init__(
        self,
        approver: ApproveFunction,
        policy: ApprovalPolicy | None = None,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        self._approver = approver
        self._policy = policy or ApprovalPolicy.everything()
        self._clock: Clock = clock or SystemClock()
        self._ids: IdSource = ids or CountingIds()
        self._answers: OrderedDict[str, Approval] = OrderedDict()

    @property
    def policy(self) -> ApprovalPolicy:
        """The policy in force. Another one is in force at once: what waits is asked anew."""
        return self._policy

    @policy.setter
    def policy(self, policy: ApprovalPolicy) -> None:
        self._policy = policy
        self._answers.clear()

    def need(self, action: str, arguments: Mapping[str, Any]) -> ApprovalNeed | None:
        """Why the action needs approval now, or None if it may run without."""
        return self._policy.need(action, arguments)

    async def verdict(
        self,
        candidate: Candidate,
        arguments: Mapping[str, Any],
        occasion: ApprovalOccasion,
        tell: Tell = _nobody,
    ) -> Verdict:
        """Whether the action may run now with these arguments; waits for the approver.

        Nothing is awaited between the last look at whether the approval still holds and the
        return. Who waits has to ask the constraints again: the state may be another one by now.

        Args:
            candidate: The action, with the reason and the effect that the model gives.
            arguments: What it will be run with; read anew after every wait.
            occasion: Who wants it, and upon which working memory.
            tell: Is told of everything that happens to the request.
        """
        wish = _Wish(candidate, arguments, occasion, tell)
        lapse, asks = "", self._policy.asks
        for attempt in range(1, asks + 1):
            policy = self._policy
            need = policy.need(candidate.action, arguments)
            if need is None:
                return Verdict(allowed=True, constraint=APPROVAL)
            try:
                request = self._request(wish, policy, need)
                request = request.model_copy(update={"attempt": attempt, "changed": lapse})
                approval = self._kept(request, tell) or await self._asked(request, policy, tell)
                if not approval.granted:
                    return _forbid(_denial(approval))
                lapse = self._lapse(approval, request, policy, wish)
            except NotJsonError as error:
                return _forbid(f"nobody can be asked about its arguments: {error}")
            if not lapse:
                reason = f"{approval.by} approved it. {approval.reason}".strip()
                return _verdict(True, reason)
        return _forbid(f"it was asked about {asks} times, and each time {lapse}")

    def _request(self, wish: _Wish, policy: ApprovalPolicy, need: ApprovalNeed) -> ApprovalRequest:
        now = self._clock.now()
        request = ApprovalRequest(
            id=self._ids(APPROVAL),
            agent=wish.occasion.agent,
            cycle=wish.occasion.cycle,
            goal=wish.occasion.goal,
            action=wish.candidate.action,
            arguments={},
            wish=wish.candidate.reason,
            expected_effect=wish.candidate.expected_effect,
            risk=need.risk,
            reason=need.reason,
            memory_version="",
            policy="",
            policy_digest="",
            asked_at=now,
            expires_at=now + timedelta(seconds=policy.wait_seconds),
            approval_seconds=policy.approval_seconds,
        )
        return wish.bound(request, policy)

    def _kept(self, request: ApprovalRequest, tell: Tell) -> Approval | None:
        """An earlier answer to the identical request; one that has expired is dropped."""
        approval = self._answers.get(request.digest)
        if approval is None:
            return None
        if self._clock.now() >= approval.expires_at:
            del self._answers[request.digest]
            tell(_event("expired", "the answer given before has expired", request, approval))
            return None
        tell(_event("reused", "it was answered before", request, approval))
        return approval

    async def _asked(
        self, request: ApprovalRequest, policy: ApprovalPolicy, tell: Tell
    ) -> Approval:
        """The approver's answer, and for reuse where the policy wants that and somebody gave it."""
        tell(_event("asked", f"approval is needed: {request.reason}", request))
        try:
            answer = await answer_of(self._approver, request, policy.wait_seconds)
        except CancelledError:
            tell(_event("withdrawn", "whoever waited for the answer was cancelled", request))
            raise
        approval = request.stamp(answer, self._clock.now())
        if policy.reuse and approval.by and policy is self._policy:
            self._answers[request.digest] = approval
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)
        if not approval.granted:
            tell(_event("denied", _denial(approval), request, approval))
        return approval

    def _lapse(
        self, approval: Approval, request: ApprovalRequest, policy: ApprovalPolicy, wish: _Wish
    ) -> str:
        """Why the approval does not hold for what would happen now; empty if it does."""
        now = wish.bound(request, self._policy)
        parts = [*request.difference(now)] or (["policy"] if self._policy != policy else [])
        if parts:
            text = f"something changed before it could run: {', '.join(parts)}"
            wish.tell(_event("changed", text, request, approval))
            return text
        if not still_holds(approval, now, self._clock.now()):
            text = "the approval expired before it could run"
            wish.tell(_event("expired", text, request, approval))
            return text
        wish.tell(_event("granted", f"{approval.by} approved it", request, approval))
        return ""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What `verdict` was asked about."""

    candidate: Candidate
    arguments: Mapping[str, Any]
    occasion: ApprovalOccasion
    tell: Tell

    def bound(self, request: ApprovalRequest, policy: ApprovalPolicy) -> ApprovalRequest:
        """The request with the parts that an approval is bound to, as they are now."""
        return request.model_copy(
            update={
                "action": self.candidate.action,
                "arguments": json_copy(self.arguments),
                "memory_version": self.occasion.memory_version(),
                "policy": policy.label,
                "policy_digest": policy.digest(),
            }
        )


def _event(
    what: What, text: str, request: ApprovalRequest, approval: Approval | None = None
) -> ApprovalEvent:
    return ApprovalEvent(
        what=what, text=f"{request.action}: {text}.", request=request, approval=approval
    )


def _denial(approval: Approval) -> str:
    if not approval.by:
        return approval.reason
    return f"{approval.by} denied it: {approval.reason or 'no reason was given'}"


def _forbid(reason: str) -> Verdict:
    return _verdict(False, reason)


def _verdict(allowed: bool, reason: str) -> Verdict:
    told = well_formed(reason)
    kept = told if len(told) <= REASON else f"{told[: REASON - 1]}…"
    return Verdict(allowed=allowed, constraint=APPROVAL, reason=kept)
