"""The run of an agent: opened at the first turn, so that nothing is written before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autogen_agentchat.messages import BaseChatMessage

from coag.cycle import write_snapshot
from coag.schema import RESUMED, SnapshotReason, TraceRecord, new_run_id
from coag.tracing import (
    MemoryTrace,
    Parent,
    RunFolder,
    RunInfo,
    TraceWriter,
    installed_versions,
    open_trace,
    read_trace,
)

from .build import Mind
from .model import check_fits

RESUMED_TEXT = "Another process goes on with the run from here."


class RunLog:
    """Opens, continues and ends the run's folder."""

    def __init__(self, mind: Mind) -> None:
        self.folder: RunFolder | None = None
        self._mind = mind
        self._writer: TraceWriter | None = None

    def open(self, parent: Parent | None = None) -> None:
        """Starts the run if it has not begun: a new folder where logs are kept, else RAM.

        The state that it begins with, e.g. one that was loaded, is its first record.
        """
        mind, logs = self._mind, self._mind.arguments.logs
        if mind.trace.run_id:
            return
        if logs is None:
            mind.trace.sink = MemoryTrace()
            mind.trace.run_id = new_run_id(mind.context.clock.now(), mind.arguments.name)
        else:
            self.attach(RunFolder.create(Path(logs), self._info(parent)))
        mind.deps.snapshots.reset()
        reason = SnapshotReason.FORKED if parent else SnapshotReason.OPENED
        write_snapshot(mind.context, mind.deps, reason)

    async def open_for(self, messages: Sequence[BaseChatMessage]) -> None:
        """Opens the run for a turn, with the prompts fitted to the model's window."""
        mind = self._mind
        remark = await mind.gateway.learn_window(mind.context)
        await check_fits(messages, mind.context, mind.deps)
        self.open()
        if remark:
            mind.deps.note(mind.context, "window", remark)

    def note_state(self) -> None:
        """Records a state that was loaded; before the run begins, `open` will."""
        mind = self._mind
        if mind.trace.run_id:
            write_snapshot(mind.context, mind.deps, SnapshotReason.LOADED)
            mind.trace.flush()

    def note_resumed(self, *, begun: bool) -> None:
        """Records that another process continues the run, or begins it if none had."""
        mind = self._mind
        if begun:
            mind.deps.note(mind.context, RESUMED, RESUMED_TEXT)
        else:
            write_snapshot(mind.context, mind.deps, SnapshotReason.OPENED)

    def attach(self, folder: RunFolder) -> None:
        """Continues a run's folder."""
        self._writer = open_trace(folder, clock=self._mind.context.clock)
        trace = self._mind.trace
        self.folder, trace.sink, trace.run_id = folder, self._writer, folder.path.name

    def _info(self, parent: Parent | None) -> RunInfo:
        mind, now = self._mind, self._mind.context.clock.now()
        return RunInfo(
            id=new_run_id(now, mind.arguments.name),
            kind="coag",
            agent=mind.arguments.name,
            model=mind.gateway.asker.name,
            recipe=mind.arguments.recipe,
            seed=mind.arguments.seed,
            versions=installed_versions(),
            configuration={
                "settings": mind.deps.settings.model_dump(mode="json"),
                "remembering": mind.remembering,
                "rewriting": mind.rewriting,
                "modules": [module.name for module in mind.deps.modules.modules],
            },
            started_at=now,
            parent=parent,
        )

    def release(self, *, lost: bool = False) -> None:
        """Closes the trace without ending the run; what comes behind it may be lost."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if lost:
            self._mind.trace.sink = MemoryTrace()

    def end(self) -> None:
        """Ends the run: the trace is closed and `run.json` says when; the next turn begins another.

        The ended run can still be looked at until then.
        """
        if self._writer is not None and self.folder is not None:
            self.release()
            self.folder.finish(at=self._mind.context.clock.now())
        self._mind.trace.run_id = ""

    def records(self) -> tuple[TraceRecord, ...]:
        """The records of the run, or of the one that has just ended."""
        sink = self._mind.trace.sink
        if isinstance(sink, MemoryTrace):
            return sink.records
        if self.folder is None:
            return ()
        if self._writer is not None:
            self._writer.flush()
        return tuple(entry.body for entry in read_trace(self.folder.trace_path))
