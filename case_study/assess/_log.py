"""Writing trials down as they come in, by one process at a time."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Self

from coag._util.locks import try_lock

from ._errors import AssessmentError
from ._kept import TRIALS, read_plan
from ._trial import Trial

_LOCK = ".lock"


class TrialLog:
    """The trials of an assessment, open to take more.

    While it is open no other process writes to the folder. A last line without an end, which a
    kill left, is taken away: its job is played again.

    Args:
        folder: The assessment's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / TRIALS
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Opens it.

        Raises:
            AssessmentError: There is no assessment, or another process is at it.
        """
        read_plan(self._folder.parent)
        self._lock = locked(self._folder.parent)
        for path in self._folder.glob("*.jsonl"):
            _cut_torn(path)
        return self

    def __exit__(self, *error: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def append(self, trial: Trial) -> None:
        """Writes a trial; when this returns, a kill of the process cannot lose it."""
        line = trial.model_dump_json() + "\n"
        with (self._folder / f"{trial.job.scenario}.jsonl").open("ab") as file:
            file.write(line.encode())


def locked(folder: Path) -> IO[bytes]:
    """Keeps other processes from writing to an assessment, until what it gives is closed.

    Raises:
        AssessmentError: Another process is at it.
    """
    (folder / TRIALS).mkdir(parents=True, exist_ok=True)
    lock = (folder / TRIALS / _LOCK).open("a+b")
    if not try_lock(lock):
        lock.close()
        raise AssessmentError(
            f"Another process is sweeping into {str(folder)!r}. Wait until it is done, stop it, or "
            "give another folder."
        )
    return lock


def _cut_torn(path: Path) -> None:
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        with path.open("r+b") as file:
            file.truncate(whole)
