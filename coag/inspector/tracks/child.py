"""What checks find, in a process of its own."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, TextIO

from pydantic import ValidationError

from coag.errors import CoagError, TraceError
from coag.inspector.views import Finding, FindingSort
from coag.proof import Cause, Diagnosis, Domain, Rule, Violation, diagnoses, examine, folded
from coag.schema import Entry, Intent, ModelCall, Phase, Receipt, TraceRecord
from coag.tracing import RunFolder, TraceIndex, read_run, read_trace

# ---- What the checks of one run find, as findings: run in a process of its own ----


KEPT = 300
"""Findings of each sort that are told."""
_TEXT = 2_000
_REMARKS = 20
_EVIDENCE = 12
_TELL_EVERY = 2_000
"""Records after which it is told how far it is."""
UNTOLD = "not attributable"
"""The title of a failure whose cause the trace cannot tell."""

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
"""No phase is at fault; what came of Execution tells of them."""

Tell = Callable[[dict[str, Any]], None]
"""Takes one message: `checked`, `finding`, `left_out`, `remark` or `done`."""


def check(folder: RunFolder, domain: Domain | None, tell: Tell) -> None:
    """Diagnoses and verifies a run, and tells what it finds as it finds it.

    Args:
        folder: The run's folder.
        domain: What is known of its domain, as the user chose it; None for what JSON shows.
        tell: Is told.

    Raises:
        TraceError: There is no run in the folder, or its trace cannot be read.
    """
    read_run(folder.path)
    if folder.trace_path.is_symlink():
        raise TraceError(folder.trace_path, "is a link; only a file within the folder is read")
    left_out = _tell_causes(folder, domain, tell) if folder.trace_path.is_file() else 0
    found = examine(folder)
    violations = list(_merged(found.violations))
    for finding in _violations(folder, violations[:KEPT]):
        tell({"finding": as_json(finding)})
    for remark in found.remarks[:_REMARKS]:
        tell({"remark": str(remark)[:_TEXT]})
    left_out += len(violations[KEPT:])
    tell({"checked": found.records, "left_out": left_out, "done": True})


# ---- causes ----


def _tell_causes(folder: RunFolder, domain: Domain | None, tell: Tell) -> int:
    """Tells every failure with its cause; how many were too many."""
    count = 0
    try:
        for diagnosis in diagnoses(_counted(folder, tell), domain=domain):
            count += 1
            if count <= KEPT:
                tell({"finding": as_json(cause_of(diagnosis))})
    except ValidationError as error:  # a trace may hold anything where a record is to be
        what = f"The trace holds something that is no {error.title}"
        tell({"remark": f"{what}, so causes were looked for up to there only."})
    except TraceError as error:  # verifying goes on, and tells of every such line
        tell({"remark": f"Causes were looked for up to there only: {error}"[:_TEXT]})
    return max(0, count - KEPT)


def _counted(folder: RunFolder, tell: Tell) -> Iterator[Entry]:
    for number, entry in enumerate(read_trace(folder.trace_path, lambda problem: None), 1):
        if number % _TELL_EVERY == 0:
            tell({"checked": number})
        yield entry


def cause_of(diagnosis: Diagnosis) -> Finding:
    """A failure and its cause as a finding."""
    phase = _PHASES.get(diagnosis.cause) if diagnosis.cause else None
    shown = [one.phase for one in diagnosis.evidence if one.phase is not None]
    if diagnosis.cause is Cause.UNUSABLE_ANSWER:
        phase = next(iter(shown), None)
    elif diagnosis.cause in _OF_THE_WORLD and Phase.EXECUTION in shown:
        phase = Phase.EXECUTION
    text = f"{diagnosis.failure} {diagnosis.reason}"
    if diagnosis.cause is Cause.WRONG_FACT:  # both texts, so that nobody has to look for them
        text = " ".join([text, *(one.text for one in diagnosis.evidence)])
    evidence = tuple((one.seq, one.text[:_TEXT]) for one in diagnosis.evidence[:_EVIDENCE])
    return Finding(
        sort=FindingSort.CAUSE,
        title=diagnosis.cause or UNTOLD,
        text=text[:_TEXT],
        cycle=diagnosis.cycle,
        phase=phase,
        seq=diagnosis.evidence[-1].seq if diagnosis.evidence else None,
        evidence=evidence,
        follows=diagnosis.follows,
    )


# ---- violations ----


def _merged(violations: Sequence[Violation]) -> Iterator[tuple[Violation, str]]:
    """Each with its sentence; of lines that do not fit their hashes the first tells of all."""
    chained = [one for one in violations if one.rule is Rule.CHAIN and one.seq is not None]
    others = folded(chained)[0][len(str(chained[0])) :] if chained else ""
    for violation in violations:
        if violation in chained[:1]:
            yield violation, violation.text + others
        elif violation.rule is not Rule.CHAIN or violation.seq is None:
            yield violation, violation.text


def _violations(
    folder: RunFolder, violations: Iterable[tuple[Violation, str]]
) -> Iterator[Finding]:
    index: TraceIndex | None = None
    for violation, text in violations:
        if index is None:
            index = TraceIndex(folder.trace_path)
            while index.extend():
                pass
        cycle, phase = _place(index, violation.seq)
        yield Finding(
            sort=FindingSort.VIOLATION,
            title=violation.rule,
            text=text[:_TEXT],
            cycle=violation.cycle if _is_there(index, violation.cycle) else cycle,
            phase=phase,
            seq=violation.seq,
        )


def _is_there(index: TraceIndex, cycle: int | None) -> bool:
    """Whether the trace has a cycle; what stands before the first one is of cycle 0."""
    return bool(cycle) and bool(index.of_cycle(cycle))


def _place(index: TraceIndex, seq: int | None) -> tuple[int | None, Phase | None]:
    """The cycle and the phase of a record; None where they are not known."""
    if seq is None or not 0 <= seq < index.lines:
        return None, None
    cycle = index.stretch(index.stretch_of(seq)).cycle or None
    (line,) = index.read([seq])
    return cycle, phase_of(line.entry.body) if line.entry else None


def phase_of(record: TraceRecord) -> Phase | None:
    """The phase that a record belongs to; None for none."""
    if isinstance(record, Intent | Receipt):
        return Phase.EXECUTION
    return record.phase if isinstance(record, ModelCall) else getattr(record, "phase", None)


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding as JSON; `finding_of` makes it again."""
    return {
        "sort": finding.sort,
        "title": finding.title,
        "text": finding.text,
        "cycle": finding.cycle,
        "phase": finding.phase,
        "seq": finding.seq,
        "evidence": finding.evidence,
        "follows": finding.follows,
    }


