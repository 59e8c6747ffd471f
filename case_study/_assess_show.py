"""What a sweep shows on the terminal: how far it is, and what came of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from case_study.assess import Assessment, Trial, domain_named
from coag.cli import as_typed
from coag.schema import one_line

_QUIET = 60.0
"""Seconds between two lines where there is no terminal to draw a bar on."""
_WIDEST = 400
"""Columns that the table of results may take; a terminal folds its lines, nothing is cut."""
_SHOWN = 10
"""Broken trials that are told of one by one."""


def columns() -> tuple[TextColumn, BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn]:
    return (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
    )


class SweepBar:
    """A bar with the time left; without a terminal, a line now and then."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, emoji=False, highlight=False)
        self._bar = Progress(*columns(), console=self._console, transient=True)
        self._task = self._bar.add_task("playing", left="", total=None)
        self._total = self._done = self._broken = 0
        self._told = time.monotonic()
        self.stopped = False

    def __enter__(self) -> SweepBar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def begin(self, total: int, done: int) -> None:
        """It begins."""
        self._total, self._done = total, done
        self._bar.update(self._task, total=total, completed=done)
        if done:
            self._say(f"{done} of {total} jobs are played already.")

    def played(self, trial: Trial, left: float | None) -> None:
        """A job is over."""
        self._done += trial.counts
        self._broken += not trial.counts
        if not trial.counts and self._broken <= _SHOWN:
            self._say(f"{trial.job.key}: broken: {trial.problem}")
        ahead = "" if left is None else f"{duration(left)} left"
        broken = f" · {self._broken} broken" if self._broken else ""
        told = f"{trial.job.contender} · {trial.job.scenario} · seed {trial.job.seed}{broken}"
        self._bar.update(self._task, completed=self._done, description=told, left=ahead)
        if not self._console.is_terminal and time.monotonic() - self._told > _QUIET:
            self._told = time.monotonic()
            self._say(f"{self._done} of {self._total} jobs played{broken}, {ahead}")

    def stopping(self) -> None:
        """It was interrupted."""
        self.stopped = True
        self._say(
            "Stopping: what is being played is played to its end. Ctrl-C once more ends it at "
            "once; either way the same command goes on later."
        )

    def _say(self, text: str) -> None:
        self._bar.console.print(one_line(text, 500), markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 90:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.1f} h"


def print_summary(found: Assessment) -> None:
    """How often each contender succeeded, what broke, and what to do next."""
    console = Console(highlight=False, emoji=False)
    if found.trials:
        table = _summary(found)
        needed = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
        Console(highlight=False, emoji=False, width=max(console.width, needed)).print(table)
    legend = (f"{letter} {name}" for name, letter in _letters(found).items())
    lines = [", ".join(legend)] if found.trials else []
    broken = [trial for trial in found.trials if not trial.counts]
    if broken:
        reasons = Counter(one_line(trial.problem, 120) for trial in broken)
        lines.append(f"Broken and not counted: {len(broken)}")
        lines += [f"  {count}: {reason}" for reason, count in reasons.most_common(3)]
    here = as_typed(found.folder)
    if found.missing:
        lines.append(f"Jobs to go: {len(found.missing)}. Go on: case-study assess -o {here}")
    else:
        lines.append(f"The report: case-study report {here}")
    console.print("\n" + "\n".join(lines), markup=False, soft_wrap=True)


def _summary(found: Assessment) -> Table:
    """One row a contender and model, one column a scenario, by its letter."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bright_black")
    scenarios = _letters(found)
    for title in ("contender", "model", "all", *scenarios.values()):
        table.add_column(Text(title))
    rows: dict[tuple[str, str], list[Trial]] = {}
    for trial in found.trials:
        rows.setdefault((trial.job.contender, trial.job.model), []).append(trial)
    for (contender, model), trials in rows.items():
        parts = [[each for each in trials if each.job.scenario == name] for name in scenarios]
        shares = map(_share, (trials, *parts))
        table.add_row(*(Text(one_line(cell)) for cell in (contender, model, *shares)))
    return table


def _letters(found: Assessment) -> dict[str, str]:
    """The scenarios that were played, with the letter by which `--scenarios` knows each."""
    known = list(domain_named(found.plan.domain).scenarios)
    played = {trial.job.scenario for trial in found.trials}
    return {
        name: chr(ord("A") + known.index(name)) if name in known else name
        for name in found.plan.scenarios
        if name in played
    }


def _share(trials: Sequence[Trial]) -> str:
    counted = [trial for trial in trials if trial.counts]
    return f"{sum(trial.success for trial in counted)}/{len(counted)}" if counted else "-"
