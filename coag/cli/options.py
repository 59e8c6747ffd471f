"""Options and arguments of commands, declared once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[
    str, typer.Argument(help="A run's id or the beginning of one, its folder, or `latest`.")
]
Logs = Annotated[Path, typer.Option(help="The folder that holds the runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]

Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE",
        help="Run the code that the run names in this module or package; may be given several "
        "times. Also by the variable COAG_TRUST.",
    ),
]

# ---- of `fork` ----

At = Annotated[
    str,
    typer.Option(
        metavar="CYCLE.PHASE",
        help="The first phase to run anew, e.g. `3.evaluation`; `3` means its retrieval.",
    ),
]
GoOnWith = Annotated[str | None, typer.Option(metavar="SPEC", help="Go on with this model.")]
WithoutRecord = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="As if this record had never been written."),
]
WithoutConstraint = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="This constraint is not in force.")
]
ProcedureText = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FILE", help="Another text of a procedure, if the gate agrees."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="A value (JSON) in the perceptual state or in working memory, e.g. `battery=30`.",
    ),
]
MoreTurns = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Turns after this one; as many as the parent had."),
]
Live = Annotated[
    bool,
    typer.Option(
        "--live", help="Act for real on what the factory built, if that is no copy; asks first."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="With --live, do not ask.")]
Into = Annotated[
    Path | None, typer.Option(help="Folder for the fork's run; else beside its parent.")
]

# ---- of `why` ----

Cycle = Annotated[
    int | None,
    typer.Argument(min=1, help="The cycle; of a plain run the turn. Without one, lists them."),
]
Counterfactual = Annotated[
    bool,
    typer.Option(
        "--counterfactual",
        help="Take the decision again without each recalled record in turn; nothing is run.",
    ),
]
DecideWith = Annotated[
    str | None, typer.Option(metavar="SPEC", help="Take it again with this model.")
]
Repeats = Annotated[
    int, typer.Option(min=1, metavar="N", help="How often; models may answer differently.")
]

# ---- of `chat` ----


class Depth(StrEnum):
    """How often the model is asked."""

    COMPACT = "compact"
    FULL = "full"


class Proposal(StrEnum):
    """How the model of `coag chat` proposes."""

    JSON = "json"
    NATIVE = "native"


ChatModel = Annotated[
    str,
    typer.Option(
        help="`openai:NAME`, `ollama:NAME`, `anthropic:NAME`, `URL#NAME` for a server that "
        "speaks OpenAI's API, or an AutoGen component file."
    ),
]
System = Annotated[str | None, typer.Option(help="Instructions to the agent.")]
MemoryFolder = Annotated[
    str | None, typer.Option(help="A folder in which it remembers; without one, in RAM.")
]
OwnLogs = Annotated[Path | None, typer.Option(help="A folder for a log of what it did.")]
HowDeep = Annotated[Depth, typer.Option(help="Ask the model once a cycle, or once a phase.")]
HowProposed = Annotated[
    Proposal,
    typer.Option(
        help="Candidates written as JSON, which every model can, or the model's own tool "
        "calls; `coag doctor` says whether a server gives those."
    ),
]
Once = Annotated[str | None, typer.Option(help="Say this, show the answer, and leave.")]

# ---- of `log` ----

RunOrFolder = Annotated[
    str | None,
    typer.Argument(
        help="A run's id or the beginning of one, its folder, or `latest`; or a folder of "
        "runs, to list them."
    ),
]
OnlyCycle = Annotated[int | None, typer.Option(min=0, metavar="N", help="Only this cycle.")]
OnlyPhase = Annotated[str | None, typer.Option(help="Only this phase, e.g. `evaluation`.")]
RecordsAsJson = Annotated[
    bool, typer.Option("--json", help="The records as JSON, one a line, for programs.")
]
Follow = Annotated[
    bool,
    typer.Option("--follow", "-f", help="Show what comes as well, until it ends or Ctrl-C."),
]

# ---- of `verify` ----

RunOrRuns = Annotated[
    str,
    typer.Argument(
        help="A run's id or the beginning of one, its folder, or `latest`; or a folder of "
        "runs, for all of them."
    ),
]
Head = Annotated[
    str | None,
    typer.Option(metavar="HASH", help="The run's last hash, as it was noted down before."),
]
PublicKey = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="The public key with which seal.json must be signed; COAG_SEAL_PUBLIC_KEY does the "
        "same.",
    ),
]
WitnessedBy = Annotated[
    Path | None,
    typer.Option(
        "--witness", metavar="FILE", help="Runs must be as they were appended to this file."
    ),
]
Hooks = Annotated[
    bool,
    typer.Option(
        "--hooks",
        help="Build the run's agent again by its recipe, and have its domain's code compute "
        "every change of state once more. This runs the code that run.json names.",
    ),
]

# ---- of `seal` ----

Sealed = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN...",
        help="A run's id or the beginning of one, its folder, or `latest`; or a folder of runs.",
    ),
]
WitnessFile = Annotated[
    Path | None,
    typer.Option(
        "--witness",
        metavar="FILE",
        help="Append how the runs stand to this file, instead of signing them; keep it where the "
        "writer of the logs cannot write.",
    ),
]
NewKey = Annotated[
    Path | None,
    typer.Option(
        "--new-key", metavar="FILE", help="Make a pair of keys: FILE, and FILE.pub to give away."
    ),
]

# ---- of `doctor` ----

Examined = Annotated[
    str | None,
    typer.Argument(
        metavar="SPEC",
        help="`openai:NAME`, `ollama:NAME`, `anthropic:NAME`, `URL#NAME`, or an AutoGen "
        "component file; without one, what is installed is checked.",
    ),
]
LongestPrompt = Annotated[
    int, typer.Option(min=256, metavar="N", help="Longest prompt to try, in tokens.")
]
LongestAnswer = Annotated[
    int, typer.Option(min=1, metavar="N", help="Longest answer; more for models that think.")
]
Seconds = Annotated[float, typer.Option(min=0.1, metavar="S", help="Time for each request.")]

# ---- of `diagnose` ----

Domain = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:CLASS",
        help="What is known of the run's domain, e.g. `case_study.faults:VacuumDomain`.",
    ),
]
FailuresAsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object a failure, for programs.")
]

# ---- of `replay` ----

SeveralRuns = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Runs, each by its id or the beginning of one, its folder, or `latest`; or "
        "folders of runs.",
    ),
]
RunsAsJson = Annotated[bool, typer.Option("--json", help="One JSON object per run, for programs.")]

# ---- of `otel` ----

Endpoint = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The collector; else OTEL_EXPORTER_OTLP_ENDPOINT, else http://127.0.0.1:4318.",
    ),
]
WithContent = Annotated[
    bool,
    typer.Option(
        "--with-content",
        help="Send dialogue, prompts, arguments and results, too; without secrets.",
    ),
]

# ---- of `top` ----

RunOrWatched = Annotated[
    str | None,
    typer.Argument(
        help="A run's id or the beginning of one, its folder, or `latest`; or a folder of runs.",
    ),
]
OnceAndGo = Annotated[
    bool, typer.Option("--once", help="Print how they stand as plain text, and end.")
]

# ---- of `inspect` and `report` ----

Host = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="The address to serve; any but this machine's own shows the logs to others.",
    ),
]
Port = Annotated[
    int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes a free one.")
]
OpenBrowser = Annotated[bool, typer.Option("--open", help="Open it in a browser at once.")]
ReportFile = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write.")
]
ReportCycles = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Cycles of each run that are kept; more are left out, and said so."
    ),
]
