from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from threading import Event, get_ident
from typing import Any, cast

import pytest
from pydantic import BaseModel

from coag.compat.components import RuleUnderName
from coag.context import WorkingMemory
from coag.cycle import ConstraintSet, JudgedBy
from coag.cycle.constraints import named
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import ActionSpec, Candidate, Constraint, Verdict

CANDIDATE = Candidate(id="c1", action="move", arguments={})


def never(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    return Verdict.forbid("not today")


def always(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    return Verdict.allow()


class Careful:
    name = "careful"

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        return Verdict.forbid("too fast") if candidate.action == "run" else Verdict.allow()


def judged(*rules: Any, **given: Any) -> tuple[Verdict, ...]:
    """What these rules say of the candidate."""
    constraints = ConstraintSet(rules, **given)
    constraints.pin()
    return constraints.judge(CANDIDATE, None, None)


def test_verdicts_carry_the_constraints_name_and_end_with_the_first_that_forbids() -> None:
    verdicts = judged(always, never, Careful())
    assert [(v.constraint, v.allowed) for v in verdicts] == [("always", True), ("never", False)]


def test_a_constraint_is_in_force_and_out_of_it_from_the_next_cycle() -> None:
    rules = ConstraintSet()
    assert rules.pin() == ()
    rules.add(never)
    assert rules.judge(CANDIDATE, None, None) == ()
    assert rules.pin() == ("never",)
    rules.remove("never")
    assert not rules.judge(CANDIDATE, None, None)[0].allowed
    rules.pin()
    assert not rules.judge(CANDIDATE, None, None)


def of_one(candidate: Candidate) -> Verdict:
    return Verdict.allow()


def of_four(candidate: Candidate, state: Any, projection: Any | None, more: Any) -> Verdict:
    return Verdict.allow()


@pytest.mark.parametrize("rule", [of_one, of_four, Careful, "careful"])
def test_what_cannot_be_called_as_a_constraint_is_refused_when_it_is_added(rule: Any) -> None:
    rules = ConstraintSet()
    with pytest.raises(
        ConfigurationError, match=r"is no constraint. Write a function \(candidate, state, proj"
    ):
        rules.add(rule)
    assert rules.names() == ()


def test_a_constraint_may_have_defaults_take_anything_or_be_half_applied() -> None:
    def limited(most: int, candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        return Verdict.allow()

    def anything(*given: Any, **options: Any) -> Verdict:
        return Verdict.allow()

    def lenient(candidate: Candidate, state: Any = None, projection: Any = None) -> Verdict:
        return Verdict.allow()

    verdicts = judged(partial(limited, 3), anything, lenient)
    assert [verdict.allowed for verdict in verdicts] == [True] * 3


def test_two_constraints_cannot_have_one_name() -> None:
    with pytest.raises(ConfigurationError, match="'never' is in force already"):
        ConstraintSet([never, never])


def test_removing_what_is_not_there_lists_what_is() -> None:
    with pytest.raises(UnknownNameError, match=r"'x'.*Known: always, careful"):
        ConstraintSet([Careful(), always]).remove("x")


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (KeyError("battery"), "the rule itself raised KeyError: 'battery'"),
        (MuteError(), "raised MuteError: a MuteError that cannot be shown"),
        (asyncio.CancelledError(), "raised CancelledError"),
        (None, "returned True instead of a Verdict"),
    ],
)
def test_a_constraint_that_gives_no_verdict_forbids(
    problem: BaseException | None, why: str
) -> None:
    def broken(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        if problem is not None:
            raise problem
        return True  # pyright: ignore[reportReturnType] - the point of the test

    (verdict,) = judged(broken)
    assert not verdict.allowed
    assert why in verdict.reason


async def awaited(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    return Verdict.allow()


class Awaited:
    async def __call__(self, candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        return Verdict.allow()


@pytest.mark.parametrize("rule", [awaited, partial(awaited), Awaited()])
def test_an_async_constraint_is_refused_when_it_is_added(rule: object) -> None:
    with pytest.raises(ConfigurationError, match="async, and rules are plain functions"):
        ConstraintSet([cast("Constraint", rule)])


def test_an_async_constraint_that_a_source_brings_forbids_without_a_warning() -> None:
    class Source:
        def constraints(self) -> Sequence[Constraint]:
            return [cast("Constraint", awaited)]

    (verdict,) = judged(sources=[Source()])
    assert not verdict.allowed
    assert "from a plain function" in verdict.reason


class Purse(BaseModel):
    spent: int = 9
    bought: list[str] = []


def careless(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    for purse in (state, projection):
        purse.spent = 0
        purse.bought.append("air")
    return Verdict.allow()


def honest(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    return Verdict.allow() if state == projection == Purse() else Verdict.forbid("it was changed")


def test_what_one_constraint_changes_in_state_or_projection_no_other_one_sees() -> None:
    rules = ConstraintSet([careless, honest])
    rules.pin()
    state, projection = Purse(), Purse()
    assert all(verdict.allowed for verdict in rules.judge(CANDIDATE, state, projection))
    assert state == projection == Purse()


def test_a_constraint_that_changes_the_arguments_forbids_before_the_next_one_judges() -> None:
    def cheapens(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        assert candidate.arguments is not None
        candidate.arguments["price"] = 0
        return Verdict.allow()

    wanted = CANDIDATE.model_copy(update={"arguments": {"price": 500}})
    rules = ConstraintSet([cheapens, always])
    rules.pin()
    verdicts = rules.judge(wanted, None, None)
    assert [v.constraint for v in verdicts] == ["cheapens", "arguments_unchanged"]
    assert wanted.arguments == {"price": 500}


def on_and_on(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    while True:
        pass


def catching(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    while True:
        try:
            sum(range(1_000))
        except Exception:
            continue


def waiting(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    Event().wait(0.2)
    return Verdict.allow()


@pytest.mark.parametrize("rule", [on_and_on, catching, waiting])
def test_a_rule_that_takes_too_long_forbids_and_the_next_candidate_is_judged(
    rule: Constraint,
) -> None:
    (verdict,) = judged(rule, seconds=0.1)
    assert (verdict.allowed, verdict.constraint) == (False, named(rule).name)
    assert "the rule itself was too slow: it took" in verdict.reason
    assert judged(always, seconds=60)[0].allowed


def test_a_rule_without_a_limit_may_take_its_time() -> None:
    assert judged(waiting, seconds=None)[0].allowed


def test_a_rule_within_a_rule_is_stopped_with_it() -> None:
    inner = ConstraintSet([on_and_on], seconds=60)
    inner.pin()

    def outer(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        return inner.judge(candidate, state, projection)[0]

    (verdict,) = judged(outer, seconds=0.1)
    assert "too slow" in verdict.reason


class WatchedClock:
    """A clock that stands still, and knows how often another thread has looked at it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.looks = 0
        self._mine = get_ident()

    def monotonic(self) -> float:
        self.looks += get_ident() != self._mine
        return self.seconds

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def test_a_rule_is_not_interrupted_within_a_tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = WatchedClock()
    monkeypatch.setattr("coag.cycle.time_limit.time", clock)
    tracer: dict[str, Any] = {"__name__": "coverage.collector", "clock": clock, "marks": []}
    code = """
def lock_data():
    marks.append("taken")
    clock.seconds = 1.0
    seen = clock.looks
    while clock.looks < seen + 2:
        pass
    marks.append("released")
"""
    exec(compile(code, "collector.py", "exec"), tracer)

    def rule(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        tracer["lock_data"]()
        return on_and_on(candidate, state, projection)

    assert "too slow" in judged(rule, seconds=0.05)[0].reason
    assert tracer["marks"] == ["taken", "released"]


class Meddling:
    """Changes what it is given to judge by, and waits."""

    def __init__(self, wait: Constraint = always) -> None:
        self._wait = wait

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        return Verdict.forbid("it does not know what was said")

    def within(self, known: JudgedBy) -> Constraint:
        known.memory.perceptual_state["door"] = "open"
        known.spec.parameters["properties"] = {}
        return self._wait if self._wait(CANDIDATE, None, None).allowed else self


@pytest.mark.parametrize("rule", [Meddling(), RuleUnderName("meddling", Meddling())])
def test_a_rule_that_changes_what_it_judges_by_changes_nothing(rule: Constraint) -> None:
    memory = WorkingMemory(activity="a", perceptual_state={"door": "shut"})
    spec = ActionSpec(name="move", description="Moves.", parameters={"type": "object"})
    rules = ConstraintSet([rule])
    rules.pin()
    assert rules.judge(CANDIDATE, None, None, memory, spec)[0].allowed
    assert memory.perceptual_state == {"door": "shut"}
    assert spec.parameters == {"type": "object"}


def test_a_rule_that_takes_too_long_to_look_at_what_was_said_forbids() -> None:
    rules = ConstraintSet([Meddling(on_and_on)], seconds=0.1)
    rules.pin()
    spec = ActionSpec(name="move", description="Moves.", parameters={})
    (verdict,) = rules.judge(CANDIDATE, None, None, WorkingMemory(activity="a"), spec)
    assert "too slow" in verdict.reason
