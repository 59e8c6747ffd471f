"""`case-study`: the command line of the case study."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import click
import typer
from rich.console import Console
from typer import Argument, Option

from case_study.assessing import COMMANDS, Bound, bar_of
from case_study.benching import bench
from case_study.contenders import CONTENDERS
from case_study.demo import (
    REPORT,
    demo_table,
    planned_cases,
    run_demo,
    scripted_note,
    shown,
    verification,
)
from case_study.film import FilmOptions, filmed_run, make_film
from case_study.measures import CaseResult
from case_study.runner import (
    CONTROL_TOKEN,
    CaseFolder,
    CaseRequest,
    Showing,
    checked,
    resumable,
    run_case,
)
from case_study.situated import DEMONSTRATORS, compare_agents, run_demonstrator
from case_study.temperaments import SCRIPTED, SCRIPTS, is_scripted
from coag.cli import as_typed, coag_command
from coag.errors import CoagError, ConfigurationError
from coag.schema import Depth, SystemClock, new_run_id, one_line
from vacuum_world.errors import WorldError
from vacuum_world.scenarios import SCENARIOS

_HOST = "127.0.0.1"
_SPEC = f"A model spec, or {SCRIPTED}:NAME ({', '.join(SCRIPTS)})"

app = typer.Typer(
    name="case-study",
    help="A CoAG agent and a plain one in the Dynamic Vacuum World.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
awareness = typer.Typer(help="Evidence for situational awareness.", no_args_is_help=True)

Seed = Annotated[int, Option(help="What places, dirt and wording are varied by.")]
Logs = Annotated[Path, Option(help="Where the logs go.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"case-study (coag {version('coag')})")
        raise typer.Exit


_Version = Annotated[
    bool,
    Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
]


@app.callback()
def case_study(*, version: _Version = False) -> None:
    """A CoAG agent and a plain one in the Dynamic Vacuum World."""


_Scenario = Annotated[
    str | None, Argument(help=f"One of: {', '.join((*SCENARIOS, *DEMONSTRATORS))}.")
]
_Agent = Annotated[str, Option(help=f"coag or baseline, or a contender: {', '.join(CONTENDERS)}.")]
_Episodes = Annotated[
    int | None,
    Option(min=1, metavar="N", help="Episodes; as many as the scenario has if not given."),
]
_Resume = Annotated[str | None, Option(help="Continue this case (its folder or name).")]
_Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]
_WithoutConstraint = Annotated[
    list[str] | None, Option(metavar="RULE", help="Leave this rule out (CoAG); may be repeated.")
]
_WithoutMemory = Annotated[
    bool, Option("--without-memory", help="Recall nothing from long-term memory (CoAG).")
]
_Delivery = Annotated[
    Literal["constraint", "procedure"] | None,
    Option(
        metavar="WAY",
        help="How evolution's change of requirements is given (CoAG): constraint, the "
        "default, or procedure.",
    ),
]
_Depth = Annotated[
    Depth | None,
    Option(
        metavar="DEPTH",
        help="One model call a phase (full, the default), one a cycle (compact), or as each cycle "
        "needs (auto) (CoAG).",
    ),
]
_World = Annotated[
    str | None,
    Option(metavar="URL", help=f"A served world; its token is taken from {CONTROL_TOKEN}."),
]
_Show = Annotated[
    bool, Option("--show", help="Serve the world's page for watching the run, and say where.")
]
_Pace = Annotated[
    float | None,
    Option(
        min=0,
        metavar="SECONDS",
        help="With --show: time to look between two phases; 1 for scripted models, else 0.",
    ),
]
_Port = Annotated[
    int | None,
    Option(min=0, max=65535, metavar="N", help="With --show: where; a free port if not given."),
]


@app.command()
def run(  # noqa: PLR0913 - options of a command
    *,
    scenario: _Scenario = None,
    agent: _Agent = "coag",
    model: Annotated[str, Option(help=f"{_SPEC}.")] = "scripted:sound",
    seed: Seed = 0,
    logs: Logs = Path("logs"),
    episodes: _Episodes = None,
    resume: _Resume = None,
    as_json: _Json = False,
    without_constraint: _WithoutConstraint = None,
    without_memory: _WithoutMemory = False,
    delivery: _Delivery = None,
    depth: _Depth = None,
    max_actions: Bound = None,
    world: _World = None,
    show: _Show = False,
    pace: _Pace = None,
    port: _Port = None,
) -> None:
    """Run one agent through one scenario, or continue a case that was interrupted.

    Agents of water-hammer and even-odd are situated (the default), waiting or polling.
    """
    if scenario in DEMONSTRATORS:
        other = {"episodes": episodes, "resume": resume, "delivery": delivery, "world": world}
        other |= {"without_constraint": without_constraint, "max_actions": max_actions}
        flags = {"without_memory": without_memory or None, "depth": depth, "show": show or None}
        _refuse(other | flags, f"not for {scenario}")
        _demonstrate(scenario, agent, model, seed, logs, as_json=as_json)
        return
    if resume is not None:
        folder = CaseFolder.existing(resume, logs)
        request = folder.request()
    elif scenario is None:
        raise ConfigurationError("Name a scenario, or a case to continue: --resume CASE.")
    else:
        folder, options = None, {"without_memory": without_memory or None, "depth": depth}
        options |= {"without_constraint": without_constraint or None, "delivery": delivery}
        if agent != "coag":
            _refuse(options, "only for --agent coag; the others are what they are")
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
    if not show:
        _refuse({"pace": pace, "port": port}, "only with --show")
    elif request.world is not None:
        _refuse({"port": port}, "the world is served elsewhere: --world")
    folder = folder or CaseFolder.create(logs, checked(request))
    _play(folder, _shown(request, pace, port) if show else None, as_json=as_json)


def _demonstrate(
    scenario: str, agent: str, model: str, seed: int, logs: Path, *, as_json: bool
) -> None:
    """Runs a demonstrator of situated agents, and prints what came of it."""
    agent = "situated" if agent == "coag" else agent
    model = "scripted:careful" if model == "scripted:sound" else model
    folder = logs / new_run_id(SystemClock().now(), f"{scenario}-{agent}")
    result = asyncio.run(run_demonstrator(scenario, agent, model, seed=seed, folder=folder))
    if as_json:
        typer.echo(result.model_dump_json())
        return
    _print_lines(
        f"{scenario}, {agent}, {model}, seed {seed}: {'success' if result.success else 'failure'}",
        *([result.reason] if result.reason else []),
        f"{result.model_calls} model calls, {result.calls_while_blocked} while nothing was to do "
        f"but wait; {result.prompt_tokens + result.completion_tokens:,} tokens, "
        f"{result.seconds:.1f} s",
        *result.answers,
        *([f"Activities: {as_typed(folder)}"] if folder.is_dir() else []),
    )


def _refuse(options: Mapping[str, object], reason: str) -> None:
    """Refuses options that would have no effect.

    Raises:
        ConfigurationError: One of them is set.
    """
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if given:
        raise ConfigurationError(f"{', '.join(given)}: {reason}. Leave it out.")


def _shown(request: CaseRequest, pace: float | None, port: int | None) -> Showing:
    """How a case is shown, after saying where.

    Where somebody sits at the terminal, the run waits for them.
    """
    token = os.environ.get(CONTROL_TOKEN)
    named = f"the one in {CONTROL_TOKEN}"
    seconds = pace if pace is not None else 1.0 if is_scripted(request.model) else 0.0
    if request.world is not None:
        url, showing = request.world.rstrip("/"), Showing(pace=seconds)
    else:
        with socket.create_server((_HOST, port or 0)) as free:
            chosen = free.getsockname()[1]
        token, named = (token, named) if token else (new := secrets.token_urlsafe(24), new)
        url = f"http://{_HOST}:{chosen}"
        showing = Showing(pace=seconds, port=chosen, control_token=token)
    typer.echo(f"live page: {url}/\ncontrol token: {named}", err=True)
    click.pause("Open the page and press any key here to begin.", err=True)
    return showing


def _play(folder: CaseFolder, showing: Showing | None, *, as_json: bool) -> None:
    with bar_of() as show, resumable(folder):
        result = asyncio.run(run_case(folder, shown(folder.request(), show), showing))
    if as_json:
        typer.echo(result.model_dump_json())
        return
    _print_results([result])
    looks = [f"Episode {number}: {command}" for number, command in _looks(folder)]
    _print_lines(f"Case: {as_typed(folder.path)}", *looks)


@app.command()
def situated(
    model: Annotated[
        str, Option(help="scripted:careful, scripted:hasty, or a model spec.")
    ] = "scripted:careful",
    seeds: Annotated[int, Option(min=1, help="Runs of each agent, with seeds from 0.")] = 20,
    as_json: _Json = False,
) -> None:
    """Compare agents that poll, wait, or have activities, on Water Hammer and Even/Odd."""
    tables = asyncio.run(
        compare_agents(
            model,
            range(seeds),
            done=lambda one: typer.echo(
                f"{one.demonstrator} {one.agent} seed {one.seed}: "
                f"{'success' if one.success else 'failure'}, {one.model_calls} calls",
                err=True,
            ),
        )
    )
    for table in tables:
        typer.echo(table.model_dump_json() if as_json else f"{table.markdown()}\n")


@app.command()
def demo(
    model: Annotated[
        str | None,
        Option(help=f"{_SPEC}; for each scenario two of the scripted ones if not given."),
    ] = None,
    logs: Logs = Path("logs"),
    seed: Seed = 0,
) -> None:
    """Run both agents through the four scenarios and show what came of it."""
    folder = logs / new_run_id(SystemClock().now(), "demo")
    requests = planned_cases(model, seed)
    with bar_of() as show:
        results = asyncio.run(run_demo(requests, folder, show))
    _print_results(results)
    runs, violated = verification(folder)
    looked_at = next((result for result in results if result.agent == "coag"), results[0])
    _print_lines(
        f"Report: {as_typed(folder / REPORT)}",
        f"All runs: {coag_command()} log {as_typed(folder)}",
        *(f"Look at one: {command}" for _, command in _looks(CaseFolder(Path(looked_at.run)))[:1]),
        *(violated or (f"{runs} runs verified",)),
    )
    if violated:
        raise typer.Exit(1)


def _print_results(results: Sequence[CaseResult]) -> None:
    console = Console(highlight=False, emoji=False)
    console.print(demo_table(results))
    if note := scripted_note(results):
        console.print(f"\n{note}", style="bright_black")


def _looks(case: CaseFolder) -> list[tuple[int, str]]:
    """The number of each episode, with the command that shows its run."""
    return [
        (each.episode, f"{coag_command()} log {as_typed(case.path / each.run)}")
        for each in case.episodes()
    ]


def _print_lines(*lines: str) -> None:
    """Lines to copy from: never broken, behind an empty one."""
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    console.print("\n" + "\n".join(lines))


@app.command()
def faults(
    count: Annotated[
        int, Option(min=10, metavar="N", help="Faults of the CoAG agent that are to do harm.")
    ] = 330,
    seed: Seed = 0,
    baseline: Annotated[
        int, Option(min=0, metavar="N", help="The same of the plain baseline.")
    ] = 60,
    write: Annotated[
        Path | None, Option(metavar="PAGE", help="A page whose tables are replaced by these.")
    ] = None,
) -> None:
    """Break components of running agents and see whether their diagnosis names the right one."""
    from case_study.faults import measure_both, tables  # heavy, and for this one alone
    from case_study.pages import replace_in

    with bar_of() as progress:
        text = tables(asyncio.run(measure_both(count, baseline, seed=seed, on_progress=progress)))
    if write is not None:
        replace_in(write, text, "faults")
    typer.echo(text)


_Run = Annotated[
    str,
    Argument(metavar="RUN", help="A run's folder, its id, the beginning of it, latest, or a case."),
]
_Film = Annotated[
    Path | None,
    Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The film: .gif, .png or .apng; RUN's id and .gif if not given.",
    ),
]
_SecondsPerCycle = Annotated[float, Option(metavar="S", help="How long a cycle is shown.")]
_Size = Annotated[
    Literal["small", "medium", "large"], Option(metavar="SIZE", help="small, medium or large.")
]
_Theme = Annotated[Literal["light", "dark"], Option(metavar="THEME", help="light or dark.")]


@app.command()
def film(
    run: _Run,
    *,
    output: _Film = None,
    seconds_per_cycle: _SecondsPerCycle = 5.0,
    size: _Size = "medium",
    theme: _Theme = "light",
    logs: Logs = Path("logs"),
) -> None:
    """Make a GIF or an animated PNG of a run, from its trace alone."""
    options = FilmOptions(seconds_per_cycle=seconds_per_cycle, size=size, theme=theme)
    folder = filmed_run(run, logs)
    with bar_of() as progress:
        path = output or Path(f"{folder.path.name}.gif")
        made = make_film(folder, path, options, on_progress=progress)
    for notice in made.notices:
        typer.echo(one_line(notice), err=True)
    typer.echo(
        f"{made.path}: {made.pictures} pictures, {made.seconds:.0f} s, {made.size / 1000:,.0f} kB"
    )


@awareness.callback()
def _awareness() -> None:
    """Evidence for situational awareness."""


@awareness.command()
def coverage(
    *,
    model: Annotated[
        str | None,
        Option(metavar="SPEC", help="A model that also reads the messages: one more injection."),
    ] = None,
    readings: Annotated[
        Path, Option(metavar="FILE", help="With --model: what it reads is kept here.")
    ] = Path("logs") / "awareness" / "readings.jsonl",
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="Write the page here, too.")
    ] = None,
) -> None:
    """What a buffer, a summary and awareness tell of a talk: tables 6 and 7 of the paper."""
    from case_study.awareness import measured  # heavy, and for this one alone

    with bar_of() as progress:
        page = asyncio.run(measured(model, readings, progress))
    if output is not None:
        output.write_text(page, encoding="utf-8")
    typer.echo(page, nl=False)


app.add_typer(awareness, name="awareness")
app.command()(bench)
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="case-study")
    except (CoagError, WorldError, OSError) as error:
        typer.secho(f"case-study: {' '.join(str(error).split())}", fg="red", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
