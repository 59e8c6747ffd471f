"""`coag verify` and `coag seal`: whether runs obeyed their cycle and their traces are unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypedDict

import typer
from rich.text import Text

from coag._util.text import counted, one_line
from coag.agent import load_factory, rebuild
from coag.errors import ConfigurationError
from coag.proof import Examination, TraceRemark, examine, folded
from coag.schema import SystemClock
from coag.tracing import (
    Rebuild,
    RunFolder,
    Witness,
    list_runs,
    new_key,
    read_lines,
    read_run,
    sign_run,
)

from .options import Logs, RunOrRuns, Trust
from .output import show
from .runs import failing, found_run, runs_below, runs_named

_LISTED = 100
"""Sentences about one run's violations that are printed."""
_NO_HOOKS = TraceRemark(
    seq=None,
    text="--hooks did nothing here: a plain agent's run names no factory, by which a context with "
    "its hooks could be built again.",
)
_VIOLATED = 1
"""Exit code where something is violated."""


class _Anchors(TypedDict):
    """What runs are compared with that is not in their folders."""

    head: str | None
    key: str | None
    witness: Path | None


def verify(
    run: RunOrRuns = "latest",
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="The run's last hash, as it was noted down before."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The public key with which seal.json must be signed; COAG_SEAL_PUBLIC_KEY does "
            "the same.",
        ),
    ] = None,
    witness: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Runs must be as they were appended to this file."),
    ] = None,
    hooks: Annotated[
        bool,
        typer.Option(
            "--hooks",
            help="Build the run's agent again by its recipe, and have its domain's code compute "
            "every change of state once more. This runs the code that run.json names.",
        ),
    ] = False,
    trust: Trust = None,
    logs: Logs = Path("logs"),
) -> None:
    """Checks that a run obeyed its cycle and that nobody changed its trace.

    Exit code 0: all holds; 1: something is violated; 2: wrongly called.
    """
    if witness is not None:
        Witness(witness).entries()  # a file that is none is an error, and no violation of each run
    holder = runs_below(run, logs)
    if holder is not None and head is not None:
        raise ConfigurationError(
            f"{str(holder)!r} holds several runs, and --head is the last hash of one: name it."
        )
    runs = [found_run(run, logs)] if holder is None else list(list_runs(holder))
    anchors = _Anchors(head=head, key=key, witness=witness)

    def holds(one: RunFolder) -> bool:
        examination = _examined(one, anchors, (trust or ()) if hooks else None)
        show(_lines(one, examination))
        return examination.holds

    violated = failing(
        runs, holds, lambda _, error: show([Text(one_line(str(error), 1_000), style="red")])
    )
    if len(runs) > 1:
        if violated:
            show([Text(f"{violated} of {len(runs)} runs do not hold", style="bold red")])
        else:
            show([Text(f"{len(runs)} runs verified", style="bold green")])
    raise typer.Exit(_VIOLATED if violated else 0)


def _examined(run: RunFolder, anchors: _Anchors, trust: Sequence[str] | None) -> Examination:
    """What was found in a run; with the domain's own code where modules for it are given."""
    if trust is None:
        return examine(run, **anchors)
    return asyncio.run(_with_hooks(run, anchors, trust))


async def _with_hooks(run: RunFolder, anchors: _Anchors, trust: Sequence[str]) -> Examination:
    """The same, with the domain's own code; a plain agent has none."""
    if read_run(run.path).kind == "plain":
        examination = examine(run, **anchors)
        return replace(examination, remarks=(*examination.remarks, _NO_HOOKS))
    load_factory(run, trust)
    agent = await rebuild(run, Rebuild(purpose="replay"), trust)
    try:
        return examine(run, hooks=agent.context, **anchors)
    finally:
        await agent.close()


def _lines(run: RunFolder, found: Examination) -> Iterator[Text]:
    """What was found in one run, foreign text made harmless."""
    name, records = one_line(run.path.name), counted(found.records, "record")
    if found.holds:
        head = f", head {one_line(found.head)}" if found.head else ""
        yield Text(f"{name}: verified, {records}{head}", style="green")
    else:
        text = f"{name}: {counted(len(found.violations), 'violation')} in {records}"
        yield Text(text, style="bold red")
    sentences = folded(found.violations)
    for sentence in sentences[:_LISTED]:
        yield Text(f"  {one_line(sentence, 1_000)}", style="red")
    if len(sentences) > _LISTED:
        yield Text(f"  … and {len(sentences) - _LISTED} more", style="red")
    for remark in found.remarks[:_LISTED]:
        yield Text(f"  {one_line(str(remark), 1_000)}", style="yellow")


def seal(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="A run's id or the beginning of one, its folder, or `latest`; or a folder of "
            "runs.",
        ),
    ] = None,
    witness: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append the state of the runs to this file, instead of signing them; keep it "
            "where the writer of the logs cannot write.",
        ),
    ] = None,
    new_key_file: Annotated[
        Path | None,
        typer.Option(
            "--new-key",
            metavar="FILE",
            help="Make a pair of keys: FILE, and FILE.pub to give away.",
        ),
    ] = None,
    logs: Logs = Path("logs"),
) -> None:
    """Signs runs with the key of COAG_SEAL_KEY, or appends their state to a witness file.

    `coag verify --key` and `--witness` check that. Signing needs the extra `seal`.
    """
    if new_key_file is not None:
        public = new_key(new_key_file)
        typer.echo(f"The private key is in {new_key_file}, the public one in {public}.")
    elif not runs:
        raise ConfigurationError("Name the runs to seal, or make a key with --new-key FILE.")
    folders = [one for name in runs or () for one in runs_named(name, logs)]
    now = SystemClock().now()
    if not folders:
        return
    for one in folders:
        if read_run(one.path).ended_at is None:
            typer.echo(
                f"{one_line(one.path.name)} has not ended: what is added to it from now on does "
                "not fit this seal. Seal it again once it has.",
                err=True,
            )
        broken = (each for line in read_lines(one.trace_path) for each in line.problems)
        if (problem := next(broken, None)) is not None:
            text = f"{one.path.name} is sealed as it is, and it is broken: {problem.text}"
            typer.echo(one_line(text, 1_000), err=True)
    if witness is not None:
        sealed = Witness(witness).append([one.path for one in folders], now)
    else:
        sealed = [sign_run(one.path, now) for one in folders]
    how = "signed" if witness is None else "witnessed"
    for one in sealed:
        text = f"{one.run}: {how}, {one.records} records, last hash {one.head}"
        typer.echo(one_line(text, 1_000))
