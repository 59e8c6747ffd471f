"""The commands `assess`, `report` and `cross-check`."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress

from case_study import _assess_options as options
from case_study import _assess_show as showing
from case_study.assess import (
    EPISODES,
    JOBS_A_WORKER,
    NO_MODEL,
    VACUUM,
    Alone,
    Assessment,
    Crew,
    How,
    Plan,
    Workers,
    agreement,
    begun,
    contenders_named,
    domain_named,
    fewer_seeds_named,
    has_plan,
    machine_class,
    measure_again,
    ray_crew,
    read_plan,
    scenarios_named,
    seeds_named,
    sweep,
    versions,
)
from case_study.runner import model_spec
from case_study.temperaments import SCRIPTED, is_scripted
from coag.errors import ConfigurationError
from coag.schema import SystemClock, one_line

DEFAULT_FOLDER = Path("logs") / "assessment"
_DEFAULT_MODEL = f"{SCRIPTED}:fallible"
_DEFAULT_SEEDS = "10"
_USUAL = 5
"""Episodes of a sequence if not given."""
_SEQUENCES_A_WORKER = 40
"""Sequences after which a worker is replaced: Chroma keeps some 10 MB of every folder it opened."""
_BROKEN, _INTERRUPTED = 1, 130
"""Exit codes: some trials are no evidence, or a job was not played; stopped by Ctrl-C."""
_SHOWN = 10
"""Differences that are listed before the rest is only counted."""


def assess(  # noqa: PLR0913 - options of a command
    *,
    agents: options.Agents = None,
    scenarios: options.Scenarios = None,
    model: options.Models = None,
    seeds: options.Seeds = None,
    fewer_seeds: options.FewerSeeds = None,
    output: options.Folder = DEFAULT_FOLDER,
    place: options.WherePlayed = None,
    keep: options.Kept = None,
    processes: options.Processes = None,
    retries: options.Retries = 2,
    token_budget: options.TokenBudget = None,
    max_actions: options.MaxActions = None,
    episodes: options.Episodes = None,
    ray: options.RayAddress = None,
    extend: options.Extend = False,
    again: options.MeasureAgain = False,
    domain: options.DomainName = None,
) -> None:
    """Play contenders over scenarios and seeds; run again, it goes on where it was broken off."""
    if again:
        _measure_again(output)
        return
    there = read_plan(output) if has_plan(output) else None
    domain = _domain(there, domain, episodes)
    asked = _asked(there, domain, agents, scenarios, model, seeds, fewer_seeds or [])
    fixed = {
        "place": place,
        "token_budget": token_budget,
        "max_actions": max_actions,
        "episodes": episodes or (asked.episodes or _USUAL if domain == EPISODES else None),
    }
    asked = asked.model_copy(
        update={name: value for name, value in fixed.items() if value is not None}
    )
    plan = begun(output, asked.model_copy(update={"command": _command(asked)}), extend=extend)
    how = How(
        place=plan.place,
        token_budget=plan.token_budget,
        max_actions=plan.max_actions,
        episodes=plan.episodes,
        keep=keep or ("failures" if _all_scripted(plan) else "all"),
        retries=retries,
        specs={model_spec(text).public: text for text in model or []},
    )
    with _crew(plan, processes, ray) as crew, showing.SweepBar() as bar:
        found = sweep(output, crew, how, bar)
    showing.print_summary(found)
    if bar.stopped:
        raise typer.Exit(_INTERRUPTED)
    if found.missing:
        raise typer.Exit(_BROKEN)


def report(
    folder: options.Assessed,
    *,
    output: options.ReportPage = None,
    run_pages: options.RunPages = 0,
    title: options.Title = "",
) -> None:
    """Write the report of an assessment as one page, with JSON and Markdown beside it."""
    from case_study.report import write_report  # it draws: seconds that no other command has

    console = Console(stderr=True, emoji=False, highlight=False)
    with console.status("reading") as status:
        written = write_report(
            folder,
            output or folder / "report.html",
            title=title,
            run_pages=run_pages,
            on_progress=lambda text: status.update(one_line(text)),
        )
    typer.echo(
        f"{written.page}: {written.bytes / 1000:,.0f} kB. The same for programs: {written.json}. "
        f"As text: {written.markdown}."
    )


def cross_check(one: options.Assessed, other: options.OtherAssessed) -> None:
    """Compare two assessments job by job, e.g. of a local and of a served world."""
    found = agreement(Assessment.read(one), Assessment.read(other))
    lines = [one_line(str(each)) for each in found.differing[:_SHOWN]]
    rest = len(found.differing) - len(lines)
    lines += [f"... and {rest} more"] if rest else []
    total = found.same + len(found.differing)
    lines.append(f"{found.same} of {total} jobs came to the same.")
    if found.broken:
        lines.append(f"Not compared, because a trial is broken: {found.broken}.")
    if found.only_one:
        lines.append(f"Not compared, because only one has played them: {found.only_one}.")
    typer.echo("\n".join(lines))
    if not found.holds:
        raise typer.Exit(1)


def _domain(there: Plan | None, domain: str | None, episodes: int | None) -> str:
    """Where it is played; a number of episodes asks for sequences.

    Raises:
        ConfigurationError: Episodes are asked for in a domain that plays none.
    """
    name = domain or (there.domain if there else EPISODES if episodes else VACUUM)
    if episodes is not None and name != EPISODES:
        raise ConfigurationError(
            f"--episodes {episodes} asks for sequences of episodes, and {name!r} plays none: leave "
            "--episodes out, or give another folder without --domain."
        )
    return name


def _asked(
    there: Plan | None,
    name: str,
    agents: str | None,
    scenarios: str | None,
    models: Sequence[str] | None,
    seeds: str | None,
    fewer_seeds: Sequence[str],
) -> Plan:
    """What is asked for; what is left out is as in the assessment that is there."""
    place = domain_named(name)
    if there and agents is None:
        contenders = there.contenders
    else:
        contenders = contenders_named(agents or "headline", place.contenders)
    if there and scenarios is None:
        chosen = there.scenarios
    else:
        chosen = scenarios_named(scenarios or "all", place.scenarios)
    without_model = tuple(one for one in contenders if not place.asks_model(one))
    if set(without_model) == set(contenders):
        public = [NO_MODEL]
    else:
        known = [one for one in there.models if one != NO_MODEL] if there else []
        public = [_usable(text) for text in models or known or [_DEFAULT_MODEL]]
    fewer = fewer_seeds_named(fewer_seeds, contenders)
    return Plan(
        domain=name,
        contenders=contenders,
        scenarios=chosen,
        models=tuple(dict.fromkeys(public)),
        seeds=there.seeds if there and seeds is None else seeds_named(seeds or _DEFAULT_SEEDS),
        without_model=without_model,
        fewer_seeds=there.fewer_seeds if there and not fewer_seeds else fewer,
        place=there.place if there else "local",
        episodes=there.episodes if there else None,
        token_budget=there.token_budget if there else None,
        max_actions=there.max_actions if there else None,
        versions=versions(),
        machine=machine_class(),
        started_at=SystemClock().now(),
    )


def _usable(text: str) -> str:
    """The public name of a model that can be opened.

    Raises:
        UnknownNameError: No form of spec fits; lists all.
        ConfigurationError: It cannot be opened.
    """
    spec = model_spec(text)
    spec.open()
    return spec.public


def _command(plan: Plan) -> str:
    """The command that asks for a plan; it names no folder and holds no secret."""
    words = ["case-study assess", f"--agents {','.join(plan.contenders)}"]
    words.append(f"--scenarios {','.join(plan.scenarios)}")
    words += [f"--model {model}" for model in plan.models if model != NO_MODEL]
    first, last = plan.seeds[0], plan.seeds[-1]
    words.append(f"--seeds {first}-{last}" if first else f"--seeds {len(plan.seeds)}")
    words += [f"--fewer-seeds {name}={count}" for name, count in plan.fewer_seeds.items()]
    further = {
        "domain": plan.domain if plan.domain not in (VACUUM, EPISODES) else None,
        "episodes": plan.episodes,
        "place": plan.place if plan.place != "local" else None,
        "token-budget": plan.token_budget,
        "max-actions": plan.max_actions,
    }
    words += [f"--{name} {value}" for name, value in further.items() if value is not None]
    return " ".join(words)


def _all_scripted(plan: Plan) -> bool:
    return all(model == NO_MODEL or is_scripted(model) for model in plan.models)


@contextmanager
def _crew(plan: Plan, processes: int | None, ray: str | None) -> Generator[Crew]:
    """Who plays: many at a time where models are scripted, else one after the other."""
    if ray is not None:
        with ray_crew(ray, processes or (None if _all_scripted(plan) else 1)) as crew:
            yield crew
        return
    count = processes or ((os.cpu_count() or 1) if _all_scripted(plan) else 1)
    jobs = sum(1 for _ in plan.jobs())
    played = JOBS_A_WORKER if plan.episodes is None else _SEQUENCES_A_WORKER
    yield Alone() if jobs == 1 else Workers(min(count, jobs), jobs_a_worker=played)


def _measure_again(folder: Path) -> None:
    console = Console(stderr=True, emoji=False, highlight=False)
    with Progress(*showing.columns()[:3], console=console, transient=True) as bar:
        task = bar.add_task("measuring", total=None)
        found = measure_again(
            folder, lambda done, total: bar.update(task, completed=done, total=total)
        )
    told = f"Trials measured again: {found.measured}; the same as before: {found.unchanged}."
    if found.without_runs:
        told += f" Left as they were, because their runs were not kept: {found.without_runs}."
    typer.echo(told)


COMMANDS = {"assess": assess, "report": report, "cross-check": cross_check}
"""The commands of this module by name."""


def add_to(app: typer.Typer) -> None:
    """Adds the commands to a command line."""
    for name, command in COMMANDS.items():
        app.command(name)(command)
