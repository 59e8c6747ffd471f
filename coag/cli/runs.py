"""Which runs a command means, and what it knows of their domain."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from rich.text import Text

from coag._util.text import cleaned, ellipsis, one_line
from coag.errors import CoagError, ConfigurationError, TraceError, UnknownNameError
from coag.situated import RUNS_NAME, STORE_NAME, ActivityStore
from coag.tracing import (
    ProblemKind,
    RunFolder,
    TraceProblem,
    find_run,
    first_asked,
    list_runs,
    read_run,
    read_trace,
)

from .output import DIM, as_json, say, screen, show, write_json
from .terminal import as_typed, coag_command

# ---- The results of actions, in a few words by which two runs can be compared ----


_LONGEST = 160
"""Characters of a result that are shown."""


def result_beside(result: str, *others: str) -> str:
    """A result, cleaned and cut, beside others that it is compared with.

    Of a JSON object, the fields in which it differs from the first of the others that is one and
    differs; where there is none, its end, as the beginning is mostly alike. What follows an
    object is left out. Of a text the beginning.
    """
    ours = None if len(result) <= _LONGEST else _object(result)
    if ours is None:
        return one_line(result, _LONGEST)
    for theirs in filter(None, map(_object, others)):
        different = [
            f"{name}: {value}" for name, value in ours.items() if theirs.get(name) != value
        ]
        if different:
            return one_line(", ".join(different), _LONGEST)
    line = one_line(", ".join(f"{name}: {value}" for name, value in ours.items()), len(result) * 2)
    cut = len(line) - _LONGEST
    return line if cut <= 0 else f"[{cut} more …] {line[-_LONGEST:]}"


def _object(text: str) -> dict[str, str] | None:
    """The fields of the JSON object that a text begins with, each as JSON; None without one."""
    try:
        parsed, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    found: dict[str, str] = {}
    for name, value in cast("dict[str, Any]", parsed).items():
        if isinstance(value, dict):  # its fields, and no deeper than that
            within = cast("dict[str, Any]", value)
            found |= {f"{name}.{key}": as_json(one) for key, one in within.items()}
        else:
            found[name] = as_json(value)
    return found


# ---- Which runs there are, and which one a person means ----


_NAMED = 10
"""How many runs an error names at most."""
_CHANGED = 2
"""Changed lines after which no more are looked for."""
_LONGEST_MODEL = 25
"""Characters of a model's name; with an id of ours, all but what was asked keeps within 80."""
_SHORTEST_GOAL = 24
"""Characters of what was asked that are shown at least, however narrow the terminal is."""


def show_runs(logs: Path, *, json_lines: bool) -> None:
    """Prints which runs there are, oldest first, under their folders."""
    runs = list(list_runs(logs))
    if json_lines:
        for folder in runs:
            write_json(read_run(folder.path).model_dump_json())
    elif runs:
        show(_listing(runs, logs, screen().width))
    else:
        show([f"There are no runs in {cleaned(str(logs))} yet."])


def folders_called(name: str, logs: Path) -> Iterator[Path]:
    """The folders of this name, here and below the logs, that are no runs themselves."""
    for folder in (Path(name), logs / name):
        if os.path.isdir(folder) and not RunFolder(folder).exists:
            yield folder


def runs_below(name: str, logs: Path) -> Path | None:
    """The folder of this name that holds runs and is none itself, if there is one."""
    for folder in folders_called(name, logs) if name else ():
        if next(list_runs(folder), None) is not None:
            return folder
    return None


def runs_named(name: str, logs: Path) -> list[RunFolder]:
    """The run that a person means, or all runs of the folder that they name; see `found_run`."""
    holder = runs_below(name, logs)
    return [found_run(name, logs)] if holder is None else list(list_runs(holder))


