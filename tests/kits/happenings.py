"""Percepts and outcomes as an agent's cycle gives them to modules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from coag.schema import (
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    Percept,
    PerceptKind,
    Phase,
    Situation,
    Trust,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
_numbers = count(1)


def percept(kind: PerceptKind, content: str = "", **fields: Any) -> Percept:
    """A percept of its own id, one second after the one before."""
    number = next(_numbers)
    values: dict[str, Any] = {"source": "somebody", "trust": Trust.UNTRUSTED, **fields}
    return Percept(
        id=f"p{number}",
        at=START + timedelta(seconds=number),
        kind=kind,
        content=content,
        state_patch={},
        **values,
    )


def asked(request: str, *, sets_goal: bool = True, **fields: Any) -> Percept:
    """What a user says; by default it opens a goal."""
    values: dict[str, Any] = {
        "source": "user",
        "trust": Trust.USER,
        "sets_goal": sets_goal,
        **fields,
    }
    return percept(PerceptKind.MESSAGE, request, **values)


def returned(tool: str, content: str = "", data: Any = None, **fields: Any) -> Percept:
    """What a tool brought back."""
    return percept(PerceptKind.TOOL_RETURN, content, source=tool, data=data, **fields)


def executed(
    action: str,
    status: ExecutionStatus = ExecutionStatus.DONE,
    *,
    cycle: int = 1,
    result: str = "",
    failure: Failure | None = None,
    arguments: dict[str, Any] | None = None,
    internal: bool = False,
) -> ExecutionOutcome:
    """One external action as Execution dealt with it."""
    number = next(_numbers)
    back = percept(
        PerceptKind.TOOL_RETURN, result, source=action, caused_by=f"i{number}", failure=failure
    )
    done = Executed(
        candidate_id="c1",
        action=action,
        arguments=arguments,
        status=status,
        internal=internal,
        intent_id=None if internal else f"i{number}",
        result=result,
    )
    at = START + timedelta(seconds=number)
    return ExecutionOutcome.of([done], cycle=cycle, at=at, queued=() if internal else (back,))


def failed(action: str, result: str = "jammed", **fields: Any) -> ExecutionOutcome:
    """An action that ran and failed."""
    return executed(action, ExecutionStatus.FAILED, result=result, **fields)


def answered(text: str = "Done.", *, by: str = "respond", cycle: int = 1) -> ExecutionOutcome:
    """An action that ended the turn."""
    outcome = executed(by, cycle=cycle, result=text, internal=True)
    return outcome.model_copy(update={"response": text, "ended_by": by})


def situation(goal: str = "", phase: Phase = Phase.REASONING) -> Situation:
    """What a module gets when it contributes."""
    return Situation(activity="main", goal=goal, cycle=1, phase=phase, query=goal)
