"""What a memory that lasts brings, episode by episode: pairs of sequences that differ in it alone.

A trial is then a sequence of episodes, and names the measures of each by its number: `success.1`.
The reference of each pair is the arm whose memory is emptied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from coag._util.text import counted

from .charts import Chart, ChartText, Series, episode_chart
from .statistics import PairedComparison, compare, with_holm
from .summary import Pair, Panel
from .tables import Cell, ReportBlock, ReportTable, Tone, columns_of, number_cell
from .wording import (
    NONE,
    listed,
    number,
    number_span,
    p_value,
    p_words,
    points,
    points_span,
    signed,
)

DRAWN = ("success", "bumps", "actions", "tokens")
"""Measures of which curves are drawn."""
_MOST_LINES = 6
Row = tuple[str, str, str]
"""Contender, scenario and measure."""


def difference_words(result: PairedComparison, measure: str) -> str:
    """A difference in its unit."""
    return points(result.difference) if measure == "success" else signed(result.difference)


def interval_words(result: PairedComparison, measure: str) -> str:
    """Its interval in its unit."""
    return (points_span if measure == "success" else number_span)(result.interval)


def speaks_for(result: PairedComparison, measure: str) -> bool | None:
    """Whether a difference speaks for a memory that lasts; None where it is open."""
    if not result.claims or not result.difference:
        return None
    return (result.difference > 0) == (measure == "success")


@dataclass(frozen=True)
class LearningSummary:
    """The comparisons of a panel whose trials are sequences of episodes."""

    panel: Panel

    @cached_property
    def arms(self) -> dict[str, tuple[str, str]]:
        """The arms of each contender of which both were played."""
        played = set(self.panel.contenders)
        return {name: arms for name, arms in self.panel.profile.arms.items() if played >= {*arms}}

    @cached_property
    def episodes(self) -> int:
        """How many episodes the sequences have; 0 where there are none."""
        names = {name for trial in self.panel.trials for name in trial.measures}
        count = 0
        while self.arms and f"success.{count + 1}" in names:
            count += 1
        return count

    @cached_property
    def single(self) -> dict[tuple[Row, int], PairedComparison]:
        """By row and episode; adjusted over all episodes but the first."""
        table = {
            ((contender, scenario, measure), episode): self._compared(
                contender, scenario, measure, episode
            )
            for contender in self.arms
            for scenario in self.panel.scenarios
            for measure in self.panel.profile.learning_measures
            for episode in range(1, self.episodes + 1)
        }
        tested = {key: result for key, result in table.items() if key[1] > 1}
        return {**table, **with_holm(tested)}

    @cached_property
    def later(self) -> dict[Row, PairedComparison]:
        """By row, over the mean of all episodes but the first; adjusted over all rows."""
        rows = {row: None for (row, _), result in self.single.items() if result.pairs}
        return with_holm({row: self._compared_later(*row) for row in rows})

    def _values(self, arm: str, scenario: str, measure: str, episode: int) -> dict[Pair, float]:
        values = self.panel.values(arm, f"{measure}.{episode}")
        return {pair: value for pair, value in values.items() if pair[0] == scenario}

    def _compared(
        self, contender: str, scenario: str, measure: str, episode: int
    ) -> PairedComparison:
        sides: list[Mapping[Pair, bool | float]] = []
        for arm in self.arms[contender]:
            values = self._values(arm, scenario, measure, episode)
            rates = {pair: value > 0 for pair, value in values.items()}
            sides.append(rates if measure == "success" else values)
        return compare(*sides)

    def _compared_later(self, contender: str, scenario: str, measure: str) -> PairedComparison:
        sides: list[dict[Pair, float]] = []
        for arm in self.arms[contender]:
            each = [
                self._values(arm, scenario, measure, episode)
                for episode in range(2, self.episodes + 1)
            ]
            pairs = [pair for pair in (each[0] if each else {}) if all(pair in one for one in each)]
            sides.append({pair: fmean(one[pair] for one in each) for pair in pairs})
        return compare(*sides)

    def recalled(self) -> Iterator[tuple[str, str, dict[str, list[float | None]]]]:
        """Of arms whose memory lasts: the mean of each recall measure by episode."""
        for contender, (_, kept) in self.arms.items():
            for scenario in self.panel.scenarios:
                means: dict[str, list[float | None]] = {}
                for measure in self.panel.profile.recall_measures:
                    each = [
                        self._values(kept, scenario, measure, episode).values()
                        for episode in range(1, self.episodes + 1)
                    ]
                    means[measure] = [fmean(values) if values else None for values in each]
                if any(value is not None for value in means.get("recalled", ())):
                    yield contender, scenario, means

    # -- sentences --

    def findings(self) -> Iterator[str]:
        """Losses, gains, and where nothing was shown."""
        firsts = [result for (_, episode), result in self.single.items() if episode == 1]
        unlike = sum(bool(result.higher or result.lower) for result in firsts)
        if unlike:
            yield (
                f"In episode 1 the arms differ in {unlike} of {len(firsts)} comparisons, where "
                "nothing can have been remembered: chance was not alike in both."
            )
        yield from self._differences(False, "cost")
        yield from self._leaning(-1, "lower")
        yield from self._differences(True, "brought")
        yield from self._leaning(1, "higher")
        yield from self._nothing()

    def _differences(self, good: bool, verb: str) -> Iterator[str]:
        groups: dict[tuple[str, str], list[tuple[Row, PairedComparison]]] = {}
        for row, result in self.later.items():
            if speaks_for(result, row[2]) is good:
                groups.setdefault(row[:2], []).append((row, result))
        titles = self.panel.profile.learning_measures
        for (contender, scenario), group in groups.items():
            parts = [
                f"{titles[row[2]].partition(',')[0]} an episode "
                f"{difference_words(result, row[2])}{' points' if row[2] == 'success' else ''} "
                f"({interval_words(result, row[2])}; {p_words(result)})"
                for row, result in group
            ]
            yield (
                f"From episode 2 on, a memory that lasts {verb} {contender} in "
                f"{self.panel.profile.label(scenario)}: {listed(parts)} "
                f"({counted(group[0][1].pairs, 'pair')}, 95 % intervals)."
            )

    def _leaning(self, sign: int, word: str) -> Iterator[str]:
        """Success whose interval excludes zero although the adjusted test leaves it open."""
        found = [
            f"{contender} in {self.panel.profile.label(scenario)} "
            f"{points(result.difference)} points ({points_span(result.interval)}; more in "
            f"{result.higher} pairs, less in {result.lower}; p = {p_value(result.p)} before the "
            f"correction, {p_value(result.p_holm)} after it)"
            for (contender, scenario, measure), result in self.later.items()
            if measure == "success"
            and not result.claims
            and result.interval is not None
            and not result.interval.includes_zero
            and (result.difference or 0) * sign > 0
        ]
        if found:
            yield (
                f"With a memory that lasts, success was {word}, but the test, adjusted for the "
                f"whole table, leaves it open: {'; '.join(found)}."
            )

    def _nothing(self) -> Iterator[str]:
        open_: dict[str, list[str]] = {}
        for contender, scenario in dict.fromkeys(row[:2] for row in self.later):
            results = [r for row, r in self.later.items() if row[:2] == (contender, scenario)]
            if not any(result.claims for result in results):
                alike = not any(result.higher or result.lower for result in results)
                name = self.panel.profile.label(scenario)
                same = " (the same in every pair)" if alike else ""
                open_.setdefault(contender, []).append(name + same)
        for contender, names in open_.items():
            yield f"No difference in any measure was shown of {contender} in {listed(names)}."

    # -- charts --

    def charts(self, prefix: str) -> list[Chart]:
        """One chart a contender and measure, with a line for each scenario."""
        charts: list[Chart] = []
        for contender in self.arms:
            for measure in DRAWN:
                rows = [row for row in self.later if (row[0], row[2]) == (contender, measure)]
                if rows:
                    charts.append(self._chart(rows[:_MOST_LINES], f"{prefix}-{len(charts)}"))
        return charts

    def _chart(self, rows: list[Row], prefix: str) -> Chart:
        contender, _, measure = rows[0]
        lines: list[Series] = []
        for row in rows:
            results = [self.single[row, episode] for episode in range(1, self.episodes + 1)]
            spots = [(float(at), r.difference or 0.0) for at, r in enumerate(results, 1)]
            intervals = [
                (r.interval.low, r.interval.high) if r.interval and (r.higher or r.lower) else None
                for r in results
            ]
            lines.append(Series(self.panel.profile.label(row[1]), spots, intervals))
        title = f"{contender}: {self.panel.profile.learning_measures[measure]}"
        text = ChartText(
            title=title,
            caption=f"{title}, memory kept less memory emptied, with 95 % interval, by episode",
            description="; ".join(
                f"{line.name}: {', '.join(signed(y) for _, y in line.points)}" for line in lines
            ),
            prefix=prefix,
        )
        return episode_chart(lines, text, points if measure == "success" else number)

    # -- tables --

    def block(self, anchor: str, figure: str) -> ReportBlock:
        """The tables and charts; without tables where there are no sequences."""
        tables: list[ReportTable] = []
        if self.episodes and self.later:
            tables += [self._later_table(), *self._recalled_tables(), self._episodes_table()]
        return ReportBlock(
            anchor=f"{anchor}-learning",
            title="What does a memory that lasts bring, episode by episode?",
            text="A sequence is played twice with the same instance and, episode by episode, the "
            "same chance: once long-term memory is kept from episode to episode, once it is "
            "emptied.",
            charts=self.charts(f"{anchor}-learning-p") if tables else [],
            figure=figure,
            tables=tables,
        )

    def _later_table(self) -> ReportTable:
        profile = self.panel.profile
        measures = list(profile.learning_measures)
        return ReportTable(
            caption="Means of the episodes after the first, memory kept less memory emptied; "
            "small: 95 % interval and adjusted p",
            columns=(
                *columns_of("contender", "scenario", words=(0, 1)),
                *columns_of("n (pairs)", *profile.learning_measures.values()),
            ),
            rows=[
                (
                    Cell(contender),
                    Cell(profile.label(scenario)),
                    number_cell(self.later[contender, scenario, measures[0]].pairs),
                    *(
                        self._learning_cell(self.later[contender, scenario, name], name)
                        for name in measures
                    ),
                )
                for contender, scenario in dict.fromkeys(row[:2] for row in self.later)
            ],
            note="Success in points of the share of episodes that succeeded. p of the sign-flip "
            "test, two-sided, after Holm's correction over all cells of this table; intervals by "
            "paired bootstrap. Where all pairs differ alike, or not at all, the interval is that "
            "one value.",
        )

    def _episodes_table(self) -> ReportTable:
        profile = self.panel.profile
        episodes = range(1, self.episodes + 1)

        def moved(row: Row) -> bool:
            results = [self.single[row, episode] for episode in episodes]
            return any(result.higher or result.lower for result in results)

        titles = [f"episode {episode}" for episode in episodes]
        return ReportTable(
            caption="Episode by episode, memory kept less memory emptied; small: 95 % interval "
            "and adjusted p",
            columns=columns_of("contender", "scenario", "measure", *titles, words=(0, 1, 2)),
            rows=[
                (
                    Cell(row[0]),
                    Cell(profile.label(row[1])),
                    Cell(profile.learning_measures[row[2]]),
                    *(
                        self._learning_cell(self.single[row, episode], row[2])
                        for episode in episodes
                    ),
                )
                for row in self.later
                if moved(row)
            ],
            note=f"Of {len(self.later)} rows those in which some pair differs in some "
            "episode. p of the exact McNemar test for success and of the sign-flip test for the "
            "rest, after Holm's correction over all episodes but the first of all rows. In the "
            "first nothing can have been remembered: there the arms of a pair are to be alike.",
            folded=True,
        )

    @staticmethod
    def _learning_cell(result: PairedComparison, measure: str) -> Cell:
        if not result.pairs:
            return Cell(NONE)
        if not result.higher and not result.lower:
            return Cell("0", "the same in every pair", tone="open", value=0)
        more = f"{interval_words(result, measure)}, p {p_value(result.p_holm)}"
        good = speaks_for(result, measure)
        tone: Tone = "open" if good is None else "good" if good else "bad"
        return Cell(difference_words(result, measure), more, tone=tone, value=result.difference)

    def _recalled_tables(self) -> Iterator[ReportTable]:
        profile = self.panel.profile
        titles = profile.recall_measures
        rows = [
            (
                Cell(contender),
                Cell(profile.label(scenario)),
                *(Cell(" / ".join(number(value) for value in means[name])) for name in titles),
            )
            for contender, scenario, means in self.recalled()
        ]
        if rows:
            yield ReportTable(
                caption="What agents whose memory lasts noted and recalled: means of episodes 1, "
                "2 and so on",
                columns=columns_of("contender", "scenario", *titles.values(), words=(0, 1)),
                rows=rows,
                note="Counted from the traces of CoAG agents. Where a model heeds what is "
                "recalled, nothing needs to be rejected for it.",
            )
