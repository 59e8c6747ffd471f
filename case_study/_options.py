"""The options of the command line."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import typer

from case_study.contenders import CONTENDERS
from case_study.temperaments import SCRIPTED, SCRIPTS
from vacuum_world.scenarios import SCENARIOS

Scenario = Annotated[str | None, typer.Argument(help=f"One of: {', '.join(SCENARIOS)}.")]
Agent = Annotated[
    str,
    typer.Option(help=f"coag or baseline, or a contender: {', '.join(CONTENDERS)}."),
]
_SCRIPTED = f"{SCRIPTED}:NAME ({', '.join(SCRIPTS)})"
Model = Annotated[str, typer.Option(help=f"A model spec, or {_SCRIPTED}.")]
DemoModel = Annotated[
    str | None,
    typer.Option(
        help=f"A model spec, or {_SCRIPTED}; for each scenario two of the scripted ones "
        "if not given."
    ),
]
Seed = Annotated[int, typer.Option(help="What places, dirt and wording are varied by.")]
Logs = Annotated[Path, typer.Option(help="Where the logs go.")]
Episodes = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Episodes; as many as the scenario has if not given."),
]
Resume = Annotated[str | None, typer.Option(help="Go on with this case (its folder or name).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
WithoutConstraint = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE", help="Leave this rule out (CoAG); may be repeated."),
]
WithoutMemory = Annotated[
    bool, typer.Option("--without-memory", help="Recall nothing from long-term memory (CoAG).")
]
Delivery = Annotated[
    Literal["constraint", "procedure"] | None,
    typer.Option(
        metavar="WAY",
        help="How evolution's change of requirements is told (CoAG): constraint, the default, "
        "or procedure.",
    ),
]
Depth = Annotated[
    Literal["full", "compact"] | None,
    typer.Option(
        metavar="DEPTH",
        help="One model call a phase (full, the default), or one a cycle (compact) (CoAG).",
    ),
]
MaxActions = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Bound of actions an episode; the scenario's if not given."
    ),
]
FaultCount = Annotated[
    int,
    typer.Option(
        "--count", min=10, metavar="N", help="Faults of the CoAG agent that are to do harm."
    ),
]
BaselineCount = Annotated[
    int, typer.Option("--baseline", min=0, metavar="N", help="The same of the plain baseline.")
]
WritePage = Annotated[
    Path | None,
    typer.Option(metavar="PAGE", help="A page whose tables are replaced by these."),
]
Filmed = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run's folder, its id, the beginning of it, latest, or a case."
    ),
]
FilmFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The film: .gif, .png or .apng; RUN's id and .gif if not given.",
    ),
]
Fps = Annotated[
    float | None,
    typer.Option(metavar="N", help="Pictures a second, each as long as the others."),
]
SecondsPerCycle = Annotated[
    float | None,
    typer.Option(metavar="S", help="How long a cycle is shown; 5 if nothing is given."),
]
FilmSize = Annotated[
    Literal["small", "medium", "large"],
    typer.Option(metavar="SIZE", help="small, medium or large."),
]
FilmTheme = Annotated[
    Literal["light", "dark"], typer.Option(metavar="THEME", help="light or dark.")
]
WorldUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A served world; its token is taken from VACUUM_WORLD_CONTROL_TOKEN.",
    ),
]

Show = Annotated[
    bool,
    typer.Option("--show", help="Serve the world's page for watching the run, and tell where."),
]
Pace = Annotated[
    float | None,
    typer.Option(
        "--pace",
        min=0,
        metavar="SECONDS",
        help="With --show: time to look between two phases; 1 for scripted models, else 0.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65535,
        metavar="N",
        help="With --show: where; a free port if not given.",
    ),
]
ReaderSpec = Annotated[
    str | None,
    typer.Option(
        "--reader", metavar="SPEC", help="A model that answers the questions; rules if not given."
    ),
]
PerceptionSpec = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="SPEC",
        help="A model that also reads the messages, for one more injection.",
    ),
]
Trusted = Annotated[
    bool,
    typer.Option("--trusted", help="With --model: believe what messages themselves do not show."),
]
DialogueLimit = Annotated[
    int | None,
    typer.Option("--limit", min=1, metavar="N", help="Only N dialogues, the paper's first."),
]
DialogueNames = Annotated[
    list[str] | None,
    typer.Option("--dialogue", metavar="NAME", help="Only this dialogue; may be repeated."),
]
QuestionIds = Annotated[
    str | None,
    typer.Option("--questions", metavar="IDS", help="Only these questions, by comma."),
]
InjectionBudget = Annotated[
    int,
    typer.Option(
        "--budget", min=1, metavar="N", help="Tokens of injections and of the buffer that is cut."
    ),
]
CallTimeout = Annotated[
    float,
    typer.Option("--timeout", min=1.0, metavar="SECONDS", help="Until a call is given up."),
]
AnswersFile = Annotated[
    Path,
    typer.Option(
        "--answers",
        metavar="FILE",
        help="With --reader: answers are kept here; they are asked once.",
    ),
]
ReadingsFile = Annotated[
    Path,
    typer.Option("--readings", metavar="FILE", help="With --model: what it reads is kept here."),
]
DialoguesFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Other dialogues: a folder of dialogues.json, questions.json."
    ),
]
CoveragePage = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the page here, too."),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"case-study (coag {version('coag')})")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
]
