"""Actions that need a yes: who is asked, for what exactly, and how long it holds."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Protocol, Self, cast

from pydantic import AfterValidator, Field, model_validator

from coag._util.text import ellipsis, well_formed
from coag._util.timeouts import (
    LateError,
    SelfCancelledError,
    describe_error,
    in_thread,
    outcome_of,
    within,
)
from coag.context import WorkingMemory
from coag.schema import Candidate, Clock, CountingIds, IdSource, SystemClock, Value, Verdict

from .actions import RESPOND
from .time_limit import RULE_SECONDS, TooSlowError, limited

APPROVAL = "approval"
"""The constraint's name in verdicts, and the word that notes are about."""
REASON = 500
"""Characters of a reason that are kept."""
REUSABLE = 256
"""Answers that are kept for reuse; the oldest is dropped first."""
_BOUND = ("agent", "action", "arguments", "memory_version", "policy", "policy_digest")
"""The parts of a request that an approval is bound to."""
_SHOWN = 80
"""Characters of an answer that is none, and that are shown."""


class NotJsonError(ValueError):
    """A value is not JSON, or would come back from JSON as another one."""


def canonical_json(value: object) -> str:
    """The one JSON text of a value: keys sorted, no blanks, ASCII.

    Raises:
        NotJsonError: The value has no JSON text from which the same value comes back.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJsonError(f"{type(error).__name__}: {error}") from error
    if not same:
        raise NotJsonError("there are tuples in it, or keys that are no text")
    return text


def digest_of(value: object) -> str:
    """SHA-256 over the canonical JSON of a value, in hexadecimal.

    Raises:
        NotJsonError: The value is not JSON.
    """
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def memory_version(memory: WorkingMemory) -> str:
    """A hash of what an action is decided upon; equal as long as nothing of it has changed.

    In it: the activity and its goal with the trust of its source, the perceptual state, the
    names of the constraints in force, and what was said (by whom, without when). An approval
    given upon one picture of the environment must not carry over to another, nor past a word
    that came in between.

    Not in it: the time, the cycle's number, ids, what the model thought, and the log of past
    actions. They change with every step, so that nothing would ever be found unchanged, and what
    a past action has changed is in the perceptual state.
    """
    retrieval = memory.cognitive_state.retrieval
    return digest_of(
        {
            "activity": memory.activity,
            "goal": memory.goal,
            "goal_trust": memory.goal_trust.value,
            "perceptual_state": memory.perceptual_state,
            "constraints": list(retrieval.constraints) if retrieval else [],
            "dialogue": [[said.source, said.trust.value, said.content] for said in memory.dialogue],
        }
    )


class ApprovalAnswer(Value):
    """What an approver says to one request; `ApprovalRequest.grant` and `.deny` make it."""

    digest: str
    """Digest of the request that was answered."""
    granted: bool
    by: str = ""
    """Who answered; empty where nobody did and the request is denied for that."""
    reason: str = ""
    """Why; the agent gets the reason of a denial."""


class Approval(ApprovalAnswer):
    """An answer from when it was given until it expires."""

    at: datetime
    """When the answer came."""
    expires_at: datetime
    """From then on it holds no longer."""


class ApprovalRequest(Value):
    """An action that is not to run before somebody has agreed to it."""

    id: str
    agent: str
    """Name of the agent, or of the workbench, that wants to act."""
    cycle: int
    state: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The perceptual state as the rules read it, as JSON; empty where there is none."""
    projection: dict[str, Any] | None = None
    """The state that the domain's forward model predicts; None where it predicts none."""
    goal: str
    """What the agent pursues, in the words of its source: data, not markup."""
    action: str
    arguments: dict[str, Any]
    wish: str = ""
    """Why the model wants it, in the model's own words: data, not markup."""
    expected_effect: str = ""
    """What the model expects of it, in its own words."""
    risk: str
    """Risk class of the action by the policy."""
    reason: str
    """Why the policy has it asked about."""
    memory_version: str
    """Version of working memory that the action was decided upon; see `memory_version`."""
    policy: str
    """Name and version of the policy: `NAME@VERSION`."""
    policy_digest: str
    """Digest of the policy's rules."""
    asked_at: datetime
    expires_at: datetime
    """Nobody waits for an answer beyond this time."""
    approval_seconds: float
    """How long an approval holds, counted from the answer."""
    attempt: int = 1
    """Counts how often this action has been asked about, from 1; see `changed`."""
    changed: str = ""
    """What became of the approval before, where this action is asked about again."""

    @property
    def digest(self) -> str:
        """The hash that an approval is bound to: who, action, arguments, memory and policy."""
        return digest_of({name: getattr(self, name) for name in _BOUND})

    def grant(self, by: str, reason: str = "") -> ApprovalAnswer:
        """The answer that lets exactly this happen."""
        return ApprovalAnswer(digest=self.digest, granted=True, by=by, reason=reason)

    def deny(self, by: str, reason: str = "") -> ApprovalAnswer:
        """The answer that forbids it; the agent gets the reason."""
        return ApprovalAnswer(digest=self.digest, granted=False, by=by, reason=reason)

    def stamp(self, answer: ApprovalAnswer, now: datetime) -> Approval:
        """The answer with the time of its arrival and of its end."""
        lifetime = timedelta(seconds=self.approval_seconds)
        return Approval(**answer.model_dump(), at=now, expires_at=now + lifetime)

    def difference(self, later: ApprovalRequest) -> tuple[str, ...]:
        """Names of the bound parts that are others in `later`."""
        return tuple(
            name
            for name in _BOUND
            if canonical_json(getattr(self, name)) != canonical_json(getattr(later, name))
        )


