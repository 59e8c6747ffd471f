"""What stands for a state: an icon and a word, so that nothing is told by colour alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coag.inspector.views import (
    CycleRow,
    CycleView,
    Finding,
    FindingSort,
    PromptPart,
    RunCard,
    RunState,
    TaskOutcome,
)
from coag.schema import PHASES, ExecutionOutcome, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How a state is shown."""

    name: str
    """Part of a class: `mark-NAME`."""
    icon: str
    """Name of a symbol in `parts/icons.html`."""
    label: str
    """What it says in words."""


_CYCLES = {
    "done": Mark(name="good", icon="check", label="done"),
    "failed": Mark(name="bad", icon="cross", label="failed"),
    "refused": Mark(name="warn", icon="ban", label="refused"),
    "none": Mark(name="warn", icon="impasse", label="impasse"),
    "unknown": Mark(name="warn", icon="ask", label="outcome unknown"),
    "cancelled": Mark(name="warn", icon="ban", label="cancelled"),
}
_DONE_WRONG = Mark(name="warn", icon="cause", label="done")
"""What was done worked, and something is wrong with it."""
_UNDER_WAY = Mark(name="idle", icon="dots", label="not finished")
_UNREADABLE = Mark(name="bad", icon="alert", label="unreadable")
_OUTCOMES = {
    TaskOutcome.SUCCESS: Mark(name="good", icon="check", label="success"),
    TaskOutcome.FAILURE: Mark(name="bad", icon="cross", label="failure"),
}


def cycle_mark(row: CycleRow) -> Mark:
    """How the cycle ended."""
    if row.impasse:
        return _CYCLES["none"]
    if not row.status:
        return _UNDER_WAY
    if row.status == "done" and any(one.sort is FindingSort.CAUSE for one in row.findings):
        return _DONE_WRONG
    return _CYCLES.get(row.status) or Mark(name="idle", icon="dots", label=row.status)


def run_mark(card: RunCard) -> Mark:
    """What the run came to."""
    if card.info is None:
        return _UNREADABLE
    if card.outcome in _OUTCOMES:
        return _OUTCOMES[card.outcome]
    if card.state is RunState.OPEN:
        return Mark(name="idle", icon="dots", label="open")
    return Mark(name="idle", icon="dash", label="not measured")


def phase_states(row: CycleRow) -> list[tuple[str, bool]]:
    """The six phases and which of them the cycle came through."""
    return [(phase.value, phase in row.phases) for phase in PHASES]


def part_class(part: PromptPart) -> str:
    """The class that gives a piece of a prompt its colour."""
    if part.kind.value == "data":
        return f"part-data-{part.trust.value}" if part.trust else "part-data"
    return f"part-{part.kind.value}"


def part_label(part: PromptPart) -> str:
    """What a piece of a prompt is, in words."""
    return f"{part.kind.value} · {part.trust.value}" if part.trust else part.kind.value


def returned(view: CycleView) -> frozenset[str]:
    """What the actions of a cycle returned, as Execution shows it."""
    execution = [phase.outcome for phase in view.phases if phase.phase is Phase.EXECUTION]
    done = [each for one in execution if isinstance(one, ExecutionOutcome) for each in one.executed]
    receipts = [receipt.content for _, receipt in view.effects if receipt is not None]
    shown = receipts or [each.result for each in done]
    return frozenset(text for text in shown if text)


def names(findings: Sequence[Finding], record: str) -> bool:
    """Whether one of the findings names a record of long-term memory by its id."""
    told = f"ecord {record[:8]}"
    return any(
        told in text for one in findings for text in (one.text, *(says for _, says in one.evidence))
    )
