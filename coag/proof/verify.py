"""Verifying a trace: every rule, record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile
from pathlib import Path
from typing import Any, cast

from coag.context import CoagContext
from coag.schema import (
    TRACE_VERSION,
    Entry,
    Intent,
    Note,
    SnapshotReason,
    TraceRecord,
)
from coag.tracing import (
    ProblemKind,
    RunFolder,
    RunInfo,
    RunKind,
    Trace,
    TraceLine,
    read_lines,
    read_run,
)

from .findings import (
    Checker,
    Examination,
    FindingLog,
    Findings,
    Rule,
    Violation,
    remark,
    shown,
)
from .rules_actions import CandidateRules, EffectRules, ExecutionRules
from .rules_files import Anchors, PageRules, ReadTrace, check_anchors, check_info
from .rules_memory import ProcedureRules, WriteRules
from .rules_turns import (
    CallRules,
    PlainEffectRules,
    PlainTurnRules,
    StateRules,
    TurnRules,
)

TraceSource = Path | str | RunFolder | Trace | Iterable[Entry] | Iterable[TraceRecord]
"""A run's folder, its `Trace`, or the records of a run in RAM, e.g. `agent.trace`."""

_BROKEN = {
    ProblemKind.UNREADABLE: Rule.LINE,
    ProblemKind.NUMBER: Rule.NUMBER,
    ProblemKind.HASH: Rule.CHAIN,
}


def verify(
    trace: TraceSource,
    *,
    hooks: CoagContext[Any] | None = None,
    head: str | None = None,
    key: str | Path | None = None,
    witness: Path | None = None,
) -> list[Violation]:
    """Every way in which a trace is not what a run can have left; empty if it holds.

    See `examine`, whose result also has remarks.
    """
    examination = examine(trace, hooks=hooks, head=head, key=key, witness=witness)
    return list(examination.violations)


def examine(
    trace: TraceSource,
    *,
    hooks: CoagContext[Any] | None = None,
    head: str | None = None,
    key: str | Path | None = None,
    witness: Path | None = None,
) -> Examination:
    """Checks a trace against the invariants of deliberation, record by record.

    A folder is read line by line, however large it is, and its chain of hashes is checked.
    Records in RAM have no hashes, and their first ones may have been dropped: checking starts at
    the first snapshot.

    Args:
        trace: A run's folder or `Trace`, or the records of one run in order.
        hooks: A new context of the run's domain: its hook computes every change of the perceptual
            state again. The check changes it. None to take the changes from the records.
        head: `Examination.head` as it was noted down before; None to compare nothing.
        key: Of a folder: the public key by which `seal.json` must be signed, as the path of a PEM
            file or in base64; None for that of `COAG_SEAL_PUBLIC_KEY`, if it is set.
        witness: Of a folder: a file to which `coag seal --witness` has appended; the run must be
            as it was then.

    Raises:
        ConfigurationError: The public key is none.
        TraceError: There is no run in the folder, or its trace cannot be read at all.
    """
    if isinstance(trace, Trace) and trace.folder is not None:
        trace = trace.folder
    if isinstance(trace, Path | str | RunFolder):
        folder = trace if isinstance(trace, RunFolder) else RunFolder(Path(trace))
        return _examine_folder(folder, hooks, Anchors(head=head, key=key, witness=witness))
    return _examine_records(trace, hooks, head)


def _checkers(
    kind: RunKind, version: int, hooks: CoagContext[Any] | None, *, run: str | None, cut: bool
) -> tuple[Checker, ...]:
    """The rules for a kind of run; `StateRules` last, so that the others see the state before."""
    if kind == "plain":
        return (PlainTurnRules(), PlainEffectRules(cut=cut))
    state = StateRules(version=version, cut=cut, hooks=hooks)
    effects = EffectRules(state)
    return (
        TurnRules(state),
        CandidateRules(state),
        ExecutionRules(state, effects),
        effects,
        ProcedureRules(),
        WriteRules(state, run),
        CallRules(state, version),
        state,
    )


# ---- A run's folder ----


