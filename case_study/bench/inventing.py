"""What a scripted policy makes up where a tool or a value is missing, and what it does then."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from case_study.bench.scripts import MOST_INSISTING, Step

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
        """The next call, or what it says; told whether the last call was made."""
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
