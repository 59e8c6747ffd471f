"""What a report tells: numbers and sentences, before they become a page, JSON or Markdown."""

from __future__ import annotations

from typing import Literal

from case_study.statistics import Comparison, Interval
from coag.schema import Value

from ._learning_values import Learning, Recalled

FORMAT = "case-study-summary/1"
"""What the JSON calls itself; the number rises when a field changes its meaning."""


class Rate(Value):
    """How many of some trials succeeded, with a 95 % Wilson interval."""

    successes: int
    n: int
    """Trials that are evidence: broken ones are not among them."""
    share: float | None = None
    """Successes among the trials, 0 to 1; None if there is none."""
    interval: Interval | None = None
    """Where the rate lies; None without trials."""


class DecidedBy(Value):
    """Who decided what was done: shares of the decisions of all trials, adding up to 1."""

    decisions: int = 0
    """How many there were; 0 where none was noted or no model was asked, and then no share is
    told."""
    model: float | None = None
    """The model chose."""
    rank: float | None = None
    """Code ranked the candidates by their scores."""
    only_survivor: float | None = None
    """One candidate was left after hard checks and constraints, so nobody chose."""


class SuccessRow(Value):
    """How often one contender succeeded."""

    contender: str
    overall: Rate
    """Over all scenarios."""
    by_scenario: dict[str, Rate]
    """By scenario; those that it played only."""
    broken: int = 0
    """Trials that are no evidence: the model or the world failed."""
    decided_by: DecidedBy


class Compared(Value):
    """One contender against a reference on the same scenarios and seeds."""

    contender: str
    reference: str
    scenario: str | None = None
    """Where they were compared; None over all scenarios."""
    result: Comparison
    """What the pairs say: `other` is the contender, a difference above 0 speaks for it."""
    decided_by: DecidedBy
    """Of the contender, over all its trials."""


class Gap(Value):
    """The mean difference of a measure between two contenders, on the same scenarios and seeds."""

    measure: str
    """Name of the measure, as in docs/measures.md."""
    reference: str
    """The contender whose values are taken off."""
    pairs: int
    """Pairs in which both have a value."""
    mean: float | None = None
    """In the measure's unit; None without pairs."""
    interval: Interval | None = None
    """Its 95 % interval by paired bootstrap; None where there are too few pairs."""


class CostRow(Value):
    """What one contender used, on average over its trials, and for each success."""

    contender: str
    n: int
    successes: int
    actions: float | None = None
    calls: float | None = None
    """Requests to the model a trial."""
    tokens: float | None = None
    """Prompt and completion tokens a trial."""
    cached: float | None = None
    """Prompt tokens taken from the server's cache, as a share of all prompt tokens."""
    later_cached: float | None = None
    """The same of what was sent after a cycle's first call; the mean over the trials."""
    seconds: float | None = None
    """Seconds a trial."""
    calls_per_success: float | None = None
    """Requests of all trials, failed ones too, for each success; None without a success."""
    tokens_per_success: float | None = None
    """The same in tokens."""
    seconds_per_success: float | None = None
    """The same in seconds."""
    decided_by: DecidedBy


class Reliability(Value):
    """What can be relied on when a scenario is played k times; means over the scenarios."""

    contender: str
    k: int
    at_least_once: float
    """pass@k: the chance that at least one of k seeds succeeds."""
    every_time: float
    """Worst of k: the chance that all of k seeds succeed."""
    scenarios: int
    """Scenarios with at least k trials."""


class CausesRow(Value):
    """Where the failed trials of one contender came from, by part of the architecture."""

    contender: str
    failed: int
    causes: dict[str, int]
    """Failed runs with each cause, most frequent first; a trial may have several runs."""
    untold: int
    """Failed trials for which no cause was found."""
    decided_by: DecidedBy


class AdaptationCurve(Value):
    """How soon one contender acted well again after an action had failed."""

    contender: str
    of: int
    """Trials in which an action failed and another followed."""
    adapted: int
    """Those in which an action worked again each time."""
    points: tuple[tuple[float, float], ...]
    """Actions since the failed one, on average in a trial, and the share of trials adapted."""
    median: float | None = None
    """Actions by which half of the trials had adapted; None if fewer did."""
    seconds: float | None = None
    """Mean seconds to it, of the trials that adapted."""
    decided_by: DecidedBy


