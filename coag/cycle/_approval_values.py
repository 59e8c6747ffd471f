"""What is asked of a person before an action runs, what is answered, and how long it holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from pydantic import Field

from coag.context import WorkingMemory
from coag.schema import Value


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


def json_copy(value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a JSON object, which nobody else holds.

    Raises:
        NotJsonError: It is no JSON object.
    """
    return json.loads(canonical_json(dict(value)))


def digest_of(value: object) -> str:
    """SHA-256 over the canonical JSON of a value, in hexadecimal.

    Raises:
        NotJsonError: The value is not JSON.
    """
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def memory_version(memory: WorkingMemory) -> str:
    """A hash of what an action is decided upon; equal as long as nothing of it has changed.

    In it: the activity and its goal with the trust of whoever set it, the perceptual state, the
    names of the constraints in force, and what was said (by whom, without when). An approval
    given upon one picture of the environment must not carry over to another, nor past a word
    that came in between.

    Not in it: the time, the cycle's number, ids, what the model thought, and the log of past
    deeds. They change with every step, so that nothing would ever be found unchanged, and what
    a deed has changed stands in the perceptual state.
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
    """Why; of a denial, the agent is told so."""


class Approval(Value):
    """An answer from when it was given until it expires."""

    digest: str
    """Digest of the request that was answered."""
    granted: bool
    by: str
    """Who answered."""
    reason: str
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
    """What the agent pursues, in the words of whoever set it: data, not markup."""
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
        return digest_of(
            {
                "agent": self.agent,
                "action": self.action,
                "arguments": self.arguments,
                "memory_version": self.memory_version,
                "policy": self.policy,
                "policy_digest": self.policy_digest,
            }
        )

    def grant(self, by: str, reason: str = "") -> ApprovalAnswer:
        """The answer that lets exactly this happen."""
        return ApprovalAnswer(digest=self.digest, granted=True, by=by, reason=reason)

    def deny(self, by: str, reason: str = "") -> ApprovalAnswer:
        """The answer that forbids it; the agent is told the reason."""
        return ApprovalAnswer(digest=self.digest, granted=False, by=by, reason=reason)

    def stamp(self, answer: ApprovalAnswer, now: datetime) -> Approval:
        """The answer with the time of its arrival and of its end."""
        lifetime = timedelta(seconds=self.approval_seconds)
        return Approval(**answer.model_dump(), at=now, expires_at=now + lifetime)

    def difference(self, later: ApprovalRequest) -> tuple[str, ...]:
        """Names of the bound parts that are others in `later`."""
        bound = ("agent", "action", "arguments", "memory_version", "policy", "policy_digest")
        mine, others = self.model_dump(mode="json"), later.model_dump(mode="json")
        return tuple(
            name for name in bound if canonical_json(mine[name]) != canonical_json(others[name])
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
