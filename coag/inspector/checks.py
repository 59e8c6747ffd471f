"""Checks of runs: what `coag verify` and `coag diagnose` find, looked for in another process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from pickle import PicklingError
from threading import Lock, Thread

from pydantic import ValidationError

from coag.errors import CoagError, TraceError
from coag.proof import (
    Cause,
    Diagnosis,
    DomainKnowledge,
    Rule,
    Violation,
    diagnoses,
    examine,
    folded,
)
from coag.schema import Phase
from coag.tracing import RunFolder, TraceIndex, phase_of, read_run, read_trace

from .trace_scan import bodies
from .views import CheckProgress, Finding, Findings, FindingSort

# ---- The checks of one run ----


_FINDINGS = 300
"""Findings of each sort that are kept."""
_TEXT, _REMARKS, _EVIDENCE = 2_000, 20, 12
_NOT_ATTRIBUTABLE = "not attributable"
"""The title of a failure whose cause the trace does not show."""
_PHASES = {
    Cause.MISSED_RETRIEVAL: Phase.RETRIEVAL,
    Cause.WRONG_FACT: Phase.RETRIEVAL,
    Cause.FAULTY_REASONING: Phase.REASONING,
    Cause.INVALID_PROPOSAL: Phase.PROPOSAL,
    Cause.FAULTY_EVALUATION: Phase.EVALUATION,
    Cause.BAD_SELECTION: Phase.SELECTION,
    Cause.FAILED_EXECUTION: Phase.EXECUTION,
}
"""The phase at fault."""
_OF_THE_WORLD = (Cause.MISPERCEPTION, Cause.CHANGED_ENVIRONMENT)
"""No phase is at fault; they are shown with what came of Execution."""


def check_run(folder: RunFolder, domain: DomainKnowledge | None = None) -> Findings:
    """Diagnoses and verifies a run."""
    read_run(folder.path)
    if folder.trace_path.is_symlink():
        raise TraceError(folder.trace_path, "is a link; only a file within the folder is read")
    remarks: list[str] = []
    causes = list(_causes(folder, domain, remarks)) if folder.trace_path.is_file() else []
    examination = examine(folder)
    violations = _merged(examination.violations)
    findings = [*causes[:_FINDINGS], *_violations(folder, violations[:_FINDINGS])]
    remarks += [str(remark)[:_TEXT] for remark in examination.remarks[:_REMARKS]]

    def place(finding: Finding) -> tuple[float, float]:
        cycle, seq = (float("inf") if at is None else at for at in (finding.cycle, finding.seq))
        return cycle, seq

    return Findings(
        progress=CheckProgress.DONE,
        found=tuple(sorted(findings, key=place)),
        remarks=tuple(remarks),
        checked=examination.records,
        left_out=len(causes[_FINDINGS:]) + len(violations[_FINDINGS:]),
    )


def _causes(
    folder: RunFolder, domain: DomainKnowledge | None, remarks: list[str]
) -> Iterator[Finding]:
    """Every failure with its cause, up to where the trace can be read."""
    entries = read_trace(folder.trace_path, lambda problem: None)
    try:
        yield from map(cause_of, diagnoses(entries, domain=domain))
    except ValidationError as error:  # a trace may hold anything where a record is to be
        what = f"The trace holds something that is no {error.title}"
        remarks.append(f"{what}, so causes were looked for up to there only.")
    except TraceError as error:  # verifying continues, and reports every such line
        remarks.append(f"Causes were looked for up to there only: {error}"[:_TEXT])


def cause_of(diagnosis: Diagnosis) -> Finding:
    """A failure and its cause as a finding."""
    phase = _PHASES.get(diagnosis.cause) if diagnosis.cause else None
    phases = [one.phase for one in diagnosis.evidence if one.phase is not None]
    if diagnosis.cause is Cause.UNUSABLE_ANSWER:
        phase = next(iter(phases), None)
    elif diagnosis.cause in _OF_THE_WORLD and Phase.EXECUTION in phases:
        phase = Phase.EXECUTION
    text = f"{diagnosis.failure} {diagnosis.reason}"
    if diagnosis.cause is Cause.WRONG_FACT:  # both texts, so that nobody has to look for them
        text = " ".join([text, *(one.text for one in diagnosis.evidence)])
    return Finding(
        sort=FindingSort.CAUSE,
        title=diagnosis.cause or _NOT_ATTRIBUTABLE,
        text=text[:_TEXT],
        cycle=diagnosis.cycle,
        phase=phase,
        seq=diagnosis.evidence[-1].seq if diagnosis.evidence else None,
        evidence=tuple((one.seq, one.text[:_TEXT]) for one in diagnosis.evidence[:_EVIDENCE]),
        follows=diagnosis.follows,
    )


def _merged(found: Sequence[Violation]) -> list[tuple[Violation, str]]:
    """Each with its text; lines that do not fit their hashes are merged into the first."""
    chained = [one for one in found if one.rule is Rule.CHAIN and one.seq is not None]
    others = folded(chained)[0][len(str(chained[0])) :] if chained else ""
    first = chained[0] if chained else None
    return [
        (one, one.text + (others if one is first else ""))
        for one in found
        if one is first or one.rule is not Rule.CHAIN or one.seq is None
    ]


def _violations(
    folder: RunFolder, violations: Sequence[tuple[Violation, str]]
) -> Iterator[Finding]:
    index = TraceIndex(folder.trace_path)
    while violations and index.extend():
        pass
    for violation, text in violations:
        cycle, phase, seq = None, None, violation.seq
        if seq is not None and 0 <= seq < index.lines:
            cycle = index.stretch(index.stretch_of(seq)).cycle or None
            phase = next(map(phase_of, bodies(index, [seq])), None)
        if violation.cycle and index.of_cycle(violation.cycle):
            cycle = violation.cycle
        yield Finding(
            sort=FindingSort.VIOLATION,
            title=violation.rule,
            text=text[:_TEXT],
            cycle=cycle,
            phase=phase,
            seq=seq,
        )


# ---- In the background ----


_KNOWN = 64
"""Runs whose findings are kept."""
_GROWN = 1.25
"""A growing trace is checked again when it is so many times as long."""
_NICE = 10
"""Priority of the process: everything else comes first."""
_NOTHING_YET = Findings(progress=CheckProgress.WAITING)


@dataclass(slots=True)
class _Check:
    future: Future[Findings]
    size: int
    """Bytes of the trace when they were requested."""
    written: int
    """When its files were written, in nanoseconds, both together."""
    seen: int
    """Bytes of it at the last request for findings."""
    earlier: Findings
    """What was found when the trace was shorter."""

    def findings(self) -> Findings:
        """What is known now; until there is more, what was known before."""
        if not self.future.done():
            running = self.future.running()
            progress = CheckProgress.RUNNING if running else CheckProgress.WAITING
            return replace(self.earlier, progress=progress)
        try:
            return self.future.result()
        except (PicklingError, TypeError, AttributeError) as error:
            trouble = f"The domain cannot be handed to another process: {error}."
        except BrokenProcessPool as error:
            trouble = f"The process that checks runs ended: {error}"
        return Findings(progress=CheckProgress.FAILED, trouble=trouble)

    def is_outdated(self, size: int, written: int) -> bool:
        """Whether to check again: the trace was cut or changed, or has grown to its end or much."""
        if written == self.written or not self.future.done():
            return False
        return size <= self.size or size == self.seen or size > self.size * _GROWN


class Checks:
    """Checks runs in a process of its own, each when it is first requested; keeps the findings.

    It may be used from several threads. What is known of the runs' domain is chosen by the user,
    never by a log.
    """

    def __init__(self, *, domain: DomainKnowledge | None = None) -> None:
        self._domain = domain
        self._lock = Lock()
        self._known: dict[Path, _Check] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._process: Future[int] | None = None
        """Gives the id of the pool's process."""
        self._closed = False

    def findings(self, folder: RunFolder) -> Findings:
        """What is known of a run so far; its checks begin where they have not.

        A trace that has grown is checked again when it no longer grows, and now and then before.
        """
        size = written = 0
        for path in (folder.trace_path, folder.info_path):
            with suppress(OSError):
                file = path.stat()
                size, written = size + file.st_size, written + file.st_mtime_ns
        with self._lock:
            known = self._known.get(folder.path)
            if not self._closed and (known is None or known.is_outdated(size, written)):
                earlier = known.findings() if known else _NOTHING_YET
                self._known.pop(folder.path, None)
                known = _Check(self._submit(folder), size, written, size, earlier)
                self._known[folder.path] = known
                if len(self._known) > _KNOWN:
                    self._known.pop(next(iter(self._known))).future.cancel()
            if known is None:
                return _NOTHING_YET
            known.seen = size
            return known.findings()

    def close(self) -> None:
        """Ends the process, at the latest when it has started. Nothing is checked afterwards.

        That is not waited for: to start takes seconds, and others have priority.
        """
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None and self._process is not None:
            self._process.add_done_callback(_kill)
            pool.shutdown(wait=False, cancel_futures=True)

    def _submit(self, folder: RunFolder) -> Future[Findings]:
        for _ in range(2):
            try:
                with _without_script():
                    if self._pool is None:
                        spawn = get_context("spawn")
                        self._pool = ProcessPoolExecutor(1, spawn, initializer=_begin)
                        self._process = self._pool.submit(os.getpid)
                    return self._pool.submit(_check, folder.path, self._domain)
            except BrokenProcessPool:
                self._pool = None
        raise BrokenProcessPool("it ended as soon as it was started")


