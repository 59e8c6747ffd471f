"""Constraints in force: named, pinned per cycle, asked in order, failing closed."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from coag.context import WorkingMemory, own_copy
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import (
    ActionSpec,
    Candidate,
    Constraint,
    ConstraintSource,
    Verdict,
    well_formed,
)

from ._action_rules import ActionRule
from ._only_trusted import BoundRule, JudgedBy
from ._rules import RULE_SECONDS, TooSlowError, check_rule, limited

REASON = 500
"""Characters of a constraint's reason that are kept."""
NAME = 100
"""Characters of a constraint's name that are kept."""
UNCHANGED_ARGUMENTS = Verdict(
    allowed=False,
    constraint="arguments_unchanged",
    reason="a rule or the projection changed the arguments that it was to judge",
)
"""Nobody may change what the others are to judge."""


@dataclass(frozen=True, slots=True)
class NamedConstraint:
    """A constraint and the name by which logs and errors call it."""

    name: str
    judge: Constraint

    def within(self, known: JudgedBy | None) -> NamedConstraint:
        """The constraint as it judges by what was said, where it asks for that."""
        if known is None or not isinstance(self.judge, BoundRule):
            return self
        return NamedConstraint(self.name, self.judge.within(known))

    def verdict(
        self,
        candidate: Candidate,
        state: Any,
        projection: Any | None,
        seconds: float | None = RULE_SECONDS,
    ) -> Verdict:
        """The constraint's verdict under its name. One that raises, or is late, forbids."""
        try:
            verdict = limited(lambda: self.judge(candidate, state, projection), seconds)
        except TooSlowError as error:
            verdict = Verdict.forbid(f"the rule itself was too slow: {error}")
        except (Exception, CancelledError) as error:  # what cannot be applied lets nothing through
            verdict = Verdict.forbid(
                f"the rule itself raised {type(error).__name__}: {_shown(str, error)}"
            )
        if not isinstance(verdict, Verdict):  # pyright: ignore[reportUnnecessaryIsInstance] - user code
            if inspect.iscoroutine(verdict):
                verdict.close()  # it is never awaited, and need not warn of that as well
            verdict = Verdict.forbid(
                f"the rule returned {_shown(repr, verdict)} instead of a Verdict; "
                "return Verdict.allow() or Verdict.forbid(reason) from a plain function"
            )
        reason = _capped(well_formed(verdict.reason), REASON)
        return verdict.model_copy(update={"constraint": self.name, "reason": reason})


def _shown(how: Callable[[object], str], value: object) -> str:
    """`str` or `repr` of what a rule gave, cut; a note where that raises, too."""
    try:
        return _capped(how(value), REASON // 2)
    except Exception:  # a rule's own classes may raise anything
        return f"a {type(value).__name__} that cannot be shown"


def _capped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def named(constraint: Constraint, name: str | None = None) -> NamedConstraint:
    """The constraint under `name`, its own `name`, or its `__name__`."""
    own = name or getattr(constraint, "name", None) or getattr(constraint, "__name__", None)
    name = well_formed(" ".join(str(own or type(constraint).__name__).split()))
    return NamedConstraint(_capped(name, NAME), constraint)


def _is_async(constraint: Constraint) -> bool:
    """Whether calling it gives no verdict, but something to await."""
    calls = (constraint, getattr(constraint, "__call__", None))  # noqa: B004 - it is looked into
    return any(
        inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call) for call in calls
    )


def _copies(state: Any) -> Iterator[Any]:
    """One copy after another of a state; the state itself where nothing can be done to it.

    Whether that is so is found out once.
    """
    first = own_copy(state)
    yield first
    while first is state:
        yield state
    while True:
        yield own_copy(state)