def found_run(name: str, logs: Path) -> RunFolder:
    """The run that a person means, as `coag.tracing.find_run` finds it.

    Where the folder of logs is that of a situated agent, an activity's id names its run. Where
    `latest` is a fork, says so on standard error: it may not be the run that is meant.
    """
    if (of_activity := _run_of_activity(name, logs)) is not None:
        return of_activity
    try:
        found = find_run(name, logs)
    except UnknownNameError:
        raise
    except ConfigurationError as error:
        if not logs.is_dir():
            raise
        several = [run.path for run in list_runs(logs) if run.path.name.startswith(name)]
        if not several:
            raise
        named = [str(path.relative_to(logs)) for path in several[-_NAMED:]]
        if len(several) > _NAMED:
            named.append(f"… and {len(several) - _NAMED} others")
        raise ConfigurationError(
            f"Several runs in {str(logs)!r} begin with {name!r}: {', '.join(named)}. "
            "Give more of the name, or the run's folder."
        ) from error
    parent = read_run(found.path).parent if name == "latest" else None
    if parent is not None:
        at = f"{parent.cycle}.{parent.phase}"
        _warn(f"latest is {found.path.name}, a fork of {parent.run} at {at}.")
    return found


def _run_of_activity(name: str, folder: Path) -> RunFolder | None:
    """The run of an activity, where the folder is that of an agent that has it."""
    if not (folder / "activities.sqlite").is_file():
        return None
    with closing(ActivityStore(folder / STORE_NAME, owner=False)) as store:
        activity = store.get(name)
    if activity is None or activity.run is None:
        return None
    return RunFolder(folder / RUNS_NAME / activity.run)


def failing(
    runs: Sequence[RunFolder],
    holds: Callable[[RunFolder], bool],
    on_error: Callable[[RunFolder, CoagError], None],
) -> int:
    """How many runs do not hold; one of several that raises is one of them, and is reported."""
    count = 0
    for one in runs:
        try:
            count += not holds(one)
        except CoagError as error:
            if len(runs) == 1:
                raise
            count += 1
            on_error(one, error)
    return count


def warn_if_changed(folder: RunFolder) -> None:
    """Says on standard error, in one line, that a trace was changed, or that it is torn."""
    damage = Damage(folder)
    for _ in read_trace(folder.trace_path, damage.take):
        if damage.is_certain:
            break
    damage.warn()


class Damage:
    """Problems of a trace after which reading can continue, as they are found."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._changed: list[TraceProblem] = []
        self._torn: TraceProblem | None = None

    def take(self, problem: TraceProblem) -> None:
        """For `read_trace`."""
        if problem.kind is ProblemKind.TRUNCATED:
            self._torn = problem
        elif not self.is_certain:
            self._changed.append(problem)

    @property
    def is_certain(self) -> bool:
        """True if what further lines hold does not change what is said."""
        return len(self._changed) == _CHANGED

    def warn(self) -> None:
        """Says on standard error, in one line, that the trace was changed, or that it is torn."""
        if self._changed:
            first = f"line {self._changed[0].line}"
            one = f"{first} does not fit its hash"
            several = f"{first} and others do not fit their hashes"
            _warn(
                f"The trace was changed: {several if self.is_certain else one}. "
                f"All about that: {coag_command()} verify {as_typed(self._folder.path)}"
            )
        elif self._torn is not None:
            _warn(f"{self._torn.text}: the run was killed, or is not finished.")


def _warn(text: str) -> None:
    say(one_line(text, 1_000), "yellow")


def _listing(runs: Sequence[RunFolder], logs: Path, width: int) -> Iterator[Text]:
    widest = max(len(cleaned(run.path.name)) for run in runs)
    yield Text(f"  {'run':<{widest}} kind  started     state model, asked", style=DIM)
    for parent, group in groupby(runs, key=lambda run: run.path.parent):
        if parent != logs:
            yield Text(cleaned(str(parent.relative_to(logs))), style="bold")
        for run in group:
            yield _row(run, widest, width)


def _row(folder: RunFolder, widest: int, width: int) -> Text:
    """A run in one line; its id is for copying and never cut. What it was asked is."""
    name = f"  {cleaned(folder.path.name):<{widest}} "
    try:
        info = read_run(folder.path)
    except TraceError as error:
        return Text(name + one_line(str(error)), style="red")
    model = ellipsis(one_line(info.model, _LONGEST_MODEL * 10), _LONGEST_MODEL)
    line = Text(f"{name}{info.kind:<5} {info.started_at:%m-%d %H:%M} ")
    line.append("open  " if info.ended_at is None else "ended ", "" if info.ended_at else "yellow")
    line.append(model)
    room = max(width - line.cell_len - 2, _SHORTEST_GOAL)
    goal = one_line(first_asked(folder), 10 * room)
    text = ellipsis(goal, room)
    return line.append(f"  {text}", DIM) if text else line
