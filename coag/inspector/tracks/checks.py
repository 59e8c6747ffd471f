"""Checks of runs: verify, replay, diagnose, in the background."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any

from coag.inspector.views import Finding, Findings, Progress
from coag.proof import Domain
from coag.tracing import RunFolder

from .child import check, finding_of, order

# ---- The process that checks runs, from the side of whoever started it ----


_LAST_WORDS = 300
_ENDED = "The checks were ended."


class Checker:
    """Checks runs in a process of its own, which begins when it is first asked.

    One thread asks; any may end it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._ended = False

    def ask(self, order: bytes) -> Iterator[dict[str, Any]]:
        """What the process tells of one run, as it tells it; the last message is `done`.

        Args:
            order: What it is told, as a line; see `_child.order`.
        """
        process = self._started()
        if process is None or process.stdin is None or process.stdout is None:
            yield {"trouble": _ENDED, "done": True}
            return
        try:
            process.stdin.write(order)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it died: no line comes, and its exit code says so
        for line in process.stdout:
            message: dict[str, Any] = json.loads(line)
            yield message
            if message.get("done"):
                return
        yield {"trouble": self._bury(), "done": True}

    def kill(self) -> None:
        """Ends what goes on at once; it may be asked again."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def end(self) -> None:
        """Ends what goes on at once, and for good; from any thread."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Ends the process for good; called by the thread that asks."""
        with self._lock:
            self._ended = True
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                process.communicate()
            self._errors.close()

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._process is None and not self._ended:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "coag.inspector.tracks"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
            return self._process

    def _bury(self) -> str:
        """Why the process ended before it was done, as far as it can be told."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return _ENDED
            process.communicate()
            self._errors.seek(0)
            lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            self._errors.truncate(0)
            last = f": {lines[-1][:_LAST_WORDS]}" if lines else ""
            return f"The checks broke off with exit code {process.returncode}{last}."


# ---- The checks of runs in the background: one at a time, each in a process of its own ----


_KNOWN = 64
"""Runs whose findings are kept."""
_WAITING = 16
"""Runs that may wait; the one that waits longest is forgotten then."""
_GROWN = 1.25
"""A trace that goes on growing is checked again when it is so many times as long."""
_IDLE = 60.0
"""Seconds without a check after which the process ends."""
_END_WITHIN = 10.0
"""Seconds that a process has to end once it was told to."""


@dataclass(slots=True, eq=False)
class _Check:
    """The checks of one run."""

    folder: RunFolder
    size: int
    """Bytes of the trace when they were asked for."""
    seen: int = 0
    """Bytes of it when they were last asked after."""
    earlier: Findings | None = None
    """What was found when the trace was shorter."""
    progress: Progress = Progress.WAITING
    found: list[Finding] = field(default_factory=list[Finding])
    remarks: list[str] = field(default_factory=list[str])
    checked: int = 0
    left_out: int = 0
    trouble: str = ""

    def take(self, message: dict[str, Any]) -> None:
        """Takes in what the process tells."""
        self.checked = message.get("checked", self.checked)
        self.left_out = message.get("left_out", self.left_out)
        self.trouble = message.get("trouble", self.trouble)
        if "finding" in message:
            self.found.append(finding_of(message["finding"]))
        if "remark" in message:
            self.remarks.append(message["remark"])
        if message.get("done"):
            self.progress = Progress.FAILED if self.trouble else Progress.DONE

    def findings(self) -> Findings:
        """What is known now; until there is more, what was known before."""
        if self.earlier is not None and self.progress in (Progress.WAITING, Progress.RUNNING):
            before = self.earlier
            return Findings(
                progress=self.progress,
                found=before.found,
                remarks=before.remarks,
                checked=self.checked,
                left_out=before.left_out,
            )
        return Findings(
            progress=self.progress,
            found=tuple(sorted(self.found, key=_place)),
            remarks=tuple(self.remarks),
            checked=self.checked,
            trouble=self.trouble,
            left_out=self.left_out,
        )


def check_now(folder: RunFolder, *, domain: Domain | None = None) -> Findings:
    """The findings of a run, looked for here and now; see `Checks`.

    Args:
        folder: The run's folder.
        domain: What is known of its domain, as the user chose it.

    Raises:
        TraceError: There is no run in the folder, or its trace cannot be read.
    """
    found = _Check(folder=folder, size=0)
    check(folder, domain, found.take)
    return found.findings()


class Checks:
    """Verifies and diagnoses runs, each when it is first asked for, and keeps what was found.

    It may be used from several threads.

    Args:
        domain: What is known of the runs' domain, for the causes of failures; chosen by the
            user, never by a log.
    """

    def __init__(self, *, domain: Domain | None = None) -> None:
        self._domain = domain
        self._asked = Condition()
        self._known: OrderedDict[Path, _Check] = OrderedDict()
        self._waiting: list[_Check] = []
        self._current: _Check | None = None
        self._checker: Checker | None = None
        self._worker: Thread | None = None
        self._closed = False

    def findings(self, folder: RunFolder) -> Findings:
        """What is known of a run so far; its checks begin where they have not.

        A trace that has grown is checked again: when it rests, and now and then while it grows.
        """
        size = _size(folder)
        with self._asked:
            known = self._known.get(folder.path)
            if known is None or _outdated(known, size):
                known = self._begin(folder, size, known)
            known.seen = size
            return known.findings()

    def start(self, folder: RunFolder) -> None:
        """Begins the checks of a run, unless its findings are known."""
        self.findings(folder)

    def cancel(self, folder: RunFolder) -> None:
        """Gives up the checks of a run, and forgets what they found."""
        with self._asked:
            known = self._known.pop(folder.path, None)
            if known in self._waiting:
                self._waiting.remove(known)
            if known is not None and known is self._current and self._checker is not None:
                self._checker.kill()

    def close(self) -> None:
        """Ends what goes on. Nothing is checked afterwards."""
        with self._asked:
            self._closed = True
            self._waiting.clear()
            self._asked.notify_all()
            worker = self._worker
            if self._checker is not None:
                self._checker.end()
        if worker is not None:
            worker.join(_END_WITHIN)

    # ---- one after the other ----

    def _begin(self, folder: RunFolder, size: int, before: _Check | None) -> _Check:
        check = _Check(folder, size, earlier=None if before is None else before.findings())
        self._known[folder.path] = check
        self._known.move_to_end(folder.path)
        if len(self._known) > _KNOWN:
            oldest = next(known for known in self._known.values() if known is not self._current)
            self._forget(oldest)
        self._waiting.append(check)
        if len(self._waiting) > _WAITING:
            self._forget(self._waiting[0])
        if self._worker is None and not self._closed:
            self._checker = Checker()
            self._worker = Thread(
                target=self._work, args=(self._checker,), name="coag-checks", daemon=True
            )
            self._worker.start()
        self._asked.notify_all()
        return check

    def _forget(self, check: _Check) -> None:
        if check in self._waiting:
            self._waiting.remove(check)
        if self._known.get(check.folder.path) is check:
            del self._known[check.folder.path]

    def _work(self, checker: Checker) -> None:
        while (check := self._next()) is not None:
            try:
                line = order(check.folder.path, self._domain)
            except (TypeError, AttributeError, pickle.PicklingError) as error:
                self._fail(check, f"The domain cannot be handed to another process: {error}.")
                continue
            for message in checker.ask(line):
                with self._asked:
                    check.take(message)
        checker.close()

    def _next(self) -> _Check | None:
        """The check that is next; None where there was none for a while, or is to be none."""
        with self._asked:
            self._current = None
            self._asked.wait_for(lambda: self._closed or self._waiting, timeout=_IDLE)
            if self._closed or not self._waiting:
                self._worker = self._checker = None
                return None
            self._current = self._waiting.pop(0)
            self._current.progress = Progress.RUNNING
            return self._current

    def _fail(self, check: _Check, trouble: str) -> None:
        with self._asked:
            check.progress = Progress.FAILED
            check.trouble = trouble


def _size(folder: RunFolder) -> int:
    """Bytes of the trace and of what is known about the run; 0 where there is nothing."""
    found = 0
    for path in (folder.trace_path, folder.info_path):
        try:
            found += path.stat().st_size
        except OSError:
            continue
    return found


def _outdated(check: _Check, size: int) -> bool:
    """Whether it is to be done again: the trace was cut, rests, or has grown by much."""
    if size == check.size or check.progress in (Progress.WAITING, Progress.RUNNING):
        return False
    return size < check.size or size == check.seen or size > check.size * _GROWN


def _place(finding: Finding) -> tuple[float, float]:
    nowhere = float("inf")
    cycle = nowhere if finding.cycle is None else finding.cycle
    return cycle, nowhere if finding.seq is None else finding.seq
