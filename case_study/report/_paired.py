"""Contenders against a reference on the same instances."""

from __future__ import annotations

from case_study.statistics import (
    FEWEST_PAIRS,
    Comparison,
    compare,
    paired_bootstrap,
    with_holm,
)

from ._sample import Sample
from ._values import Compared, Contribution, Gap
from ._wording import counted, number, p_told, points, points_span

REFERENCES = ("plain", "coag-full", "coag-compact", "rules", "random")
"""Whom the others are compared with: the first of these that was played."""
_RESAMPLES = 999
"""Draws of a bootstrap; there is one for each measure and contender."""
_PARTS = (
    ("Retrieval", "coag-full", "coag-without-retrieval"),
    ("Reasoning", "coag-full", "coag-without-reasoning"),
    ("Evaluation by the model", "coag-full", "coag-without-evaluation"),
    ("Constraints", "coag-full", "coag-without-constraints"),
    ("Rewriting of procedures", "coag-full", "coag-without-rewriting"),
    ("Rules of good conduct", "coag-full", "coag-without-conduct"),
    ("Value of predicted states", "coag-full", "coag-without-value"),
    ("Offering only what is allowed", "coag-full", "coag-without-masking"),
    ("Enumerated calls", "coag-full", "coag-without-enumeration"),
    ("Six phases instead of one call", "coag-full", "coag-compact"),
    ("Grounded candidates (full)", "coag-full-grounded", "coag-full"),
    ("Grounded candidates (compact)", "coag-compact-grounded", "coag-compact"),
    ("Situational awareness (compact)", "coag-compact-aware", "coag-compact"),
    ("Situational awareness (full)", "coag-full-aware", "coag-full"),
    ("Constraints on a plain agent", "plain-guarded", "plain"),
    ("Deliberation beyond constraints (full)", "coag-full", "plain-guarded"),
    ("Deliberation beyond constraints (compact)", "coag-compact", "plain-guarded"),
    ("AutoGen's memory on a plain agent", "plain-memory", "plain"),
    ("Tool iterations on a plain agent", "plain-iterations", "plain"),
)
"""A part, a contender that has it, and one that differs in that alone."""


def reference_of(sample: Sample) -> str | None:
    """Whom the others of a sample are compared with; None if there is nobody."""
    return next((name for name in REFERENCES if name in sample.contenders), None)


def compared_overall(sample: Sample, reference: str) -> tuple[Compared, ...]:
    """Each contender against the reference over all scenarios, adjusted for all of these tests."""
    others = [name for name in sample.contenders if name != reference]
    table: dict[tuple[str, str | None], Comparison] = {
        (name, None): _success(sample, reference, name) for name in others
    }
    return _rows(sample, reference, table)


def compared_by_scenario(sample: Sample, reference: str) -> tuple[Compared, ...]:
    """Each contender against the reference by scenario, adjusted for all of these tests."""
    table = {
        (name, scenario): _success(sample, reference, name, scenario)
        for name in sample.contenders
        if name != reference
        for scenario in sample.scenarios
    }
    return _rows(sample, reference, {key: one for key, one in table.items() if one.pairs})


def _rows(
    sample: Sample, reference: str, table: dict[tuple[str, str | None], Comparison]
) -> tuple[Compared, ...]:
    deciders = {name: sample.decided_by(name) for name in sample.contenders}
    return tuple(
        Compared(
            contender=name,
            reference=reference,
            scenario=scenario,
            result=result,
            decided_by=deciders[name],
        )
        for (name, scenario), result in with_holm(table).items()
    )


def _success(sample: Sample, first: str, second: str, scenario: str | None = None) -> Comparison:
    return compare(sample.successes(first, scenario), sample.successes(second, scenario))


def contributions(sample: Sample) -> tuple[Contribution, ...]:
    """What each phase and each safeguard adds, where both contenders were played."""
    played = set(sample.contenders)
    parts = [part for part in _PARTS if played.issuperset(part[1:])]
    table = with_holm({part: _success(sample, part[2], part[1]) for part in parts})
    return tuple(_contribution(sample, part, result) for part, result in table.items())


def _contribution(sample: Sample, part: tuple[str, str, str], result: Comparison) -> Contribution:
    name, having, lacking = part
    compared = Compared(
        contender=having,
        reference=lacking,
        result=result,
        decided_by=sample.decided_by(having),
    )
    return Contribution(
        part=name,
        compared=compared,
        tokens=gap(sample, "tokens", having, lacking),
        finding=finding(result),
        decided_by_without=sample.decided_by(lacking),
    )


def gap(sample: Sample, measure: str, contender: str, reference: str) -> Gap:
    """The mean difference of a measure, over the instances for which both have a value."""
    first, second = sample.values(reference, measure), sample.values(contender, measure)
    differences = [second[pair] - first[pair] for pair in first if pair in second]
    if not differences:
        return Gap(measure=measure, reference=reference, pairs=0)
    enough = len(differences) >= FEWEST_PAIRS
    return Gap(
        measure=measure,
        reference=reference,
        pairs=len(differences),
        mean=sum(differences) / len(differences),
        interval=paired_bootstrap(differences, resamples=_RESAMPLES) if enough else None,
    )


def finding(result: Comparison) -> str:
    """What a comparison shows, as a sentence; `other` is what has the part."""
    pairs = counted(result.pairs, "pair")
    if not result.pairs or result.difference is None:
        return "No claim: no instance was played by both."
    if result.p is None:
        return f"No claim: {result.why}."
    if not result.higher and not result.lower:
        return f"Nothing: the same outcome in all of {pairs}."
    told = f"{points(result.difference)} points, 95 % interval {points_span(result.interval)}"
    if result.claims:
        verb = "Adds" if result.difference > 0 else "Takes away"
        return f"{verb} successes: {told}, {pairs}, {p_told(result)}."
    if result.needed_n is not None:
        more = f"to see a difference as large takes about {number(result.needed_n)} pairs"
    elif result.difference == 0:
        more = "as many pairs were won by it as lost"
    else:
        more = f"the test, adjusted for the whole table, leaves it open ({p_told(result)})"
    return f"Nothing shown: {told}, {pairs}; {more}."
