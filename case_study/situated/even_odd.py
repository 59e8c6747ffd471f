"""Even/Odd (thesis, 8.2): agents that do not know each other share a counter."""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

from coag.situated import (
    EnhancedTool,
    ScaledClock,
    ToolClock,
    Workspace,
    observable,
    operation,
    signal,
)

from .truth import GroundTruth

Parity = Literal["ODD", "EVEN"]
BOUND = 5
"""The agents stop when the counter exceeds it, that is, at 6."""

_GOAL = (
    "You are the {parity} agent. Find the shared counter and increment it, but only while its "
    f"value is {{parity}}. Go on until it exceeds {BOUND}."
)
ODD_GOAL = _GOAL.format(parity="ODD")
EVEN_GOAL = _GOAL.format(parity="EVEN")


class Increment(NamedTuple):
    """One increment: whose it was, and the value before it."""

    by: Parity
    before: int

    @property
    def wrong(self) -> bool:
        """Whether it was not this agent's turn, or the end was reached before."""
        return (self.before % 2 == 1) is not (self.by == "ODD") or self.before > BOUND


class SharedCounter(EnhancedTool):
    """A counter that is shared by all who can reach it, beginning at 1."""

    id = "shared_counter"
    category = "coordination"
    compare_and_set = True
    protocol = """\
1. **Look first:** the counter may have been changed by others since you looked. An increment
   applies to the value that it has then.
2. **Compare and set:** give `if_value`, e.g. `{"value": 3}`, to increment only if the value is
   still the one that you decided on. A refusal is no fault: read the value again.
3. **Wait, do not ask again and again:** every change is signalled by `counter.change`."""

    value = observable(int, 1, description="The number that is counted up.")
    change = signal("counter.change", "The value has changed.", payload={"value": int})

    def __init__(self) -> None:
        super().__init__()
        self.increments: list[Increment] = []
        """All increments, for the truth of a run."""

    @operation(
        effects="`value` grows by 1; `counter.change` is emitted",
        behavior="Immediate.",
        completed_by="counter.change",
    )
    def increment(self, by: Parity) -> int:
        """Adds 1 to the value and returns the new one.

        Args:
            by: The agent that increments.
        """
        self.increments.append(Increment(by, self.value))
        self.value += 1
        self.change.emit(value=self.value)
        return self.value


def make_even_odd(*, speed: float = 1.0, clock: ToolClock | None = None) -> Workspace:
    """A workspace with the shared counter."""
    workspace = Workspace(clock=clock or ScaledClock(speed))
    workspace.add(SharedCounter())
    return workspace


def even_odd_truth(workspace: Workspace) -> GroundTruth:
    """What happened to the counter in a workspace of `make_even_odd`."""
    counter = cast("SharedCounter", workspace.tool(SharedCounter.id))
    wrong = [one for one in counter.increments if one.wrong]
    return GroundTruth(
        success=counter.value == BOUND + 1 and not wrong,
        wrong_increments=len(wrong),
        reason=f"{wrong[0].by} incremented {wrong[0].before}." if wrong else "",
    )
