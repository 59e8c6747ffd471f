"""All measures of a case, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import isinf
from types import MappingProxyType

from ._cost import COST
from ._engineering import DECISIONS, ENGINEERING
from ._measure import Measure
from ._performance import WORLD
from ._robustness import ROBUSTNESS
from ._tally import Tally

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        measure.name: measure
        for catalogue in (ROBUSTNESS, ENGINEERING, WORLD, DECISIONS, COST)
        for measure in catalogue.measures
    }
)
"""Every measure by name, in the order in which they are shown."""


def measures_of(episodes: Iterable[Tally]) -> dict[str, float | None]:
    """Every measure of a case from the tallies of its episodes.

    Counts are added up; shares and averages are over all that was counted, not averages of
    averages. None stands where a measure has no meaning or no evidence.
    """
    tally = _sum(episodes)
    return {name: measure(tally) for name, measure in MEASURES.items()}


def causes_of(episodes: Iterable[Tally]) -> dict[str, int]:
    """Failed runs of a case by the cause of their first failure.

    Keys are the ten causes of `coag.proof.Cause`, `not attributable` where the trace cannot tell,
    and `no failure found`. Empty where every run succeeded.
    """
    return dict(_sum(episodes).blame.causes)


def decisions_of(episodes: Iterable[Tally]) -> dict[str, int]:
    """How many actions were decided by `model`, `rank` or `only_survivor`."""
    return dict(Counter(_sum(episodes).figures.decisions))


def _sum(episodes: Iterable[Tally]) -> Tally:
    return sum(episodes, Tally())


def measures_table() -> str:
    """All measures as a Markdown table: what each means, its unit, its range, what is better."""
    rows = ["| measure | meaning | unit | range | better |", "|---|---|---|---|---|"]
    for measure in MEASURES.values():
        low = "-∞" if isinf(measure.low) else f"{measure.low:g}"
        high = "∞" if isinf(measure.high) else f"{measure.high:g}"
        rows.append(
            f"| `{measure.name}` | {measure.meaning} | {measure.unit} | {low} to {high} "
            f"| {'' if measure.better == 'neither' else measure.better} |"
        )
    return "\n".join(rows)
