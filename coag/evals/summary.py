"""From the trials of an assessment to its numbers and to what they say, losses before gains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from coag._util.text import counted

from .measures import TRACE_MEASURES, Measure
from .statistics import (
    FEWEST_PAIRS,
    Interval,
    PairedComparison,
    compare,
    paired_bootstrap,
    pass_at_k,
    wilson,
    with_holm,
    worst_of_k,
)
from .trials import NO_MODEL, Assessment, Trial
from .wording import (
    listed,
    number,
    p_words,
    percent,
    points,
    points_span,
    span,
    times,
)

if TYPE_CHECKING:
    import pandas

Pair = tuple[str, int]
"""A scenario and a seed: the instance that several contenders met."""
_KS = (3, 5, 10)
"""How often a scenario is thought to be played, for what can be relied on."""
_RESAMPLES = 999
_LISTED_FAILURES = 120
DECIDERS = ("model", "rank", "only_survivor")


@dataclass(frozen=True, slots=True)
class Ablation:
    """A part, a contender that has it, and one that differs in that alone."""

    part: str
    having: str
    lacking: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportProfile:
    """What a report knows of a domain beyond its trials."""

    references: Sequence[str] = ()
    """Whom the others are compared with: the first of these that was played, else the first."""
    claimed: Sequence[str] = ()
    """Contenders whose success is claimed; all but the reference if empty."""
    bounds: Sequence[str] = ()
    """Contenders that see what the others cannot, e.g. an oracle: not rivals."""
    frontier: Sequence[str] = ()
    """Contenders of the picture of success against tokens, which has a file of its own."""
    ablations: Sequence[Ablation] = ()
    measures: Mapping[str, Measure] = field(default_factory=lambda: TRACE_MEASURES)
    behaviour: Sequence[str] = ("repeated_mistakes", "failures_attributed")
    """Measures that are compared with the reference's, pair by pair."""
    arms: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Of contenders with two arms: the arm without, and the arm with a memory that lasts."""
    learning_measures: Mapping[str, str] = field(default_factory=dict[str, str])
    """Measures of single episodes that are compared, with what tables call them."""
    recall_measures: Mapping[str, str] = field(default_factory=dict[str, str])
    """Measures of single episodes about recall, with what tables call them."""
    label: Callable[[str], str] = str
    """What a scenario is called."""
    describe: Callable[[str], str] = lambda contender: ""
    """What a contender is, in a sentence."""
    is_scripted: Callable[[str], bool] = lambda model: model.startswith("scripted:")
    write_run_page: Callable[[Any, Any], None] | None = None
    """Writes a page of some runs to a file, for failed trials that a report links."""


class Rate:
    """How many of some trials succeeded, with a 95 % Wilson interval."""

    def __init__(self, successes: Iterable[bool]) -> None:
        outcomes = list(successes)
        self.successes, self.n = sum(outcomes), len(outcomes)
        self.share = self.successes / self.n if self.n else None
        self.interval: Interval | None = wilson(self.successes, self.n) if self.n else None

    def __str__(self) -> str:
        if self.share is None:
            return "no trial"
        return (
            f"{self.successes:,} of {self.n:,} ({percent(self.share)}, "
            f"95 % interval {span(self.interval)} %)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The mean difference of a measure between two contenders on the same instances."""

    pairs: int
    mean: float | None = None
    interval: Interval | None = None


def data_frame(trials: Assessment | Iterable[Trial]) -> pandas.DataFrame:
    """Trials as a data frame: one row a trial, with its measures as columns.

    `decided_by.model` and so on count decisions. `success` is None for a broken trial.
    """
    import pandas

    rows = [
        {
            "scenario": trial.job.scenario,
            "contender": trial.job.contender,
            "model": trial.job.model,
            "seed": trial.job.seed,
            "outcome": trial.outcome,
            "success": trial.success if trial.counts else None,
            "problem": trial.problem,
            "attempts": trial.attempts,
            "took": trial.took,
            "case": trial.case,
            **{f"decided_by.{who}": trial.decided_by.get(who, 0) for who in DECIDERS},
            **trial.measures,
        }
        for trial in (trials.trials if isinstance(trials, Assessment) else trials)
    ]
    return pandas.DataFrame(rows)


