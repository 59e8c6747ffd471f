"""The commands `assess`, `report` and `cross-check`."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from case_study.runner import Place, model_spec
from case_study.temperaments import SCRIPTED, is_scripted
from case_study.trials import (
    EPISODES,
    GROUPS,
    USUAL_EPISODES,
    VACUUM,
    domain_named,
    report_profile,
)
from coag.cli import as_typed
from coag.errors import ConfigurationError
from coag.evals import (
    JOBS_A_WORKER,
    NO_MODEL,
    Assessment,
    EvaluationDomain,
    Keep,
    MeasuresAgain,
    Plan,
    ProgressListener,
    RunSettings,
    Trial,
    agreement,
    contenders_named,
    fewer_seeds_named,
    has_plan,
    machine_class,
    measure_again,
    read_plan,
    run_evaluation,
    scenarios_named,
    seeds_named,
    versions,
    write_report,
)
from coag.schema import SystemClock, one_line

_DEFAULT_MODEL, _DEFAULT_SEEDS = f"{SCRIPTED}:fallible", "10"
_SEQUENCES_A_WORKER = 40
"""Sequences after which a worker is replaced: Chroma keeps some 10 MB of every folder it opened."""
_BROKEN, INTERRUPTED = 1, 130
"""Exit codes: some trials are no evidence, or a job was not played; stopped by Ctrl-C."""
_LISTED = 10
_QUIET = 60.0
"""Seconds between two lines where there is no terminal to draw a bar on."""
_CODE = ("coag", "vacuum_world", "case_study")
_SHOWS_ONLY = ("case_study/results/", "case_study/film.py")
"""Code that only shows results."""

Assessed = Annotated[Path, Argument(metavar="DIR", help="The assessment's folder.")]
Bound = Annotated[
    int | None,
    Option(min=1, metavar="N", help="Bound of actions an episode; the scenario's if not given."),
]
Agents = Annotated[
    str | None,
    Option(metavar="NAMES", help="Contenders by comma, or headline (the default), ablations, all."),
]
Scenarios = Annotated[
    str | None,
    Option(
        metavar="NAMES", help="Scenarios by comma, or letters such as A-D, or all (the default)."
    ),
]
Model = Annotated[
    list[str] | None,
    Option(metavar="SPEC", help="A model spec; may be repeated; scripted:fallible if not given."),
]
Seeds = Annotated[
    str | None,
    Option(metavar="N", help="How many seeds, from 0, or which: 6-11. 10 if not given."),
]
FewerSeeds = Annotated[
    list[str] | None,
    Option(metavar="NAME=N", help="This contender plays only the first N seeds; may be repeated."),
]
Output = Annotated[
    Path,
    Option(
        *("--output", "-o"),
        metavar="DIR",
        help="The assessment's folder; an interrupted one is continued.",
    ),
]
PlaceOption = Annotated[
    Place | None,
    Option(
        metavar="PLACE",
        help="local (the default): world and records in the process; served: HTTP and Chroma.",
    ),
]
KeepOption = Annotated[
    Keep | None,
    Option(
        metavar="RUNS",
        help="Runs that are kept: all, failures or none. all for a language model, failures "
        "for scripted ones if not given.",
    ),
]
Processes = Annotated[
    int | None,
    Option(
        min=1,
        metavar="N",
        help="Jobs played at the same time; one a processor for scripted models, else one, if "
        "not given.",
    ),
]
Retries = Annotated[
    int,
    Option(min=0, metavar="N", help="Further tries of a job whose model or world has failed."),
]
TokenBudget = Annotated[
    int | None, Option(min=1, metavar="N", help="Tokens after which a case ends, for equal costs.")
]
Episodes = Annotated[
    int | None,
    Option(
        min=1,
        metavar="N",
        help="Play sequences of N episodes in the same world, with a memory that lasts and "
        "with one that is emptied.",
    ),
]
Extend = Annotated[
    bool, Option("--extend", help="Add what is asked for to an existing assessment.")
]
AgainOption = Annotated[
    bool,
    Option(
        "--measure-again",
        help="Measure from the kept runs once more, with no model; play nothing.",
    ),
]
DomainOption = Annotated[
    str | None, Option(metavar="NAME", help="vacuum, or module:NAME of another domain.")
]


def assess(  # noqa: PLR0913 - options of a command
    *,
    agents: Agents = None,
    scenarios: Scenarios = None,
    model: Model = None,
    seeds: Seeds = None,
    fewer_seeds: FewerSeeds = None,
    output: Output = Path("logs") / "assessment",
    place: PlaceOption = None,
    keep: KeepOption = None,
    processes: Processes = None,
    retries: Retries = 2,
    token_budget: TokenBudget = None,
    max_actions: Bound = None,
    episodes: Episodes = None,
    extend: Extend = False,
    again: AgainOption = False,
    domain: DomainOption = None,
) -> None:
    """Play contenders over scenarios and seeds; run again, it plays what is missing."""
    there = read_plan(output) if has_plan(output) else None
    name = domain or (there.domain if there else EPISODES if episodes else VACUUM)
    if episodes is not None and name != EPISODES:
        raise ConfigurationError(
            f"--episodes {episodes} asks for sequences of episodes, and {name!r} plays none: leave "
            "--episodes out, or give another folder without --domain."
        )
    played_in = domain_named(name)
    if again:
        _measure_again(output, played_in)
        return
    options = {"place": place, "token_budget": token_budget, "max_actions": max_actions}
    conditions = _conditions(there, name, {**options, "episodes": episodes})
    named = (agents, scenarios, seeds)
    plan = _asked(there, name, played_in, named, model or [], fewer_seeds or [], conditions)
    scripted = all(one == NO_MODEL or is_scripted(one) for one in plan.models)
    jobs = sum(1 for _ in plan.jobs())
    sequences = "episodes" in conditions
    settings = RunSettings(
        keep=keep or ("failures" if scripted else "all"),
        retries=retries,
        continues=sequences or conditions["place"] == "served",
        processes=min(processes or ((os.cpu_count() or 1) if scripted else 1), jobs),
        jobs_a_worker=_SEQUENCES_A_WORKER if sequences else JOBS_A_WORKER,
        specs={model_spec(text).public: text for text in model or []},
    )
    with ProgressBar() as bar:
        assessment = run_evaluation(
            played_in, output, plan=plan, extend=extend, settings=settings, progress=bar
        )
    _print_summary(assessment, played_in)
    if bar.stopped:
        raise typer.Exit(INTERRUPTED)
    if assessment.missing:
        raise typer.Exit(_BROKEN)


def report(
    folder: Assessed,
    *,
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="FILE", help="The page; report.html in DIR if not given."),
    ] = None,
    run_pages: Annotated[
        int,
        Option(
            min=0,
            metavar="N",
            help="Make pages of the runs of N failed trials whose runs were kept, the most "
            "instructive first.",
        ),
    ] = 0,
    title: Annotated[str, Option(metavar="TEXT", help="What the page is headed.")] = "",
) -> None:
    """Write the report of an assessment as one page, with JSON and Markdown beside it."""
    with _terminal().status("reading") as status:
        written = write_report(
            folder,
            output,
            title=title,
            profile=report_profile(read_plan(folder).domain),
            run_pages=run_pages,
            on_progress=lambda text: status.update(one_line(text)),
        )
    typer.echo(
        f"{written.page}: {written.bytes / 1000:,.0f} kB. The same for programs: {written.json}. "
        f"As text: {written.markdown}."
    )


def cross_check(
    one: Assessed,
    other: Annotated[Path, Argument(metavar="OTHER", help="The folder to compare it with.")],
) -> None:
    """Compare two assessments job by job, e.g. of a local and of a served world."""
    found = agreement(Assessment.read(one), Assessment.read(other))
    lines = [one_line(each) for each in found.differing[:_LISTED]]
    rest = len(found.differing) - len(lines)
    lines += [f"... and {rest} more"] if rest else []
    lines.append(f"{found.same} of {found.same + len(found.differing)} jobs had the same result.")
    if found.broken:
        lines.append(f"Not compared, because a trial is broken: {found.broken}.")
    if found.only_one:
        lines.append(f"Not compared, because only one has played them: {found.only_one}.")
    typer.echo("\n".join(lines))
    if not found.holds:
        raise typer.Exit(1)


COMMANDS = {"assess": assess, "report": report, "cross-check": cross_check}
"""The commands of this module by name."""


def _asked(
    there: Plan | None,
    name: str,
    domain: EvaluationDomain,
    named: tuple[str | None, str | None, str | None],
    models: Sequence[str],
    fewer_seeds: Sequence[str],
    conditions: dict[str, Any],
) -> Plan:
    """What is asked for; what is left out is as in the assessment that is there."""
    agents, scenarios, seeds = named
    contenders = contenders_named(agents or "headline", domain.contenders, GROUPS)
    if there and agents is None:
        contenders = there.contenders
    without_model = tuple(one for one in contenders if not domain.asks_model(one))
    public = [NO_MODEL]
    if set(without_model) != set(contenders):
        known = [one for one in there.models if one != NO_MODEL] if there else []
        specs = [model_spec(text) for text in models or known or [_DEFAULT_MODEL]]
        for spec in specs:
            spec.open()  # what cannot be opened is refused before anything is written
        public = [spec.public for spec in specs]
    fewer = fewer_seeds_named(fewer_seeds, contenders)
    chosen = scenarios_named(scenarios or "all", domain.scenarios)
    plan = Plan(
        domain=name,
        contenders=contenders,
        scenarios=there.scenarios if there and scenarios is None else chosen,
        models=tuple(dict.fromkeys(public)),
        seeds=there.seeds if there and seeds is None else seeds_named(seeds or _DEFAULT_SEEDS),
        without_model=without_model,
        fewer_seeds=there.fewer_seeds if there and not fewer_seeds else fewer,
        versions=versions(_CODE, _SHOWS_ONLY),
        machine=machine_class(),
        started_at=SystemClock().now(),
        conditions=conditions,
    )
    return plan.model_copy(update={"command": _command(plan)})


def _conditions(there: Plan | None, domain: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The conditions of all trials: what is asked, else those of the plan there, else the usual."""
    usual = {"place": "local"} | ({"episodes": USUAL_EPISODES} if domain == EPISODES else {})
    known = {key: value for key, value in asked.items() if value is not None}
    return {**usual, **(there.conditions if there else {}), **known}