class BudgetCurve(Value):
    """How often one contender had succeeded at an equal number of tokens."""

    contender: str
    n: int
    points: tuple[tuple[float, float], ...]
    """Tokens a trial, and the share of trials that had succeeded with no more."""
    at: dict[str, float]
    """The share at each budget of the table, by the budget."""
    decided_by: DecidedBy


class Contribution(Value):
    """What one phase or safeguard adds: with it against without it."""

    part: str
    """What was taken away or added, in words."""
    compared: Compared
    """Success of the contender that has it against one that has it not."""
    tokens: Gap
    """Tokens a trial with it less those without it."""
    finding: str
    """The same as a sentence."""
    decided_by_without: DecidedBy
    """Of the contender without it."""


class MeasureRow(Value):
    """The means of one contender's measures over the trials that have them."""

    contender: str
    means: dict[str, float]
    """By measure, as in docs/measures.md; those without a value are left out."""
    counts: dict[str, int]
    """Trials that each mean is over."""
    gaps: tuple[Gap, ...] = ()
    """Against the reference, for the measures of behaviour."""
    decided_by: DecidedBy


class TrialLine(Value):
    """One trial that is pointed out."""

    scenario: str
    contender: str
    model: str
    seed: int
    problem: str
    attempts: int
    causes: dict[str, int]
    reference_won: bool = False
    """Whether the panel's reference succeeded on the same instance."""
    case: str | None = None
    """Folder of its runs, relative to the assessment; None if they were not kept."""


class Panel(Value):
    """What was compared like with like: one domain, one model, the same seeds."""

    domain: str
    model: str
    scripted: bool
    """Whether the model is a function and no language model."""
    proves: str
    """What the numbers of such a model prove and what not."""
    scenarios: tuple[str, ...]
    contenders: tuple[str, ...]
    trials: int
    seeds: int
    """Different seeds."""
    reference: str | None
    """What the others are compared with; None if it was not played."""
    success: tuple[SuccessRow, ...]
    compared: tuple[Compared, ...]
    """Over all scenarios; Holm's correction is over these."""
    compared_by_scenario: tuple[Compared, ...]
    """By scenario; Holm's correction is over these."""
    contributions: tuple[Contribution, ...]
    """Ablations; Holm's correction is over these."""
    costs: tuple[CostRow, ...]
    budgets: tuple[BudgetCurve, ...]
    """Success at equal tokens, out of these trials; empty where no model was asked."""
    reliability: tuple[Reliability, ...]
    adaptation: tuple[AdaptationCurve, ...]
    causes: tuple[CausesRow, ...]
    measures: tuple[MeasureRow, ...]
    learning: tuple[Learning, ...] = ()
    """Sequences of episodes: a memory that lasts against one that is emptied."""
    recalled: tuple[Recalled, ...] = ()
    """Sequences of episodes: what was noted and recalled."""
    findings: tuple[str, ...]
    """What is to be said first, as sentences; losses before gains."""


class Facts(Value):
    """Under what conditions an assessment was made."""

    command: str
    started_at: str
    machine: str
    versions: dict[str, str]
    place: str
    episodes: int | None = None
    """Episodes that were played in a row; None for no sequences."""
    mixed: bool = False
    """Whether it was gone on with by other code or on another machine."""
    token_budget: int | None = None
    """Tokens after which every trial ended; None if they were not limited."""
    planned: int
    """Trials that were asked for."""
    played: int
    """Trials there are."""


class AbstractPart(Value):
    """One part of the abstract."""

    title: str
    """The model that it is about, or what else."""
    sentences: tuple[str, ...]
    """Losses before gains."""


class Summary(Value):
    """Everything that a report of an assessment tells."""

    format: Literal["case-study-summary/1"] = FORMAT
    facts: Facts
    abstract: tuple[AbstractPart, ...]
    """Written from the numbers: what is missing, then real models before scripted ones."""
    panels: tuple[Panel, ...]
    broken: tuple[TrialLine, ...]
    """Trials that are no evidence, each with what failed."""
    failures: tuple[TrialLine, ...]
    """Failed trials whose runs were kept, up to a bound."""
    failures_left_out: int = 0
    """Failed trials that are not listed."""