class ConstraintSet:
    """The agent's constraints. A change takes effect from the next cycle (invariant 7).

    Args:
        constraints: In force from the start, asked in this order.
        sources: Contexts and modules that bring constraints of their own; asked each cycle.
        seconds: Time that a rule may take; None for any.
        developer: Gives the developer's texts, whose values `only_trusted` lets pass.
    """

    def __init__(
        self,
        constraints: Iterable[Constraint] = (),
        sources: Sequence[ConstraintSource] = (),
        *,
        seconds: float | None = RULE_SECONDS,
        developer: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self.seconds = seconds
        self._own: list[NamedConstraint] = []
        self._sources = tuple(sources)
        self._developer = developer
        self._left_out: set[str] = set()
        self._pinned: tuple[NamedConstraint, ...] = ()
        for constraint in constraints:
            self.add(constraint)

    def add(self, constraint: Constraint, *, name: str | None = None) -> str:
        """Puts a constraint in force from the next cycle and returns its name.

        Raises:
            ConfigurationError: It cannot be called as a constraint is, it is `async`, or another
                one has that name.
        """
        check_rule(constraint)
        new = named(constraint, name)
        if _is_async(constraint):
            raise ConfigurationError(
                f"The constraint {new.name!r} is async, and rules are plain functions: write "
                "`def` instead of `async def`, and judge by the state that the context keeps."
            )
        if new.name in self.names():
            raise ConfigurationError(
                f"A constraint named {new.name!r} is in force already; give this one a name."
            )
        self._own.append(new)
        return new.name

    def remove(self, name: str) -> None:
        """Takes a constraint out of force from the next cycle.

        Raises:
            UnknownNameError: There is no such constraint here.
        """
        if name not in self.names():
            raise UnknownNameError("constraint", name, self.names())
        self._own = [constraint for constraint in self._own if constraint.name != name]

    def leave_out(self, name: str) -> None:
        """Takes a constraint out of force from the next cycle on for good, whoever brings it."""
        self._left_out.add(name)

    def names(self) -> tuple[str, ...]:
        """Names of the constraints added here; those of sources are not among them."""
        return tuple(constraint.name for constraint in self._own)

    def own(self) -> tuple[NamedConstraint, ...]:
        """The constraints that were given or added, in order; what sources bring is not in it."""
        return tuple(self._own)

    def without_action(self, actions: Container[str]) -> Iterator[tuple[str, str]]:
        """The rules in force that judge an action which is none of these, and its name."""
        for one in self._pinned:
            judged = one.judge.actions if isinstance(one.judge, ActionRule) else ()
            yield from ((one.name, action) for action in judged if action not in actions)

    def pin(self) -> tuple[str, ...]:
        """Fixes what is in force for this cycle and returns the names in order."""
        brought = [named(rule) for source in self._sources for rule in source.constraints()]
        known = (*self._own, *brought)
        self._pinned = tuple(rule for rule in known if rule.name not in self._left_out)
        return tuple(constraint.name for constraint in self._pinned)

    @property
    def pinned(self) -> tuple[str, ...]:
        """Names of what is in force in this cycle, in order."""
        return tuple(constraint.name for constraint in self._pinned)

    def judge(
        self,
        candidate: Candidate,
        state: Any,
        projection: Any | None,
        memory: WorkingMemory | None = None,
        spec: ActionSpec | None = None,
    ) -> tuple[Verdict, ...]:
        """Verdicts of the pinned constraints in order, up to the first that forbids.

        Each judges copies of its own: what one changes in the state or in the projection, the
        next does not see. One that changes the arguments forbids.

        Args:
            candidate: What is judged, its arguments valid.
            state: The typed perceptual state.
            projection: The predicted one, or None.
            memory: What `only_trusted` judges by; without it, that forbids.
            spec: What the action is, as for `memory`.
        """
        known: JudgedBy | None = None
        if memory is not None and spec is not None:
            known = JudgedBy(memory, spec, self._developer)
        verdicts: list[Verdict] = []
        states, projections = _copies(state), _copies(projection)
        for constraint in self._pinned:
            own = candidate.model_copy(update={"arguments": deepcopy(candidate.arguments)})
            rule = constraint.within(known)
            verdicts.append(rule.verdict(own, next(states), next(projections), self.seconds))
            if own.arguments != candidate.arguments:
                verdicts.append(UNCHANGED_ARGUMENTS)
            if not verdicts[-1].allowed:
                break
        return tuple(verdicts)
