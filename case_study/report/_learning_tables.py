"""Tables and plots of what a memory that lasts brings."""

from __future__ import annotations

from collections.abc import Sequence

from case_study.statistics import Comparison

from ._learning_values import Learning, Recalled
from ._names import lettered
from ._tables import Cell, Column, Table, Tone, columns, text
from ._values import Panel
from ._wording import NONE, number, number_span, p_value, points, points_span

MORE_IS_BETTER = frozenset({"success"})
"""Of the compared measures, those of which more is better; of all others less is."""
TITLES = {
    "success": "success, points",
    "actions": "actions",
    "bumps": "blocked moves",
    "violations": "forbidden cleanings",
    "energy": "charge",
    "tokens": "tokens",
}
"""What the compared measures are called in tables and plots."""


def learnt(result: Comparison, measure: str) -> Tone:
    """Whether a difference speaks for a memory that lasts."""
    if not result.claims or not result.difference:
        return "open"
    return "good" if (result.difference > 0) == (measure in MORE_IS_BETTER) else "bad"


def difference(result: Comparison, measure: str) -> str:
    """A difference in its unit."""
    if measure == "success":
        return points(result.difference)
    told = number(result.difference)
    return f"+{told}" if (result.difference or 0) > 0 else told


def interval(result: Comparison, measure: str) -> str:
    """Its interval in its unit."""
    if measure == "success":
        return points_span(result.interval)
    return number_span(result.interval)


def later_table(panel: Panel) -> Table:
    """All episodes but the first together: one row a contender and scenario."""
    found = {(one.contender, one.scenario, one.measure): one for one in panel.learning}
    measures = list(dict.fromkeys(one.measure for one in panel.learning))
    pairs = list(dict.fromkeys((one.contender, one.scenario) for one in panel.learning))
    return Table(
        caption="Means of the episodes after the first, memory kept less memory emptied; small: "
        "95 % interval and adjusted p",
        columns=(
            *columns("contender", "scenario", words=(0, 1)),
            Column("n (pairs)"),
            *(Column(TITLES[name]) for name in measures),
        ),
        rows=tuple(
            (
                text(contender),
                text(lettered(scenario)),
                Cell(str(found[contender, scenario, measures[0]].later.pairs)),
                *(_later_cell(found[contender, scenario, name]) for name in measures),
            )
            for contender, scenario in pairs
        ),
        note="Success in points of the share of episodes that succeeded. p of the sign-flip test, "
        "two-sided, after Holm's correction over all cells of this table; intervals by paired "
        "bootstrap. Where all pairs differ alike, or not at all, the interval is that one value.",
    )


def _later_cell(one: Learning) -> Cell:
    result = one.later
    if not result.pairs:
        return Cell(NONE)
    if not result.higher and not result.lower:
        return Cell("0", "the same in every pair", tone="open")
    p = result.p if result.p_holm is None else result.p_holm
    told = f"{interval(result, one.measure)}, p {p_value(p)}"
    return Cell(difference(result, one.measure), told, tone=learnt(result, one.measure))


def by_episode_table(panel: Panel) -> Table:
    """Each episode, where any pair differs in any of them."""
    moved = [one for one in panel.learning if _moved(one)]
    return Table(
        caption="Episode by episode, memory kept less memory emptied; small: 95 % interval and "
        "adjusted p",
        columns=(
            *columns("contender", "scenario", "measure", words=(0, 1, 2)),
            *(Column(f"episode {point.episode}") for point in panel.learning[0].points),
        ),
        rows=tuple(
            (
                text(one.contender),
                text(lettered(one.scenario)),
                text(TITLES[one.measure]),
                *(_point_cell(point.result, one.measure) for point in one.points),
            )
            for one in moved
        ),
        note=f"Of {len(panel.learning)} rows those in which some pair differs in some episode. p "
        "of the exact McNemar test for success and of the sign-flip test for the rest, after "
        "Holm's correction over all episodes but the first of all rows. In the first nothing can "
        "have been remembered: there the arms of a pair are to be alike.",
    )


def _moved(one: Learning) -> bool:
    return any(point.result.higher or point.result.lower for point in one.points)


def _point_cell(result: Comparison, measure: str) -> Cell:
    if not result.pairs:
        return Cell(NONE)
    if not result.higher and not result.lower:
        return Cell("0")
    p = f", p {p_value(result.p_holm)}" if result.p_holm is not None else ""
    told = f"{interval(result, measure)}{p}"
    return Cell(difference(result, measure), told, tone=learnt(result, measure))


def recalled_table(rows: Sequence[Recalled]) -> Table:
    """What was noted and recalled where memory lasts."""
    titles = {
        "noted": "noted",
        "recalled": "cycles that recalled an earlier episode",
        "beside": "of them, beside a cell that it tells is blocked",
        "refused": "candidates rejected for it",
    }
    return Table(
        caption="What agents whose memory lasts noted and recalled: means of episodes 1, 2 and so "
        "on",
        columns=columns("contender", "scenario", *titles.values(), words=(0, 1)),
        rows=tuple(
            (
                text(one.contender),
                text(lettered(one.scenario)),
                *(Cell(" / ".join(number(v) for v in one.means[name])) for name in titles),
            )
            for one in rows
        ),
        note="Counted from the traces of CoAG agents. Where a model heeds what is recalled, "
        "nothing needs to be rejected for it. AutoGen's memory writes down every action and "
        "recalls at every turn; its traces do not tell from which episode.",
    )
