"""`@rule`: a constraint on one action, written as a small function of what it needs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

from coag.errors import ConfigurationError
from coag.schema import Candidate, Constraint, Verdict

from ._arguments import IDEMPOTENCY_KEY
from ._only_trusted import JudgedBy

GIVEN = ("state", "after", "candidate", "arguments", "now")
"""Parameters of a rule's function that are no arguments of the action."""
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
Predicate = Callable[[Any], bool]
"""Says of a state whether it is as it has to be."""


class ActionRule:
    """What `rule` makes: a constraint that judges its own actions and allows all others."""

    def __init__(
        self,
        function: Callable[..., str | None],
        actions: tuple[str, ...],
        name: str,
        *,
        where: Predicate | None,
        after: Predicate | None,
        reason: str,
        fresh: bool,
    ) -> None:
        functools.update_wrapper(self, function)
        del self.__dict__["__wrapped__"]  # it is called as a constraint, not as the function
        self.name = name
        self.actions = actions
        self._function = function
        self._wanted = dict(inspect.signature(function).parameters)
        self._where, self._after, self._reason, self._fresh = where, after, reason, fresh
        self._known: JudgedBy | None = None
        self._time: datetime | None = None

    def check_arguments(self, actions: Mapping[str, Mapping[str, Any]]) -> None:
        """Checks that its actions take what it asks for, as far as they are known.

        Args:
            actions: JSON Schemas of the arguments, by the action's name.

        Raises:
            ConfigurationError: One does not; every call of it would be forbidden.
        """
        asked = [name for name, one in self._wanted.items() if one.default is one.empty]
        for action in (one for one in self.actions if one in actions):
            schema = actions[action]
            known = {*schema.get("properties", {}), *GIVEN, IDEMPOTENCY_KEY}
            missing = [name for name in asked if name not in known]
            if missing and schema.get("additionalProperties", False) is False:
                raise ConfigurationError(
                    f"Rule {self.name!r} asks for {missing[0]!r}, which {action!r} does not take; "
                    f"it takes: {', '.join(schema.get('properties', {})) or 'nothing'}."
                )

    def for_test(self, now: datetime) -> Constraint:
        """The rule as in an agent at this time, of whose action only the arguments are known."""
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._time = now
        return bound

    def within(self, known: JudgedBy) -> Constraint:
        """The rule for this moment: it knows the action's schema and the time of the cycle."""
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._known = known
        return bound

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        """The verdict on a candidate, whose arguments are complete and valid."""
        if candidate.action not in self.actions:
            return Verdict.allow()
        if self._fresh and candidate.unsettled:
            open_ones = ", ".join(one.action for one in candidate.unsettled)
            return Verdict.forbid(f"it is not known whether {open_ones} had its effect")
        if self._where is not None and self._where(state) is not True:
            return Verdict.forbid(self._reason)
        if projection is None and (self._after is not None or "after" in self._wanted):
            return Verdict.forbid("what it leads to is not known yet")
        if self._after is not None and self._after(projection) is not True:
            return Verdict.forbid(self._reason)
        return self._answer(candidate, state, projection)

    def _answer(self, candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        arguments = dict(candidate.arguments or {})
        given: dict[str, Any] = {
            "state": state,
            "after": projection,
            "candidate": candidate,
            "arguments": arguments,
        }
        for name, parameter in self._wanted.items():
            if name == "now":
                given[name] = self._now()
                if given[name] is None:
                    return Verdict.forbid("the time of this cycle is not known")
            elif name not in GIVEN and name in arguments:
                given[name] = arguments[name]
            elif name not in GIVEN and parameter.default is inspect.Parameter.empty:
                if not self._has(name):
                    reason = f"the rule asks for {name!r}, which is no argument of the action"
                    return Verdict.forbid(reason)
                given[name] = None
        said = self._function(**{name: given[name] for name in self._wanted if name in given})
        if said is None:
            return Verdict.allow()
        if isinstance(said, str) and said:  # pyright: ignore[reportUnnecessaryIsInstance] - user code
            return Verdict.forbid(said)
        return Verdict.forbid(
            f"the rule returned {said!r:.80}; return None to allow, or a reason to forbid"
        )

    def _now(self) -> datetime | None:
        if self._time is not None:
            return self._time
        retrieval = self._known.memory.cognitive_state.retrieval if self._known else None
        return None if retrieval is None else retrieval.at

    def _has(self, name: str) -> bool:
        """Whether the action takes such an argument, as far as that is known."""
        if self._time is not None:
            return True
        return self._known is not None and name in self._known.spec.parameters.get("properties", {})


def _allow() -> None:
    """Has nothing to say beyond `where` and `after`."""


def rule(
    *actions: str,
    name: str | None = None,
    where: Predicate | None = None,
    after: Predicate | None = None,
    reason: str = "",
    fresh: bool = False,
) -> Any:
    """Makes a constraint of a small function; other actions than those named it lets pass.

    The function gets by name what it asks for: the action's arguments, which are complete and
    valid; `state`; `after`, the state that the action is predicted to lead to (it forbids where
    that is not known); `now`, when the cycle began; `candidate`; `arguments`, all of them. It
    returns None to allow, or the reason to forbid. Anything else, and raising, forbids.

    Example:
        ```python
        @rule("issue_refund")
        def at_most_what_was_paid(amount, state):
            if amount > state.paid:
                return f"only {state.paid} was paid"

        never_overdrawn = rule(
            "pay", name="never_overdrawn", after=lambda state: state.balance >= 0,
            reason="it would overdraw the account",
        )
        ```

    Args:
        actions: The actions that it judges.
        name: How logs call it; the function's name if left out.
        where: What must be true of the state now.
        after: What must be true of the predicted state.
        reason: Why it forbids where one of them is not.
        fresh: Forbid while it is not known what became of an earlier action.

    Raises:
        ConfigurationError: No action is named, a reason or name is missing, or the function takes
            what a rule cannot be given.
    """
    if not actions or not all(isinstance(one, str) and one for one in actions):  # pyright: ignore[reportUnnecessaryIsInstance] - user code
        raise ConfigurationError(
            f'rule{actions!r} names no action: write @rule("issue_refund") above the function.'
        )
    if (where or after) and not reason:
        raise ConfigurationError(
            "rule(where=, after=) needs reason=: what is shown when it forbids."
        )

    def make(function: Callable[..., str | None]) -> ActionRule:
        _check(function)
        own = name or getattr(function, "__name__", "")
        return ActionRule(
            function, actions, own, where=where, after=after, reason=reason, fresh=fresh
        )

    return _Either(make) if name and (where or after or fresh) else make


class _Either(ActionRule):
    """A named rule with predicates: a constraint as it is, or a decorator of a function."""

    def __init__(self, make: Callable[[Callable[..., str | None]], ActionRule]) -> None:
        self.__dict__.update(make(_allow).__dict__)
        self._make = make

    def __call__(self, *given: Any) -> Any:
        """Judges, or makes the rule of a function."""
        if len(given) == 1 and callable(given[0]):
            return self._make(cast("Callable[..., str | None]", given[0]))
        return super().__call__(*given)


def _check(function: object) -> None:
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise ConfigurationError(f"{function!r:.80} is no rule: write a plain function.")
    odd = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.kind not in _NAMED
    ]
    if odd:
        raise ConfigurationError(
            f"The rule {getattr(function, '__name__', function)!r} takes {', '.join(odd)}: name "
            "the arguments that it needs, or ask for `arguments`."
        )
