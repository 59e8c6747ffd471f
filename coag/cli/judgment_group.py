"""`coag judgment` as typer knows it: for its help, and for what is not plainly right."""

from __future__ import annotations

from typing import ClassVar

import typer

from .commands import LazyGroup
from .judgment import COMMANDS


class _Judgment(LazyGroup):
    lazy: ClassVar = {
        name: (f"coag.cli.judgment:{name}", line) for name, (_, line) in COMMANDS.items()
    }


app = typer.Typer(
    name="judgment",
    cls=_Judgment,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def judgment() -> None:
    """Keeps what an agent learned about how to go about its work, across runs and contexts.

    Before a step: `consult "the task"`. After it: `report NAME REWARD --consultation ID`. When
    something was learned: `reflect`. Before a context is cut: `flush`; after that: `resume`.

    Example: coag judgment consult "fix the build" --state judgment.json
    """
