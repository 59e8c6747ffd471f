"""`case-study`: the command line of the case study."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar

from case_study import _assessing as assessing
from case_study import _aware as aware
from case_study import _options as options
from case_study import _show as pages
from case_study.demo import (
    REPORT,
    agent_label,
    demo_table,
    planned_cases,
    run_demo,
    scripted_note,
    verification,
)
from case_study.film import FilmOptions, filmed_run, make_film
from case_study.measures import CaseResult
from case_study.runner import CaseFolder, CaseRequest, Progress, checked, resumable, run_case
from coag.cli import as_typed, coag_command
from coag.errors import CoagError, ConfigurationError
from coag.schema import SystemClock, new_run_id, one_line
from vacuum_world.errors import WorldError

ResultT = TypeVar("ResultT")
_VIOLATED = 1
"""Exit code where the trace of a run does not hold."""

app = typer.Typer(
    name="case-study",
    help="A CoAG agent and a plain one in the Dynamic Vacuum World.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def case_study(*, version: options.Version = False) -> None:
    """A CoAG agent and a plain one in the Dynamic Vacuum World."""


@app.command()
def run(  # noqa: PLR0913 - options of a command
    *,
    scenario: options.Scenario = None,
    agent: options.Agent = "coag",
    model: options.Model = "scripted:sound",
    seed: options.Seed = 0,
    logs: options.Logs = Path("logs"),
    episodes: options.Episodes = None,
    resume: options.Resume = None,
    as_json: options.AsJson = False,
    without_constraint: options.WithoutConstraint = None,
    without_memory: options.WithoutMemory = False,
    delivery: options.Delivery = None,
    depth: options.Depth = None,
    max_actions: options.MaxActions = None,
    world: options.WorldUrl = None,
    show: options.Show = False,
    pace: options.Pace = None,
    port: options.Port = None,
) -> None:
    """Run one agent through one scenario, or go on with a case that was broken off."""
    if resume is not None:
        folder = CaseFolder.existing(resume, logs)
    elif scenario is None:
        raise ConfigurationError("Name a scenario, or a case to go on with: --resume CASE.")
    else:
        if agent != "coag":
            given = {
                "--without-constraint": bool(without_constraint),
                "--without-memory": without_memory,
                "--delivery": delivery is not None,
                "--depth": depth is not None,
            }
            pages.refuse(given, "only for --agent coag; the others are what they are")
        request = CaseRequest(
            scenario=scenario,
            agent=agent,
            model=model,
            seed=seed,
            episodes=episodes,
            max_actions=max_actions,
            without_constraints=tuple(without_constraint or ()),
            without_memory=without_memory,
            delivery=delivery or "constraint",
            depth=depth or "full",
            world=world,
        )
        pages.refuse_without_show(show=show, pace=pace, port=port, world=world)
        folder = CaseFolder.create(logs, checked(request))
    showing = pages.shown(folder.request(), show=show, pace=pace, port=port)
    with _Live() as live, resumable(folder):
        live.begin(1, folder.request())
        result = _await(run_case(folder, live.progress, showing))
    if as_json:
        typer.echo(result.model_dump_json())
    else:
        _print_case(result, folder)


@app.command()
def demo(
    model: options.DemoModel = None,
    logs: options.Logs = Path("logs"),
    seed: options.Seed = 0,
) -> None:
    """Run both agents through the four scenarios and show what came of it."""
    folder = logs / new_run_id(SystemClock().now(), "demo")
    requests = planned_cases(model, seed)
    with _Live(total=len(requests)) as live:
        results = _await(run_demo(requests, folder, live))
    _print_results(results)
    runs, violated = verification(folder)
    shown = next((result for result in results if result.agent == "coag"), results[0])
    _print_lines(
        f"Report: {as_typed(folder / REPORT)}",
        f"All runs: {coag_command()} log {as_typed(folder)}",
        *(f"Look at one: {command}" for _, command in _looks(Path(shown.run))[:1]),
        *(violated or (f"{runs} runs verified",)),
    )
    if violated:
        raise typer.Exit(_VIOLATED)


@app.command()
def faults(
    count: options.FaultCount = 330,
    seed: options.Seed = 0,
    baseline: options.BaselineCount = 60,
    write: options.WritePage = None,
) -> None:
    """Break components of running agents and see whether their diagnosis names the right one."""
    from case_study.faults import measure_both, replaced, tables  # heavy, and for this one alone

    console = Console(stderr=True, emoji=False, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("faults")

        def progress(agent: str, done: int, total: int) -> None:
            bar.update(task, description=agent, completed=done, total=total)

        text = tables(_await(measure_both(count, baseline, seed=seed, on_progress=progress)))
    if write is not None:
        page = replaced(write.read_text(encoding="utf-8"), text)
        write.write_text(page, encoding="utf-8")
    typer.echo(text)


@app.command()
def film(
    run: options.Filmed,
    *,
    output: options.FilmFile = None,
    fps: options.Fps = None,
    seconds_per_cycle: options.SecondsPerCycle = None,
    size: options.FilmSize = "medium",
    theme: options.FilmTheme = "light",
    logs: options.Logs = Path("logs"),
) -> None:
    """Make a GIF or an animated PNG of a run, from its trace alone."""
    if fps is not None and seconds_per_cycle is not None:
        raise ConfigurationError("Give --fps or --seconds-per-cycle, not both.")
    seconds = FilmOptions().seconds_per_cycle if seconds_per_cycle is None else seconds_per_cycle
    how = FilmOptions(seconds_per_cycle=seconds, fps=fps, size=size, theme=theme)
    folder = filmed_run(run, logs)
    console = Console(stderr=True, emoji=False, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[far]}"))
    with Bar(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None, far="")

        def progress(stage: str, done: int, total: int | None) -> None:
            far = f"cycle {done}" if total is None else f"picture {done} of {total}"
            bar.update(task, description=stage, completed=done, total=total, far=far)

        made = make_film(
            folder, output or Path(f"{folder.path.name}.gif"), how, on_progress=progress
        )
    for notice in made.notices:
        console.print(one_line(notice), markup=False, soft_wrap=True)
    typer.echo(
        f"{made.path}: {made.pictures} pictures, {made.seconds:.0f} s, {made.size / 1000:,.0f} kB"
    )


assessing.add_to(app)
aware.add_to(app)


class _Live:
    """One line on the terminal that says how far it is; nothing where there is no terminal."""

    def __init__(self, total: int = 1) -> None:
        self._total = total
        console = Console(stderr=True, emoji=False)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Bar(*columns, console=console, transient=True)
        self._task: TaskID = self._bar.add_task("")
        self._text = ""

    def begin(self, number: int, request: CaseRequest) -> None:
        """A case begins."""
        counted = f"{number}/{self._total} " if self._total > 1 else ""
        told = request.scenario == "evolution" and request.agent == "coag"
        agent = agent_label(request.agent, request.delivery if told else None)
        self._text = f"{counted}{request.scenario} · {agent} · {request.model}"
        self._bar.update(self._task, description=self._text)

    def progress(self, progress: Progress) -> None:
        """It has come so far."""
        far = f"episode {progress.episode}, action {progress.actions} of {progress.bound} at most"
        self._bar.update(self._task, description=f"{self._text} · {far}")

    def end(self, result: CaseResult) -> None:
        """It is over."""
        mark = "[green]success[/]" if result.success else "[red]no success[/]"
        self._bar.console.print(f"{self._text}: {mark}", highlight=False)

    def __enter__(self) -> _Live:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


def _await(what: Coroutine[Any, Any, ResultT]) -> ResultT:
    return asyncio.run(what)


def _print_results(results: list[CaseResult] | tuple[CaseResult, ...]) -> None:
    console = Console(highlight=False, emoji=False)
    console.print(demo_table(results))
    note = scripted_note(results)
    if note:
        console.print(f"\n{note}", style="bright_black")


def _looks(case: Path) -> list[tuple[int, str]]:
    """The number of each episode, with the command that shows its run."""
    records = CaseFolder(case).episodes()
    command = coag_command()
    return [(each.episode, f"{command} log {as_typed(case / each.run)}") for each in records]


def _print_case(result: CaseResult, folder: CaseFolder) -> None:
    """A result, and how to look at the runs behind it."""
    _print_results([result])
    _print_lines(
        f"Case: {as_typed(folder.path)}",
        *(f"Episode {number}: {command}" for number, command in _looks(folder.path)),
    )


def _print_lines(*lines: str) -> None:
    """Lines to copy from: never broken, behind an empty one."""
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    console.print("\n" + "\n".join(lines))


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="case-study")
    except (CoagError, WorldError, OSError) as error:
        typer.secho(f"case-study: {' '.join(str(error).split())}", fg="red", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
