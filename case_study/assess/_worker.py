"""What a worker process does: one job after the other, until nobody asks any more."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path

from ._domain import How
from ._playing import play_job
from ._trial import Job

ORPHANED = 3
"""Exit code of a worker whose sweep is gone."""


def work(connection: Connection, folder: Path, how: How) -> None:
    """Plays each job that comes and sends its trial, until the connection ends.

    An interrupt from the terminal is the sweep's business. Where the sweep itself was killed, the
    worker ends at once, so that nothing plays on beside the sweep that is begun again.

    Args:
        connection: Jobs come and trials go by it.
        folder: The assessment's folder.
        how: How the jobs are played.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    frozen = False
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(asyncio.run(play_job(job, how, folder)))
        if not frozen:
            frozen = True
            gc.collect()
            gc.freeze()  # what the first job imported stays: no later collection looks at it


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(ORPHANED)
