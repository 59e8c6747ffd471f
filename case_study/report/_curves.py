"""What changes with the number of actions, or of tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil

from ._sample import Sample, mean
from ._values import AdaptationCurve, BudgetCurve

_POINTS = 60
"""Steps of a curve that are kept; of more only each few."""
_BUDGETS = 6
"""Budgets of the table, at most."""


def adaptation_curves(sample: Sample) -> tuple[AdaptationCurve, ...]:
    """How soon each contender acted well again, over the trials in which an action failed."""
    curves = (_adaptation(sample, name) for name in sample.contenders)
    return tuple(curve for curve in curves if curve.of)


def _adaptation(sample: Sample, contender: str) -> AdaptationCurve:
    latencies = sample.values(contender, "adaptation_actions")
    stuck = sample.values(contender, "unadapted")
    seconds = sample.values(contender, "adaptation_seconds")
    adapted = [pair for pair in latencies if not stuck.get(pair)]
    told, of = sorted(latencies[pair] for pair in adapted), len(latencies)
    middle = ceil(of / 2)
    return AdaptationCurve(
        contender=contender,
        of=of,
        adapted=len(told),
        points=_steps(told, of),
        median=told[middle - 1] if 0 < middle <= len(told) else None,
        seconds=mean([seconds[pair] for pair in adapted if pair in seconds]),
        decided_by=sample.decided_by(contender),
    )


def budget_curves(sample: Sample) -> tuple[BudgetCurve, ...]:
    """How often each contender that asks a model had succeeded within a number of tokens."""
    spent = {name: sample.values(name, "tokens") for name in sample.contenders}
    asking = [name for name, values in spent.items() if any(values.values())]
    if not asking:
        return ()
    budgets = _budgets([value for name in asking for value in spent[name].values()])
    return tuple(_budget_curve(sample, name, spent[name], budgets) for name in asking)


def _budget_curve(
    sample: Sample, contender: str, spent: dict[tuple[str, int], float], budgets: Sequence[float]
) -> BudgetCurve:
    won = sample.successes(contender)
    told = sorted(tokens for pair, tokens in spent.items() if won[pair])
    return BudgetCurve(
        contender=contender,
        n=len(spent),
        points=_steps(told, len(spent)),
        at={f"{budget:.0f}": bisect_right(told, budget) / len(spent) for budget in budgets},
        decided_by=sample.decided_by(contender),
    )


def _budgets(values: Sequence[float]) -> list[float]:
    """Round numbers of tokens between the least and the most that were spent."""
    least, most = min(value for value in values if value > 0), max(values)
    rounds = [head * 10**power for power in range(1, 10) for head in (1, 2, 5)]
    within = [number for number in rounds if least <= number < most]
    above = next(number for number in rounds if number >= most or number == rounds[-1])
    every = max(1, ceil(len(within) / (_BUDGETS - 1)))
    return [*within[::-1][::every][::-1], above]


def _steps(values: Sequence[float], of: int) -> tuple[tuple[float, float], ...]:
    """The share of `of` that is reached by each of some sorted values."""
    if not of:
        return ()
    last = {value: number / of for number, value in enumerate(values, start=1)}
    steps = [(value, round(share, 4)) for value, share in last.items()]
    every = max(1, ceil(len(steps) / _POINTS))
    kept = steps[::every]
    return (*kept, steps[-1]) if steps and kept[-1] != steps[-1] else tuple(kept)
