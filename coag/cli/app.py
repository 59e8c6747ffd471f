"""The commands and their options.

This is the one place where modules of our own are imported inside functions: `coag --help` must
be quick, and what the commands need (pydantic, AutoGen, Chroma) takes long to import. A command
here only declares its options and hands them to the module named after it. To add one, write
`_NAME.py` with a function that takes the options, and a command below that imports it.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from coag.errors import CoagError

from . import app_looking as looking
from . import options as given
from .command import unread_output
from .memory import app as memory_app

app = typer.Typer(
    name="coag",
    help="AutoGen agents with a mind that can be inspected.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_USER_ERROR = 2
"""Exit code for what the user got wrong; the same as for an unknown option."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coag {version('coag')}")
        raise typer.Exit


@app.callback()
def coag(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """AutoGen agents with a mind that can be inspected."""


@app.command()
def chat(
    model: given.ChatModel,
    system: given.System = None,
    memory: given.MemoryFolder = None,
    logs: given.OwnLogs = None,
    depth: given.HowDeep = given.Depth.COMPACT,
    proposal: given.HowProposed = given.Proposal.JSON,
    once: given.Once = None,
) -> None:
    """Talks with an agent that deliberates; shows the phases as they happen.

    Reads a message a line. Answers go to standard output, all else to standard error.
    """
    from .chat import ChatOptions
    from .chat import chat as run_chat

    run_chat(
        ChatOptions(
            model=model,
            system=system,
            memory=memory,
            logs=logs,
            depth=depth.value,
            proposal=proposal.value,
            once=once,
        )
    )


@app.command()
def log(
    run: given.RunOrFolder = None,
    cycle: given.OnlyCycle = None,
    phase: given.OnlyPhase = None,
    as_json: given.RecordsAsJson = False,
    follow: given.Follow = False,
    logs: given.Logs = Path("logs"),
) -> None:
    """Shows a run: what was recalled, proposed, rejected and why, chosen, done.

    Without RUN, lists the runs there are; with --cycle, --phase or --follow, shows the latest.
    """
    from .log import show_run
    from .runs import show_runs

    if run is None and cycle is None and phase is None and not follow:
        show_runs(logs, as_json=as_json)
    else:
        show_run(run or "latest", logs, cycle=cycle, phase=phase, as_json=as_json, follow=follow)


@app.command()
def verify(
    run: given.RunOrRuns = "latest",
    head: given.Head = None,
    key: given.PublicKey = None,
    witness: given.WitnessedBy = None,
    hooks: given.Hooks = False,
    trust: given.Trust = None,
    logs: given.Logs = Path("logs"),
) -> None:
    """Checks that a run obeyed its cycle and that nobody changed what it left.

    Exit code 0: all holds; 1: something is violated; 2: wrongly called.
    """
    from .verify import Anchors, verify_runs

    anchors = Anchors(head=head, key=key, witness=witness)
    raise typer.Exit(verify_runs(run, logs, anchors, hooks=hooks, trust=trust or ()))


@app.command()
def seal(
    runs: given.Sealed = None,
    witness: given.WitnessFile = None,
    new_key: given.NewKey = None,
    logs: given.Logs = Path("logs"),
) -> None:
    """Signs runs with the key of COAG_SEAL_KEY, or appends how they stand to a witness file.

    `coag verify --key` and `--witness` check that. Signing needs the extra `seal`.
    """
    from .seal import seal_runs

    seal_runs(runs or [], logs, witness=witness, new=new_key)


@app.command()
def fork(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    run: given.Run,
    at: given.At,
    model: given.GoOnWith = None,
    without_record: given.WithoutRecord = None,
    without_constraint: given.WithoutConstraint = None,
    procedure: given.ProcedureText = None,
    settings: given.Set = None,
    turns: given.MoreTurns = None,
    live: given.Live = False,
    yes: given.Yes = False,
    trust: given.Trust = None,
    as_json: given.AsJson = False,
    logs: given.Logs = Path("logs"),
    into: given.Into = None,
) -> None:
    """Goes on from a phase of a run with something changed, and shows both side by side.

    The run itself, its memory and what it did outside are not touched. The options that change
    something may be given together, and all but --model several times.
    """
    from .fork import ForkOptions, fork_run

    options = ForkOptions(
        run=run,
        at=at,
        model=model,
        without_record=without_record or (),
        without_constraint=without_constraint or (),
        procedure=procedure or (),
        settings=settings or (),
        turns=turns,
        live=live,
        yes=yes,
        trust=trust or (),
        as_json=as_json,
        logs=logs,
        into=into,
    )
    fork_run(options)


@app.command()
def why(
    run: given.Run,
    cycle: given.Cycle = None,
    counterfactual: given.Counterfactual = False,
    model: given.DecideWith = None,
    repeats: given.Repeats = 1,
    trust: given.Trust = None,
    as_json: given.AsJson = False,
    logs: given.Logs = Path("logs"),
) -> None:
    """Tells what a decision rested on: percepts, memory, procedures, constraints, candidates.

    Without CYCLE, lists what was decided in each.
    """
    from .why import WhyOptions, explain

    options = WhyOptions(
        run=run,
        cycle=cycle,
        counterfactual=counterfactual,
        model=model,
        repeats=repeats,
        trust=trust or (),
        as_json=as_json,
        logs=logs,
    )
    explain(options)


@app.command()
def doctor(
    model: given.Examined = None,
    context: given.LongestPrompt = 4_096,
    max_tokens: given.LongestAnswer = 256,
    seconds: given.Seconds = 60.0,
    as_json: given.AsJson = False,
) -> None:
    """Examines a model server, or without SPEC what is installed; says what to do.

    Exit code 0: usable; 1: not usable; 2: wrongly called.
    """
    from .doctor import DoctorOptions
    from .doctor import doctor as run_doctor

    options = DoctorOptions(
        model=model, context=context, max_tokens=max_tokens, seconds=seconds, as_json=as_json
    )
    raise typer.Exit(run_doctor(options))


@app.command()
def diagnose(
    run: given.RunOrRuns = "latest",
    domain: given.Domain = None,
    as_json: given.FailuresAsJson = False,
    logs: given.Logs = Path("logs"),
) -> None:
    """Names the cause of every failure of a run, with the records that show it.

    Exit code 0: nothing failed; 1: there are failures; 2: wrongly called.
    """
    from .diagnose import DiagnoseOptions, diagnose_runs

    options = DiagnoseOptions(run=run, logs=logs, domain=domain, as_json=as_json)
    raise typer.Exit(diagnose_runs(options))


@app.command()
def replay(
    runs: given.SeveralRuns,
    trust: given.Trust = None,
    as_json: given.RunsAsJson = False,
    logs: given.Logs = Path("logs"),
) -> None:
    """Runs a run again with no model and no world; says where it first differs, if it does.

    The trace answers for models, tools, approvals and recall. Exit code 0: no divergence; 1: it
    differs; 2: it cannot be replayed.
    """
    from .replay import replay_runs

    raise typer.Exit(replay_runs(runs, logs, as_json=as_json, trust=trust or ()))


@app.command()
def otel(
    run: given.RunOrRuns = "latest",
    endpoint: given.Endpoint = None,
    with_content: given.WithContent = False,
    logs: given.Logs = Path("logs"),
) -> None:
    """Sends a run to a tracing tool, as OpenTelemetry's spans over OTLP/HTTP.

    The variables OTEL_EXPORTER_OTLP_* hold. No dialogue, prompt, argument or result is sent
    without --with-content.
    """
    from .otel import OtelOptions, send_runs

    send_runs(OtelOptions(run=run, logs=logs, endpoint=endpoint, with_content=with_content))


for command in looking.COMMANDS:
    app.command()(command)
app.add_typer(memory_app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and leaves the process with its exit code.

    Args:
        arguments: The words behind `coag`; None for those of this process.
    """
    # Else the interpreter, on leaving, looks through all that was imported for cycles: some 0.3 s.
    atexit.register(gc.freeze)
    options: dict[str, Any] = {} if arguments is None else {"args": list(arguments)}
    with unread_output():
        try:
            app(**options, prog_name="coag")
        except CoagError as error:
            # Messages may quote what a stranger wrote into a log.
            from coag.schema import cleaned

            typer.secho(" ".join(cleaned(str(error)).split()), fg=typer.colors.RED, err=True)
            sys.exit(_USER_ERROR)
