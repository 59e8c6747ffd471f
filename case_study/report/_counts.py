"""How often contenders succeeded, what it cost, and where failures came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import fmean

from case_study.assess import Trial
from case_study.statistics import pass_at_k, wilson, worst_of_k

from ._sample import Sample, mean, means
from ._values import CausesRow, CostRow, Rate, Reliability, SuccessRow

_KS = (3, 5, 10)
"""How often a scenario is thought to be played, for what can be relied on."""


def rate_of(successes: Iterable[bool]) -> Rate:
    """The rate of some trials, with its interval."""
    told = list(successes)
    if not told:
        return Rate(successes=0, n=0)
    won, n = sum(told), len(told)
    return Rate(successes=won, n=n, share=won / n, interval=wilson(won, n))


def success_rows(sample: Sample) -> tuple[SuccessRow, ...]:
    """How often each contender succeeded."""
    return tuple(_success_row(sample, contender) for contender in sample.contenders)


def _success_row(sample: Sample, contender: str) -> SuccessRow:
    rates = {
        scenario: rate_of(sample.successes(contender, scenario).values())
        for scenario in sample.scenarios
    }
    return SuccessRow(
        contender=contender,
        overall=rate_of(sample.successes(contender).values()),
        by_scenario={scenario: rate for scenario, rate in rates.items() if rate.n},
        broken=sample.broken[contender],
        decided_by=sample.decided_by(contender),
    )


def cost_rows(sample: Sample) -> tuple[CostRow, ...]:
    """What each contender used."""
    return tuple(_cost_row(sample, contender) for contender in sample.contenders)


def _cost_row(sample: Sample, contender: str) -> CostRow:
    trials = sample.of(contender)
    won = sum(trial.success for trial in trials)
    prompts = sum(means(trials, "prompt_tokens"))
    cached = sum(means(trials, "cached_tokens"))
    return CostRow(
        contender=contender,
        n=len(trials),
        successes=won,
        actions=mean(means(trials, "actions")),
        calls=mean(means(trials, "model_calls")),
        tokens=mean(means(trials, "tokens")),
        cached=cached / prompts if prompts else None,
        later_cached=mean(means(trials, "later_cached_share")),
        seconds=mean(means(trials, "seconds")),
        calls_per_success=_for_each(trials, "model_calls", won),
        tokens_per_success=_for_each(trials, "tokens", won),
        seconds_per_success=_for_each(trials, "seconds", won),
        decided_by=sample.decided_by(contender),
    )


def _for_each(trials: Iterable[Trial], measure: str, won: int) -> float | None:
    values = means(trials, measure)
    return sum(values) / won if values and won else None


def reliability(sample: Sample) -> tuple[Reliability, ...]:
    """What can be relied on, for each k that some scenario has enough trials for."""
    found = (_reliability(sample, name, k) for name in sample.contenders for k in _KS)
    return tuple(one for one in found if one is not None)


def _reliability(sample: Sample, contender: str, k: int) -> Reliability | None:
    told = [sample.successes(contender, scenario) for scenario in sample.scenarios]
    played = [(sum(one.values()), len(one)) for one in told if len(one) >= k]
    if not played:
        return None
    return Reliability(
        contender=contender,
        k=k,
        at_least_once=fmean(pass_at_k(won, n, k) for won, n in played),
        every_time=fmean(worst_of_k(won, n, k) for won, n in played),
        scenarios=len(played),
    )


def causes_rows(sample: Sample) -> tuple[CausesRow, ...]:
    """Where failures came from, of the contenders that failed at all."""
    rows = (_causes_row(sample, contender) for contender in sample.contenders)
    return tuple(row for row in rows if row.failed)


def _causes_row(sample: Sample, contender: str) -> CausesRow:
    failed = [trial for trial in sample.of(contender) if not trial.success]
    counts: Counter[str] = Counter()
    for trial in failed:
        counts.update(trial.causes)
    return CausesRow(
        contender=contender,
        failed=len(failed),
        causes=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        untold=sum(not trial.causes for trial in failed),
        decided_by=sample.decided_by(contender),
    )
