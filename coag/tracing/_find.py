"""Finding a run by what a person types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from coag.errors import ConfigurationError, UnknownNameError

from ._folder import RunFolder, read_run
from ._run import RunInfo

_DEPTH = 3
"""Folders that runs may lie below the folder of logs: a demo's, a case's, the run's own."""

_LISTED = 20
"""How many runs an error names at most."""


def list_runs(logs: Path | str) -> Iterator[RunFolder]:
    """The runs in a folder of logs and in the folders of cases in it, by path.

    For ids of `new_run_id` that means oldest first within a folder.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    logs = Path(logs)
    if not logs.is_dir():
        raise ConfigurationError(
            f"There is no folder of logs at {str(logs)!r}. Name the one that holds the runs: "
            "--logs DIR."
        )
    yield from _runs_below(logs, _DEPTH)


def _runs_below(folder: Path, depth: int) -> Iterator[RunFolder]:
    """Looks no deeper into a run: its own folders are many."""
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        run = RunFolder(path)
        if run.exists:
            yield run
        elif depth > 1:
            yield from _runs_below(path, depth - 1)


def find_run(text: str, logs: Path | str) -> RunFolder:
    """The run that a person means.

    Args:
        text: A run's folder, its id, a beginning that only one id has, or `latest` for the
            run that started last.
        logs: The folder of all runs.

    Raises:
        UnknownNameError: If no run is meant; lists the runs there are, of a path those beside it.
        ConfigurationError: If several are meant, the text is a file's path, or there is no folder
            of logs.
        TraceError: For `latest`, if a run's `run.json` is damaged.
    """
    direct = RunFolder(Path(text))
    if direct.exists:
        return direct
    if direct.path.is_file():
        raise ConfigurationError(_of_a_file(direct.path))
    name = text
    if len(direct.path.parts) > 1:
        logs, name = direct.path.parent, direct.path.name
    runs = list(list_runs(logs))
    if name == "latest" and runs:
        return max(runs, key=lambda run: read_run(run.path).started_at)
    meant = [run for run in runs if run.path.name == name]
    meant = meant or [run for run in runs if name and run.path.name.startswith(name)]
    names = [run.path.name for run in meant or runs]
    if len(names) > _LISTED:
        names = [*names[-_LISTED:], f"… and {len(names) - _LISTED} older ones"]
    if not meant:
        raise UnknownNameError("run", text, names)
    if len(meant) > 1:
        raise ConfigurationError(f"Several runs begin with {text!r}: {', '.join(names)}.")
    return meant[0]


def _of_a_file(path: Path) -> str:
    """What to say where a file is given for a run."""
    folder = RunFolder(path.parent)
    if folder.exists:
        return f"{str(path)!r} is a file of a run. Give the run's folder: {path.parent}"
    return f"{str(path)!r} is a file. Give a run's folder or its id; `coag log` lists the runs."


def known_cycles(info: RunInfo, last: int) -> str:
    """Which cycles a run has, as words of a sentence, and of a fork whose the earlier ones are.

    Args:
        info: The run.
        last: The last cycle in its trace; 0 for none.
    """
    first = 1 if info.parent is None else info.parent.cycle
    if last < first:
        return "no cycle yet"
    if info.parent is None or first == 1:
        return "cycle 1" if last == 1 else f"cycles up to {last}"
    own = f"cycle {last}" if first == last else f"cycles {first} to {last}"
    return f"{own} (the earlier ones are its parent's, {info.parent.run!r})"
