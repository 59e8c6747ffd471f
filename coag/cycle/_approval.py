"""Human approval: asked for right before an action runs, bound to exactly what was asked."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from coag.schema import Candidate, Clock, CountingIds, IdSource, SystemClock, Verdict

from ._approval_asking import answer_of
from ._approval_events import ApprovalEvent, ApprovalOccasion, Tell, event_of
from ._approval_policy import ApprovalNeed, ApprovalPolicy
from ._approval_values import (
    Approval,
    ApprovalRequest,
    ApproveFunction,
    NotJsonError,
    still_holds,
)
from ._approval_wishes import APPROVAL, Decision, Settled, Wish, at_once, denial, verdict_of

KEPT = 256
"""Answers that are kept for reuse; the oldest is dropped first."""


def _nobody(told: ApprovalEvent) -> None:
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

    def may_ask_about(self, action: str) -> bool:
        """Whether there are arguments with which somebody may be asked about the action."""
        return not self._policy.exempts(action)

    async def verdict(
        self,
        candidate: Candidate,
        arguments: Mapping[str, Any],
        occasion: ApprovalOccasion,
        tell: Tell = _nobody,
    ) -> Verdict:
        """Whether one action may run now with these arguments; see `verdicts`."""
        return (await self.verdicts([(candidate, arguments)], occasion, tell))[0]

    async def verdicts(
        self,
        wanted: Sequence[tuple[Candidate, Mapping[str, Any]]],
        occasion: ApprovalOccasion,
        tell: Tell = _nobody,
    ) -> tuple[Verdict, ...]:
        """Whether actions that are to run together may run now; see `decisions`."""
        return tuple(each.verdict for each in await self.decisions(wanted, occasion, tell))

    async def decisions(
        self,
        wanted: Sequence[tuple[Candidate, Mapping[str, Any]]],
        occasion: ApprovalOccasion,
        tell: Tell = _nobody,
    ) -> tuple[Decision, ...]:
        """Whether actions that are to run together may run now; waits for the approver.

        They are asked about at once, and each on its own. Where nobody denied it, the verdict
        stands for the moment of the return: nothing is awaited between that and the last look
        at whether every approval still holds. Who waited has to ask the constraints again: the
        state may be another one by now. Whoever waits for anything else before one runs asks
        its decision whether it still holds.

        Args:
            wanted: Each action, with the reason and the effect that the model gives, and what
                it will be run with; these arguments are read anew after every wait.
            occasion: Who wants it, and upon which working memory.
            tell: Is told of everything that happens to the requests.
        """
        wishes = [Wish(candidate, given, occasion, tell) for candidate, given in wanted]
        settled: list[Settled | None] = [None for _ in wishes]
        lapses, asks = ["" for _ in wishes], self._policy.asks
        for attempt in range(1, asks + 1):
            waiting = [n for n, entry in enumerate(settled) if entry is None]
            looks = [self._settle(wishes[n], attempt, lapses[n]) for n in waiting]
            for n, entry in zip(waiting, await at_once(looks), strict=True):
                settled[n] = entry
            for n, entry in enumerate(settled):
                lapse = self._lapse(entry, wishes[n]) if entry else ""
                settled[n], lapses[n] = (None, lapse) if lapse else (entry, "")
            if None not in settled:
                break
        return tuple(
            Decision(verdict_of(entry, tell, asks, lapses[n]), self._lapse_of(entry, wishes[n]))
            for n, entry in enumerate(settled)
        )

    async def _settle(self, wish: Wish, attempt: int, lapse: str) -> Settled:
        """One look at one action: no need, or an answer given before or now."""
        policy = self._policy
        need = policy.need(wish.candidate.action, wish.arguments)
        if need is None:
            return Settled(policy)
        try:
            request = self._request(wish, policy, need)
        except NotJsonError as error:
            return Settled(policy, problem=f"nobody can be asked about its arguments: {error}")
        request = request.model_copy(update={"attempt": attempt, "changed": lapse})
        approval = self._kept(request, wish.tell)
        if approval is None:
            approval = await self._asked(request, policy, wish.tell)
        return Settled(policy, request, approval)

    def _request(self, wish: Wish, policy: ApprovalPolicy, need: ApprovalNeed) -> ApprovalRequest:
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
            tell(event_of("expired", "the answer given before has expired", request, approval))
            return None
        tell(event_of("reused", "it was answered before", request, approval))
        return approval

    async def _asked(
        self, request: ApprovalRequest, policy: ApprovalPolicy, tell: Tell
    ) -> Approval:
        """The approver's answer, and for reuse where the policy wants that and somebody gave it."""
        tell(event_of("asked", f"approval is needed: {request.reason}", request))
        try:
            answer = await answer_of(self._approver, request, policy.wait_seconds)
        except asyncio.CancelledError:
            tell(event_of("withdrawn", "whoever waited for the answer was cancelled", request))
            raise
        approval = request.stamp(answer, self._clock.now())
        if policy.reuse and approval.by and policy is self._policy:
            self._answers[request.digest] = approval
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)
        if not approval.granted:
            tell(event_of("denied", denial(approval), request, approval))
        return approval

    def _lapse_of(self, settled: Settled | None, wish: Wish) -> Callable[[], str]:
        return lambda: self._lapse(settled, wish) if settled else ""

    def _lapse(self, settled: Settled, wish: Wish) -> str:
        """Why what was settled does not hold for what would happen now; empty if it does."""
        request, approval = settled.request, settled.approval
        if request is None or approval is None:
            return "the policy changed" if self._policy != settled.policy else ""
        if not approval.granted:
            return ""
        if parts := self._changed(request, settled.policy, wish):
            what, text = "changed", f"this changed before it could run: {', '.join(parts)}"
        elif still_holds(approval, request, self._clock.now()):
            return ""
        else:
            what, text = "expired", "the approval expired before it could run"
        wish.tell(event_of(what, text, request, approval))
        return text

    def _changed(
        self, request: ApprovalRequest, policy: ApprovalPolicy, wish: Wish
    ) -> tuple[str, ...]:
        """Names of the bound parts that are others now."""
        try:
            parts = request.difference(wish.bound(request, self._policy))
        except NotJsonError:
            return ("arguments",)
        return parts or (() if self._policy == policy else ("policy",))
