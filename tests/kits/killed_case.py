"""Runs `case-study` and kills itself with SIGKILL right after certain records were written.

    python -m kits.killed_case even 6 run sudden-wall ...

It dies at every receipt, at the first commit of every record, and at every second intent of
the trace, the `even` ones or the `odd` ones, up to so many intents. A fault injector for tests of
resumption: nothing of the product is replaced, its writer is only watched.
"""

import os
import signal
import sys
from pathlib import Path

from case_study.__main__ import main
from coag.agent import runs as _runs
from coag.schema import Clock, Redactor, TraceRecord
from coag.tracing import RunFolder, TraceWriter

DEADLY, UP_TO, *ARGUMENTS = sys.argv[1:] or ("even", "0")
SURVIVED = 0 if DEADLY == "odd" else 1
"""Intents whose count, halved, leaves this are survived, so that the run gets on."""


class DeadlyWriter(TraceWriter):
    """A writer after whose flush of a deadly record the process is gone."""

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
        if intents > int(UP_TO):
            return False
        if record.record == "written":
            return sum(f'"id":"{record.id}"' in line for line in lines) == 1
        return record.record == "receipt" or intents % 2 != SURVIVED


def open_deadly(
    folder: RunFolder, *, clock: Clock | None = None, redactor: Redactor | None = None
) -> TraceWriter:
    """Opens the run's trace for a writer that kills."""
    return DeadlyWriter(folder.trace_path, clock=clock, redactor=redactor)


if __name__ == "__main__":
    _runs.open_trace = open_deadly
    sys.argv = ["case-study", *ARGUMENTS]
    main()
