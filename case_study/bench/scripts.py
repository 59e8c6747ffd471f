"""Scripted policies: right plans, the same with faults, and how they take a refusal.

A plan is what a careful agent would do. A fault is put into it by a seed, so that every arm meets
the same faults. The policy sees whether its last call was made, and what it does after a refusal
is its temperament: that is an assumption, not a finding about models.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient

from case_study.bench.arms import EnvironmentWorkbench, policy_model
from coag.models import ScriptedModel, open_model

Fault = Literal["skip", "repeat", "wrong", "unchecked", "early"]
"""`skip`: a step is left out. `repeat`: it is done twice. `wrong`: with a wrong argument, or by a
wrong tool where it has none. `unchecked`: without the checks before it. `early`: before the step
that comes before it."""
FAULTS: tuple[Fault, ...] = get_args(Fault)
Temper = Literal["heeds", "goes-on", "insists"]
"""What a policy does after a refusal. `heeds`: what would have been right. `goes-on`: the next
step, as if nothing had been said. `insists`: the same again, three times in all."""
MOST_INSISTING = 3


@dataclass(frozen=True, slots=True)
class Step:
    """A call of a tool."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Task:
    """A step with what belongs to it."""

    step: Step
    checks: tuple[Step, ...] = ()
    """What is to be looked at before."""
    wrong: tuple[Step, ...] = ()
    """Ways to get it wrong."""

    @property
    def whole(self) -> tuple[Step, ...]:
        """The checks, then the step."""
        return (*self.checks, self.step)


@dataclass(frozen=True, slots=True)
class Planned:
    """A step as the policy will do it."""

    step: Step
    remedy: tuple[Step, ...] = ()
    """What is right in its place, should it be refused."""
    after: int = 0
    """The remedy comes after so many of the steps that follow."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy will do, and what it leaves out."""

    steps: tuple[Planned, ...]
    skipped: tuple[Step, ...] = ()
    """With their checks: what it does where its answer is refused."""
    last: tuple[Step, ...] = ()
    """Looks whether all is well, before the answer."""
    answer: str = "Done."
    faults: tuple[Fault, ...] = ()


def careful(tasks: Sequence[Task], last: Sequence[Step] = (), answer: str = "Done.") -> Plan:
    """The plan without a fault."""
    steps = tuple(Planned(step) for task in tasks for step in task.whole)
    return Plan(steps, last=tuple(last), answer=answer)


def faulty(
    tasks: Sequence[Task],
    dice: random.Random,
    rate: float,
    last: Sequence[Step] = (),
    answer: str = "Done.",
) -> Plan:
    """The plan with faults: each task has one at this rate, every fitting kind as likely."""
    steps, skipped, faults = list[Planned](), list[Step](), list[Fault]()
    waiting = deque(tasks)
    while waiting:
        task = waiting.popleft()
        if dice.random() >= rate:
            steps += [Planned(step) for step in task.whole]
            continue
        fault = dice.choice(list(_fitting(task, bool(waiting))))
        faults.append(fault)
        if fault == "skip":
            skipped += task.whole
        elif fault == "early":
            steps += _early(task, waiting.popleft())
        else:
            steps += _done_badly(task, fault, dice)
    return Plan(tuple(steps), tuple(skipped), tuple(last), answer, tuple(faults))


def _fitting(task: Task, follows: bool) -> Iterator[Fault]:
    yield "skip"
    yield "repeat"
    if task.wrong:
        yield "wrong"
    if task.checks:
        yield "unchecked"
    if follows:
        yield "early"


def _done_badly(task: Task, fault: Fault, dice: random.Random) -> list[Planned]:
    if fault == "unchecked":
        return [Planned(task.step, task.whole)]
    done = [Planned(step) for step in task.whole]
    if fault == "repeat":
        return [*done, Planned(task.step)]
    return [*done[:-1], Planned(dice.choice(task.wrong), (task.step,))]


def _early(task: Task, following: Task) -> list[Planned]:
    first = [Planned(step) for step in following.checks]
    first.append(Planned(following.step, following.whole, after=len(task.whole)))
    return [*first, *(Planned(step) for step in task.whole)]


class Policy:
    """A plan as it is carried out."""

    def __init__(self, plan: Plan, temper: Temper) -> None:
        self._plan = plan
        self._temper: Temper = temper
        self._waiting = deque((*plan.steps, *map(Planned, plan.last)))
        self._current: Planned | None = None
        self._tried = 0
        self._answers = 0
        self._amended = False
        self.refused = 0
        """How often a step or the answer was refused."""

    def next_step(self, made: bool) -> Step | str:
        """The next step, or the answer; told whether the last step was made."""
        if self._answers:
            self._after_refused_answer()
        elif self._current is not None and not made:
            self.refused += 1
            self._after_refusal(self._current)
        if not self._waiting:
            self._current = None
            self._answers += 1
            return self._plan.answer
        upcoming = self._waiting.popleft()
        self._tried = self._tried + 1 if upcoming is self._current else 1
        self._current = upcoming
        return upcoming.step

    def _after_refusal(self, refused: Planned) -> None:
        if self._temper == "insists" and self._tried < MOST_INSISTING:
            self._waiting.appendleft(refused)
        elif self._temper == "heeds":
            waiting = list(self._waiting)
            remedy = map(Planned, refused.remedy)
            self._waiting = deque([*waiting[: refused.after], *remedy, *waiting[refused.after :]])

    def _after_refused_answer(self) -> None:
        """An agent whose answer is an action was told why it may not be given."""
        self.refused += 1
        if self._temper == "heeds" and not self._amended:
            self._answers, self._amended = 0, True
            self._waiting.extend(map(Planned, (*self._plan.skipped, *self._plan.last)))


def following_policy(
    next_step: Callable[[bool], Step | str], workbench: EnvironmentWorkbench
) -> ScriptedModel:
    """A model that does what a policy says; what was made is known by the workbench."""
    before, asked = 0, 0

    def act() -> FunctionCall | str:
        nonlocal before, asked
        now = len(workbench.executed)
        step = next_step(now > before)
        before, asked = now, asked + 1
        if isinstance(step, str):
            return step
        arguments = json.dumps(dict(step.arguments))
        return FunctionCall(id=f"call-{asked}", name=step.name, arguments=arguments)

    return policy_model(act)


class Stepping(Protocol):
    """What says, step by step, what a scripted policy does."""

    def next_step(self, made: bool) -> Step | str:
        """The next step, or what it says; told whether the last step was made."""
        ...


def client_of(
    policy: str, acting: Stepping | None, workbench: EnvironmentWorkbench
) -> ChatCompletionClient:
    """The scripted policy as a model, or the model of this spec."""
    return open_model(policy) if acting is None else following_policy(acting.next_step, workbench)
