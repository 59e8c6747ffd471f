"""Approval that is asked for in one run of an agent and answered in a later one."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from agent_framework import Content
from agent_framework.exceptions import AgentInvalidRequestException

from coag.cycle import ApprovalAnswer, ApprovalRequest
from coag.schema import Clock, SystemClock, Value

YEAR = 31_536_000.0
"""Seconds that an answer is waited for in memory, where the policy does not say it."""
_BY = "a person"
_HOST = "coag"
_SETTLE = 20
"""Rounds of the event loop in which further actions of the same answer are asked about."""


class PendingCall(Value):
    """A request that waits for its answer, as a session keeps it."""

    digest: str
    """What the answer is bound to; see `ApprovalRequest.digest`."""
    action: str
    arguments: dict[str, Any]
    reason: str
    asked_at: datetime

    def content(self, name: str) -> Content:
        """The request as a person gets it.

        The call is marked as hosted: code that passes the answer on (AG-UI) must not run it.
        """
        call = Content.from_function_call(
            call_id=name,
            name=self.action,
            arguments=json.dumps(self.arguments),
            hosted=True,
            server_name=_HOST,
        )
        about = {"reason": self.reason}
        return Content.from_function_approval_request(
            id=name, function_call=call, additional_properties=about
        )

    def fits(self, answer: Content) -> bool:
        """Whether an answer is about this call."""
        call = answer.function_call
        if call is None:
            return False
        arguments: Any = call.arguments
        try:
            given = json.loads(arguments) if isinstance(arguments, str) else dict(arguments or {})
        except ValueError:
            return False
        return call.name == self.action and given == self.arguments


class ApprovalDesk:
    """The approver of one session: it asks, and a later run brings the answer.

    Args:
        seconds: How long an answer may take; None for as long as it takes.
        clock: Says when a request was made, and when the answer came.
    """

    name = _BY

    def __init__(self, seconds: float | None = None, clock: Clock | None = None) -> None:
        self._seconds = seconds
        self._clock = clock or SystemClock()
        self._waiting: dict[str, tuple[ApprovalRequest, asyncio.Future[ApprovalAnswer]]] = {}
        self._given: dict[str, list[tuple[bool, str]]] = {}
        self.asked = asyncio.Event()
        """Set while requests wait."""
        self.leave: Callable[[], Awaitable[None]] | None = None
        """Releases the run where a waiting turn is cancelled, e.g. as the program ends."""
        self.left = False
        """Whether it did, so that the run is to be continued from its folder."""
        self.reachable = True
        """False in a run without a session, to which nobody could answer."""

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The answer, when it is there."""
        if given := self._given.get(request.digest):
            return _answer(request, *given.pop(0))
        if not self.reachable:
            return request.deny("", "a run without a session can ask nobody: give it session=")
        name, future = str(uuid.uuid4()), asyncio.get_running_loop().create_future()
        self._waiting[name] = (request, future)
        self.asked.set()
        try:
            return await future
        except asyncio.CancelledError:
            if self.leave is not None:
                self.left = True
                await self.leave()
            raise
        finally:
            self._waiting.pop(name, None)
            if not self._waiting:
                self.asked.clear()

    async def pending(self) -> dict[str, PendingCall]:
        """What waits for an answer, by its id."""
        for _ in range(_SETTLE):
            await asyncio.sleep(0)
        return {
            name: PendingCall(
                digest=request.digest,
                action=request.action,
                arguments=request.arguments,
                reason=request.reason,
                asked_at=request.asked_at,
            )
            for name, (request, _) in self._waiting.items()
        }

    def take(self, answers: Sequence[Content], pending: Mapping[str, PendingCall]) -> None:
        """Passes answers on to what waits, here or once the turn is continued.

        Raises:
            AgentInvalidRequestException: See `check_answers`; nothing was passed on.
        """
        check_answers(answers, pending)
        for answer in answers:
            call = pending[answer.id or ""]
            granted, why = bool(answer.approved), ""
            waited = (self._clock.now() - call.asked_at).total_seconds()
            if self._seconds is not None and waited > self._seconds:
                granted, why = False, f"the answer came after more than {self._seconds:g} s"
            waiting = self._waiting.get(answer.id or "")
            if waiting is None:
                self._given.setdefault(call.digest, []).append((granted, why))
            elif not waiting[1].done():
                waiting[1].set_result(_answer(waiting[0], granted, why))
                self._waiting.pop(answer.id or "")
        if not self._waiting:
            self.asked.clear()

    def forget(self) -> None:
        """Answers that nothing asked for are not kept for the next turn."""
        self._given.clear()


def check_answers(answers: Sequence[Content], pending: Mapping[str, PendingCall]) -> None:
    """Refuses answers that are not to what waits.

    Raises:
        AgentInvalidRequestException: An answer is to nothing that waits, to something else, or
            given twice.
    """
    seen: set[str] = set()
    for answer in answers:
        name = answer.id or ""
        call = pending.get(name)
        if call is None or name in seen:
            waits = ", ".join(f"{one.action} ({key})" for key, one in pending.items()) or "nothing"
            raise AgentInvalidRequestException(
                f"The approval {name!r} is not waited for: it was answered before, or never asked "
                f"for. Waiting: {waits}. Nothing was run."
            )
        if not call.fits(answer):
            given = answer.function_call
            shown = f"{given.name}({given.arguments})" if given is not None else "no call"
            raise AgentInvalidRequestException(
                f"The approval {name!r} is for {call.action}({json.dumps(call.arguments)}), and "
                f"the answer is about {shown}. Nothing was run: answer with "
                "request.to_function_approval_response(True or False)."
            )
        seen.add(name)


def _answer(request: ApprovalRequest, granted: bool, why: str) -> ApprovalAnswer:
    return request.grant(_BY, why) if granted else request.deny(_BY, why)