def _check(folder: Path, domain: DomainKnowledge | None) -> Findings:
    """`check_run` in the pool's process; errors are findings, as not every one can be pickled.

    It may be killed meanwhile, and not while it sends the findings: who has begun to read them
    would wait for the rest for ever.
    """
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        return check_run(RunFolder(folder), domain)
    except CoagError as error:
        trouble = str(error)
    except Exception as error:  # the outermost guard: the run's pages are to be shown all the same
        trouble = f"The checks failed: {type(error).__name__}: {str(error)[:_TEXT]}"
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Findings(progress=CheckProgress.FAILED, trouble=trouble)


def _kill(process: Future[int]) -> None:
    if not process.cancelled() and process.exception() is None:
        with suppress(ProcessLookupError):
            os.kill(process.result(), signal.SIGTERM)


def _begin() -> None:
    """Lowers the priority of the pool's process, and ends it when its parent is gone."""
    os.nice(_NICE)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(0)

        Thread(target=watch, daemon=True).start()


@contextmanager
def _without_script() -> Generator[None]:
    """Keeps a process that is started meanwhile from running the user's script once more.

    A spawned process imports `__main__` by its file, and most scripts are not guarded.
    """
    main = vars(sys.modules["__main__"])
    file = main.pop("__file__", None)
    try:
        yield
    finally:
        if file is not None:
            main["__file__"] = file