def _command(plan: Plan) -> str:
    """The command that asks for a plan; it names no folder and holds no secret."""
    words = ["case-study assess", f"--agents {','.join(plan.contenders)}"]
    words.append(f"--scenarios {','.join(plan.scenarios)}")
    words += [f"--model {model}" for model in plan.models if model != NO_MODEL]
    first, last = plan.seeds[0], plan.seeds[-1]
    words.append(f"--seeds {first}-{last}" if first else f"--seeds {len(plan.seeds)}")
    words += [f"--fewer-seeds {name}={count}" for name, count in plan.fewer_seeds.items()]
    words += [f"--domain {plan.domain}"] if plan.domain not in (VACUUM, EPISODES) else []
    for name, value in plan.conditions.items():
        if (name, value) != ("place", "local"):
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words)


def _measure_again(folder: Path, domain: EvaluationDomain) -> None:
    if not isinstance(domain, MeasuresAgain):
        raise ConfigurationError("This domain cannot measure again: it has no measure_again.")
    with bar_of() as show:
        found = measure_again(folder, domain, lambda done, total: show("measuring", done, total))
    text = f"Trials measured again: {found.measured}; the same as before: {found.unchanged}."
    if found.without_runs:
        text += f" Left as they were, because their runs were not kept: {found.without_runs}."
    typer.echo(text)


