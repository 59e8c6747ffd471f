"""Short ways to test a domain's rules and hooks, on values and without an agent.

assert_forbids(at_most_what_was_paid, "issue_refund", Order(paid=10), amount=11)
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from coag.context import CoagContext
from coag.cycle import ActionRule
from coag.schema import Candidate, Constraint, Percept, PerceptKind, Trust, Verdict

__all__ = ["percept", "assert_forbids", "assert_allows"]

_AT = datetime(2026, 1, 1, tzinfo=UTC)


def percept(tool: str, data: Any = None, **fields: Any) -> Percept:
    """What an agent perceives when a tool returns.

    Args:
        tool: The tool's name.
        data: What it returned, as JSON.
        **fields: Other fields of `Percept`, e.g. `is_error=True` or `at=`.
    """
    plain: dict[str, Any] = {
        "id": "percept-000001",
        "at": _AT,
        "kind": PerceptKind.TOOL_RETURN,
        "source": tool,
        "trust": Trust.UNTRUSTED,
        "content": "" if data is None else str(data),
        "data": data,
        "arguments": {},
    }
    return Percept.model_validate({**plain, **fields})


def assert_forbids(
    rule: Constraint,
    action: str,
    state: Any,
    *,
    after: Any = None,
    context: CoagContext[Any] | None = None,
    now: datetime = _AT,
    **arguments: Any,
) -> Verdict:
    """Makes sure that a rule forbids an action, and gives its verdict.

    Args:
        rule: The constraint.
        action: The action's name.
        state: The perceptual state.
        after: The predicted state.
        context: Predicts it, where `after` is not given.
        now: The time of the cycle, for a rule that asks for it.
        **arguments: The action's arguments.

    Raises:
        AssertionError: It allows the action, or raised. In an agent a rule that raises forbids;
            a test of what it forbids is then a test of nothing.
    """
    verdict = _judged(rule, action, state, after, context, now, arguments)
    if verdict.allowed:
        raise AssertionError(f"{_name(rule)} allows {action}({_shown(arguments)}) in {state!r}.")
    return verdict


def assert_allows(
    rule: Constraint,
    action: str,
    state: Any,
    *,
    after: Any = None,
    context: CoagContext[Any] | None = None,
    now: datetime = _AT,
    **arguments: Any,
) -> Verdict:
    """Makes sure that a rule allows an action; see `assert_forbids`.

    Raises:
        AssertionError: It forbids the action, or raised; the message says why.
    """
    verdict = _judged(rule, action, state, after, context, now, arguments)
    if not verdict.allowed:
        raise AssertionError(
            f"{_name(rule)} forbids {action}({_shown(arguments)}) in {state!r}: {verdict.reason}"
        )
    return verdict


def _judged(
    rule: Constraint,
    action: str,
    state: Any,
    after: Any,
    context: CoagContext[Any] | None,
    now: datetime,
    arguments: dict[str, Any],
) -> Verdict:
    candidate = Candidate(id="candidate-000001", action=action, arguments=arguments)
    if after is None and context is not None:
        after = context.predict(candidate, state)
    judge = rule.for_test(now) if isinstance(rule, ActionRule) else rule
    try:
        return judge(candidate, state, after)
    except Exception as error:  # a rule is anybody's code; its error is the cause of ours
        raise AssertionError(
            f"{_name(rule)} raised {type(error).__name__} on {action}({_shown(arguments)}) in "
            f"{state!r}: {error}"
        ) from error


def _name(rule: Constraint) -> str:
    return str(getattr(rule, "name", None) or getattr(rule, "__name__", rule))


def _shown(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