class Approver(Protocol):
    """Decides on requests, mostly by asking a person. It may take its time.

    A plain function, `async` or not, that answers True or False is one, too; one that is not
    `async` is called in a thread of its own.
    """

    async def __call__(self, request: ApprovalRequest, /) -> ApprovalAnswer | bool:
        """The answer. Whatever else comes of it, an error included, is a denial."""
        ...


ApproveFunction = (
    Callable[[ApprovalRequest], Awaitable[ApprovalAnswer | bool]]
    | Callable[[ApprovalRequest], ApprovalAnswer | bool]
)
"""An `Approver`, or a plain function from a request to an answer or to True or False."""


def still_holds(approval: Approval, request: ApprovalRequest, now: datetime) -> bool:
    """Whether an approval lets `request` happen now: granted, for exactly this, not expired."""
    return approval.granted and approval.digest == request.digest and now < approval.expires_at


# ---- Which actions a person decides about, and on what terms ----


ApprovalRule = Callable[[str, Mapping[str, Any]], bool | str]
"""`(action, arguments) -> needs approval`; a text that is not empty says yes and why."""
UNCLASSIFIED = "unclassified"
"""Risk class of an action that no pattern of `risk` matches."""
_Patterns = Annotated[Sequence[str], AfterValidator(tuple)]


def _names(tools: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_name_of(tool) for tool in tools)


def _name_of(tool: object) -> str:
    for name in (tool, getattr(tool, "name", None), getattr(tool, "__name__", None)):
        if isinstance(name, str) and name:
            return name
    raise ValueError(
        f"tools takes tools, functions or names of actions, not {tool!r}, which has no name."
    )


@dataclass(frozen=True, slots=True)
class ApprovalNeed:
    """Why an action needs approval."""

    risk: str
    """Its risk class."""
    reason: str
    """The rules of the policy that it meets, in words."""


