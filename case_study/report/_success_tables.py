"""Tables of success: rates, pairs and ablations."""

from __future__ import annotations

from collections.abc import Sequence

from case_study.statistics import Comparison

from ._names import lettered
from ._tables import DECIDED, Cell, Table, Tone, columns, decided, rate_cell, text
from ._values import Compared, Contribution, Panel
from ._wording import (
    NONE,
    number,
    number_span,
    p_value,
    points,
    points_span,
)


def success_table(panel: Panel) -> Table:
    """How often each contender succeeded, over all and by scenario."""
    titles = ("contender", "all scenarios", *(lettered(name) for name in panel.scenarios))
    rows = tuple(
        (
            text(row.contender),
            rate_cell(row.overall),
            *(rate_cell(row.by_scenario.get(name)) for name in panel.scenarios),
            Cell(f"{row.broken:,}"),
            decided(row.decided_by),
        )
        for row in panel.success
    )
    return Table(
        caption="Trials that succeeded, in percent; small: successes/trials and 95 % Wilson "
        "interval in percent",
        columns=columns(*titles, "broken trials", DECIDED, words=(0,)),
        rows=rows,
        note="Broken trials are no evidence and not counted in any rate.",
    )


def compared_table(panel: Panel) -> Table:
    """Each contender against the reference over all scenarios."""
    rows = tuple(
        (text(row.contender), *_comparison(row.result), decided(row.decided_by))
        for row in panel.compared
    )
    return Table(
        caption=f"Success against {panel.reference}, on the same scenarios and seeds, over all "
        "scenarios",
        columns=columns("contender", *_COMPARED, DECIDED, words=(0, 7)),
        rows=rows,
        note=_NOTE,
    )


_COMPARED = (
    "n (pairs)",
    "only it : only the other",
    "difference, points",
    "95 % interval, points",
    "p, adjusted",
    "effect h",
    "what it says",
)
_NOTE = (
    "Only pairs in which one succeeded and the other failed tell who is better: they are counted "
    "in the third column. p is of the exact McNemar test, two-sided, after Holm's correction over "
    "this table. Effect: Cohen's h, of which 0.2 is called small, 0.5 medium and 0.8 large."
)


def _comparison(result: Comparison) -> tuple[Cell, ...]:
    """The cells below `_COMPARED`."""
    effect = NONE if result.effect is None else f"{result.effect:+.2f}".replace("-", "\u2212")
    p = result.p if result.p_holm is None else result.p_holm
    return (
        Cell(f"{result.pairs:,}"),
        Cell(f"{result.higher:,} : {result.lower:,}"),
        Cell(points(result.difference), tone=tone(result)),
        Cell(points_span(result.interval)),
        Cell(p_value(p)),
        Cell(effect),
        text(says(result), tone=tone(result)),
    )


def tone(result: Comparison) -> Tone:
    """Whether a comparison speaks for the contender, against it, or leaves it open."""
    if not result.claims or result.difference is None:
        return "open"
    return "good" if result.difference > 0 else "bad"


def says(result: Comparison) -> str:
    """A comparison in a few words."""
    if not result.pairs:
        return "no pair"
    if result.p is None:
        more = f"; about {number(result.needed_n)} pairs needed" if result.needed_n else ""
        return f"too few pairs: {result.why}{more}"
    if result.claims:
        return "better" if (result.difference or 0) > 0 else "worse"
    if not result.higher and not result.lower:
        return "the same in every pair"
    if result.needed_n is not None:
        return f"open: about {number(result.needed_n)} pairs needed"
    return "open: as often better as worse" if not result.difference else "open once adjusted"


def by_scenario_table(panel: Panel) -> Table:
    """The differences by scenario, as a matrix."""
    found = {(row.contender, row.scenario): row for row in panel.compared_by_scenario}
    names = [name for name in panel.contenders if name != panel.reference]
    deciders = {row.contender: row.decided_by for row in panel.success}
    rows = tuple(
        (
            text(name),
            *(_scenario_cell(found.get((name, scenario))) for scenario in panel.scenarios),
            decided(deciders[name]),
        )
        for name in names
    )
    titles = ("contender", *(lettered(name) for name in panel.scenarios), DECIDED)
    return Table(
        caption=f"Success against {panel.reference} by scenario: difference in points; small: "
        "pairs, only it : only the other, adjusted p",
        columns=columns(*titles, words=(0,)),
        rows=rows,
        note="p of the exact McNemar test after Holm's correction over this table; a dash where "
        "there are too few pairs for any claim. Marked + better, \u2212 worse, ? open.",
    )


def _scenario_cell(row: Compared | None) -> Cell:
    if row is None or not row.result.pairs:
        return Cell(NONE)
    result = row.result
    p = result.p if result.p_holm is None else result.p_holm
    more = f"n={result.pairs:,}, {result.higher:,}:{result.lower:,}, p {p_value(p)}"
    mark = {"good": "+", "bad": "\u2212", "open": "?", "": ""}[tone(result)]
    return Cell(f"{points(result.difference)} {mark}", more, tone=tone(result))


def contribution_table(parts: Sequence[Contribution]) -> Table:
    """What each phase and each safeguard adds."""
    rows = tuple(
        (
            Cell(part.part, f"{part.compared.contender} against {part.compared.reference}"),
            Cell(f"{part.compared.result.pairs:,}"),
            Cell(points(part.compared.result.difference), tone=tone(part.compared.result)),
            Cell(points_span(part.compared.result.interval)),
            Cell(p_value(part.compared.result.p_holm)),
            Cell(_signed(part.tokens.mean), number_span(part.tokens.interval)),
            text(_adds(part.compared.result), tone=tone(part.compared.result)),
            Cell(decided(part.compared.decided_by).text),
            Cell(decided(part.decided_by_without).text),
        )
        for part in parts
    )
    return Table(
        caption="What each phase and each safeguard adds: the contender that has it against the "
        "one that differs in it alone, on the same scenarios and seeds",
        columns=columns(
            "part",
            "n (pairs)",
            "success, points",
            "95 % interval, points",
            "p, adjusted",
            "tokens a trial (95 % interval)",
            "what it says",
            f"with it, {DECIDED}",
            f"without it, {DECIDED}",
            words=(0, 6),
        ),
        rows=rows,
        note="Above 0: with it, more trials succeed. p of the exact McNemar test after Holm's "
        "correction over this table; intervals of tokens by paired bootstrap.",
    )


def _adds(result: Comparison) -> str:
    """The same as `says`, of a part."""
    told = says(result)
    return {
        "better": "adds successes",
        "worse": "takes successes away",
        "the same in every pair": "nothing: the same in every pair",
    }.get(told, told.replace("open", "nothing shown", 1))


def _signed(value: float | None) -> str:
    if value is None or value <= 0:
        return number(value)
    return f"+{number(value)}"
