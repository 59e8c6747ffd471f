"""What a check of a trace finds: rules, violations and remarks; and what rules are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from itertools import product
from math import inf
from typing import Any, NamedTuple

from coag._util.html_cards import HtmlTable, html_card
from coag._util.json_diff import differences as json_differences
from coag._util.json_diff import same_value
from coag._util.secrets import REDACTED
from coag._util.text import ellipsis
from coag.schema import PerceptKind, TraceRecord, Value
from coag.tracing import cycle_of

_NAMED = 10
"""Lines that a folded sentence names."""
LISTED = 1_000
"""Violations, and remarks, that are listed at most: a hostile trace could have millions."""
_SHOWN = 120
"""Characters of a value in a sentence."""

HOOKED = (
    PerceptKind.TOOL_RETURN,
    PerceptKind.PROPERTY_CHANGE,
    PerceptKind.SIGNAL,
    PerceptKind.UNKNOWN_OUTCOME,
    PerceptKind.SETTLED,
)
"""Kinds that a domain's hook reads; no other one changes the state."""


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
    """Every cycle begins with a snapshot, and other ones occur only where they may."""
    MEMORY = "memory"
    """Percepts and outcomes alone lead to the working memory that a snapshot holds."""
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
    """An execution's outcome says what its intents and receipts say."""
    PROCEDURE = "procedure"
    """Procedures are pinned, count up by one and come into force in the next cycle."""
    WRITTEN = "written"
    """What was written to memory was written by an action of this run and cycle."""
    PERSON = "person"
    """Where people are kept apart, nothing of one is recalled or written for another."""
    MODEL_CALL = "model_call"
    """Models are asked by the phase that was at work."""
    USAGE = "usage"
    """An outcome's usage is that of its model calls."""
    HOOK = "hook"
    """The domain's hook computes the state change that was recorded."""

    def says(self, text: str, seq: int | None = None) -> RuleFinding:
        """A violation of this rule, by a sentence; at the record at hand, if no other is named."""
        return RuleFinding(self, text, seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One way in which a trace is not what a run can have left."""

    rule: Rule
    seq: int | None
    """Number of the record, from 0; None for the run as a whole."""
    cycle: int | None
    """The cycle at work; None where that is not known."""
    text: str
    """What is wrong, with which values, as a sentence."""

    def __str__(self) -> str:
        return _placed(self.seq, self.cycle, f"{self.rule}: {self.text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRemark:
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
    """The hash of the last line, which covers the whole trace: note it down elsewhere, and a later
    check can be given it. Empty where the trace has no hashes."""
    violations: tuple[Violation, ...] = ()
    remarks: tuple[TraceRemark, ...] = ()

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

    A word that is changed throughout a trace leaves such a line in every place.
    """
    every = list(violations)
    chain = [one for one in every if one.rule is Rule.CHAIN and one.seq is not None]
    others = [(one.seq or 0) + 1 for one in chain[1:]]
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    lines = ", ".join(map(str, others[:_NAMED]))
    rest = f" The same holds for {len(others)} further lines: {lines}{more}." if others else ""
    return [f"{one}{rest}" if one in chain else str(one) for one in every if one not in chain[1:]]


def _placed(seq: int | None, cycle: int | None, text: str) -> str:
    where = [] if seq is None else [f"line {seq + 1}"]
    where += [f"cycle {cycle}"] if cycle else []
    return f"{', '.join(where)}: {text}" if where else text


# ---- The frame of the rules ----


class RuleFinding(NamedTuple):
    """What a rule finds."""

    rule: Rule | None
    """The rule that is violated; None for a remark."""
    text: str
    seq: int | None = None
    """Number of the record; None for the one at hand."""


Findings = Iterable[RuleFinding]


def remark(text: str) -> RuleFinding:
    """What a reader should know, and is no violation."""
    return RuleFinding(None, text)


class Checker:
    """A few rules that belong together, and what they must remember.

    Each method `on_RECORD` is given the records of that tag, in order, and each `on_PHASE` the
    outcomes of that phase.
    """

    log: FindingLog
    """Who gives it the records; knows the place of the one at hand."""

    def end(self, *, finished: bool) -> Findings:
        """What is wrong at the end of the trace, whose run may have finished."""
        return ()


class FindingLog:
    """Gives records to the rules, each before those behind it, and collects what these find."""

    def __init__(self, checkers: Iterable[Checker] = ()) -> None:
        self.seq: int | None = None
        """Number of the record at hand."""
        self.cycle: int | None = None
        """The cycle it belongs to."""
        self._violations: list[Violation] = []
        self._remarks: list[TraceRemark] = []
        self._unlisted = 0
        self._checkers = tuple(checkers)
        for checker in self._checkers:
            checker.log = self

    def take(self, record: TraceRecord) -> None:
        """Gives the record at hand to the rules that look at its sort."""
        named = cycle_of(record)
        self.cycle = self.cycle if named is None else named
        tags: tuple[str, ...] = (record.record,)
        if record.record == "outcome":
            tags = ("outcome", record.phase.value)
        for checker, tag in product(self._checkers, tags):
            look: Callable[[Any], Findings | None] | None = getattr(checker, f"on_{tag}", None)
            if look is not None:
                self.add(look(record) or ())

    def end(self, *, finished: bool) -> None:
        """The trace ends here."""
        self.seq = None
        for checker in self._checkers:
            self.add(checker.end(finished=finished))

    def add(self, findings: Findings) -> None:
        """Lists what was found."""
        for rule, text, seq in findings:
            at = self.seq if seq is None else seq
            if len(self._remarks if rule is None else self._violations) >= LISTED:
                self._unlisted += rule is not None
            elif rule is None:
                self._remarks.append(TraceRemark(seq=at, text=text))
            else:
                self._violations.append(Violation(rule=rule, seq=at, cycle=self.cycle, text=text))

    def examination(self, records: int, head: str) -> Examination:
        """Everything that was found, in the order of the records."""
        if self._unlisted:
            self.seq = None
            more = f"{self._unlisted} more violations than the first {LISTED} were found."
            self.add([remark(more)])
        by_place = sorted(self._violations, key=lambda it: inf if it.seq is None else it.seq)
        return Examination(
            records=records,
            head=head,
            violations=tuple(by_place),
            remarks=tuple(self._remarks),
        )


# ---- Comparing values, of which some may be redacted ----


def shown(value: object) -> str:
    """A value as a sentence names it, cut."""
    return ellipsis(repr(value.value if isinstance(value, Enum) else value), _SHOWN)


def same(left: object, right: object) -> bool:
    """Whether two values are equal as far as can be known: redacted ones cannot be compared."""
    return left == right or any(
        REDACTED in (one if isinstance(one, str) else repr(one)) for one in (left, right)
    )


def same_json(left: object, right: object) -> bool:
    """As `same`, for JSON values part by part: a redacted text hides no other part."""
    return left == right or next(differences(left, right), None) is None


def differences(left: object, right: object) -> Iterator[tuple[str, object, object]]:
    """The places at which two JSON values differ, with both values there.

    Redacted texts count as equal to anything, and a missing key as null.
    """
    for one in json_differences(left, right, same=_same_or_redacted, missing=None):
        yield one.path, one.before, one.after


def _same_or_redacted(left: object, right: object) -> bool:
    hidden = any(isinstance(it, str) and REDACTED in it for it in (left, right))
    return hidden or same_value(left, right)


def fields_but(value: Value, left_out: frozenset[str]) -> dict[str, Any]:
    """A value's fields without some."""
    return {name: held for name, held in value.__dict__.items() if name not in left_out}
