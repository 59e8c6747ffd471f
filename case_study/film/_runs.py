"""Which run a person wants to see."""

from __future__ import annotations

from pathlib import Path

from coag.errors import ConfigurationError
from coag.tracing import RunFolder, find_run, list_runs

_CASE = "case.json"
_LISTED = 10


def filmed_run(text: str, logs: Path) -> RunFolder:
    """The run that a person means; of a case with one run that one.

    Args:
        text: A run's folder, its id, the beginning of it, `latest`, or a case's folder or name.
        logs: The folder of all runs.

    Raises:
        UnknownNameError: There is no such run.
        ConfigurationError: Several are meant, or there is no folder of logs.
        TraceError: For `latest`, if a run's `run.json` is damaged.
    """
    for case in (Path(text), logs / text):
        if (case / _CASE).is_file():
            return _run_of(case)
    return find_run(text, logs)


def _run_of(case: Path) -> RunFolder:
    runs = list(list_runs(case))
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise ConfigurationError(f"The case {str(case)!r} has no run yet.")
    named = ", ".join(str(run.path) for run in runs[:_LISTED])
    raise ConfigurationError(f"The case {str(case)!r} has {len(runs)} runs. Name one: {named}")