class ApprovalPolicy(Value):
    """Which actions need approval, how long one is waited for, and how long it holds.

    An action needs approval if any of `actions`, `tools`, `when` or `require` says so.

    Example:
        `ApprovalPolicy(risk={"delete_*": "high", "read_*": "low"}, require={"high"})`

    Raises:
        ValueError: Nothing would ever need approval, or a term is of the wrong kind.
    """

    name: str = "approval"
    version: str = "1"
    """Yours to count up: where a rule in `when` is changed, its name alone does not show it."""
    actions: _Patterns = ()
    """Patterns of names, as of files: `delete_*`, `*`. Case matters."""
    tools: Annotated[Sequence[Any], AfterValidator(_names)] = ()
    """Tools, functions or exact names; kept as names."""
    when: Annotated[Sequence[ApprovalRule], AfterValidator(tuple)] = ()
    """Rules that look at the arguments; one that raises, or takes over 2 s, says yes."""
    risk: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Risk class by pattern of names; the first pattern that matches counts."""
    require: Annotated[AbstractSet[str], AfterValidator(frozenset)] = frozenset({"high"})
    """Risk classes that need approval; `unclassified` where no pattern matches."""
    exempt: _Patterns = (RESPOND.name,)
    """Patterns of names that are never asked about, whatever else says so."""
    approval_seconds: float = Field(default=300.0, gt=0, le=31_536_000)
    """How long an approval holds, counted from the answer."""
    wait_seconds: float = Field(default=300.0, gt=0, le=31_536_000)
    """How long an answer is waited for; then the action is denied."""
    reuse: bool = False
    """Whether an answer, yes or no, holds for an identical request until it expires.
    Otherwise each is for one run only."""
    asks: int = Field(default=3, ge=1)
    """How often one action is asked about where something changes in between; then it is
    denied."""

    @model_validator(mode="after")
    def _asks_about_something(self) -> Self:
        classes = {*self.risk.values(), UNCLASSIFIED}
        if not (self.actions or self.tools or self.when or classes & self.require):
            names = ", ".join(sorted(self.require)) or "empty"
            raise ValueError(
                f"By policy {self.name!r} nothing needs approval: give actions, tools, when, or "
                f"risk classes of which require ({names}) names one."
            )
        return self

    @classmethod
    def everything(cls) -> ApprovalPolicy:
        """The policy by which every action except `respond` needs approval."""
        return cls(name="everything", actions=("*",))

    @property
    def label(self) -> str:
        """`NAME@VERSION`."""
        return f"{self.name}@{self.version}"

    def digest(self) -> str:
        """A hash of the whole policy; rules in `when` count by their import name."""
        plain = self.model_dump(mode="json", exclude={"when", "require"})
        rules: list[str] = []
        for rule in self.when:
            named = rule if hasattr(rule, "__qualname__") else type(rule)
            rules.append(f"{rule.__module__}:{named.__qualname__}")
        return digest_of({**plain, "when": rules, "require": sorted(self.require)})

    def exempts(self, action: str) -> bool:
        """Whether nobody is ever asked about the action."""
        return any(fnmatchcase(action, pattern) for pattern in self.exempt)

    def need(self, action: str, arguments: Mapping[str, Any]) -> ApprovalNeed | None:
        """Why the action needs approval, or None if it does not."""
        if self.exempts(action):
            return None
        classes = (named for pattern, named in self.risk.items() if fnmatchcase(action, pattern))
        risk = next(classes, UNCLASSIFIED)
        reasons = [f"it matches {p!r}" for p in self.actions if fnmatchcase(action, p)]
        if action in self.tools:
            reasons.append("the tool is listed")
        if risk in self.require:
            reasons.append(f"its risk is {risk}")
        reasons += [why for rule in self.when if (why := _rule_reason(rule, action, arguments))]
        return ApprovalNeed(risk, "; ".join(reasons)) if reasons else None


def _rule_reason(rule: ApprovalRule, action: str, arguments: Mapping[str, Any]) -> str:
    name = getattr(rule, "__name__", None) or type(rule).__name__
    if name == "<lambda>":
        name = f"without a name, a lambda in {rule.__module__},"
    try:
        answer = limited(lambda: rule(action, deepcopy(dict(arguments))), RULE_SECONDS)
        asks = bool(answer)
    except TooSlowError as error:
        return f"the rule {name} was too slow: {error}"
    except Exception as error:  # a rule is user code; what it cannot judge, a person does
        return f"the rule {name} raised {describe_error(error)}"
    if not asks:
        return ""
    return answer if isinstance(answer, str) else f"the rule {name} says so"


# ---- Who asks for approval, and what the trace records of it ----


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
        """What a note about it says besides the text; the arguments are in the proposal."""
        request, details = self.request, dict[str, Any](what=self.what)
        details |= {"request": request.id, "digest": request.digest}
        details |= {
            name: getattr(request, name) for name in ("action", "risk", "policy", "attempt")
        }
        if self.approval is not None:
            details["by"] = self.approval.by
            details["expires_at"] = self.approval.expires_at.isoformat()
        return details


Notify = Callable[[ApprovalEvent], None]


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """Whether an action may run, and whether that is still valid."""

    verdict: Verdict
    invalidation_reason: Callable[[], str]
    """Tells why a verdict that allows is not valid any more; empty as long as it is."""


class Approvals:
    """Has actions approved right before they run, each bound to exactly what was asked.

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
        self._answers: OrderedDict[str, Approval] = OrderedDict()
        self.new_id: IdSource = ids or CountingIds()
        self.now = (clock or SystemClock()).now

    @property
    def policy(self) -> ApprovalPolicy:
        """The policy in force. Another one is in force at once: pending requests are repeated."""
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
        notify: Notify = lambda event: None,
    ) -> Verdict:
        """Whether one action may run now with these arguments; see `decisions`."""
        (decision,) = await self.decisions([(candidate, arguments)], occasion, notify)
        return decision.verdict

    async def decisions(
        self,
        wanted: Sequence[tuple[Candidate, Mapping[str, Any]]],
        occasion: ApprovalOccasion,
        notify: Notify = lambda event: None,
    ) -> tuple[ApprovalDecision, ...]:
        """Whether actions that are to run together may run now; waits for the approver.

        They are asked about at once, and each on its own. Where nobody denied it, the verdict
        is valid for the moment of the return: nothing is awaited between that and the last look
        at whether every approval is still valid. A caller that waited asks the constraints again:
        the state may have changed. A caller that waits for anything else before an action runs
        asks its decision again.

        Args:
            wanted: Each action, with the reason and the effect that the model gives, and what
                it will be run with; these arguments are read again after every wait.
            occasion: Who wants it, and upon which working memory.
            notify: Gets everything that happens to the requests.
        """
        asks = self._policy.asks
        pending = [PendingApproval(self, one, given, occasion, notify) for one, given in wanted]
        undecided = pending
        for attempt in range(1, asks + 1):
            await _all_at_once([one.decide(attempt) for one in undecided])
            for one in pending:
                one.invalid = one.invalidation_reason()
            undecided = [one for one in pending if one.invalid]
            if not undecided:
                break
        return tuple(one.decision(asks) for one in pending)

    async def answer(
        self, request: ApprovalRequest, policy: ApprovalPolicy, notify: Callable[..., None]
    ) -> Approval:
        """An earlier answer to the identical request, or the approver's.

        The answer is kept for reuse where the policy wants that and somebody gave it.
        """
        known = self._answers.get(request.digest)
        if known is not None and self.now() < known.expires_at:
            notify("reused", "it was answered before", request, known)
            return known
        if known is not None:
            del self._answers[request.digest]
            notify("expired", "the answer given before has expired", request, known)
        notify("asked", f"approval is needed: {request.reason}", request)
        try:
            answer = await answer_of(self._approver, request, policy.wait_seconds)
        except asyncio.CancelledError:
            notify("withdrawn", "whoever waited for the answer was cancelled", request)
            raise
        approval = request.stamp(answer, self.now())
        if policy.reuse and approval.by and policy is self._policy:
            self._answers[request.digest] = approval
            while len(self._answers) > REUSABLE:
                self._answers.popitem(last=False)
        if not approval.granted:
            notify("denied", denial(approval), request, approval)
        return approval


