"""Violations, and the book that they are written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Protocol, cast

from coag.schema import HtmlTable, Value, html_card
from coag.tracing import REDACTED

# ---- What checking a trace finds ----


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


# ---- Where a check has come to, and what it has found so far ----


FOUND_KEPT = 1_000
"""Violations that are listed at most, and remarks: a hostile trace could have millions."""
_SHOWN = 120
"""Characters of a value in a sentence."""


@dataclass(slots=True)
class Book:
    """Collects what the rules find."""

    seq: int | None = None
    """Number of the record at hand."""
    cycle: int | None = None
    """The cycle it belongs to."""
    violations: list[Violation] = field(default_factory=list[Violation])
    remarks: list[Remark] = field(default_factory=list[Remark])
    unlisted: int = 0
    """Violations beyond those that are kept."""

    def violate(self, rule: Rule, text: str) -> None:
        """Notes that a rule is violated by the record at hand."""
        if len(self.violations) >= FOUND_KEPT:
            self.unlisted += 1
            return
        self.violations.append(Violation(rule=rule, seq=self.seq, cycle=self.cycle, text=text))

    def remark(self, text: str) -> None:
        """Notes what is no violation."""
        if len(self.remarks) < FOUND_KEPT:
            self.remarks.append(Remark(seq=self.seq, text=text))


Taking = Mapping[str, Callable[[Any], None]]
"""What to do with a record, by its `record`."""


class Checker(Protocol):
    """A few rules that belong together, and what they must remember."""

    @property
    def takes(self) -> Taking:
        """The records that these rules look at."""
        ...

    def end(self, *, finished: bool) -> None:
        """The trace ends here.

        Args:
            finished: Whether its run has ended, so that nothing may be left open.
        """
        ...


def shown(value: object) -> str:
    """A value as a sentence names it, cut."""
    text = repr(value.value if isinstance(value, Enum) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def same(left: object, right: object) -> bool:
    """Whether two values are equal as far as can be told: redacted ones cannot be compared."""
    return left == right or _redacted(left) or _redacted(right)


def same_json(left: object, right: object) -> bool:
    """As `same`, for JSON values part by part: a redacted text hides no other part."""
    return left == right or difference(left, right) is None


def difference(left: object, right: object, path: str = "") -> tuple[str, object, object] | None:
    """The first place at which two JSON values differ, with both values there.

    Redacted texts are taken for equal to anything.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        ours, theirs = cast("dict[str, object]", left), cast("dict[str, object]", right)
        return _first([(f".{key}", ours.get(key), theirs.get(key)) for key in ours | theirs], path)
    if isinstance(left, list) and isinstance(right, list):
        one, other = cast("list[object]", left), cast("list[object]", right)
        if len(one) == len(other):
            return _first(
                [(f"[{n}]", *pair) for n, pair in enumerate(zip(one, other, strict=True))], path
            )
        return path.lstrip("."), one, other
    return _unlike(cast("object", left), right, path)


def _unlike(left: object, right: object, path: str) -> tuple[str, object, object] | None:
    equal = left == right and isinstance(left, bool) is isinstance(right, bool)
    return None if equal or _hidden(left) or _hidden(right) else (path.lstrip("."), left, right)


def _first(pairs: list[tuple[str, object, object]], path: str) -> tuple[str, object, object] | None:
    for step, left, right in pairs:
        if (found := difference(left, right, path + step)) is not None:
            return found
    return None


def _hidden(value: object) -> bool:
    return isinstance(value, str) and REDACTED in value


def _redacted(value: object) -> bool:
    return REDACTED in (value if isinstance(value, str) else repr(value))


def fields_but(value: Value, left_out: frozenset[str]) -> dict[str, Any]:
    """A value's fields without some."""
    return {name: held for name, held in value.__dict__.items() if name not in left_out}
