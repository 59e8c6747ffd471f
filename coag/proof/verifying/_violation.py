"""What checking a trace finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from coag.schema import HtmlTable, html_card

_NAMED = 10
"""Lines that a folded sentence names."""


class Rule(StrEnum):
    """What a trace must hold; the names are stable."""

    LINE = "line"
    """Every line is a record of the format, written as the format says."""
    NUMBER = "number"
    """Lines are numbered from 0 without gaps."""
    CHAIN = "chain"
    """Every line's hash follows from the line before it and from its own body."""
    SEAL = "seal"
    """The trace ends where `run.json` says that it ended, or where the caller noted it."""
    PAGE = "page"
    """Every page for reading is what the trace gives, and there are no others."""
    PHASE = "phase"
    """Six outcomes a cycle, in order, in cycles that count up by one."""
    TURN = "turn"
    """Turns begin and end in order; cycles are within turns, and answers are the turn's."""
    SNAPSHOT = "snapshot"
    """Every cycle begins with a snapshot, and other ones stand only where they may."""
    MEMORY = "memory"
    """Percepts and outcomes alone lead to the working memory that a snapshot tells of."""
    PERCEPT = "percept"
    """What an execution brought is perceived once and unchanged; nothing returns from nowhere."""
    CANDIDATE = "candidate"
    """Every candidate is evaluated, on the arguments that were proposed."""
    CONSTRAINT = "constraint"
    """Every constraint that was pinned has judged, and none that was not."""
    SELECTION = "selection"
    """A survivor is selected, by whom it says."""
    INTENT = "intent"
    """What acts has one intent, and it was selected in this cycle."""
    RECEIPT = "receipt"
    """Every intent has one receipt, right after it."""
    EXECUTION = "execution"
    """An execution's outcome tells what its intents and receipts tell."""
    PROCEDURE = "procedure"
    """Procedures are pinned, count up by one and come into force in the next cycle."""
    WRITTEN = "written"
    """What was written to memory was written by an action of this run and cycle."""
    PERSON = "person"
    """Where people are kept apart, nothing of one is recalled or written for another."""
    MODEL_CALL = "model_call"
    """Models are asked by the phase that was going on."""
    USAGE = "usage"
    """An outcome's usage is that of its model calls."""
    HOOK = "hook"
    """The domain's hook computes the state change that was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One way in which a trace is not what a run can have left."""

    rule: Rule
    seq: int | None
    """Number of the record, from 0; None for the run as a whole."""
    cycle: int | None
    """The cycle that was going on; None where that is not known."""
    text: str
    """What is wrong, with which values, as a sentence."""

    def __str__(self) -> str:
        return _placed(self.seq, self.cycle, f"{self.rule}: {self.text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What limits a check, or what a reader should know, and is no violation."""

    seq: int | None
    """Number of the record, from 0; None for the run as a whole."""
    text: str

    def __str__(self) -> str:
        return _placed(self.seq, None, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Everything that a check of one trace found."""

    records: int
    """Records that were read."""
    head: str
    """The hash of the last line, which stands for the whole trace: note it down elsewhere, and
    a later check can be given it. Empty where the trace is no chain."""
    violations: tuple[Violation, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def holds(self) -> bool:
        """True if nothing is violated."""
        return not self.violations

    def _repr_html_(self) -> str:
        count = len(self.violations)
        title = "The trace holds" if self.holds else f"The trace does not hold: {count} violations"
        rows = [(one.rule, one.seq, one.cycle, one.text) for one in self.violations]
        return html_card(
            title,
            facts=[("records", self.records), ("head", self.head or None)],
            lines=map(str, self.remarks),
            table=HtmlTable(columns=("rule", "record", "cycle", "what is wrong"), rows=rows),
        )


def folded(violations: Iterable[Violation]) -> list[str]:
    """Sentences for a person: of lines that do not fit their hashes the first, and how many more.

    Whoever changes a word throughout a trace leaves such a line in every place.
    """
    told: list[str] = []
    first: int | None = None
    others: list[int] = []
    for violation in violations:
        if violation.rule is Rule.CHAIN and violation.seq is not None:
            if first is not None:
                others.append(violation.seq + 1)
                continue
            first = len(told)
        told.append(str(violation))
    if first is not None and others:
        lines = ", ".join(map(str, others[:_NAMED]))
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        told[first] += f" The same holds for {len(others)} further lines: {lines}{more}."
    return told


def _placed(seq: int | None, cycle: int | None, text: str) -> str:
    where = [] if seq is None else [f"line {seq + 1}"]
    where += [f"cycle {cycle}"] if cycle else []
    return f"{', '.join(where)}: {text}" if where else text
