"""Hard rules: how they are called, collected, and written for single actions."""

from __future__ import annotations

import functools
import inspect
from asyncio import CancelledError
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from coag._util.text import ellipsis, in_a_line, well_formed
from coag.context import WorkingMemory, counted_for, own_copy
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import ActionSpec, Candidate, Constraint, ConstraintSource, CountedFor, Verdict

from .actions import IDEMPOTENCY_KEY, RESPOND
from .approval import ApprovalRule
from .time_limit import RULE_SECONDS, TooSlowError, limited

# ---- What can be a constraint, and what one may know ----


_OURS = __name__.partition(".")[0] + "."
"""How the modules of rules begin that only read."""


class AsksFirst(Protocol):
    """Says before which actions somebody is asked."""

    def need(self, action: str, arguments: Mapping[str, Any], /) -> object:
        """Why somebody is asked; None if nobody is."""
        ...


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """What a rule may know besides the candidate, the state and the projection."""

    memory: WorkingMemory
    spec: ActionSpec
    developer: Callable[[], Sequence[str]]
    """Gives the developer's texts: the system message and the procedures."""
    approvals: AsksFirst | None = None
    """Says before which actions somebody is asked; None if nobody ever is."""
    now: datetime | None = None
    """When the cycle began; behind a workbench, the time of the call."""


@runtime_checkable
class BoundRule(Protocol):
    """A constraint that judges by what was said; by itself, it forbids."""

    def within(self, known: JudgedBy) -> Constraint:
        """The rule for this moment."""
        ...


def bound(rule: Constraint, known: JudgedBy | None) -> Constraint:
    """The rule for this moment, where it asks for that and something is known.

    One that is not ours gets a copy of its own, as of the state: what it changes, nobody sees.
    """
    if known is None or not isinstance(rule, BoundRule):
        return rule
    if not type(rule).__module__.startswith(_OURS):
        known = replace(known, memory=own_copy(known.memory), spec=own_copy(known.spec))
    return rule.within(known)


def check_rule(rule: object) -> None:
    """Refuses what cannot be called as a constraint is: it would forbid every action.

    Raises:
        ConfigurationError: It is no function of three arguments, nor an object that is called so.
    """
    if isinstance(rule, type) or not callable(rule):
        raise _no_constraint(rule)
    try:
        inspect.signature(rule).bind(None, None, None)
    except TypeError as error:
        raise _no_constraint(rule) from error
    except ValueError:  # a function that Python cannot look into; its caller will see
        pass


def _no_constraint(rule: object) -> ConfigurationError:
    name = getattr(rule, "__qualname__", None)
    shown = repr(rule)[:80] if name is None else repr(name)
    return ConfigurationError(
        f"{shown} is no constraint. Write a function (candidate, state, projection) that "
        "returns Verdict.allow() or Verdict.forbid(reason), or an object that is called so."
    )


# ---- `@rule`: a constraint on one action, written as a small function of what it needs ----


GIVEN = ("state", "after", "candidate", "arguments", "now")
"""Parameters of a rule's function that are no arguments of the action."""
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
Predicate = Callable[[Any], bool]
"""Says of a state whether it is as it has to be."""


