"""`coag seal`: ties runs to a key or to a file that is kept elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from coag.errors import ConfigurationError
from coag.schema import SystemClock, one_line
from coag.tracing import RunFolder, Witness, list_runs, new_key, read_run, sign_run

from .runs import found_run, runs_below


def seal_runs(names: Sequence[str], logs: Path, *, witness: Path | None, new: Path | None) -> None:
    """Makes a key, signs runs, or appends how they stand to a witness file.

    Args:
        names: What the user typed for each run, or for a folder of runs.
        logs: The folder of all runs.
        witness: The file to append to; None to sign.
        new: Where to make a pair of keys; None for none.

    Raises:
        UnknownNameError: There is no such run.
        ConfigurationError: Nothing is to be done, or there is no key.
        TraceError: A run or the witness file cannot be read or written.
    """
    if new is not None:
        public = new_key(new)
        typer.echo(f"The private key is in {new}, the public one in {public}.")
    elif not names:
        raise ConfigurationError("Name the runs to seal, or make a key with --new-key FILE.")
    runs = [run for name in names for run in _runs(name, logs)]
    now = SystemClock().now()
    if not runs:
        return
    for run in runs:
        if read_run(run.path).ended_at is None:
            typer.echo(
                f"{one_line(run.path.name)} has not ended: what is added to it from now on does "
                "not fit this seal. Seal it again once it has.",
                err=True,
            )
    if witness is not None:
        said = Witness(witness).append([run.path for run in runs], now)
    else:
        said = [sign_run(run.path, now) for run in runs]
    how = "signed" if witness is None else "witnessed"
    for one in said:
        typer.echo(
            one_line(f"{one.run}: {how}, {one.records} records, last hash {one.head}", 1_000)
        )


def _runs(name: str, logs: Path) -> Iterator[RunFolder]:
    holder = runs_below(name, logs)
    yield from [found_run(name, logs)] if holder is None else list_runs(holder)