async def _all_at_once(looks: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Waits for all; where one raises, the others are withdrawn and its error is raised."""
    tasks = [asyncio.create_task(look) for look in looks]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


@dataclass(slots=True)
class PendingApproval:
    """One action that is to be approved, from the question to the verdict."""

    approvals: Approvals
    candidate: Candidate
    arguments: Mapping[str, Any]
    occasion: ApprovalOccasion
    notify: Notify
    policy: ApprovalPolicy = field(init=False)
    """The policy that it was looked at by."""
    request: ApprovalRequest | None = None
    """What was asked; None where nobody had to be, or could be, asked."""
    approval: Approval | None = None
    problem: str = ""
    """Why nobody could be asked."""
    invalid: str = ""
    """Why the last answer was not valid any more."""

    async def decide(self, attempt: int) -> None:
        """One look at the action: no need, or an answer given before or now."""
        self.policy, self.request, self.approval = self.approvals.policy, None, None
        need = self.policy.need(self.candidate.action, self.arguments)
        if need is None:
            return
        try:
            self.request = self._asking(need, attempt)
        except NotJsonError as error:
            self.problem = f"nobody can be asked about its arguments: {error}"
        else:
            answer = self.approvals.answer(self.request, self.policy, self._tell)
            self.approval = await answer

    def _asking(self, need: ApprovalNeed, attempt: int) -> ApprovalRequest:
        now, occasion, candidate = self.approvals.now(), self.occasion, self.candidate
        return ApprovalRequest(
            id=self.approvals.new_id(APPROVAL),
            agent=occasion.agent,
            cycle=occasion.cycle,
            goal=occasion.goal,
            wish=candidate.reason,
            expected_effect=candidate.expected_effect,
            risk=need.risk,
            reason=need.reason,
            asked_at=now,
            expires_at=now + timedelta(seconds=self.policy.wait_seconds),
            approval_seconds=self.policy.approval_seconds,
            attempt=attempt,
            changed=self.invalid,
            **self._as_now(),
        )

    def _as_now(self) -> dict[str, Any]:
        """What of a request may be another at another time."""
        candidate = self.candidate.model_copy(update={"arguments": dict(self.arguments)})
        state, projection = self.occasion.seen(candidate)
        policy = self.approvals.policy
        return {
            "state": state,
            "projection": projection,
            "action": self.candidate.action,
            "arguments": json.loads(canonical_json(dict(self.arguments))),  # nobody else's
            "memory_version": self.occasion.memory_version(),
            "policy": policy.label,
            "policy_digest": policy.digest(),
        }

    def _tell(
        self, what: What, text: str, request: ApprovalRequest, approval: Approval | None = None
    ) -> None:
        text = f"{request.action}: {text}"
        self.notify(ApprovalEvent(what=what, text=text, request=request, approval=approval))

    def invalidation_reason(self) -> str:
        """Why what was decided is not valid for what would happen now; empty if it is."""
        request, approval = self.request, self.approval
        if request is None or approval is None:
            return "the policy changed" if self.approvals.policy != self.policy else ""
        if not approval.granted:
            return ""
        if parts := self._changed(request):
            what, text = "changed", f"this changed before it could run: {', '.join(parts)}"
        elif still_holds(approval, request, self.approvals.now()):
            return ""
        else:
            what, text = "expired", "the approval expired before it could run"
        self._tell(what, text, request, approval)
        return text

    def _changed(self, request: ApprovalRequest) -> tuple[str, ...]:
        try:
            parts = request.difference(request.model_copy(update=self._as_now()))
        except NotJsonError:
            return ("arguments",)
        return parts or (() if self.approvals.policy == self.policy else ("policy",))

    def decision(self, asks: int) -> ApprovalDecision:
        """What was decided in the end, after so many questions at most."""
        request, approval = self.request, self.approval
        allowed, reason = False, self.problem
        if self.invalid:
            reason = f"it was asked about {asks} times, and each time: {self.invalid}"
        elif request is None or approval is None:
            allowed = not reason
        elif not approval.granted:
            reason = denial(approval)
        else:
            by = f"{approval.by} approved it"
            self._tell("granted", by, request, approval)
            allowed, reason = True, f"{by}. {approval.reason}".strip()
        reason = ellipsis(well_formed(reason), REASON)
        verdict = Verdict(allowed=allowed, constraint=APPROVAL, reason=reason)
        return ApprovalDecision(verdict, self.invalidation_reason)


def denial(approval: Approval) -> str:
    """Why an action that had to be approved is not run."""
    if not approval.by:
        return approval.reason
    return f"{approval.by} denied it: {approval.reason or 'no reason was given'}"


# ---- Asking an approver, so that nothing but a plain yes is a yes ----


async def answer_of(
    approver: ApproveFunction, request: ApprovalRequest, seconds: float
) -> ApprovalAnswer:
    """The approver's answer within `seconds`; whatever goes wrong is a denial by nobody.

    Only that this task is cancelled, or the process is to end, passes through.
    """
    own = getattr(approver, "name", None) or getattr(approver, "__name__", None)
    name = own if isinstance(own, str) else type(approver).__name__
    copied = request.model_copy(deep=True)  # what the approver does to it, it does to its own
    try:
        answer = await within(seconds, lambda: _called(approver, copied))
    except LateError:
        return request.deny("", f"nobody answered within {seconds:g} s")
    except SelfCancelledError:
        return request.deny("", f"the approver {name} was cancelled by itself")
    except Exception as error:  # an approver is user code; without its yes nothing may run
        return request.deny("", f"the approver {name} raised {describe_error(error)}")
    if isinstance(answer, bool):
        return request.grant(name) if answer else request.deny(name)
    if not isinstance(answer, ApprovalAnswer):
        # The `repr` of anything else than a plain value could do anything.
        plain = answer is None or type(answer) in (str, int, float)
        got = repr(answer)[:_SHOWN] if plain else f"a {type(answer).__name__}"
        needed = "True, False or request.grant(...) or request.deny(...)"
        return request.deny("", f"the approver {name} returned {got} instead of {needed}")
    if answer.digest != request.digest:
        return request.deny("", f"the approver {name} answered another request")
    return answer


async def _called(approver: ApproveFunction, request: ApprovalRequest) -> object:
    call: Any = approver
    if inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__):
        return await call(request)
    answer: object = await outcome_of(in_thread(lambda: call(request), "coag-approver"))
    return await cast("Any", answer) if inspect.isawaitable(answer) else answer
