"""What an agent perceives of its own external actions."""

from __future__ import annotations

from coag.schema import ActionCall, ActionResult, Percept, PerceptKind, Trust

from ._guard_deps import GuardDeps


def return_percept(call: ActionCall, result: ActionResult, deps: GuardDeps) -> Percept:
    """What the agent perceives of its own action: the tool's return, or that none came."""
    unknown = result.outcome_unknown
    return Percept(
        id=deps.ids("percept"),
        at=deps.clock.now(),
        kind=PerceptKind.UNKNOWN_OUTCOME if unknown else PerceptKind.TOOL_RETURN,
        source=call.action,
        trust=Trust.UNTRUSTED,
        content=result.content,
        data=result.data,
        caused_by=call.id,
        arguments=call.arguments,
        is_error=result.is_error,
        failure=result.failure,
    )
