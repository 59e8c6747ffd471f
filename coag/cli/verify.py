"""`coag verify`: says whether runs obeyed their cycle and whether their traces are untouched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from rich.console import Console
from rich.text import Text

from coag.agent import load_factory, rebuild
from coag.errors import ConfigurationError, TraceError
from coag.proof import Examination, Remark, examine, folded
from coag.schema import one_line
from coag.tracing import Rebuild, RunFolder, Witness, list_runs, read_run

from .runs import found_run, runs_below


class Anchors(TypedDict):
    """What runs are held against that does not lie in their folders."""

    head: str | None
    """The hash with which the run must end, as it was noted down before."""
    key: str | None
    """The public key of signatures."""
    witness: Path | None
    """A file to which heads were appended."""


_LISTED = 100
"""Sentences about one run's violations that are printed."""
_NO_HOOKS = Remark(
    seq=None, text="--hooks did nothing here: a plain agent's run has no hooks of a domain."
)
_VIOLATED = 1
"""Exit code where something is violated."""


def verify_runs(
    name: str,
    logs: Path,
    anchors: Anchors,
    *,
    hooks: bool = False,
    trust: Sequence[str] = (),
) -> int:
    """Verifies one run, or all runs of a folder; prints a sentence per violation.

    Args:
        name: What the user typed for the run, or a folder of runs.
        logs: The folder of all runs.
        anchors: What the runs are held against.
        hooks: Have each run's agent, built again by its recipe, compute all changes of state.
        trust: With `hooks`, modules whose code the runs may name.

    Returns:
        The exit code: 0 if all holds, 1 if not.

    Raises:
        UnknownNameError: If there is no such run.
        ConfigurationError: If several runs may be meant, or a hash is given for several.
        TraceError: If the run's trace cannot be read.
        ResumeError: With `hooks`, if a run's agent cannot be built again.
    """
    if anchors["witness"] is not None:
        Witness(
            anchors["witness"]
        ).entries()  # a file that is none is an error, and no violation of each run
    console = Console(highlight=False, markup=False, emoji=False)
    rebuilt_by = trust if hooks else None
    holder = runs_below(name, logs)
    if holder is None:
        return _verify([found_run(name, logs)], console, anchors, rebuilt_by)
    if anchors["head"] is not None:
        raise ConfigurationError(
            f"{str(holder)!r} holds several runs, and --head is the last hash of one: name it."
        )
    return _verify(list(list_runs(holder)), console, anchors, rebuilt_by)


def _verify(
    runs: Sequence[RunFolder], console: Console, anchors: Anchors, trust: Sequence[str] | None
) -> int:
    violated = 0
    for run in runs:
        try:
            found = _examined(run, anchors, trust)
        except TraceError as error:
            if len(runs) == 1:
                raise
            violated += 1
            console.print(Text(one_line(str(error), 1_000), style="red"), soft_wrap=True)
            continue
        violated += not found.holds
        for line in _lines(run, found):
            console.print(line, soft_wrap=True)
    if len(runs) > 1:
        console.print(_sum(len(runs), violated), soft_wrap=True)
    return _VIOLATED if violated else 0


def _examined(run: RunFolder, anchors: Anchors, trust: Sequence[str] | None) -> Examination:
    """What was found in a run; with the domain's own code where modules for it are given."""
    if trust is None:
        return examine(run, **anchors)
    return asyncio.run(_with_hooks(run, anchors, trust))


async def _with_hooks(run: RunFolder, anchors: Anchors, trust: Sequence[str]) -> Examination:
    """The same, with the domain's own code; a plain agent has none."""
    if read_run(run.path).kind == "plain":
        found = examine(run, **anchors)
        return replace(found, remarks=(*found.remarks, _NO_HOOKS))
    load_factory(run, trust)
    agent = await rebuild(run, Rebuild(purpose="replay"), trust)
    try:
        return examine(run, hooks=agent.context, **anchors)
    finally:
        await agent.close()


def _lines(run: RunFolder, found: Examination) -> Iterator[Text]:
    """What was found in one run, foreign text made harmless."""
    name = one_line(run.path.name)
    records = f"{found.records} record{'' if found.records == 1 else 's'}"
    if found.holds:
        head = f", head {one_line(found.head)}" if found.head else ""
        yield Text(f"{name}: verified, {records}{head}", style="green")
    else:
        count = len(found.violations)
        text = f"{name}: {count} violation{'' if count == 1 else 's'} in {records}"
        yield Text(text, style="bold red")
    told = folded(found.violations)
    for sentence in told[:_LISTED]:
        yield Text(f"  {one_line(sentence, 1_000)}", style="red")
    if len(told) > _LISTED:
        yield Text(f"  … and {len(told) - _LISTED} more", style="red")
    for remark in found.remarks[:_LISTED]:
        yield Text(f"  {one_line(str(remark), 1_000)}", style="yellow")


def _sum(runs: int, violated: int) -> Text:
    if not violated:
        return Text(f"{runs} runs verified", style="bold green")
    return Text(f"{violated} of {runs} runs do not hold", style="bold red")
