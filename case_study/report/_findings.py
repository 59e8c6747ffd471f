"""What the numbers say, as sentences: losses before gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from case_study.statistics import wilson
from case_study.temperaments import is_scripted
from vacuum_world.scenarios import PAPER

from ._learning_findings import learning_findings
from ._names import lettered
from ._values import AbstractPart, Compared, Contribution, CostRow, Panel, SuccessRow
from ._wording import counted, listed, p_told, percent, points, points_span, rate, span, times

_OURS = ("coag-full", "coag-compact")
"""The contenders whose success is claimed."""
_BOUNDS = ("oracle",)
"""Contenders that see what the others cannot: no rivals."""
_CACHED = 0.7
"""Share of later prompt tokens that is meant to come from a server's cache."""
_TARGET = 0.9
"""Share of the paper's four scenarios in which ours are meant to succeed."""


def proves(model: str, *, asked: bool) -> str:
    """What the numbers of a model prove and what not."""
    if not asked:
        return "No model was asked: these contenders act by code alone."
    if is_scripted(model):
        return (
            "This model is scripted: a function, no language model. Its numbers show what the "
            "code around a fallible model does with faults of one kind. They do not show how "
            "often a language model has such faults, nor how well it reasons; its seconds say "
            "nothing of the time a model takes."
        )
    return (
        "A language model. Its numbers hold for this model, with these prompts and scenarios; "
        "they say nothing of other models."
    )


def findings(panel: Panel) -> tuple[str, ...]:
    """What is to be said of a panel, losses before gains."""
    ours = [row for row in panel.success if row.contender in _OURS and row.overall.n]
    if panel.learning:
        return learning_findings(panel)
    if not ours:
        return tuple(_standing(panel))
    return (*_losses(panel, ours), *_gains(panel, ours), *_target(panel, ours), *_idle(panel))


def told_first(panel: Panel, *, brief: bool) -> AbstractPart:
    """A panel's part of the abstract.

    Args:
        panel: Its numbers and findings.
        brief: Whether one sentence on losses and one on gains must do.
    """
    name = f"{panel.model}, scripted" if panel.scripted else panel.model
    title = name if panel.domain == "vacuum" else f"{panel.domain}, {name}"
    sentences = tuple(_brief(panel)) if brief else panel.findings
    return AbstractPart(title=title, sentences=sentences)


def _brief(panel: Panel) -> Iterator[str]:
    ours = [row for row in panel.success if row.contender in _OURS and row.overall.n]
    for row in ours:
        yield from _worse_scenarios(panel, row.contender)
    shown = [row for row in panel.success if row.contender in (*_OURS, panel.reference)]
    rates = [
        f"{row.contender} {percent(row.overall.share)} of {row.overall.n:,}"
        for row in shown
        if row.overall.n
    ]
    if rates:
        yield f"Succeeded: {listed(rates)}."


def _standing(panel: Panel) -> Iterator[str]:
    """Where none of ours was played: how often the others succeeded."""
    for row in panel.success:
        if row.overall.n:
            yield f"{row.contender} succeeded in {rate(row.overall)}."


def _losses(panel: Panel, ours: Sequence[SuccessRow]) -> Iterator[str]:
    overall = {row.contender: row for row in panel.compared}
    for row in ours:
        compared = overall.get(row.contender)
        if compared is not None and not _better(compared):
            yield _not_better(compared)
        yield from _worse_scenarios(panel, row.contender)
    yield from _rivals(panel, ours)
    yield from _price(panel, [row.contender for row in ours])


def _better(row: Compared) -> bool:
    return row.result.claims and (row.result.difference or 0) > 0


def _not_better(row: Compared) -> str:
    result = row.result
    who = f"{row.contender} against {row.reference}"
    if result.p is None:
        return f"No claim for {who}: {result.why or 'no instance was played by both'}."
    told = (
        f"{points(result.difference)} points (95 % interval {points_span(result.interval)}, "
        f"{counted(result.pairs, 'pair')}, {p_told(result)})"
    )
    if result.claims:
        return f"{row.contender} did worse than {row.reference}: {told}."
    return f"{row.contender} was not shown to do better than {row.reference}: {told}."


def _worse_scenarios(panel: Panel, contender: str) -> Iterator[str]:
    """Scenarios in which the reference won more often, shown or not."""
    worse = [
        row
        for row in panel.compared_by_scenario
        if row.contender == contender and row.result.lower > row.result.higher
    ]
    if worse:
        told = [
            f"{lettered(row.scenario or '')} ({percent(row.result.other)} against "
            f"{percent(row.result.reference)}, {counted(row.result.pairs, 'pair')}"
            f"{'' if row.result.claims else ', may be chance'})"
            for row in worse
        ]
        yield f"{contender} did worse than {worse[0].reference} in {listed(told)}."