class Panel:
    """What is compared like with like: the trials of one model, and of those that ask none."""

    def __init__(self, assessment: Assessment, model: str, profile: ReportProfile) -> None:
        plan = assessment.plan
        trials = assessment.of_model(model)
        self.domain, self.model, self.profile = plan.domain, model, profile
        self.scripted = profile.is_scripted(model)
        self.trials = [trial for trial in trials if trial.counts]
        self.broken = Counter(trial.job.contender for trial in trials if not trial.counts)
        played = {trial.job.contender for trial in trials}
        self.contenders = [name for name in plan.contenders if name in played]
        met = {trial.job.scenario for trial in self.trials}
        self.scenarios = [name for name in plan.scenarios if name in met]
        self.seeds = len({trial.job.seed for trial in self.trials})
        self._of: dict[str, list[Trial]] = {}
        for trial in self.trials:
            self._of.setdefault(trial.job.contender, []).append(trial)
        first = next((name for name in profile.references if name in self.contenders), None)
        self.reference = first or next(iter(self.contenders), None)

    # -- values by instance --

    def values(self, contender: str, measure: str) -> dict[Pair, float]:
        """A measure of a contender by instance, where it has a value."""
        found: dict[Pair, float] = {}
        for trial in self.of(contender):
            value = trial.success if measure == "success" else trial.measures.get(measure)
            if value is not None:
                found[trial.job.scenario, trial.job.seed] = float(value)
        return dict(sorted(found.items()))

    def successes(self, contender: str, scenario: str | None = None) -> dict[Pair, bool]:
        """Whether a contender succeeded, by instance of one scenario or of all."""
        return {
            pair: value > 0
            for pair, value in self.values(contender, "success").items()
            if scenario in (None, pair[0])
        }

    def of(self, contender: str) -> list[Trial]:
        """The trials of a contender that are evidence."""
        return self._of.get(contender, [])

    def total(self, contender: str, measure: str) -> float:
        """The sum of a measure over all trials."""
        return sum(self.values(contender, measure).values())

    def mean(self, contender: str, measure: str) -> float | None:
        """The mean of a measure over the trials that have a value."""
        values = self.values(contender, measure)
        return fmean(values.values()) if values else None

    # -- success --

    @cached_property
    def rates(self) -> dict[str, Rate]:
        """How often each contender succeeded, over all scenarios."""
        return {name: Rate(self.successes(name).values()) for name in self.contenders}

    def rate(self, contender: str, scenario: str) -> Rate:
        """How often a contender succeeded in a scenario."""
        return Rate(self.successes(contender, scenario).values())

    def decided_by(self, contender: str) -> dict[str, float]:
        """Who decided: shares that add up to 1; empty where no model was asked."""
        trials = [trial for trial in self.of(contender) if trial.job.model != NO_MODEL]
        counts = {who: sum(one.decided_by.get(who, 0) for one in trials) for who in DECIDERS}
        total = sum(counts.values())
        return {who: count / total for who, count in counts.items()} if total else {}

    def _success(self, first: str, second: str, scenario: str | None = None) -> PairedComparison:
        return compare(self.successes(first, scenario), self.successes(second, scenario))

    @cached_property
    def compared(self) -> dict[str, PairedComparison]:
        """Each contender against the reference, adjusted for all of these tests."""
        if self.reference is None:
            return {}
        others = [name for name in self.contenders if name != self.reference]
        return with_holm({name: self._success(self.reference, name) for name in others})

    @cached_property
    def compared_by_scenario(self) -> dict[tuple[str, str], PairedComparison]:
        """Each contender against the reference by scenario, adjusted for all of these tests."""
        reference = self.reference
        if reference is None:
            return {}
        table = {
            (name, scenario): self._success(reference, name, scenario)
            for name in self.contenders
            if name != reference
            for scenario in self.scenarios
        }
        return with_holm({key: one for key, one in table.items() if one.pairs})

    @cached_property
    def contributions(self) -> list[tuple[Ablation, PairedComparison, Gap]]:
        """What each part adds in successes and in tokens, adjusted for all of these tests."""
        played = set(self.contenders)
        parts = [one for one in self.profile.ablations if {one.having, one.lacking} <= played]
        table = with_holm({one: self._success(one.lacking, one.having) for one in parts})
        return [
            (one, result, self.gap("tokens", one.having, one.lacking))
            for one, result in table.items()
        ]

    def mean_interval(self, contender: str, measure: str) -> Interval | None:
        """The 95 % interval of a mean over trials, by the normal distribution; None of too few."""
        values = list(self.values(contender, measure).values())
        if len(values) < FEWEST_PAIRS:
            return None
        middle, reach = fmean(values), 1.96 * stdev(values) / len(values) ** 0.5
        return Interval(low=middle - reach, high=middle + reach)

    def gap(self, measure: str, contender: str, reference: str) -> Gap:
        """The mean difference of a measure, over the instances for which both have a value."""
        first, second = self.values(reference, measure), self.values(contender, measure)
        differences = [second[pair] - first[pair] for pair in first if pair in second]
        if not differences:
            return Gap(pairs=0)
        enough = len(differences) >= FEWEST_PAIRS
        interval = paired_bootstrap(differences, resamples=_RESAMPLES) if enough else None
        return Gap(pairs=len(differences), mean=fmean(differences), interval=interval)

    # -- costs, reliability, causes --

    def price(self, contender: str, measure: str) -> float | None:
        """What each success cost: the sum over all trials by the number of successes."""
        won = self.rates[contender].successes
        return self.total(contender, measure) / won if won else None

    def reliability(self, contender: str, k: int) -> tuple[float, float] | None:
        """Chance that at least one, and that all of k trials succeed; means over scenarios."""
        rates = [self.rate(contender, scenario) for scenario in self.scenarios]
        enough = [(one.successes, one.n) for one in rates if one.n >= k]
        if not enough:
            return None
        return (
            fmean(pass_at_k(won, n, k) for won, n in enough),
            fmean(worst_of_k(won, n, k) for won, n in enough),
        )

    @cached_property
    def ks(self) -> list[int]:
        """Numbers of trials for which reliability can be computed."""
        return [k for k in _KS if any(self.reliability(name, k) for name in self.contenders)]

    def causes(self, contender: str) -> Counter[str]:
        """Failed runs of a contender by cause."""
        causes: Counter[str] = Counter()
        for trial in self.of(contender):
            causes.update({} if trial.success else trial.causes)
        return causes

    def failed(self, contender: str) -> list[Trial]:
        """The failed trials of a contender."""
        return [trial for trial in self.of(contender) if not trial.success]

    # -- what it says --

    @property
    def evidence_note(self) -> str:
        """What the numbers of such a model show and what not."""
        if self.model == NO_MODEL:
            return "No model is varied here: each contender acts by its own code or model."
        if self.scripted:
            return (
                "This model is scripted: a function, not a language model. Its numbers show what "
                "the code around a fallible model does with faults of one kind. They do not show "
                "how often a language model has such faults, nor how well it reasons; its seconds "
                "say nothing of the time a model takes."
            )
        return (
            "A language model. Its numbers hold for this model, with these prompts and scenarios; "
            "they say nothing of other models."
        )

    @cached_property
    def claimed(self) -> list[str]:
        """The contenders whose success is claimed and that were played."""
        names = self.profile.claimed or [n for n in self.contenders if n != self.reference]
        return [name for name in names if name in self.rates and self.rates[name].n]

    @cached_property
    def findings(self) -> list[str]:
        """What is to be said first, as sentences."""
        if not self.claimed:
            return [f"{name} succeeded in {rate}." for name, rate in self.rates.items() if rate.n]
        return [*self._losses(), *self._gains(), *self._parts()]

    def brief_findings(self) -> Iterator[str]:
        """A sentence on losses and one on successes."""
        for name in self.claimed:
            yield from self._worse_scenarios(name)
        names = [*self.claimed, *([self.reference] if self.reference else [])]
        shares = [
            f"{name} {percent(rate.share)} of {rate.n:,}"
            for name in dict.fromkeys(names)
            if (rate := self.rates[name]).n
        ]
        if shares:
            yield f"Succeeded: {listed(shares)}."

    def _losses(self) -> Iterator[str]:
        for name in self.claimed:
            result = self.compared.get(name)
            if result is not None and not (result.claims and (result.difference or 0) > 0):
                yield _not_better(name, self.reference or "", result)
            yield from self._worse_scenarios(name)
        least = min(self.rates[name].share or 0.0 for name in self.claimed)
        excluded = {*self.claimed, *self.profile.bounds, self.reference}
        rivals = [
            f"{name} ({percent(rate.share)} of {rate.n:,})"
            for name, rate in self.rates.items()
            if name not in excluded
            and not any(name.startswith(one.split("-")[0]) for one in self.profile.claimed)
            and rate.share is not None
            and rate.share >= least
        ]
        if rivals and self.profile.claimed:
            ours = listed([f"{name} ({percent(self.rates[name].share)})" for name in self.claimed])
            yield (
                f"Without deliberation, {listed(rivals)} succeeded as often as one of {ours}, or "
                "more often."
            )
        for name in self.claimed:
            if self.reference is not None and name != self.reference:
                yield from self._dearer(name, self.reference)

    def _worse_scenarios(self, contender: str) -> Iterator[str]:
        worse = [
            f"{self.profile.label(scenario)} ({percent(result.other)} against "
            f"{percent(result.reference)}, {counted(result.pairs, 'pair')}"
            f"{'' if result.claims else ', may be chance'})"
            for (name, scenario), result in self.compared_by_scenario.items()
            if name == contender and result.lower > result.higher
        ]
        if worse:
            yield f"{contender} did worse than {self.reference} in {listed(worse)}."

    def _dearer(self, name: str, base: str) -> Iterator[str]:
        measures = {"tokens": "tokens", "model_calls": "model calls", "seconds": "seconds"}
        ratios = [
            f"{times(mine / theirs)} the {words}"
            for measure, words in measures.items()
            if (mine := self.mean(name, measure)) and (theirs := self.mean(base, measure))
        ]
        if ratios:
            mine, theirs = self.price(name, "tokens"), self.price(base, "tokens")
            each = times(mine / theirs) if mine and theirs else ""
            more = f"; for each success, {each} the tokens" if each else ""
            yield f"A trial of {name} took {listed(ratios)} of {base}{more}."

    def _gains(self) -> Iterator[str]:
        for name in self.claimed:
            result = self.compared.get(name)
            if result is None or not (result.claims and (result.difference or 0) > 0):
                yield f"{name} succeeded in {self.rates[name]}."
                continue
            yield (
                f"{name} succeeded in {self.rates[name]}, {self.reference} in "
                f"{self.rates[self.reference or '']}: {points(result.difference)} points "
                f"({points_span(result.interval)}, {counted(result.pairs, 'pair')}, "
                f"{p_words(result)})."
            )

    def _parts(self) -> Iterator[str]:
        """Parts whose contribution is not shown, and those that took successes away."""
        groups: dict[str, list[str]] = {"Took successes away": [], "": [], "Added successes": []}
        for ablation, result, _ in self.contributions:
            better = (result.difference or 0) > 0
            key = "" if not result.claims else list(groups)[2 if better else 0]
            part = ablation.part
            small = part if part.startswith("AutoGen") else part[0].lower() + part[1:]
            groups[key].append(small)
        for words, parts in groups.items():
            if parts:
                yield f"{words or 'No contribution to success was shown of'}: {listed(parts)}."


