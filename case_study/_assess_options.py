"""The options of `assess`, `report` and `cross-check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from case_study.assess import Keep, Place

Folder = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="The assessment's folder; one that was broken off is gone on with.",
    ),
]
Agents = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Contenders by comma, or headline (the default), ablations, all.",
    ),
]
Scenarios = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", help="Scenarios by comma, or letters such as A-D, or all (the default)."
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="SPEC",
        help="A model spec; may be repeated; scripted:fallible if not given.",
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(metavar="N", help="How many seeds, from 0, or which: 6-11. 10 if not given."),
]
FewerSeeds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=N", help="This contender plays only the first N seeds; may be repeated."
    ),
]
WherePlayed = Annotated[
    Place | None,
    typer.Option(
        "--place",
        metavar="PLACE",
        help="local (the default): world and records in the process; served: HTTP and Chroma.",
    ),
]
Kept = Annotated[
    Keep | None,
    typer.Option(
        "--keep",
        metavar="RUNS",
        help="Runs that are kept: all, failures or none. all for a language model, failures for "
        "scripted ones if not given.",
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Jobs played at the same time; one a processor for scripted models, else one, if not "
        "given.",
    ),
]
Retries = Annotated[
    int,
    typer.Option(
        min=0, metavar="N", help="Further tries of a job whose model or world has failed."
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Tokens after which a case ends, for equal costs."),
]
MaxActions = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Bound of actions an episode; the scenario's if not given."
    ),
]
Episodes = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Play sequences of N episodes in the same world, with a memory that lasts and with "
        "one that is emptied.",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Play on a Ray cluster: its address, auto, or local to start one here.",
    ),
]
Extend = Annotated[
    bool, typer.Option("--extend", help="Add what is asked for to an assessment that is there.")
]
MeasureAgain = Annotated[
    bool,
    typer.Option(
        "--measure-again", help="Measure from the kept runs once more, with no model; play nothing."
    ),
]
DomainName = Annotated[
    str | None,
    typer.Option("--domain", metavar="NAME", help="vacuum, or module:NAME of another domain."),
]
Assessed = Annotated[Path, typer.Argument(metavar="DIR", help="The assessment's folder.")]
OtherAssessed = Annotated[
    Path, typer.Argument(metavar="OTHER", help="The folder to compare it with.")
]
ReportPage = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The page; report.html in DIR if not given."
    ),
]
RunPages = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Make pages of the runs of N failed trials whose runs were kept, the most telling "
        "first.",
    ),
]
Title = Annotated[str, typer.Option(metavar="TEXT", help="What the page is headed.")]