# ---- what is shown ----


def _terminal() -> Console:
    return Console(stderr=True, emoji=False, highlight=False)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


@contextmanager
def bar_of() -> Generator[Callable[[str, int, int | None], None]]:
    """A bar on the terminal; yields its update: label, count done, total."""
    with _bar(_terminal()) as bar:
        task = bar.add_task("", total=None, left="")
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )


class ProgressBar(ProgressListener):
    """How far an evaluation is, on the terminal."""

    def __init__(self) -> None:
        self._console = _terminal()
        self._bar = _bar(self._console)
        self._task = self._bar.add_task("playing", left="", total=None)
        self._total = self._done = self._broken = 0
        self._shown = time.monotonic()
        self.stopped = False

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def begin(self, total: int, done: int) -> None:
        """Says how much was played before."""
        self._total, self._done = total, done
        self._bar.update(self._task, total=total, completed=done)
        if done:
            self._say(f"{done} of {total} jobs are played already.")

    def played(self, trial: Trial, seconds_left: float | None) -> None:
        """Moves the bar; says what broke."""
        self._done += trial.counts
        self._broken += not trial.counts
        if not trial.counts and self._broken <= _LISTED:
            self._say(f"{trial.job.key}: broken: {trial.problem}")
        left = "" if seconds_left is None else f"{_duration(seconds_left)} left"
        broken = f" · {self._broken} broken" if self._broken else ""
        job = trial.job
        text = f"{job.contender} · {job.scenario} · seed {job.seed}{broken}"
        self._bar.update(self._task, completed=self._done, description=text, left=left)
        if not self._console.is_terminal and time.monotonic() - self._shown > _QUIET:
            self._shown = time.monotonic()
            self._say(f"{self._done} of {self._total} jobs played{broken}, {left}")

    def stopping(self) -> None:
        """Says that running jobs are played to their end."""
        self.stopped = True
        self._say(
            "Stopping: running jobs are played to their end. Ctrl-C once more ends them at once; "
            "either way the same command continues later."
        )

    def _say(self, text: str) -> None:
        self._bar.console.print(one_line(text, 500), markup=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _print_summary(found: Assessment, domain: EvaluationDomain) -> None:
    """How often each contender succeeded, what broke, and what to do next."""
    console = Console(highlight=False, emoji=False)
    lines: list[str] = []
    letters = {name: chr(ord("A") + at) for at, name in enumerate(domain.scenarios)}
    played = {trial.job.scenario for trial in found.trials}
    shown = {name: letters.get(name, name) for name in found.plan.scenarios if name in played}
    if found.trials:
        table = _summary(found, shown)
        needed = console.measure(table, options=console.options.update(width=400)).maximum
        Console(highlight=False, emoji=False, width=max(console.width, needed)).print(table)
        lines.append(", ".join(f"{letter} {name}" for name, letter in shown.items()))
    broken = [trial for trial in found.trials if not trial.counts]
    if broken:
        reasons = Counter(one_line(trial.problem, 120) for trial in broken)
        lines.append(f"Broken and not counted: {len(broken)}")
        lines += [f"  {count}: {reason}" for reason, count in reasons.most_common(3)]
    here = as_typed(found.folder)
    if found.missing:
        lines.append(f"Jobs to go: {len(found.missing)}. Continue: case-study assess -o {here}")
    else:
        lines.append(f"The report: case-study report {here}")
    console.print("\n" + "\n".join(lines), markup=False, soft_wrap=True)


def _summary(found: Assessment, letters: dict[str, str]) -> Table:
    """One row a contender and model, one column a scenario, by its letter."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bright_black")
    for title in ("contender", "model", "all", *letters.values()):
        table.add_column(Text(title))
    rows: dict[tuple[str, str], list[Trial]] = {}
    for trial in found.trials:
        rows.setdefault((trial.job.contender, trial.job.model), []).append(trial)
    for (contender, model), trials in rows.items():
        cells = [contender, model]
        for part in (trials, *([t for t in trials if t.job.scenario == name] for name in letters)):
            counted = [trial.success for trial in part if trial.counts]
            cells.append(f"{sum(counted)}/{len(counted)}" if counted else "-")
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    return table
