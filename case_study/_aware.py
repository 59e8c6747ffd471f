"""The command `awareness coverage`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from case_study import _options as options

_KEPT = Path("logs") / "awareness"


def coverage(  # noqa: PLR0913 - options of a command
    *,
    reader: options.ReaderSpec = None,
    model: options.PerceptionSpec = None,
    trusted: options.Trusted = False,
    limit: options.DialogueLimit = None,
    dialogue: options.DialogueNames = None,
    questions: options.QuestionIds = None,
    budget: options.InjectionBudget = 300,
    timeout: options.CallTimeout = 600.0,
    answers: options.AnswersFile = _KEPT / "answers.jsonl",
    readings: options.ReadingsFile = _KEPT / "readings.jsonl",
    data: options.DialoguesFolder = None,
    output: options.CoveragePage = None,
) -> None:
    """What a buffer, a summary and awareness tell of a talk: tables 6 and 7 of the paper."""
    from case_study.awareness import CoverageRequest, measured  # heavy, and for this one alone

    request = CoverageRequest(
        reader=reader,
        model=model,
        trusted=trusted,
        limit=limit,
        dialogues=tuple(dialogue or ()),
        questions=tuple(id.strip() for id in questions.split(",")) if questions else (),
        budget=budget,
        timeout=timeout,
        answers=answers,
        readings=readings,
        data=data,
    )
    console = Console(stderr=True, emoji=False, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def progress(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        page = asyncio.run(measured(request, progress))
    if output is not None:
        output.write_text(page, encoding="utf-8")
    typer.echo(page, nl=False)


def add_to(app: typer.Typer) -> None:
    """Adds `awareness` to a command line."""
    commands = typer.Typer(help="Evidence for situational awareness.", no_args_is_help=True)
    commands.callback()(_awareness)
    commands.command()(coverage)
    app.add_typer(commands, name="awareness")


def _awareness() -> None:
    """Evidence for situational awareness."""
