"""The tables and charts of one panel: how often, how much better, at what cost, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from coag._util.text import counted

from .charts import (
    BAD,
    GOOD,
    LINES,
    OPEN,
    SHARES,
    Chart,
    ChartText,
    IntervalRow,
    Spot,
    frontier_of,
    interval_chart,
    round_marks,
    scatter_chart,
)
from .measures import NO_FAILURE_FOUND, NOT_ATTRIBUTABLE
from .statistics import PairedComparison
from .summary import DECIDERS, Panel, Rate
from .wording import (
    NONE,
    comparison_words,
    contribution_words,
    listed,
    number,
    number_span,
    p_value,
    percent,
    points,
    points_span,
    seconds,
    signed,
    span,
)

DECIDED = "decided by: model / rank / only survivor"
_IN_COST_TABLE = frozenset(
    {
        *("actions", "model_calls", "prompt_tokens", "completion_tokens", "cached_tokens"),
        *("cached_share", "later_cached_share", "tokens", "seconds"),
        *("share_model", "share_rank", "share_only_survivor"),
    }
)
_GROUPS = {
    "robustness": "Robustness",
    "engineering": "Engineering",
    "world": "What came of it in the world",
    "cost": "Further costs",
}

Tone = Literal["", "good", "bad", "open"]


@dataclass(frozen=True, slots=True)
class ReportCell:
    """One cell of a table."""

    text: str
    more: str = ""
    """Small text below it."""
    tone: Tone = ""
    """Whether it speaks for the contender; shown as a colour only."""
    heat: int | None = None
    """How strong it is tinted, 0 to 9; None for no tint."""
    link: str = ""
    """A relative address that the text leads to."""
    code: bool = False
    """Whether the text is a command."""
    value: float | None = None
    """The number that the text shows, for programs."""


Cell = ReportCell


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A heading, and whether the cells below hold words and no numbers."""

    title: str
    words: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table whose caption says what it shows, of how many trials, in what unit."""

    caption: str
    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[ReportCell]]
    note: str = ""
    folded: bool = False
    """Whether a page shows it only on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBlock:
    """One question of a section, and what answers it."""

    anchor: str
    title: str
    text: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[ReportTable] = ()
    figure: str = ""
    """Relative address of a file with the charts, for Markdown."""
    figure_text: str = ""
    """What that file shows, in words; the title if empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A part of the report with a heading of its own."""

    anchor: str
    title: str
    text: str = ""
    findings: Sequence[str] = ()
    blocks: Sequence[ReportBlock] = ()


def columns_of(*titles: str, words: Sequence[int] = ()) -> tuple[ReportColumn, ...]:
    """Columns of numbers, except those at the places named in `words`."""
    return tuple(ReportColumn(title, words=at in words) for at, title in enumerate(titles))


def _heat(share: float | None) -> int | None:
    return None if share is None else min(9, max(0, int(share * 10)))


def _rate_cell(rate: Rate) -> Cell:
    if rate.share is None:
        return Cell(NONE)
    more = f"{rate.successes:,}/{rate.n:,}, {span(rate.interval)} %"
    return Cell(percent(rate.share), more, heat=_heat(rate.share), value=rate.share)


def number_cell(value: float | None, show: Callable[[float | None], str] = number) -> Cell:
    """A cell of a number."""
    return Cell(show(value), value=value)


def _effect(value: float | None) -> str:
    return NONE if value is None else f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def _tone(result: PairedComparison) -> Tone:
    if not result.claims or result.difference is None:
        return "open"
    return "good" if result.difference > 0 else "bad"


def _points_cell(result: PairedComparison) -> Cell:
    return Cell(points(result.difference), tone=_tone(result), value=result.difference)