def _not_better(name: str, reference: str, result: PairedComparison) -> str:
    if result.p is None:
        why = result.why or "no instance was played by both"
        return f"No claim for {name} against {reference}: {why}."
    numbers = (
        f"{points(result.difference)} points (95 % interval {points_span(result.interval)}, "
        f"{counted(result.pairs, 'pair')}, {p_words(result)})"
    )
    if result.claims:
        return f"{name} did worse than {reference}: {numbers}."
    return f"{name} was not shown to do better than {reference}: {numbers}."


def panels_of(assessment: Assessment, profile: ReportProfile | None = None) -> list[Panel]:
    """One panel a model, in the plan's order; a single one where no model was asked."""
    plan = assessment.plan
    with_model = any(name not in plan.without_model for name in plan.contenders)
    models = plan.models if with_model else (NO_MODEL,)
    panels = [Panel(assessment, model, profile or ReportProfile()) for model in models]
    return [panel for panel in panels if panel.contenders]


def caveats(assessment: Assessment) -> list[str]:
    """What is to be known before any number, as sentences."""
    plan, sentences = assessment.plan, list[str]()
    unplayed = sum(1 for _ in plan.jobs()) - len(assessment.trials)
    if unplayed:
        sentences.append(
            f"The evaluation is not finished: {counted(unplayed, 'trial')} were not played."
        )
    broken = len(assessment.trials) - len(assessment.evidence)
    if broken:
        sentences.append(
            f"{counted(broken, 'trial')} broke, which is not the contender's fault, and count "
            "neither for nor against it; they are listed below."
        )
    if plan.resumptions:
        sentences.append(
            "The evaluation was continued by other code or on another machine: its trials are "
            "mixed."
        )
    budget = plan.conditions.get("token_budget")
    if isinstance(budget, int):
        sentences.append(
            "Contenders had equal tokens: a trial ended with the turn in which it reached "
            f"{number(budget)}, so that a dear turn may exceed them."
        )
    return sentences


def failures_first(panels: Sequence[Panel]) -> tuple[list[tuple[Trial, bool]], int]:
    """Failed trials, each once, with whether the reference succeeded on the same instance.

    First come those of claimed contenders that the reference won; how many are left out is given
    too.
    """
    found: dict[str, tuple[Trial, bool]] = {}
    ours: set[str] = set()
    for panel in panels:
        won = panel.successes(panel.reference) if panel.reference else {}
        ours |= set(panel.claimed)
        for name in panel.contenders:
            for trial in panel.failed(name):
                pair = (trial.job.scenario, trial.job.seed)
                found.setdefault(trial.job.key, (trial, won.get(pair, False)))

    def rank(failure: tuple[Trial, bool]) -> tuple[bool, bool, bool]:
        trial, lost = failure
        own = trial.job.contender in ours
        return not (lost and own), not own, trial.case is None

    ordered = sorted(found.values(), key=rank)
    return ordered[:_LISTED_FAILURES], max(0, len(ordered) - _LISTED_FAILURES)