def _examine_folder(
    folder: RunFolder, hooks: CoagContext[Any] | None, anchors: Anchors
) -> Examination:
    info = read_run(folder.path)
    anchors.read_witness(info.id)
    ended, there = info.ended_at is not None, folder.trace_path.is_file()
    lines = read_lines(folder.trace_path) if there else iter(())
    first = next(lines, None)
    read = ReadTrace(
        version=(first and first.version) or TRACE_VERSION, bound=first is not None and first.bound
    )
    checkers = _checkers(info.kind, read.version, hooks, run=info.id, cut=False)
    pages = PageRules(folder, info) if read.bound else None
    log = FindingLog(checkers if pages is None else (*checkers, pages))
    if read.version < TRACE_VERSION:
        version = f"The trace is of version {read.version}"
        log.add([remark(f"{version}: its lines are not chained by hashes.")])
    for line in chain(() if first is None else (first,), lines):
        _take_line(line, read, log, checkers)
        anchors.see(read.records, read.head)
        if pages is not None:
            pages.take_line(line)
    log.seq = None
    if not there and (ended or info.seal is not None):
        log.add([remark("There is no trace: nothing was recorded, or it was removed.")])
    elif not there:
        log.add([remark("There is no trace yet.")])
    elif not ended:
        log.add([remark("The run has not ended: it is open, or it was interrupted.")])
    log.end(finished=ended)
    if there or info.seal is not None:
        log.add(_check_seal(info, read))
    log.add(check_info(folder, info, read))
    log.add(check_anchors(folder, info, read, anchors))
    return log.examination(read.records, (info.seal and info.seal.closing) or read.head)


def _take_line(
    line: TraceLine, read: ReadTrace, log: FindingLog, checkers: Iterable[Checker]
) -> None:
    log.seq = line.number - 1
    for problem in line.problems:
        read.whole = read.whole and problem.kind is not ProblemKind.TRUNCATED
        rule = _BROKEN.get(problem.kind)
        text = f"{problem.text[:1].upper()}{problem.text[1:]}."
        log.add([remark(f"{text} All before it was read.") if rule is None else rule.says(text)])
        if rule in (Rule.LINE, Rule.NUMBER):
            for checker in checkers:  # what should be here is unknown until the next snapshot
                if isinstance(checker, StateRules):
                    checker.uncertain = True
    if line.entry is not None:
        read.records, read.head = line.number, line.entry.hash
        log.take(line.entry.body)


def _check_seal(info: RunInfo, read: ReadTrace) -> Findings:
    seal = info.seal
    if seal is None:
        if info.ended_at is not None and read.version > 1 and read.whole:
            sealed = "run.json seals no trace: its end cannot be checked"
            yield Rule.SEAL.says(f"The run has ended, and {sealed}.")
        return
    if not read.whole:
        yield Rule.SEAL.says("Something was added after the last line of a sealed trace.")
    if (seal.records, seal.hash) != (read.records, read.head):
        yield Rule.SEAL.says(
            f"run.json seals {seal.records} records that end with the hash {shown(seal.hash)}; the "
            f"trace has {read.records} and ends with {shown(read.head)}."
        )


# ---- Records in RAM ----


def _examine_records(
    records: Iterable[Entry] | Iterable[TraceRecord],
    hooks: CoagContext[Any] | None,
    head: str | None,
) -> Examination:
    numbered = (  # whichever form they come in
        (one.seq, one.body) if isinstance(one, Entry) else (number, one)
        for number, one in enumerate(cast("Iterable[Entry | TraceRecord]", records))
    )
    before: list[tuple[int, TraceRecord]] = []
    kind = _kind_of(numbered, before)
    placed = chain(before, numbered)
    if kind == "coag":  # what came before the first snapshot may have been dropped
        placed = dropwhile(lambda one: one[1].record != "snapshot", placed)
    first = next(placed, None)
    cut = first is None or first[0] > 0
    if kind == "coag" and first is not None and first[1].record == "snapshot":
        cut = cut or first[1].reason is SnapshotReason.CYCLE
    log = FindingLog(_checkers(kind, TRACE_VERSION, hooks, run=None, cut=cut))
    count = 0
    for log.seq, record in chain(() if first is None else (first,), placed):
        count += 1
        log.take(record)
    log.end(finished=False)
    if head:
        text = f"The trace was to end with the hash {shown(head)}; records in RAM have none."
        log.add([Rule.SEAL.says(text)])
    return log.examination(count, "")


def _kind_of(
    records: Iterator[tuple[int, TraceRecord]], before: list[tuple[int, TraceRecord]]
) -> RunKind:
    """Which kind of run this is, by the first record that only one of them has.

    What is read on the way is added to `before`.
    """
    for one in records:
        before.append(one)
        match one[1]:
            case record if record.record == "outcome":
                return "coag"
            case Note(about="constraint") | Intent(candidate_id=None):
                return "plain"  # rules judge its calls outside of any cycle
            case Intent():
                return "coag"
            case _:
                pass
    return "coag" if any(it.record == "snapshot" for _, it in before) else "plain"
