"""Asking a person before something is changed that cannot be undone, and showing what goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from coag.errors import ConfigurationError

from ._text import screen

_DECLINED = 1
_SECONDS = 5.0
"""Between two lines of progress where there is no terminal."""


def tell(text: str, style: str = "") -> None:
    """A line for a person, beside what a program reads."""
    screen(errors=True).print(Text(text, style=style), soft_wrap=True)


def check_can_ask(*, yes: bool) -> None:
    """Refuses where nobody can be asked.

    Raises:
        ConfigurationError: If there is no terminal, and no yes was given.
    """
    if not yes and not sys.stdin.isatty():
        raise ConfigurationError(
            "This changes the memory and asks first, but there is no terminal to ask at; nothing "
            "was changed. Add --yes to do it without being asked."
        )


def ask(question: str, *, yes: bool) -> None:
    """Goes on only after a yes; else leaves with exit code 1.

    Raises:
        ConfigurationError: If nobody can be asked.
    """
    check_can_ask(yes=yes)
    if not yes and not typer.confirm(question, err=True):
        tell("Nothing was changed.")
        raise typer.Exit(_DECLINED)


@contextmanager
def shown_progress(what: str, total: int | None) -> Generator[Callable[[int], None]]:
    """Something to tell how far it is; a line now and then without a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = screen(errors=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        last = time.monotonic()

        def show(done: int) -> None:
            nonlocal last
            bar.update(task, completed=done)
            if not console.is_terminal and time.monotonic() - last >= _SECONDS:
                last = time.monotonic()
                tell(f"{what}: {done:,}" + ("" if total is None else f" of {total:,}"))

        yield show
