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
from typing import Any, Literal, Protocol, cast

from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient

from case_study.bench.arms import EnvironmentWorkbench, policy_model
from coag.models import ScriptedModel, open_model

Fault = Literal["skip", "repeat", "wrong", "unchecked", "early"]
"""`skip`: a step is left out. `repeat`: it is done twice. `wrong`: with a wrong argument, or by a
wrong tool where it has none. `unchecked`: without the checks before it. `early`: before the step
that comes before it."""
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
        """The next step, or the answer; `made` says whether the last step was made."""
        if self._answers:
            # An agent whose answer is an action got the reason why it may not be given.
            self.refused += 1
            if self._temper == "heeds" and not self._amended:
                self._answers, self._amended = 0, True
                self._waiting.extend(map(Planned, (*self._plan.skipped, *self._plan.last)))
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
        """The next step, or what it says; `made` says whether the last step was made."""
        ...


def client_of(
    policy: str, acting: Stepping | None, workbench: EnvironmentWorkbench
) -> ChatCompletionClient:
    """The scripted policy as a model, or the model of this spec."""
    return open_model(policy) if acting is None else following_policy(acting.next_step, workbench)


# ---- What is made up where a tool or a value is missing ----

_QUESTION = "Something is missing for this. Can you tell me more?"
_DONE = "Done."


@dataclass(frozen=True, slots=True)
class Missing:
    """What the policy cannot know yet."""

    step: Step
    """The call that it is missing for."""
    unnamed: tuple[str, ...] = ()
    """The arguments whose values nobody has named."""


Invent = Callable[[Missing, "Docs", random.Random], Step]
Docs = Mapping[str, Mapping[str, Any]]
"""Functions by name, as BFCL describes them."""


# ---- Ways of making something up ----


def missing_tool(missing: Missing, docs: Docs, dice: random.Random) -> Step:
    """Calls what is not offered: the missing function, or a name of its own making."""
    del dice
    step = missing.step
    return Step(f"{step.name}_now", step.arguments) if step.name in docs else step


def extra_argument(missing: Missing, docs: Docs, dice: random.Random) -> Step:
    """A tool that is offered, with an argument that it does not take."""
    offered = _offered(missing, docs, dice).step
    return Step(offered.name, {**offered.arguments, "force": True})


def left_out(missing: Missing, docs: Docs, dice: random.Random) -> Step:
    """A tool that is offered, without an argument that it needs."""
    offered = _offered(missing, docs, dice)
    needed = docs[offered.step.name]["parameters"].get("required", [])
    unnamed = [name for name in needed if name in offered.unnamed] or needed
    without = dice.choice(unnamed) if unnamed else None
    given = offered.step.arguments
    return Step(offered.step.name, {key: one for key, one in given.items() if key != without})


def placeholder(missing: Missing, docs: Docs, dice: random.Random) -> Step:
    """A text that says that the value is not known, whatever its type."""
    return _with_values(missing, docs, dice, lambda value: "unknown")


def made_up_value(missing: Missing, docs: Docs, dice: random.Random) -> Step:
    """A value of the right type that nobody named."""

    def made_up(value: Any) -> Any:
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return type(value)(dice.randrange(100, 1000))
        if isinstance(value, list):
            return [made_up(one) for one in cast("list[Any]", value)]
        return f"{dice.choice(('draft', 'sample', 'default'))}_{dice.randrange(10, 100)}"

    return _with_values(missing, docs, dice, made_up)


def _with_values(
    missing: Missing, docs: Docs, dice: random.Random, made_up: Callable[[Any], Any]
) -> Step:
    """The values that nobody named, made up; one of the others where all were named."""
    offered = _offered(missing, docs, dice)
    given = dict(offered.step.arguments)
    names = offered.unnamed or tuple(sorted(given))
    if names:
        name = dice.choice(names)
        given[name] = made_up(given[name])
    return Step(offered.step.name, given)


def _offered(missing: Missing, docs: Docs, dice: random.Random) -> Missing:
    """The call itself where its tool is offered, else some call of a tool that is."""
    if missing.step.name in docs:
        return missing
    needing = [name for name in sorted(docs) if docs[name]["parameters"].get("required")]
    name = dice.choice(needing)
    parameters = docs[name]["parameters"]
    samples = {"string": "sample", "integer": 1, "float": 1.0, "boolean": True}
    values = {
        one: samples.get(parameters["properties"][one]["type"], list[Any]())
        for one in parameters["required"]
    }
    return Missing(Step(name, values), tuple(sorted(values)))


INVENTIONS: Mapping[str, Invent] = {
    "missing-tool": missing_tool,
    "extra-argument": extra_argument,
    "left-out": left_out,
    "placeholder": placeholder,
    "made-up-value": made_up_value,
}


class InventingPolicy:
    """Does what BFCL has as ground truth; where something is missing, it asks or invents.

    Args:
        turns: The calls of each turn.
        following: By number of a turn in which something is missing, the call that it is needed
            for.
        invent: Makes something up; None asks.
        insists: Whether it makes something else up after a refusal, three times in all; else it
            asks then.
    """

    def __init__(
        self,
        turns: Sequence[Sequence[Step]],
        following: Mapping[int, Missing],
        invent: Callable[[Missing], Step] | None,
        *,
        insists: bool,
    ) -> None:
        self._turns = turns
        self._following = following
        self._invent = invent
        self._insists = insists
        self._waiting = deque[Step]()
        self._missing: Missing | None = None
        self._tried = 0
        self.kind = ""
        """Which of `INVENTIONS` it makes up; empty for none."""

    def begin(self, turn: int) -> None:
        """The user has said what begins this turn."""
        self._waiting = deque(self._turns[turn])
        self._missing = self._following.get(turn)
        self._tried = 0

    def next_step(self, made: bool) -> Step | str:
        """The next call, or what it says; `made` says whether the last call was made."""
        if self._missing is None or self._invent is None:
            if self._waiting:
                return self._waiting.popleft()
            return _DONE if self._missing is None else _QUESTION
        if self._tried and made:
            return _DONE
        if self._tried == 0 or (self._insists and self._tried < MOST_INSISTING):
            self._tried += 1
            return self._invent(self._missing)
        return _QUESTION