@dataclass(frozen=True, slots=True)
class _PanelBlocks:
    panel: Panel
    anchor: str
    figure: str = ""
    """Relative address of the frontier's file."""

    def _decided(self, contender: str) -> Cell:
        shares = self.panel.decided_by(contender)
        if not shares:
            return Cell(NONE)
        return Cell(f"{' / '.join(percent(shares[who])[:-2] for who in DECIDERS)} %")

    def _by_contender(
        self,
        caption: str,
        titles: Sequence[str],
        cells: Mapping[str, Sequence[Cell]],
        *,
        note: str = "",
        words: Sequence[int] = (),
        folded: bool = False,
    ) -> tuple[ReportTable, ...]:
        """A table with a row for each contender; none without rows."""
        if not cells:
            return ()
        rows = [(Cell(name), *row, self._decided(name)) for name, row in cells.items()]
        columns = columns_of("contender", *titles, DECIDED, words=(0, *words))
        return (ReportTable(caption=caption, columns=columns, rows=rows, note=note, folded=folded),)

    def _ink(self, contender: str) -> str:
        return LINES[0] if contender in self.panel.claimed else LINES[1]


class SuccessTables(_PanelBlocks):
    """How often contenders succeeded, how they compare, and what each part adds."""

    def blocks(self) -> Iterator[ReportBlock]:
        """The blocks, each a question with what answers it."""
        yield from (self._success(), self._compared(), self._contributions())

    def _success(self) -> ReportBlock:
        panel = self.panel
        cells = {
            name: [
                _rate_cell(panel.rates[name]),
                *(_rate_cell(panel.rate(name, scenario)) for scenario in panel.scenarios),
                number_cell(panel.broken[name]),
            ]
            for name in panel.contenders
        }
        labels = [panel.profile.label(name) for name in panel.scenarios]
        return ReportBlock(
            anchor=f"{self.anchor}-success",
            title="How often did they succeed?",
            charts=[self._success_chart(None, 0)]
            + [self._success_chart(name, at) for at, name in enumerate(panel.scenarios, 1)],
            tables=self._by_contender(
                "Trials that succeeded, in percent; small: successes/trials and 95 % Wilson "
                "interval in percent",
                ["all scenarios", *labels, "broken trials"],
                cells,
                note="Broken trials are no evidence and not counted in any rate.",
            ),
        )

    def _success_chart(self, scenario: str | None, place: int) -> Chart:
        panel = self.panel
        rates = {
            name: panel.rates[name] if scenario is None else panel.rate(name, scenario)
            for name in panel.contenders
        }
        rows = [
            IntervalRow(name, rate.share, rate.interval.low, rate.interval.high, self._ink(name))
            for name, rate in rates.items()
            if rate.share is not None and rate.interval is not None
        ]
        counts = [rate.n for rate in rates.values() if rate.n] or [0]
        least, most = min(counts), max(counts)
        each = counted(most, "trial") if least == most else f"{least:,} to {most:,} trials"
        title = "All scenarios" if scenario is None else panel.profile.label(scenario)
        text = ChartText(
            title=f"{title}: success",
            caption=f"{title}: {each} each",
            description="; ".join(
                f"{name} {percent(rate.share)} ({span(rate.interval)} %, n={rate.n})"
                for name, rate in rates.items()
            ),
            unit="succeeded, percent, with 95 % interval",
            prefix=f"{self.anchor}-s{place}",
        )
        return interval_chart(
            rows,
            text,
            across=(-0.02, 1),
            marks=SHARES,
            name_mark=lambda share: f"{100 * share:.0f}",
        )

    def _compared(self) -> ReportBlock:
        panel = self.panel
        cells = {
            name: [
                number_cell(result.pairs),
                Cell(f"{result.higher:,} : {result.lower:,}"),
                _points_cell(result),
                Cell(points_span(result.interval)),
                number_cell(result.adjusted_p, p_value),
                number_cell(result.effect, _effect),
                Cell(comparison_words(result), tone=_tone(result)),
            ]
            for name, result in panel.compared.items()
        }
        titles = ["n (pairs)", "only it : only the other", "difference, points"]
        titles += ["95 % interval, points", "p, adjusted", "effect h", "what it says"]
        single = panel.compared_by_scenario
        by_scenario = {
            name: [self._scenario_cell(single.get((name, each))) for each in panel.scenarios]
            for name in (panel.compared if single else ())
        }
        return ReportBlock(
            anchor=f"{self.anchor}-pairs",
            title=f"Is it better than {panel.reference}, beyond chance?",
            tables=(
                *self._by_contender(
                    f"Success against {panel.reference}, on the same scenarios and seeds, over "
                    "all scenarios",
                    titles,
                    cells,
                    words=(7,),
                    note="Only pairs in which one succeeded and the other failed tell who is "
                    "better: they are counted in the third column. p is of the exact McNemar test, "
                    "two-sided, after Holm's correction over this table. Effect: Cohen's h, of "
                    "which 0.2 is called small, 0.5 medium and 0.8 large.",
                ),
                *self._by_contender(
                    f"Success against {panel.reference} by scenario: difference in points; small: "
                    "pairs, only it : only the other, adjusted p",
                    [panel.profile.label(name) for name in panel.scenarios],
                    by_scenario,
                    folded=True,
                    note="p of the exact McNemar test after Holm's correction over this table; a "
                    "dash where there are too few pairs for any claim. Marked + better, "
                    "\N{MINUS SIGN} worse, ? open.",
                ),
            ),
        )

    @staticmethod
    def _scenario_cell(result: PairedComparison | None) -> Cell:
        if result is None or not result.pairs:
            return Cell(NONE)
        p = p_value(result.adjusted_p)
        more = f"n={result.pairs:,}, {result.higher:,}:{result.lower:,}, p {p}"
        tone = _tone(result)
        mark = {"good": "+", "bad": "\N{MINUS SIGN}", "open": "?", "": ""}[tone]
        text = f"{points(result.difference)} {mark}"
        return Cell(text, more, tone=tone, value=result.difference)

    def _contributions(self) -> ReportBlock:
        parts = self.panel.contributions
        rows = [
            (
                Cell(one.part, f"{one.having} against {one.lacking}"),
                number_cell(result.pairs),
                _points_cell(result),
                Cell(points_span(result.interval)),
                number_cell(result.p_holm, p_value),
                Cell(signed(gap.mean), number_span(gap.interval), value=gap.mean),
                Cell(contribution_words(result), tone=_tone(result)),
                self._decided(one.having),
                self._decided(one.lacking),
            )
            for one, result, gap in parts
        ]
        titles = ["part", "n (pairs)", "success, points", "95 % interval, points", "p, adjusted"]
        titles += ["tokens a trial (95 % interval)", "what it says"]
        titles += [f"with it, {DECIDED}", f"without it, {DECIDED}"]
        table = ReportTable(
            caption="What each phase and each safeguard adds: the contender that has it against "
            "the one that differs in it alone, on the same scenarios and seeds",
            columns=columns_of(*titles, words=(0, 6)),
            rows=rows,
            note="Above 0: with it, more trials succeed. p of the exact McNemar test after Holm's "
            "correction over this table; intervals of tokens by paired bootstrap.",
        )
        return ReportBlock(
            anchor=f"{self.anchor}-parts",
            title="What does each phase and each safeguard add?",
            charts=self._contribution_charts(),
            tables=(table,) if rows else (),
        )

    def _contribution_charts(self) -> list[Chart]:
        inks = {"good": GOOD, "bad": BAD, "open": OPEN, "": OPEN}
        rows = [
            IntervalRow(
                one.part,
                result.difference,
                result.interval.low,
                result.interval.high,
                inks[_tone(result)],
                result.claims,
            )
            for one, result, _ in self.panel.contributions
            if result.interval is not None and result.difference is not None
        ]
        if not rows:
            return []
        reach = max(0.1, *(max(abs(row.low), abs(row.high)) for row in rows)) * 1.05
        text = ChartText(
            title="What each part adds",
            caption="What each part adds. Filled: shown beyond chance; hollow: open.",
            description="; ".join(f"{row.name}: {points(row.value)} points" for row in rows),
            unit="success with it less success without it, points, with 95 % interval",
            prefix=f"{self.anchor}-parts-p",
        )
        return [
            interval_chart(
                rows,
                text,
                across=(-reach, reach),
                marks=round_marks(reach),
                name_mark=points,
                names_width=282,
                width=640,
            )
        ]


