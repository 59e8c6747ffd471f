"""The options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Scenario = Annotated[
    str | None, typer.Argument(help="sudden-wall, energy-dilemma, phantom-object or evolution.")
]
Agent = Annotated[str, typer.Option(help="coag or baseline.")]
Model = Annotated[str, typer.Option(help="A model spec, or scripted:NAME.")]
DemoModel = Annotated[
    str | None, typer.Option(help="A model spec; the scripted temperaments if not given.")
]
Seed = Annotated[int, typer.Option(help="What places, dirt and wording are varied by.")]
Logs = Annotated[Path, typer.Option(help="Where the logs go.")]
Episodes = Annotated[
    int | None, typer.Option(min=1, help="Episodes; as many as the scenario has if not given.")
]
Resume = Annotated[str | None, typer.Option(help="Go on with this case (its folder or name).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
WithoutConstraint = Annotated[
    list[str] | None, typer.Option(help="Leave this rule out (CoAG); may be repeated.")
]
WithoutMemory = Annotated[
    bool, typer.Option("--without-memory", help="Recall nothing from long-term memory (CoAG).")
]
Delivery = Annotated[
    Literal["constraint", "procedure"],
    typer.Option(help="How evolution's change of requirements is told (CoAG)."),
]
Depth = Annotated[
    Literal["full", "compact"],
    typer.Option(help="One model call a phase, or one a cycle (CoAG)."),
]
MaxActions = Annotated[
    int | None,
    typer.Option(min=1, help="Bound of actions an episode; the scenario's if not given."),
]
WorldUrl = Annotated[
    str | None,
    typer.Option(help="A served world; its token is taken from VACUUM_WORLD_CONTROL_TOKEN."),
]
