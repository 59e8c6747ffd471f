"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_A_RUN = "A run's id or the beginning of one, its folder, or `latest`"

Run = Annotated[str, typer.Argument(help=f"{_A_RUN}.")]
RunOrRuns = Annotated[str, typer.Argument(help=f"{_A_RUN}; or a folder of runs, for all of them.")]
SeveralRuns = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Runs, each by its id or the beginning of one, its folder, or `latest`; or "
        "folders of runs.",
    ),
]
RunOrWatched = Annotated[str | None, typer.Argument(help=f"{_A_RUN}; or a folder of runs.")]
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
Domain = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:CLASS",
        help="What is known of the run's domain, e.g. `case_study.faults:VacuumDomain`.",
    ),
]