class CostTables(_PanelBlocks):
    """What contenders cost, whether they can be relied on, and where failures come from."""

    def blocks(self) -> Iterator[ReportBlock]:
        """The blocks, each a question with what answers it."""
        yield from (self._costs(), self._reliability(), self._causes(), self._measures())

    def _costs(self) -> ReportBlock:
        panel = self.panel
        cells: dict[str, list[Cell]] = {}
        for name in panel.contenders:
            prompts = panel.total(name, "prompt_tokens")
            cached = panel.total(name, "cached_tokens") / prompts if prompts else None
            cells[name] = [
                number_cell(panel.rates[name].n),
                number_cell(panel.rates[name].successes),
                number_cell(panel.mean(name, "actions")),
                number_cell(panel.mean(name, "model_calls")),
                number_cell(panel.mean(name, "tokens")),
                number_cell(cached, percent),
                number_cell(panel.mean(name, "later_cached_share"), percent),
                number_cell(panel.mean(name, "seconds"), seconds),
                number_cell(panel.price(name, "model_calls")),
                number_cell(panel.price(name, "tokens")),
                number_cell(panel.price(name, "seconds"), seconds),
            ]
        titles = ["n (trials)", "successes", "actions a trial", "model calls a trial"]
        titles += ["tokens a trial", "prompt tokens from the cache"]
        titles += ["of those after a cycle's first call", "time a trial"]
        titles += ["calls for each success", "tokens for each success", "time for each success"]
        return ReportBlock(
            anchor=f"{self.anchor}-cost",
            title="What does it cost?",
            charts=self._cost_charts(),
            figure=self.figure,
            figure_text=chart.description if (chart := self.frontier()) else "",
            tables=self._by_contender(
                "What a trial cost on average, and what each success cost",
                titles,
                cells,
                note="For each success: the sum over all trials, failed ones too, by the number "
                "of successes; a dash without one. Tokens are prompt and completion tokens.",
            ),
        )

    def _cost_charts(self) -> list[Chart]:
        names = [name for name in self.panel.contenders if self.panel.mean(name, "tokens")]
        frontier = self.frontier()
        charts = [frontier] if frontier else []
        if names and set(names) != set(self.panel.profile.frontier):
            charts.append(self._scatter(names, "cost"))
        return charts

    def frontier(self) -> Chart | None:
        """Success against tokens of the profile's few; None where fewer than two were played."""
        names = [name for name in self.panel.profile.frontier if self.panel.mean(name, "tokens")]
        return self._scatter(names, "frontier") if len(names) > 1 else None

    def _scatter(self, names: Sequence[str], kind: Literal["cost", "frontier"]) -> Chart:
        spots = [spot for name in names if (spot := self._cost_spot(name)) is not None]
        title, frontier = "Success against tokens a trial", kind == "frontier"
        caption = f"{title}, with 95 % intervals. Up and to the left is better."
        words = "; ".join(
            f"{one.name} {percent(one.y)} ({span(one.upward)} %) at {number(one.x)} tokens "
            f"({number_span(one.across)})"
            for one in spots
        )
        if frontier:
            best = listed([one.name for one in frontier_of(spots)])
            words += f". No other is better at the same or a lower cost: {best}"
            caption += " Right of the dashed line, another is as good at a lower cost, or better."
        text = ChartText(
            title=title,
            caption=caption,
            description=words,
            unit="tokens a trial, logarithmic",
            prefix=f"{self.anchor}-{kind}-p",
        )
        return scatter_chart(spots, text, frontier=frontier)

    def _cost_spot(self, name: str) -> Spot | None:
        tokens, rate = self.panel.mean(name, "tokens"), self.panel.rates[name]
        if not tokens or rate.share is None:
            return None
        across = self.panel.mean_interval(name, "tokens")
        return Spot(name, tokens, rate.share, self._ink(name), across, rate.interval)

    def _reliability(self) -> ReportBlock:
        panel = self.panel
        cells: dict[str, list[Cell]] = {}
        for name in panel.contenders if panel.ks else ():
            reliabilities = [panel.reliability(name, k) for k in panel.ks]
            cells[name] = [number_cell(one[0] if one else None, percent) for one in reliabilities]
            shares = [one[1] if one else None for one in reliabilities]
            cells[name] += [Cell(percent(one), heat=_heat(one), value=one) for one in shares]
            cells[name].append(number_cell(len(panel.scenarios)))
        titles = [f"at least 1 of {k} (pass@{k})" for k in panel.ks]
        titles += [f"all of {k} (worst of {k})" for k in panel.ks]
        return ReportBlock(
            anchor=f"{self.anchor}-reliability",
            title="Can it be relied on?",
            tables=self._by_contender(
                "Chance that at least one, and that every one, of k seeds of a scenario succeeds, "
                "in percent; means over the scenarios",
                [*titles, "n (scenarios)"],
                cells,
                note="Estimated from the trials of each scenario, drawn without replacement.",
            ),
        )

    def _causes(self) -> ReportBlock:
        panel = self.panel
        failed = {name: panel.failed(name) for name in panel.contenders if panel.failed(name)}
        counts = {name: panel.causes(name) for name in failed}
        totals = {
            cause: sum(c[cause] for c in counts.values()) for c in counts.values() for cause in c
        }
        last = (NOT_ATTRIBUTABLE, NO_FAILURE_FOUND)
        causes = sorted(totals, key=lambda cause: (cause in last, -totals[cause], cause))

        def cell(count: int, of: int) -> Cell:
            if not count:
                return Cell(NONE, value=0)
            return Cell(f"{count:,}", heat=_heat(count / of), value=count)

        cells = {
            name: [
                number_cell(len(trials)),
                *(cell(counts[name][cause], len(trials)) for cause in causes),
                cell(sum(not trial.causes for trial in trials), len(trials)),
            ]
            for name, trials in failed.items()
        }
        return ReportBlock(
            anchor=f"{self.anchor}-causes",
            title="Where do failures come from?",
            tables=self._by_contender(
                "Failed trials by the part of the architecture that a diagnosis of the trace "
                "blames: runs with that cause",
                ["n (failed trials)", *causes, "no cause found"],
                cells,
                note="A failed trial may have several runs, each with its cause. Contenders "
                "without a failure are left out.",
            ),
        )

    def _measures(self) -> ReportBlock:
        panel, known = self.panel, self.panel.profile.measures
        there = {name for trial in panel.trials for name in trial.measures} - _IN_COST_TABLE
        there = {name for name in there if not name.rpartition(".")[2].isdecimal()}
        groups = [
            (title, [n for n, m in known.items() if m.group == group and n in there])
            for group, title in _GROUPS.items()
        ]
        groups.append(("Measures of its own", sorted(there - set(known))))
        tables: list[ReportTable] = []
        for title, names in groups:
            cells = {
                contender: [self._measure_cell(contender, name) for name in names]
                for contender in panel.contenders
            }
            if names:
                tables += self._by_contender(
                    f"{title}: means over the trials that have a value; small: how many, and where "
                    "computed the 95 % interval of the mean difference from "
                    f"{panel.reference or NONE}",
                    [self._measure_title(name) for name in names],
                    cells,
                )
        meanings = ReportTable(
            caption="What these measures mean; docs/measures.md has more",
            columns=columns_of("measure", "unit", "meaning", words=(0, 1, 2)),
            rows=[
                (Cell(name.replace("_", " ")), Cell(measure.unit), Cell(measure.meaning))
                for name, measure in known.items()
                if name in there
            ],
            folded=True,
        )
        return ReportBlock(
            anchor=f"{self.anchor}-measures",
            title="Other measures",
            tables=(*tables, meanings) if tables else (),
        )

    def _measure_title(self, name: str) -> str:
        measure, words = self.panel.profile.measures.get(name), name.replace("_", " ")
        if measure is None:
            return words
        better = "" if measure.better == "neither" else f", {measure.better} is better"
        return f"{words} ({measure.unit}{better})"

    def _measure_cell(self, contender: str, name: str) -> Cell:
        panel = self.panel
        values = panel.values(contender, name)
        if not values:
            return Cell(NONE)
        more = f"n={len(values):,}"
        if name in panel.profile.behaviour and panel.reference not in (None, contender):
            gap = panel.gap(name, contender, panel.reference or "")
            more += f"; {number_span(gap.interval)}" if gap.interval is not None else ""
        mean = panel.mean(contender, name)
        return Cell(number(mean), more, value=mean)


def panel_blocks(panel: Panel, anchor: str, figure: str = "") -> Iterator[ReportBlock]:
    """All blocks of a panel that have something to show, in order."""
    for tables in (SuccessTables(panel, anchor), CostTables(panel, anchor, figure)):
        yield from (block for block in tables.blocks() if block.tables)
