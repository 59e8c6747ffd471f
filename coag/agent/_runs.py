"""The run of an agent: opened at the first turn, so that nothing is written before."""

from __future__ import annotations

from pathlib import Path

from coag.cycle import write_snapshot
from coag.schema import RESUMED, Note, SnapshotReason, TraceRecord, new_run_id
from coag.tracing import (
    MemoryTrace,
    Parent,
    Recipe,
    RunFolder,
    RunInfo,
    TraceWriter,
    installed_versions,
    open_trace,
    read_trace,
)

from ._mind import Mind, MindParts, RunName, SwitchableTrace

RESUMED_TEXT = "Another process goes on with the run from here."


class Runs:
    """Opens, continues and ends the run's folder.

    Args:
        parts: Whose run it is.
        logs: Folder of all runs; None keeps the trace in RAM.
        recipe: How to build the agent again.
    """

    def __init__(self, parts: MindParts, logs: Path | None, recipe: Recipe | None) -> None:
        self.name = RunName()
        self.folder: RunFolder | None = None
        self._parts = parts
        self._logs = logs
        self._recipe = recipe
        self._writer: TraceWriter | None = None

    def open(self, mind: Mind, parent: Parent | None = None) -> None:
        """Starts the run if it has not begun: a new folder where logs are kept, else RAM.

        The state that it begins with, e.g. one that was loaded, is its first record.

        Raises:
            TraceError: The folder cannot be written to. Nothing has been done yet.
        """
        if self.name.value:
            return
        if self._logs is None:
            mind.trace.sink = MemoryTrace()
            self.name.value = new_run_id(self._parts.context.clock.now(), self._parts.name)
        else:
            self.attach(RunFolder.create(self._logs, self._info(parent)), mind.trace)
        mind.deps.told.begin()
        reason = SnapshotReason.FORKED if parent else SnapshotReason.OPENED
        write_snapshot(mind.context, mind.deps, reason)

    def note_state(self, mind: Mind) -> None:
        """Writes down a state that was loaded; before the run begins, `open` will."""
        if self.name.value:
            write_snapshot(mind.context, mind.deps, SnapshotReason.LOADED)
            mind.deps.trace.flush()

    def note_resumed(self, mind: Mind, *, begun: bool) -> None:
        """Says that another process goes on with the run, or begins it if none had."""
        if not begun:
            write_snapshot(mind.context, mind.deps, SnapshotReason.OPENED)
            return
        at = self._parts.context.clock.now()
        cycle = mind.context.working_memory.cycle
        mind.deps.trace.write(Note(at=at, cycle=cycle, about=RESUMED, text=RESUMED_TEXT))

    def attach(self, folder: RunFolder, trace: SwitchableTrace) -> None:
        """Goes on writing in a run's folder."""
        self._writer = open_trace(folder, clock=self._parts.context.clock)
        self.folder, trace.sink, self.name.value = folder, self._writer, folder.path.name

    def _info(self, parent: Parent | None) -> RunInfo:
        now = self._parts.context.clock.now()
        return RunInfo(
            id=new_run_id(now, self._parts.name),
            kind="coag",
            agent=self._parts.name,
            model=self._parts.asker.name,
            recipe=self._recipe,
            seed=self._parts.seed,
            versions=installed_versions(),
            configuration={
                "settings": self._parts.settings.model_dump(mode="json"),
                "remembering": self._parts.remembering,
                "rewriting": self._parts.rewriting,
            },
            started_at=now,
            parent=parent,
        )

    def release(self) -> None:
        """Lets go of the trace without ending the run."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def end(self) -> None:
        """Ends the run: the trace is closed and `run.json` says when; the next turn begins anew.

        The ended run can still be looked at until then.
        """
        if self._writer is not None and self.folder is not None:
            self._writer.close()
            self.folder.finish(at=self._parts.context.clock.now())
            self._writer = None
        self.name.value = ""

    def records(self, trace: SwitchableTrace) -> tuple[TraceRecord, ...]:
        """The records of the run, or of the one that has just ended."""
        if isinstance(trace.sink, MemoryTrace):
            return trace.sink.records
        if self.folder is None:
            return ()
        if self._writer is not None:
            self._writer.flush()
        return tuple(entry.body for entry in read_trace(self.folder.trace_path))
