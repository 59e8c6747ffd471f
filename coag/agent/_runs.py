"""The run of an agent: opened at the first turn, so that nothing is written before."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coag.schema import Clock, new_run_id
from coag.tracing import (
    MemoryTrace,
    Recipe,
    RunFolder,
    RunInfo,
    TraceWriter,
    installed_versions,
    open_trace,
)

from ._mind import RunName, SwitchableTrace


@dataclass(slots=True)
class Runs:
    """Opens, continues and ends the run's folder."""

    logs: Path | None
    agent: str
    model: str
    recipe: Recipe | None
    seed: int
    configuration: dict[str, Any]
    folder: RunFolder | None = None
    _writer: TraceWriter | None = field(default=None)
    _opened: bool = False

    def open(self, trace: SwitchableTrace, name: RunName, clock: Clock) -> None:
        """Starts the run if it has not begun: a new folder where logs are kept, else RAM.

        Raises:
            TraceError: The folder cannot be written to. Nothing has been done yet.
        """
        if self._opened:
            return
        if self.logs is None:
            name.value = name.value or new_run_id(clock.now(), self.agent)
            trace.sink = MemoryTrace()
        else:
            folder = RunFolder.create(self.logs, self._info(clock))
            self.attach(folder, trace, name)
        self._opened = True

    def attach(self, folder: RunFolder, trace: SwitchableTrace, name: RunName) -> None:
        """Goes on writing in a run's folder."""
        self._writer = open_trace(folder)
        self.folder, trace.sink, name.value = folder, self._writer, folder.path.name
        self._opened = True

    def _info(self, clock: Clock) -> RunInfo:
        now = clock.now()
        return RunInfo(
            id=new_run_id(now, self.agent),
            kind="coag",
            agent=self.agent,
            model=self.model,
            recipe=self.recipe,
            seed=self.seed,
            versions=installed_versions(),
            configuration=self.configuration,
            started_at=now,
        )

    def close(self, clock: Clock) -> None:
        """Ends the run: the trace is closed and `run.json` says when."""
        if self._writer is not None and self.folder is not None:
            self._writer.close()
            self.folder.finish(at=clock.now())
            self._writer = None