def _rivals(panel: Panel, ours: Sequence[SuccessRow]) -> Iterator[str]:
    """Contenders that do not deliberate and succeeded as often as one of ours, or more."""
    least = min(row.overall.share or 0.0 for row in ours)
    rivals = [
        f"{row.contender} ({percent(row.overall.share)} of {row.overall.n:,})"
        for row in panel.success
        if not row.contender.startswith("coag")
        and row.contender not in (*_BOUNDS, panel.reference)
        and row.overall.share is not None
        and row.overall.share >= least
    ]
    if rivals:
        names = listed([f"{row.contender} ({percent(row.overall.share)})" for row in ours])
        yield (
            f"Without deliberation, {listed(rivals)} succeeded as often as one of {names}, or "
            "more often."
        )


def _price(panel: Panel, names: Sequence[str]) -> Iterator[str]:
    """What ours took more than the reference."""
    costs = {row.contender: row for row in panel.costs}
    base = costs.get(panel.reference or "")
    for name in names:
        if base is not None and name != base.contender:
            yield from _dearer(costs[name], base)


def _dearer(row: CostRow, base: CostRow) -> Iterator[str]:
    ratios = (
        ("the tokens", _ratio(row.tokens, base.tokens)),
        ("the model calls", _ratio(row.calls, base.calls)),
        ("the seconds", _ratio(row.seconds, base.seconds)),
    )
    told = [f"{times(ratio)} {what}" for what, ratio in ratios if ratio is not None]
    each = _ratio(row.tokens_per_success, base.tokens_per_success)
    if told:
        more = f"; for each success, {times(each)} the tokens" if each else ""
        yield f"A trial of {row.contender} took {listed(told)} of {base.contender}{more}."


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value and base else None


def _gains(panel: Panel, ours: Sequence[SuccessRow]) -> Iterator[str]:
    rows = {row.contender: row for row in panel.success}
    overall = {row.contender: row for row in panel.compared}
    for row in ours:
        compared = overall.get(row.contender)
        if compared is None or not _better(compared):
            yield f"{row.contender} succeeded in {rate(row.overall)}."
            continue
        result = compared.result
        yield (
            f"{row.contender} succeeded in {rate(row.overall)}, {compared.reference} in "
            f"{rate(rows[compared.reference].overall)}: {points(result.difference)} points "
            f"({points_span(result.interval)}, {counted(result.pairs, 'pair')}, "
            f"{p_told(result)})."
        )


def _target(panel: Panel, ours: Sequence[SuccessRow]) -> Iterator[str]:
    """The targets: 90 % on the paper's four scenarios, and what comes from a server's cache."""
    four = [name for name in PAPER if name in panel.scenarios]
    if panel.domain == "vacuum" and len(four) == len(PAPER):
        told = [_on_four(row, four) for row in ours]
        yield f"On scenarios A to D, with a target of {percent(_TARGET)}: {listed(told)}."
    if panel.scripted:
        return
    for row in panel.costs:
        if row.contender in _OURS and row.later_cached is not None:
            met = "met" if row.later_cached >= _CACHED else "missed"
            yield (
                f"Of {row.contender}'s prompt tokens after a cycle's first call "
                f"{percent(row.later_cached)} came from the server's cache (target "
                f"{percent(_CACHED)}: {met})."
            )


def _on_four(row: SuccessRow, four: Sequence[str]) -> str:
    rates = [row.by_scenario[name] for name in four if name in row.by_scenario]
    won, n = sum(one.successes for one in rates), sum(one.n for one in rates)
    if not n:
        return f"{row.contender} was not played"
    met = "met" if won >= _TARGET * n else "missed"
    return (
        f"{row.contender} {won:,} of {n:,} ({percent(won / n)}, 95 % interval "
        f"{span(wilson(won, n))} %, {met})"
    )


def _idle(panel: Panel) -> Iterator[str]:
    """Parts whose contribution is not shown, and those that took successes away."""
    harmful = [one.part for one in panel.contributions if _claims(one, -1)]
    useful = [one.part for one in panel.contributions if _claims(one, 1)]
    silent = [one.part for one in panel.contributions if not one.compared.result.claims]
    if harmful:
        yield f"Took successes away: {_lower(harmful)}."
    if silent:
        yield f"No contribution to success was shown of: {_lower(silent)}."
    if useful:
        yield f"Added successes: {_lower(useful)}."


def _claims(one: Contribution, sign: int) -> bool:
    result = one.compared.result
    return result.claims and (result.difference or 0) * sign > 0


def _lower(parts: Sequence[str]) -> str:
    return listed(
        [part if part.startswith("AutoGen") else part[0].lower() + part[1:] for part in parts]
    )
