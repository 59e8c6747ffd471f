"""Runs `case-study` and kills itself with SIGKILL right after certain records were written.

    echo '["even", 6, "run", "sudden-wall", ...]' | python -m kits.killed_case

For each line a fork, which has imported everything already, runs the command; its exit code is
printed, or -9. It is killed at every receipt, at the first commit of every record, and at every
second intent of the trace, the `even` ones or the `odd` ones, up to so many intents. A fault
injector for tests of resumption: nothing of the product is replaced, its writer is only watched.
"""

import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from case_study.__main__ import main
from coag.agent import runs as _runs
from coag.schema import Clock, Redactor, TraceRecord
from coag.tracing import RunFolder, TraceWriter


class DeadlyWriter(TraceWriter):
    """A writer after whose flush of a deadly record the process is gone."""

    up_to = 0
    survived = 1
    """Intents whose count, halved, leaves this are survived, so that the run gets on."""

    def __init__(self, path: Path, *, clock: Clock | None, redactor: Redactor | None) -> None:
        super().__init__(path, clock=clock, redactor=redactor)
        self.path = path

    def write(self, record: TraceRecord) -> None:
        super().write(record)
        if record.record not in ("intent", "receipt", "written"):
            return
        self.flush()
        if self._kills(record):
            os.kill(os.getpid(), signal.SIGKILL)

    def _kills(self, record: TraceRecord) -> bool:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        intents = sum('"record":"intent"' in line for line in lines)
        if intents > self.up_to:
            return False
        if record.record == "written":
            return sum(f'"id":"{record.id}"' in line for line in lines) == 1
        return record.record == "receipt" or intents % 2 != self.survived


def open_deadly(
    folder: RunFolder, *, clock: Clock | None = None, redactor: Redactor | None = None
) -> TraceWriter:
    """Opens the run's trace for a writer that kills."""
    return DeadlyWriter(folder.trace_path, clock=clock, redactor=redactor)


def run(deadly: str, up_to: int, arguments: list[str]) -> NoReturn:
    """Runs the command in this process, and ends it."""
    DeadlyWriter.up_to, DeadlyWriter.survived = up_to, 0 if deadly == "odd" else 1
    _runs.open_trace = open_deadly
    sys.argv = ["case-study", *arguments]
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    code = 1
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    importlib.import_module("chromadb")  # so that forks need not import it
    for line in sys.stdin:
        deadly, up_to, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            run(deadly, up_to, arguments)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