def finding_of(told: dict[str, Any]) -> Finding:
    """A finding out of its JSON."""
    phase = told["phase"]
    return Finding(
        sort=FindingSort(told["sort"]),
        title=told["title"],
        text=told["text"],
        cycle=told["cycle"],
        phase=None if phase is None else Phase(phase),
        seq=told["seq"],
        evidence=tuple((seq, text) for seq, text in told["evidence"]),
        follows=told["follows"],
    )


# ---- The process that checks runs, for the one that shows them ----


_NICE = 10
"""How far it stands behind for whatever else the machine has to do."""


def order(folder: Path, domain: Domain | None) -> bytes:
    """What the process is told, as a line for its standard input.

    Raises:
        TypeError, AttributeError, pickle.PicklingError: The domain cannot be told to a process.
    """
    told = base64.b64encode(pickle.dumps(domain)).decode()
    return json.dumps({"folder": str(folder), "domain": told}).encode() + b"\n"


def main() -> None:
    """Checks the runs that the lines of the standard input name, one after the other.

    What it finds is told line by line, as JSON. It ends when its standard input does, so that it
    outlives nobody.
    """
    os.nice(_NICE)
    orders: Queue[bytes] = Queue()
    Thread(target=_take, args=(sys.stdin.fileno(), orders), daemon=True).start()
    while True:
        run(orders.get(), sys.stdout)


def run(line: bytes, out: TextIO) -> None:
    """Does what a line of `order` says, and tells of it.

    The line is the parent's own: nothing in it comes out of a log but the folder's name.
    """
    told = json.loads(line)
    tell = _teller(out)
    try:
        check(RunFolder(Path(told["folder"])), pickle.loads(base64.b64decode(told["domain"])), tell)
    except CoagError as error:
        tell({"trouble": str(error), "done": True})


def _teller(out: TextIO) -> Callable[[dict[str, Any]], None]:
    def tell(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    return tell


def _take(stream: int, orders: Queue[bytes]) -> None:
    """Takes orders in, and ends this process when whoever gives them is gone."""
    rest = b""
    while piece := os.read(stream, 1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            orders.put(line)
    os._exit(0)
