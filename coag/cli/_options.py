"""Options and arguments of commands, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[
    str, typer.Argument(help="A run's id or the beginning of one, its folder, or `latest`.")
]
Logs = Annotated[Path, typer.Option(help="The folder that holds the runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]

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
    typer.Option("--live", help="Act on the environment as it is, if it cannot be put back."),
]
Into = Annotated[
    Path | None, typer.Option(help="Folder for the fork's run; else beside its parent.")
]

# ---- of `why` ----

Cycle = Annotated[int, typer.Argument(min=1, help="The cycle; of a plain run the turn.")]
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
