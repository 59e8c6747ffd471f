"""The order of a report: sections of blocks, each a question with its plots and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from case_study.assess import NO_MODEL

from ._learning_plots import learning_plots
from ._learning_tables import by_episode_table, later_table, recalled_table
from ._measures_tables import meanings_table, measures_tables
from ._names import lettered
from ._other_tables import (
    adaptation_table,
    broken_table,
    budget_table,
    causes_table,
    contenders_table,
    cost_table,
    facts_table,
    failures_table,
    reliability_table,
)
from ._plots import Curve, Picture, contribution_plot, cost_plot, step_plot, success_plot
from ._success_tables import by_scenario_table, compared_table, contribution_table, success_table
from ._tables import Table
from ._values import Panel, Summary
from ._wording import counted

_DRAWN = (
    *("coag-full", "coag-compact", "plain", "plain-guarded", "rules", "plain-memory"),
    *("oracle", "plain-iterations", "random"),
)
"""Contenders whose lines are drawn: the first six of these that there are."""
_LINES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One question of a section, and what answers it."""

    anchor: str
    title: str
    text: str = ""
    pictures: tuple[Picture, ...] = ()
    figure: str = ""
    """Relative address of a file with the plots, for a report that holds none itself."""
    tables: tuple[Table, ...] = ()
    folded: tuple[Table, ...] = ()
    """Tables that a page shows when they are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the report with a heading of its own."""

    anchor: str
    title: str
    text: str = ""
    """Said first, as a paragraph."""
    findings: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


def sections_of(
    summary: Summary, pages: Mapping[str, str], *, drawn: bool, figures: Sequence[str] = ()
) -> tuple[Section, ...]:
    """All of a report behind its abstract.

    Args:
        summary: What is told.
        pages: Relative addresses of pages of runs, by the case's folder.
        drawn: Whether there are plots.
        figures: Relative addresses of files with the learning curves, one a panel.
    """
    told = {part.sentences for part in summary.abstract}
    panels = [
        _panel(panel, f"m{place}", told=panel.findings in told, drawn=drawn, figure=figure)
        for place, (panel, figure) in enumerate(zip_longest(summary.panels, figures), 1)
        if panel is not None
    ]
    return (*panels, _trials(summary, pages), _conditions(summary))


def _panel(panel: Panel, anchor: str, *, told: bool, drawn: bool, figure: str | None) -> Section:
    title = "No model asked" if panel.model == NO_MODEL else panel.model
    if panel.scripted:
        title = f"{title} (scripted)"
    if panel.domain != "vacuum":
        title = f"{panel.domain}: {title}"
    blocks = (
        _learning(panel, anchor, drawn=drawn, figure=figure or ""),
        _success(panel, anchor, drawn=drawn),
        _against(panel, anchor),
        _parts(panel, anchor, drawn=drawn),
        _cost(panel, anchor, drawn=drawn),
        _budgets(panel, anchor, drawn=drawn),
        _reliability(panel, anchor),
        _adaptation(panel, anchor, drawn=drawn),
        _causes(panel, anchor),
        Block(
            anchor=f"{anchor}-measures",
            title="Other measures",
            tables=measures_tables(panel),
            folded=(meanings_table(panel),),
        ),
    )
    counts = (
        f"{counted(panel.trials, 'trial')} that are evidence, "
        f"{counted(panel.seeds, 'seed')}, {counted(len(panel.scenarios), 'scenario')}, "
        f"{counted(len(panel.contenders), 'contender')}. "
    )
    return Section(
        anchor=anchor,
        title=title,
        text=counts + panel.proves,
        findings=() if told else panel.findings,
        blocks=tuple(block for block in blocks if block.tables),
    )


def learning_pictures(panel: Panel, anchor: str) -> tuple[Picture, ...]:
    """The learning curves of a panel."""
    return learning_plots(panel.learning, prefix=f"{anchor}-learning-p")


def _learning(panel: Panel, anchor: str, *, drawn: bool, figure: str) -> Block:
    later = (later_table(panel),) if panel.learning else ()
    recalls = (recalled_table(panel.recalled),) if panel.recalled else ()
    return Block(
        anchor=f"{anchor}-learning",
        title="What does a memory that lasts bring, episode by episode?",
        text="A sequence is played twice with the same instance and, episode by episode, the same "
        "chance: once long-term memory is kept from episode to episode, once it is emptied.",
        pictures=learning_pictures(panel, anchor) if drawn else (),
        figure=figure,
        tables=(*later, *recalls),
        folded=(by_episode_table(panel),) if panel.learning else (),
    )