class ActionRule:
    """What `rule` makes: a constraint that judges its own actions and allows all others."""

    def __init__(
        self,
        actions: tuple[str, ...],
        name: str,
        *,
        where: Predicate | None,
        after: Predicate | None,
        reason: str,
        fresh: bool,
    ) -> None:
        self.actions = actions
        self.name = name
        self._function: Callable[..., str | None] = lambda: None
        self._wanted: Mapping[str, inspect.Parameter] = {}
        self._where, self._after, self._reason, self._fresh = where, after, reason, fresh
        self._known: JudgedBy | None = None
        self._time: datetime | None = None

    def of(self, function: Callable[..., str | None]) -> ActionRule:
        """The rule that asks a function as well.

        Raises:
            ConfigurationError: It takes what a rule cannot be given.
        """
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise ConfigurationError(f"{function!r:.80} is no rule: write a plain function.")
        wanted = dict(inspect.signature(function).parameters)
        odd = [one.name for one in wanted.values() if one.kind not in _NAMED]
        if odd:
            takes = f"The rule {getattr(function, '__name__', function)!r} takes {', '.join(odd)}"
            raise ConfigurationError(f"{takes}: name what it needs, or ask for `arguments`.")
        made = copy(self)
        functools.update_wrapper(made, function)
        del made.__dict__["__wrapped__"]  # it is called as a constraint, not as the function
        made.__dict__.pop("__signature__", None)
        made.name = self.name or getattr(function, "__name__", "")
        made._function, made._wanted = function, wanted
        return made

    def check_arguments(self, actions: Mapping[str, Mapping[str, Any]]) -> None:
        """Checks that its actions take what it asks for, as far as they are known.

        Args:
            actions: JSON Schemas of the arguments, by the action's name.

        Raises:
            ConfigurationError: One does not; every call of it would be forbidden.
        """
        needed = [name for name, one in self._wanted.items() if one.default is one.empty]
        for action in (one for one in self.actions if one in actions):
            schema = actions[action]
            known = {*schema.get("properties", {}), *GIVEN, IDEMPOTENCY_KEY}
            missing = [name for name in needed if name not in known]
            if missing and schema.get("additionalProperties", False) is False:
                known = ", ".join(schema.get("properties", {})) or "nothing"
                asks = f"Rule {self.name!r} asks for {missing[0]!r}, which {action!r} does not take"
                raise ConfigurationError(f"{asks}; it takes: {known}.")

    def for_test(self, now: datetime) -> Constraint:
        """The rule as in an agent at this time, of whose action only the arguments are known."""
        bound = copy(self)
        bound._time = now
        return bound

    def within(self, known: JudgedBy) -> Constraint:
        """The rule for this moment: it knows the action's schema and the time of the cycle."""
        bound = copy(self)
        bound._known = known
        return bound

    def __call__(self, *given: Any) -> Any:
        """The verdict on a candidate whose arguments are valid; of a function, the rule of it."""
        if len(given) == 1:
            return self.of(given[0])
        return self._judge(*given)

    def _judge(self, candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
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
        whole = {"state": state, "after": projection, "candidate": candidate}
        now = self._time or (self._known.now if self._known else None)
        values = {**arguments, **whole, "arguments": arguments, "now": now}
        for name, parameter in self._wanted.items():
            if name == "now" and now is None:
                return Verdict.forbid("the time of this cycle is not known")
            if name not in values and parameter.default is inspect.Parameter.empty:
                if not self._has(name):
                    reason = f"the rule asks for {name!r}, which is no argument of the action"
                    return Verdict.forbid(reason)
                values[name] = None
        answer = self._function(**{name: values[name] for name in self._wanted if name in values})
        if answer is None:
            return Verdict.allow()
        if isinstance(answer, str) and answer:  # pyright: ignore[reportUnnecessaryIsInstance] - user code
            return Verdict.forbid(answer)
        return Verdict.forbid(
            f"the rule returned {answer!r:.80}; return None to allow, or a reason to forbid"
        )

    def _has(self, name: str) -> bool:
        if self._time is not None:
            return True
        return self._known is not None and name in self._known.spec.parameters.get("properties", {})


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
        fresh: Forbid while the outcome of any earlier action is unknown, whatever its arguments.

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
    made = ActionRule(actions, name or "", where=where, after=after, reason=reason, fresh=fresh)
    # Without a predicate it is no rule before it has a function.
    return made if name and (where or after or fresh) else made.of


@runtime_checkable
class WrittenRule(Protocol):
    """A constraint that is written in words, as in a policy file."""

    @property
    def text(self) -> str:
        """The rule as a sentence."""
        ...

    @property
    def actions(self) -> Sequence[str]:
        """The actions that it names, patterns left out."""
        ...

    @property
    def counted(self) -> Mapping[str, CountedFor]:
        """The actions whose calls it counts, by patterns of their names."""
        ...

    @property
    def approval(self) -> ApprovalRule | None:
        """Says which actions somebody has to be asked about; None if it asks for no approval."""
        ...

    def check_arguments(
        self, actions: Mapping[str, Mapping[str, Any]], state: Collection[str] | None = None
    ) -> None:
        """Checks that actions and state have what it reads, as far as they are known.

        Args:
            actions: JSON Schemas of the arguments, by the action's name.
            state: The names of the state's fields; None if they are not known.

        Raises:
            ConfigurationError: They do not.
        """
        ...


def written_rule(rule: object) -> WrittenRule | None:
    """The rule as one that is written in words, also under another name; None if it is none."""
    own = getattr(rule, "rule", rule)
    return own if isinstance(own, WrittenRule) else None


def _names_answers(rule: Constraint) -> bool | None:
    """Whether a rule of ours names the agent's answer; None for one that may judge it unnamed."""
    own = written_rule(rule) or rule
    actions: Collection[str] | None = getattr(own, "actions", None)
    if actions is None or not type(own).__module__.startswith(_OURS):
        return None
    return RESPOND.name in actions


# ---- Constraints in force: named, pinned per cycle, asked in order, failing closed ----


REASON = 500
"""Characters of a constraint's reason that are kept."""
NAME = 100
"""Characters of a constraint's name that are kept."""
UNCHANGED_ARGUMENTS = Verdict.forbid(
    "a rule or the projection changed the arguments that it was to judge", "arguments_unchanged"
)
"""Nobody may change what the others are to judge."""


@dataclass(frozen=True, slots=True)
class NamedConstraint:
    """A constraint and the name by which logs and errors call it."""

    name: str
    judge: Constraint

    def passes(self, action: str) -> bool:
        """Whether it is known without asking that the constraint is not about this action."""
        return isinstance(self.judge, ActionRule) and action not in self.judge.actions

    def verdict(
        self,
        candidate: Candidate,
        state: Any,
        projection: Any | None,
        seconds: float | None = RULE_SECONDS,
        known: JudgedBy | None = None,
    ) -> Verdict:
        """The constraint's verdict under its name. One that raises, or is late, forbids.

        It judges by what is `known` as well, where it asks for that.
        """
        try:
            verdict = limited(
                lambda: bound(self.judge, known)(candidate, state, projection), seconds
            )
        except TooSlowError as error:
            verdict = Verdict.forbid(f"the rule itself was too slow: {error}")
        except (Exception, CancelledError) as error:  # what cannot be applied lets nothing through
            verdict = Verdict.forbid(
                f"the rule itself raised {type(error).__name__}: {_text_of(str, error)}"
            )
        if not isinstance(verdict, Verdict):  # pyright: ignore[reportUnnecessaryIsInstance] - user code
            if inspect.iscoroutine(verdict):
                verdict.close()  # it is never awaited, and need not warn of that as well
            verdict = Verdict.forbid(
                f"the rule returned {_text_of(repr, verdict)} instead of a Verdict; "
                "return Verdict.allow() or Verdict.forbid(reason) from a plain function"
            )
        reason = ellipsis(well_formed(verdict.reason), REASON)
        return verdict.model_copy(update={"constraint": self.name, "reason": reason})


def _text_of(how: Callable[[object], str], value: object) -> str:
    """`str` or `repr` of what a rule gave, cut; a note where that raises, too."""
    try:
        return ellipsis(how(value), REASON // 2)
    except Exception:  # a rule's own classes may raise anything
        return f"a {type(value).__name__} that cannot be shown"


def named(constraint: Constraint, name: str | None = None) -> NamedConstraint:
    """The constraint under `name`, its own `name`, or its `__name__`."""
    own = name or getattr(constraint, "name", None) or getattr(constraint, "__name__", None)
    name = well_formed(in_a_line(str(own or type(constraint).__name__)))
    return NamedConstraint(ellipsis(name, NAME), constraint)


def _copies(state: Any) -> Iterator[Any]:
    """One copy after another of a state; the state itself where nothing can be done to it.

    Whether that is so is found out once.
    """
    first = own_copy(state)
    yield first
    while True:
        yield state if first is state else own_copy(state)


class ConstraintSet:
    """The agent's constraints. A change takes effect from the next cycle (invariant 7).

    Args:
        constraints: In force from the start, asked in this order.
        sources: Contexts and modules that bring constraints of their own; asked each cycle.
        seconds: Time that a rule may take; None for any.
        developer: Gives the developer's texts, whose values `only_trusted` lets pass.
        approvals: Says before which actions somebody is asked; None if nobody ever is.
    """

    def __init__(
        self,
        constraints: Iterable[Constraint] = (),
        sources: Sequence[ConstraintSource] = (),
        *,
        seconds: float | None = RULE_SECONDS,
        developer: Callable[[], Sequence[str]] = tuple,
        approvals: AsksFirst | None = None,
    ) -> None:
        self.seconds = seconds
        self._approvals = approvals
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
        calls = (constraint, getattr(constraint, "__call__", None))  # noqa: B004 - it is looked into
        if any(inspect.iscoroutinefunction(c) or inspect.isasyncgenfunction(c) for c in calls):
            problem = f"The constraint {new.name!r} is async, and rules are plain functions"
            raise ConfigurationError(f"{problem}: write `def`, and judge by the context's state.")
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
        """Takes a constraint out of force from the next cycle on for good, whatever its source."""
        self._left_out.add(name)

    def names(self) -> tuple[str, ...]:
        """Names of the constraints added here; those of sources are not among them."""
        return tuple(constraint.name for constraint in self._own)

    def own(self) -> tuple[NamedConstraint, ...]:
        """The constraints that were given or added, in order; what sources bring is not in it."""
        return tuple(self._own)

    def counted(self) -> dict[str, CountedFor]:
        """The actions whose calls the rules in force count, by patterns, and for what."""
        counted: dict[str, CountedFor] = {}
        for one in self._pinned:
            rule = written_rule(one.judge)
            for name, how in () if rule is None else rule.counted.items():
                counted[name] = how if counted.get(name, "goal") == "goal" else counted[name]
        return counted

    def counts(self, action: str) -> bool:
        """Whether a rule in force counts the calls of an action, so that none runs beside it."""
        return bool(counted_for(action, self.counted()))

    def texts(self) -> dict[str, str]:
        """What the rules in force say, by their names, where they are written in words."""
        written = ((one.name, written_rule(one.judge)) for one in self._pinned)
        return {name: rule.text for name, rule in written if rule is not None}

    def about_answers(self) -> tuple[str, ...]:
        """Names of the rules in force that name the agent's answer."""
        return tuple(one.name for one in self._pinned if _names_answers(one.judge))

    def may_judge_answers(self) -> bool:
        """Whether a rule in force may forbid an answer: any but ours that name other actions."""
        return any(_names_answers(one.judge) is not False for one in self._pinned)

    def without_action(self, actions: Container[str]) -> Iterator[tuple[str, str]]:
        """The rules in force that judge an action which is none of these, and its name."""
        for one in self._pinned:
            rule = one.judge if isinstance(one.judge, ActionRule) else written_rule(one.judge)
            judged = () if rule is None else rule.actions
            yield from ((one.name, action) for action in judged if action not in actions)

    def pin(self) -> tuple[str, ...]:
        """Fixes what is in force for this cycle and returns the names in order."""
        brought = [named(rule) for source in self._sources for rule in source.constraints()]
        known = (*self._own, *brought)
        self._pinned = tuple(rule for rule in known if rule.name not in self._left_out)
        return self.pinned

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
        now: datetime | None = None,
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
            now: The time by which it is decided; without it, a rule that asks for it forbids.
        """
        known: JudgedBy | None = None
        if memory is not None and spec is not None:
            known = JudgedBy(memory, spec, self._developer, self._approvals, now)
        verdicts: list[Verdict] = []
        states, projections = _copies(state), _copies(projection)
        for constraint in self._pinned:
            if constraint.passes(candidate.action):
                verdicts.append(Verdict(allowed=True, constraint=constraint.name))
                continue
            own = candidate.model_copy(deep=True)
            copies = (own, next(states), next(projections))
            verdicts.append(constraint.verdict(*copies, self.seconds, known))
            if own.arguments != candidate.arguments:
                verdicts.append(UNCHANGED_ARGUMENTS)
            if not verdicts[-1].allowed:
                break
        return tuple(verdicts)
