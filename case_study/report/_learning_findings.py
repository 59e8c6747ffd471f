"""What sequences of episodes say of a memory that lasts, as sentences: losses before gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from ._learning_tables import difference, interval, learnt
from ._learning_values import Learning
from ._names import lettered
from ._values import Panel
from ._wording import counted, listed, p_told, p_value

_MEANT = {
    "success": "success",
    "actions": "actions an episode",
    "bumps": "blocked moves an episode",
    "violations": "forbidden cleanings an episode",
    "energy": "charge an episode",
    "tokens": "tokens an episode",
}


def learning_findings(panel: Panel) -> tuple[str, ...]:
    """Losses, gains, and where nothing was shown."""
    rows = panel.learning
    return (
        *_unlike(rows),
        *_shown(rows, "bad", "cost"),
        *_leaning(rows, "lower"),
        *_shown(rows, "good", "brought"),
        *_leaning(rows, "higher"),
        *_nothing(rows),
    )


def _unlike(rows: Sequence[Learning]) -> Iterator[str]:
    """Pairs whose first episodes differ are no pairs that differ in memory alone."""
    firsts = [row.points[0].result for row in rows]
    unlike = sum(bool(one.higher or one.lower) for one in firsts)
    if unlike:
        yield (
            f"In episode 1 the arms differ in {unlike} of {len(rows)} comparisons, where nothing "
            "can have been remembered: chance was not alike in both."
        )


def _shown(rows: Sequence[Learning], tone: str, verb: str) -> Iterator[str]:
    groups: dict[tuple[str, str], list[Learning]] = {}
    for row in rows:
        if learnt(row.later, row.measure) == tone:
            groups.setdefault((row.contender, row.scenario), []).append(row)
    for (contender, scenario), group in groups.items():
        told = listed([_told(row) for row in group])
        pairs = counted(group[0].later.pairs, "pair")
        yield (
            f"From episode 2 on, a memory that lasts {verb} {contender} in {lettered(scenario)}: "
            f"{told} ({pairs}, 95 % intervals)."
        )


def _leaning(rows: Sequence[Learning], side: Literal["lower", "higher"]) -> Iterator[str]:
    """Differences of success whose interval leaves out zero, though the adjusted test does not."""
    found = [
        row
        for row in rows
        if row.measure == "success"
        and not row.later.claims
        and row.later.interval is not None
        and not row.later.interval.includes_zero
        and ((row.later.difference or 0) < 0) == (side == "lower")
    ]
    if found:
        told = [
            f"{row.contender} in {lettered(row.scenario)} {difference(row.later, row.measure)} "
            f"points ({interval(row.later, row.measure)}; more in {row.later.higher} pairs, less "
            f"in {row.later.lower}; p = {p_value(row.later.p)} before the correction, "
            f"{p_value(row.later.p_holm)} after it)"
            for row in found
        ]
        yield (
            f"With a memory that lasts, success was {side}, but the test, adjusted for the whole "
            f"table, leaves it open: {'; '.join(told)}."
        )


def _told(row: Learning) -> str:
    result = row.later
    unit = " points" if row.measure == "success" else ""
    return (
        f"{_MEANT[row.measure]} {difference(result, row.measure)}{unit} "
        f"({interval(result, row.measure)}; {p_told(result)})"
    )


def _nothing(rows: Sequence[Learning]) -> Iterator[str]:
    """Contenders and scenarios of which no difference is shown in any measure."""
    open_: dict[str, list[str]] = {}
    for contender, scenario in dict.fromkeys((row.contender, row.scenario) for row in rows):
        of = [row for row in rows if (row.contender, row.scenario) == (contender, scenario)]
        if not any(row.later.claims for row in of):
            alike = all(not row.later.higher and not row.later.lower for row in of)
            how = " (the same in every pair)" if alike else ""
            open_.setdefault(contender, []).append(f"{lettered(scenario)}{how}")
    for contender, names in open_.items():
        yield f"No difference in any measure was shown of {contender} in {listed(names)}."