def _success(panel: Panel, anchor: str, *, drawn: bool) -> Block:
    scenarios = [None, *panel.scenarios] if drawn else []
    pictures = [
        success_plot(
            panel.success,
            scenario,
            title=lettered(scenario) if scenario else "All scenarios",
            prefix=f"{anchor}-s{place}",
        )
        for place, scenario in enumerate(scenarios)
    ]
    return Block(
        anchor=f"{anchor}-success",
        title="How often did they succeed?",
        pictures=tuple(pictures),
        tables=(success_table(panel),),
    )


def _against(panel: Panel, anchor: str) -> Block:
    return Block(
        anchor=f"{anchor}-pairs",
        title=f"Is it better than {panel.reference}, beyond chance?",
        tables=(compared_table(panel),) if panel.compared else (),
        folded=(by_scenario_table(panel),) if panel.compared_by_scenario else (),
    )


def _parts(panel: Panel, anchor: str, *, drawn: bool) -> Block:
    parts = panel.contributions
    picture = contribution_plot(parts, prefix=f"{anchor}-parts-p") if parts and drawn else None
    return Block(
        anchor=f"{anchor}-parts",
        title="What does each phase and each safeguard add?",
        pictures=(picture,) if picture else (),
        tables=(contribution_table(parts),) if parts else (),
    )


def _cost(panel: Panel, anchor: str, *, drawn: bool) -> Block:
    picture = cost_plot(panel.costs, panel.success, prefix=f"{anchor}-cost-p") if drawn else None
    return Block(
        anchor=f"{anchor}-cost",
        title="What does it cost?",
        pictures=(picture,) if picture else (),
        tables=(cost_table(panel),),
    )


def _budgets(panel: Panel, anchor: str, *, drawn: bool) -> Block:
    curves = {curve.contender: Curve(curve.contender, curve.points) for curve in panel.budgets}
    picture = (
        step_plot(
            _some(curves),
            title="Trials that had succeeded by so many tokens",
            unit="tokens, logarithmic",
            prefix=f"{anchor}-tokens-p",
            logarithmic=True,
        )
        if drawn
        else None
    )
    return Block(
        anchor=f"{anchor}-tokens",
        title="Who is ahead at equal tokens?",
        pictures=(picture,) if picture else (),
        tables=(budget_table(panel),) if panel.budgets else (),
    )


def _reliability(panel: Panel, anchor: str) -> Block:
    return Block(
        anchor=f"{anchor}-reliability",
        title="Can it be relied on?",
        tables=(reliability_table(panel),) if panel.reliability else (),
    )


def _adaptation(panel: Panel, anchor: str, *, drawn: bool) -> Block:
    curves = {curve.contender: Curve(curve.contender, curve.points) for curve in panel.adaptation}
    picture = (
        step_plot(
            _some(curves),
            title="Trials in which an action worked again after one that failed",
            unit="actions since the failed one, mean of a trial",
            prefix=f"{anchor}-adaptation-p",
        )
        if drawn
        else None
    )
    return Block(
        anchor=f"{anchor}-adaptation",
        title="How soon does it adapt after a failure?",
        pictures=(picture,) if picture else (),
        tables=(adaptation_table(panel),) if panel.adaptation else (),
    )


def _causes(panel: Panel, anchor: str) -> Block:
    return Block(
        anchor=f"{anchor}-causes",
        title="Where do failures come from?",
        tables=(causes_table(panel),) if panel.causes else (),
    )


def _some(curves: Mapping[str, Curve]) -> list[Curve]:
    names = [name for name in _DRAWN if name in curves]
    names += [name for name in curves if name not in _DRAWN]
    return [curves[name] for name in names[:_LINES]]


def _trials(summary: Summary, pages: Mapping[str, str]) -> Section:
    failures = Block(
        anchor="failures",
        title="Failed trials",
        text=f"{counted(summary.failures_left_out, 'more failed trial')} not listed."
        if summary.failures_left_out
        else "",
        folded=(failures_table(summary, pages),) if summary.failures else (),
    )
    broken = Block(
        anchor="broken",
        title="Broken trials",
        text="The model or the world failed, by no fault of the contender: no evidence.",
        folded=(broken_table(summary),) if summary.broken else (),
    )
    blocks = tuple(block for block in (failures, broken) if block.folded)
    text = "" if blocks else "No trial failed, and none broke."
    return Section(anchor="trials", title="Single trials", text=text, blocks=blocks)


def _conditions(summary: Summary) -> Section:
    mixed = (
        "The sweep was gone on with by other code or on another machine. "
        if summary.facts.mixed
        else ""
    )
    block = Block(
        anchor="facts",
        title="How it was made",
        tables=(facts_table(summary.facts), contenders_table(summary)),
    )
    return Section(anchor="conditions", title="Conditions", text=mixed, blocks=(block,))
