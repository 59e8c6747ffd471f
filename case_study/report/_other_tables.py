"""Tables of what trials cost, what can be relied on, and where failures came from."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from case_study.assess.episodes import ARMS
from case_study.contenders import CONTENDERS
from case_study.measures import NO_FAILURE_FOUND, NOT_ATTRIBUTABLE

from ._tables import DECIDED, Cell, Table, columns, decided, heat, text
from ._values import Facts, Panel, Summary, TrialLine
from ._wording import NONE, counted, listed, number, percent, seconds


def cost_table(panel: Panel) -> Table:
    """What each contender used."""
    rows = tuple(
        (
            text(row.contender),
            Cell(f"{row.n:,}"),
            Cell(f"{row.successes:,}"),
            Cell(number(row.actions)),
            Cell(number(row.calls)),
            Cell(number(row.tokens)),
            Cell(percent(row.cached)),
            Cell(percent(row.later_cached)),
            Cell(seconds(row.seconds)),
            Cell(number(row.calls_per_success)),
            Cell(number(row.tokens_per_success)),
            Cell(seconds(row.seconds_per_success)),
            decided(row.decided_by),
        )
        for row in panel.costs
    )
    titles = (
        *("contender", "n (trials)", "successes", "actions a trial", "model calls a trial"),
        *(
            "tokens a trial",
            "prompt tokens from the cache",
            "of those after a cycle's first call",
            "time a trial",
        ),
        *("calls for each success", "tokens for each success", "time for each success"),
    )
    return Table(
        caption="What a trial cost on average, and what each success cost",
        columns=columns(*titles, DECIDED, words=(0,)),
        rows=rows,
        note="For each success: the sum over all trials, failed ones too, by the number of "
        "successes; a dash without one. Tokens are prompt and completion tokens.",
    )


def budget_table(panel: Panel) -> Table:
    """How often contenders had succeeded at an equal number of tokens."""
    budgets = list(panel.budgets[0].at) if panel.budgets else []
    rows = tuple(
        (
            text(curve.contender),
            Cell(f"{curve.n:,}"),
            *(Cell(percent(curve.at[one]), heat=heat(curve.at[one])) for one in budgets),
            decided(curve.decided_by),
        )
        for curve in panel.budgets
    )
    titles = [f"{number(float(budget))} tokens" for budget in budgets]
    return Table(
        caption="Trials that had succeeded with no more than so many tokens, in percent",
        columns=columns("contender", "n (trials)", *titles, DECIDED, words=(0,)),
        rows=rows,
        note="Read from these trials, not played again: a success counts for a budget if the "
        "whole trial took no more. A trial that is stopped at the budget could only do better.",
    )


def reliability_table(panel: Panel) -> Table:
    """What can be relied on when a scenario is played several times."""
    ks = sorted({one.k for one in panel.reliability})
    found = {(one.contender, one.k): one for one in panel.reliability}
    rows = tuple(
        (
            text(row.contender),
            *(
                Cell(percent(one.at_least_once) if one else NONE)
                for one in (found.get((row.contender, k)) for k in ks)
            ),
            *(
                Cell(
                    percent(one.every_time) if one else NONE,
                    heat=heat(one.every_time) if one else None,
                )
                for one in (found.get((row.contender, k)) for k in ks)
            ),
            Cell(str(max((one.scenarios for one in found.values()), default=0))),
            decided(row.decided_by),
        )
        for row in panel.success
    )
    titles = [f"at least 1 of {k} (pass@{k})" for k in ks] + [
        f"all of {k} (worst of {k})" for k in ks
    ]
    return Table(
        caption="Chance that at least one, and that every one, of k seeds of a scenario "
        "succeeds, in percent; means over the scenarios",
        columns=columns("contender", *titles, "n (scenarios)", DECIDED, words=(0,)),
        rows=rows,
        note="Estimated from the trials of each scenario, drawn without putting back.",
    )


def adaptation_table(panel: Panel) -> Table:
    """How soon contenders acted by a change."""
    rows = tuple(
        (
            text(curve.contender),
            Cell(f"{curve.of:,}"),
            Cell(f"{curve.adapted:,}"),
            Cell(percent(curve.adapted / curve.of), heat=heat(curve.adapted / curve.of)),
            Cell(number(curve.median)),
            Cell(seconds(curve.seconds)),
            decided(curve.decided_by),
        )
        for curve in panel.adaptation
    )
    titles = (
        *("contender", "n (trials in which an action failed)", "one worked again each time"),
        *("the same, in percent", "actions by which half had adapted", "time to it"),
    )
    return Table(
        caption="How soon an action worked again after one that had failed",
        columns=columns(*titles, DECIDED, words=(0,)),
        rows=rows,
        note="A trial that ended before an action worked again counts as not adapted. Actions and "
        "time are means within a trial; a dash: fewer than half had adapted.",
    )


def causes_table(panel: Panel) -> Table:
    """Where failures came from."""
    totals: dict[str, int] = {}
    for row in panel.causes:
        for cause, count in row.causes.items():
            totals[cause] = totals.get(cause, 0) + count
    causes = sorted(totals, key=lambda cause: (cause in _OPEN, -totals[cause], cause))
    rows = tuple(
        (
            text(row.contender),
            Cell(f"{row.failed:,}"),
            *(_part_of(row.causes.get(cause, 0), row.failed) for cause in causes),
            _part_of(row.untold, row.failed),
            decided(row.decided_by),
        )
        for row in panel.causes
    )
    return Table(
        caption="Failed trials by the part of the architecture that a diagnosis of the trace "
        "blames: runs with that cause",
        columns=columns(
            "contender", "n (failed trials)", *causes, "no cause found", DECIDED, words=(0,)
        ),
        rows=rows,
        note="A failed trial may have several runs, each with its cause. Contenders without a "
        "failure are left out.",
    )


_OPEN = (NOT_ATTRIBUTABLE, NO_FAILURE_FOUND)
"""Causes that say that there is none to be told; they stand last."""


def _part_of(count: int, of: int) -> Cell:
    return Cell(f"{count:,}" if count else NONE, heat=heat(count / of) if count else None)


def broken_table(summary: Summary) -> Table:
    """Trials that are no evidence."""
    return Table(
        caption=f"{counted(len(summary.broken), 'trial')} that broke",
        columns=columns(
            "scenario", "contender", "model", "seed", "tries", "what failed", words=(0, 1, 2, 5)
        ),
        rows=tuple(
            (*_who(line), Cell(str(line.attempts)), text(line.problem)) for line in summary.broken
        ),
    )


def failures_table(summary: Summary, pages: Mapping[str, str]) -> Table:
    """Failed trials, with the way to their runs.

    Args:
        summary: Everything that is told.
        pages: Relative addresses of pages of runs, by the case's folder.
    """
    titles = ("scenario", "contender", "model", "seed", "what happened", "cause", "reference")
    return Table(
        caption=f"{counted(len(summary.failures), 'failed trial')}: first those of CoAG in which "
        "the reference succeeded on the same instance",
        columns=columns(*titles, "runs", words=(0, 1, 2, 4, 5, 6, 7)),
        rows=tuple(_failure(line, pages) for line in summary.failures),
        note="Runs: their page, or the command that makes one, to be given in the assessment's "
        "folder. A dash: the runs were not kept.",
    )


def _failure(line: TrialLine, pages: Mapping[str, str]) -> tuple[Cell, ...]:
    if line.case is None:
        runs = text(NONE)
    elif line.case in pages:
        runs = Cell("page of the run", link=pages[line.case])
    else:
        runs = Cell(f"coag report {quote(line.case)} -o run.html", code=True)
    return (
        *_who(line),
        text(line.problem or NONE),
        text(listed(list(line.causes)) or NONE),
        text("succeeded" if line.reference_won else "did not succeed"),
        runs,
    )


def facts_table(facts: Facts) -> Table:
    """Under what conditions the assessment was made."""
    budget = "not limited" if facts.token_budget is None else f"{facts.token_budget:,}"
    told = [
        ("command", Cell(facts.command or NONE, code=bool(facts.command))),
        ("begun", text(facts.started_at)),
        ("machine", text(facts.machine or NONE)),
        ("world and records", text(_place(facts))),
        *((("episodes in a row", text(str(facts.episodes))),) if facts.episodes else ()),
        ("tokens a trial", text(budget)),
        ("trials played", text(f"{facts.played:,} of {facts.planned:,}")),
        *((f"version of {name}", text(version)) for name, version in facts.versions.items()),
    ]
    return Table(
        caption="Conditions of the assessment",
        columns=columns("what", "value", words=(0, 1)),
        rows=tuple((text(name), cell) for name, cell in told),
    )


def contenders_table(summary: Summary) -> Table:
    """Who was compared."""
    names = dict.fromkeys(name for panel in summary.panels for name in panel.contenders)
    told = [(name, ARMS.get(name) or CONTENDERS.get(name)) for name in names]
    return Table(
        caption="The contenders",
        columns=columns("contender", "what it is", words=(0, 1)),
        rows=tuple((text(name), text(one.summary if one else NONE)) for name, one in told),
    )


_PLACES = {
    "local": "in the process, without HTTP and without Chroma",
    "served": "a served HTTP world, and Chroma",
}


def _place(facts: Facts) -> str:
    if facts.episodes and facts.place == "local":
        return "the world in the process, without HTTP; long-term memory in Chroma on disk"
    return _PLACES.get(facts.place, facts.place)


def _who(line: TrialLine) -> tuple[Cell, ...]:
    return text(line.scenario), text(line.contender), text(line.model), Cell(str(line.seed))
