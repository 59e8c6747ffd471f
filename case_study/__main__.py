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

from case_study.assessing import COMMANDS, Bound, bar_of
from case_study.contenders import CONTENDERS
from case_study.demo import (
    REPORT,
    Live,
    demo_table,
    planned_cases,
    run_demo,
    scripted_note,
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
from case_study.temperaments import SCRIPTED, SCRIPTS, is_scripted
from coag.cli import as_typed, coag_command
from coag.errors import CoagError, ConfigurationError
from coag.schema import SystemClock, new_run_id, one_line
from vacuum_world.errors import WorldError
from vacuum_world.scenarios import SCENARIOS

_VIOLATED = 1
"""Exit code where the trace of a run does not hold."""
_HOST = "127.0.0.1"
_SCRIPTED_PACE = 1.0
"""Seconds between two phases of a scripted model that is watched."""
_SPEC = f"A model spec, or {SCRIPTED}:NAME ({', '.join(SCRIPTS)})"

app = typer.Typer(
    name="case-study",
    help="A CoAG agent and a plain one in the Dynamic Vacuum World.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
awareness = typer.Typer(help="Evidence for situational awareness.", no_args_is_help=True)

Seed = Annotated[int, typer.Option(help="What places, dirt and wording are varied by.")]
Logs = Annotated[Path, typer.Option(help="Where the logs go.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"case-study (coag {version('coag')})")
        raise typer.Exit


@app.callback()
def case_study(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A CoAG agent and a plain one in the Dynamic Vacuum World."""


Scenario = Annotated[str | None, typer.Argument(help=f"One of: {', '.join(SCENARIOS)}.")]
Agent = Annotated[
    str, typer.Option(help=f"coag or baseline, or a contender: {', '.join(CONTENDERS)}.")
]
Model = Annotated[str, typer.Option(help=f"{_SPEC}.")]
Episodes = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Episodes; as many as the scenario has if not given."),
]
Resume = Annotated[str | None, typer.Option(help="Continue this case (its folder or name).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
WithoutConstraint = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE", help="Leave this rule out (CoAG); may be repeated."),
]
WithoutMemory = Annotated[
    bool,
    typer.Option("--without-memory", help="Recall nothing from long-term memory (CoAG)."),
]
Delivery = Annotated[
    Literal["constraint", "procedure"] | None,
    typer.Option(
        metavar="WAY",
        help="How evolution's change of requirements is given (CoAG): constraint, the "
        "default, or procedure.",
    ),
]
Depth = Annotated[
    Literal["full", "compact"] | None,
    typer.Option(
        metavar="DEPTH",
        help="One model call a phase (full, the default), or one a cycle (compact) (CoAG).",
    ),
]
WorldOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A served world; its token is taken from VACUUM_WORLD_CONTROL_TOKEN.",
    ),
]
Show = Annotated[
    bool,
    typer.Option("--show", help="Serve the world's page for watching the run, and say where."),
]
Pace = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="With --show: time to look between two phases; 1 for scripted models, else 0.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, metavar="N", help="With --show: where; a free port if not given."
    ),
]


@app.command()
def run(  # noqa: PLR0913 - options of a command
    *,
    scenario: Scenario = None,
    agent: Agent = "coag",
    model: Model = "scripted:sound",
    seed: Seed = 0,
    logs: Logs = Path("logs"),
    episodes: Episodes = None,
    resume: Resume = None,
    as_json: AsJson = False,
    without_constraint: WithoutConstraint = None,
    without_memory: WithoutMemory = False,
    delivery: Delivery = None,
    depth: Depth = None,
    max_actions: Bound = None,
    world: WorldOption = None,
    show: Show = False,
    pace: Pace = None,
    port: Port = None,
) -> None:
    """Run one agent through one scenario, or continue a case that was interrupted."""
    if resume is not None:
        folder = CaseFolder.existing(resume, logs)
    elif scenario is None:
        raise ConfigurationError("Name a scenario, or a case to continue: --resume CASE.")
    else:
        options = {
            "--without-constraint": without_constraint or None,
            "--without-memory": without_memory or None,
            "--delivery": delivery,
            "--depth": depth,
        }
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
        _refuse_without_show(show=show, pace=pace, port=port, world=world)
        folder = CaseFolder.create(logs, checked(request))
    showing = _showing(folder.request(), show=show, pace=pace, port=port)
    with Live() as live, resumable(folder):
        live.begin(folder.request())
        result = asyncio.run(run_case(folder, live.progress, showing))
    if as_json:
        typer.echo(result.model_dump_json())
        return
    _print_results([result])
    looks = [f"Episode {number}: {command}" for number, command in _looks(folder.path)]
    _print_lines(f"Case: {as_typed(folder.path)}", *looks)


@app.command()
def demo(
    model: Annotated[
        str | None,
        typer.Option(help=f"{_SPEC}; for each scenario two of the scripted ones if not given."),
    ] = None,
    logs: Logs = Path("logs"),
    seed: Seed = 0,
) -> None:
    """Run both agents through the four scenarios and show what came of it."""
    folder = logs / new_run_id(SystemClock().now(), "demo")
    requests = planned_cases(model, seed)
    with Live(total=len(requests)) as live:
        results = asyncio.run(run_demo(requests, folder, live))
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
    count: Annotated[
        int, typer.Option(min=10, metavar="N", help="Faults of the CoAG agent that are to do harm.")
    ] = 330,
    seed: Seed = 0,
    baseline: Annotated[
        int, typer.Option(min=0, metavar="N", help="The same of the plain baseline.")
    ] = 60,
    write: Annotated[
        Path | None,
        typer.Option(metavar="PAGE", help="A page whose tables are replaced by these."),
    ] = None,
) -> None:
    """Break components of running agents and see whether their diagnosis names the right one."""
    from case_study.faults import measure_both, tables  # heavy, and for this one alone
    from case_study.pages import replaced

    with bar_of() as progress:
        text = tables(asyncio.run(measure_both(count, baseline, seed=seed, on_progress=progress)))
    if write is not None:
        page = replaced(write.read_text(encoding="utf-8"), text, "faults")
        write.write_text(page, encoding="utf-8")
    typer.echo(text)


@app.command()
def film(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run's folder, its id, the beginning of it, latest, or a case.",
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The film: .gif, .png or .apng; RUN's id and .gif if not given.",
        ),
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option(metavar="N", help="Pictures a second, each as long as the others."),
    ] = None,
    seconds_per_cycle: Annotated[
        float | None,
        typer.Option(metavar="S", help="How long a cycle is shown; 5 if nothing is given."),
    ] = None,
    size: Annotated[
        Literal["small", "medium", "large"],
        typer.Option(metavar="SIZE", help="small, medium or large."),
    ] = "medium",
    theme: Annotated[
        Literal["light", "dark"], typer.Option(metavar="THEME", help="light or dark.")
    ] = "light",
    logs: Logs = Path("logs"),
) -> None:
    """Make a GIF or an animated PNG of a run, from its trace alone."""
    if fps is not None and seconds_per_cycle is not None:
        raise ConfigurationError("Give --fps or --seconds-per-cycle, not both.")
    seconds = 5.0 if seconds_per_cycle is None else seconds_per_cycle
    options = FilmOptions(seconds_per_cycle=seconds, fps=fps, size=size, theme=theme)
    folder = filmed_run(run, logs)
    with bar_of() as progress:
        path = output or Path(f"{folder.path.name}.gif")
        made = make_film(folder, path, options, on_progress=progress)
    for notice in made.notices:
        Console(stderr=True, highlight=False).print(
            one_line(notice), markup=False, soft_wrap=True, emoji=False
        )
    typer.echo(
        f"{made.path}: {made.pictures} pictures, {made.seconds:.0f} s, {made.size / 1000:,.0f} kB"
    )


@awareness.callback()
def _awareness() -> None:
    """Evidence for situational awareness."""


ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC", help="A model that also reads the messages, for one more injection."
    ),
]
Trusted = Annotated[
    bool,
    typer.Option("--trusted", help="With --model: believe what messages themselves do not show."),
]
Limit = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Only N dialogues, the paper's first.")
]
Dialogue = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only this dialogue; may be repeated."),
]
Questions = Annotated[
    str | None, typer.Option(metavar="IDS", help="Only these questions, by comma.")
]
Budget = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Tokens of injections and of the buffer that is cut."),
]
Timeout = Annotated[float, typer.Option(min=1.0, metavar="SECONDS", help="Time limit of a call.")]
Readings = Annotated[
    Path, typer.Option(metavar="FILE", help="With --model: what it reads is kept here.")
]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Other dialogues: a folder of dialogues.json, questions.json."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the page here, too."),
]


@awareness.command()
def coverage(  # noqa: PLR0913 - options of a command
    *,
    model: ModelOption = None,
    trusted: Trusted = False,
    limit: Limit = None,
    dialogue: Dialogue = None,
    questions: Questions = None,
    budget: Budget = 300,
    timeout: Timeout = 600.0,
    readings: Readings = Path("logs") / "awareness" / "readings.jsonl",
    data: Data = None,
    output: Output = None,
) -> None:
    """What a buffer, a summary and awareness tell of a talk: tables 6 and 7 of the paper."""
    from case_study.awareness import CoverageRequest, measured  # heavy, and for this one alone

    request = CoverageRequest(
        model=model,
        trusted=trusted,
        limit=limit,
        dialogues=tuple(dialogue or ()),
        questions=tuple(id.strip() for id in questions.split(",")) if questions else (),
        budget=budget,
        timeout=timeout,
        readings=readings,
        data=data,
    )
    with bar_of() as progress:
        page = asyncio.run(measured(request, progress))
    if output is not None:
        output.write_text(page, encoding="utf-8")
    typer.echo(page, nl=False)


app.add_typer(awareness, name="awareness")
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)


def _showing(
    request: CaseRequest, *, show: bool, pace: float | None, port: int | None
) -> Showing | None:
    """How a case is shown, after saying where; None where nobody asked for it.

    Where somebody sits at the terminal, the run waits for them.
    """
    _refuse_without_show(show=show, pace=pace, port=port, world=request.world)
    if not show:
        return None
    usual = _SCRIPTED_PACE if is_scripted(request.model) else 0.0
    seconds = usual if pace is None else pace
    from_environment = os.environ.get(CONTROL_TOKEN)
    token = from_environment or secrets.token_urlsafe(24)
    if request.world is not None:
        url, showing, new = request.world.rstrip("/"), Showing(pace=seconds), ""
    else:
        chosen = port or _free_port()
        url, new = f"http://{_HOST}:{chosen}", "" if from_environment else token
        showing = Showing(pace=seconds, port=chosen, control_token=token)
    typer.echo(f"live page: {url}/", err=True)
    typer.echo(f"control token: {new or f'the one in {CONTROL_TOKEN}'}", err=True)
    click.pause("Open the page and press any key here to begin.", err=True)
    return showing


def _refuse_without_show(
    *, show: bool, pace: float | None, port: int | None, world: str | None
) -> None:
    if not show:
        _refuse({"--pace": pace, "--port": port}, "only with --show")
    elif world is not None:
        _refuse({"--port": port}, "the world is served elsewhere: --world")


def _refuse(options: Mapping[str, object], reason: str) -> None:
    """Refuses options that would have no effect.

    Raises:
        ConfigurationError: One of them is set.
    """
    named = ", ".join(name for name, value in options.items() if value is not None)
    if named:
        raise ConfigurationError(f"{named}: {reason}. Leave it out.")


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as listening:
        return listening.getsockname()[1]


def _print_results(results: Sequence[CaseResult]) -> None:
    console = Console(highlight=False, emoji=False)
    console.print(demo_table(results))
    if note := scripted_note(results):
        console.print(f"\n{note}", style="bright_black")


def _looks(case: Path) -> list[tuple[int, str]]:
    """The number of each episode, with the command that shows its run."""
    command = coag_command()
    return [
        (each.episode, f"{command} log {as_typed(case / each.run)}")
        for each in CaseFolder(case).episodes()
    ]


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
