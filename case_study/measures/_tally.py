"""What is counted of an episode; measures are made from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from pydantic import Field

from coag.schema import Value

from ._figures import Figures

NOT_ATTRIBUTABLE = "not attributable"
"""Stands for a failed run of whose first failure the trace cannot tell the cause."""
NO_FAILURE_FOUND = "no failure found"
"""Stands for a failed run in whose trace a diagnosis finds no failure."""


CountsT = TypeVar("CountsT", bound=Value)


def _added(one: CountsT, other: CountsT) -> CountsT:
    """The counts of both, added up field by field."""
    fields = type(one).model_fields
    return type(one)(**{name: getattr(one, name) + getattr(other, name) for name in fields})


class Steps(Value):
    """How actions stood to the job, by the world's own log."""

    judged: int = 0
    """Actions taken while there was work that could be done."""
    on_plan: int = 0
    """Those of them that bring the work nearer to its end."""
    by_chance: float = 0.0
    """How many of them would, if each were drawn by chance."""

    def __add__(self, other: Steps) -> Steps:
        return _added(self, other)


class Statements(Value):
    """What the model's texts state as present facts, against the world's truth."""

    judged: int = 0
    """Statements that can be judged."""
    true: int = 0
    """Those that were so."""
    repeated: int = 0
    """False ones that were stated before already, with an answer of the world in between."""

    def __add__(self, other: Statements) -> Statements:
        return _added(self, other)


class Deeds(Value):
    """What became of external actions, by the trace."""

    acted: int = 0
    """External actions with a known result; looking does not count."""
    failed: int = 0
    """Those that failed and would have failed again."""
    false_affordances: int = 0
    """Actions on what does not exist, or does not do what it promises (a first trial is free)."""
    repeated_mistakes: int = 0
    """Actions that had failed before, in the same place."""
    setbacks: int = 0
    """Times that an action failed after one that had worked, and that something followed."""
    unadapted: int = 0
    """Setbacks after which no action worked any more."""
    adaptation_actions: int = 0
    """Actions from setbacks to the next that worked, or to the end."""
    adaptation_seconds: float = 0.0
    """The same in seconds."""

    def __add__(self, other: Deeds) -> Deeds:
        added = _added(self, other)
        return added.model_copy(update={"adaptation_seconds": round(added.adaptation_seconds, 6)})


class Blame(Value):
    """What a diagnosis of the trace says of failures."""

    failures: int = 0
    """Failures that it finds, and failed runs in which it finds none."""
    attributed: int = 0
    """Those with exactly one cause."""
    failed_runs: int = 0
    """Runs that did not succeed."""
    causes: Mapping[str, int] = Field(default_factory=dict[str, int])
    """Failed runs by the cause of their first failure."""

    def __add__(self, other: Blame) -> Blame:
        return Blame(
            failures=self.failures + other.failures,
            attributed=self.attributed + other.attributed,
            failed_runs=self.failed_runs + other.failed_runs,
            causes=dict(Counter(self.causes) + Counter(other.causes)),
        )


class Calls(Value):
    """What model calls took, beyond the tokens that figures hold."""

    seconds: float = 0.0
    """Time that the model took."""
    later_prompt_tokens: int = 0
    """Prompt tokens of every call of a cycle but its first."""
    later_cached_tokens: int = 0
    """Those of them that came from the server's cache."""

    def __add__(self, other: Calls) -> Calls:
        added = _added(self, other)
        return added.model_copy(update={"seconds": round(added.seconds, 6)})


class Truths(Value):
    """What the world counted itself."""

    worlds: int = 0
    """Episodes whose world is known."""
    coverage: float = 0.0
    """Sum of the shares of the grid that were clean."""
    energy: int = 0
    """Charge that actions took."""
    cleans: int = 0
    """Dirty cells that became clean."""
    remaining: int = 0
    """Cells of the task that were left dirty."""
    bumps: int = 0
    """Blocked moves."""
    violations: int = 0
    """Cleanings of forbidden cells."""
    stranded: int = 0
    """Episodes in which the battery ran empty away from the charger."""
    critical_cleans: int = 0
    """Cleanings that cost the way to the charger."""
    needless_cleans: int = 0
    """Cleanings of what was clean, or already being cleaned."""

    def __add__(self, other: Truths) -> Truths:
        return _added(self, other)


class Tally(Value):
    """What is counted of one episode, or of several of a case; it can be added up and kept."""

    figures: Figures = Field(default_factory=Figures)
    """Actions, calls and tokens."""
    steps: Steps = Field(default_factory=Steps)
    """How actions stood to the job."""
    statements: Statements = Field(default_factory=Statements)
    """What was stated."""
    deeds: Deeds = Field(default_factory=Deeds)
    """What became of actions."""
    blame: Blame = Field(default_factory=Blame)
    """What failures came from."""
    calls: Calls = Field(default_factory=Calls)
    """What model calls took."""
    truths: Truths = Field(default_factory=Truths)
    """What the world counted."""
    detours: tuple[int, ...] = ()
    """For each episode, the actions beyond the fewest possible; all that it had for a failed
    one."""

    def __add__(self, other: Tally) -> Tally:
        return _added(self, other)
