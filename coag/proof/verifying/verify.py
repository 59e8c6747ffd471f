"""Verifying a trace: every rule, record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, dropwhile
from pathlib import Path
from typing import Any

from coag.context import CoagContext, WorkingMemory
from coag.schema import TRACE_VERSION, Entry, Percept, TraceRecord
from coag.tracing import (
    ProblemKind,
    RunFolder,
    RunInfo,
    RunKind,
    Trace,
    TraceLine,
    cycle_of,
    read_lines,
    read_run,
)

from .book import FOUND_KEPT, Book, Checker, Examination, Rule, Violation, shown
from .rules_actions import Ancestry, Effects, Executions
from .rules_procedures import Procedures, Writes
from .rules_turns import Calls, Ids, PlainEffects, PlainTurns, Turns
from .sealed import Anchors, Heads, PageCheck, Told, check_anchors, check_info
from .story import Hook, Story, is_opening, kind_of, numbered

# ---- All rules together, for a kind of run ----


def checkers_for(
    kind: RunKind,
    book: Book,
    version: int,
    hooks: CoagContext[Any] | None,
    *,
    run: str | None,
    cut: bool,
) -> tuple[Checker, ...]:
    """The rules for a kind of run; the story last, so that the others see how things stood."""
    if kind == "plain":
        return (PlainTurns(book), PlainEffects(book, cut=cut))
    hook = None if hooks is None else _hook(hooks)
    story = Story(book, version=version, cut=cut, hook=hook)
    effects = Effects(book, story)
    return (
        Turns(book, story),
        Ancestry(book, story),
        Executions(book, story, effects),
        effects,
        Procedures(book, story),
        Writes(book, story, run),
        Calls(book, story, version),
        Ids(book),
        story,
    )


def _hook(context: CoagContext[Any]) -> Hook:
    def perceive(memory: WorkingMemory, percept: Percept) -> Percept:
        context.restore(memory)
        return context.perceive(percept)

    return perceive


def steps(checkers: Iterable[Checker], book: Book) -> Callable[[TraceRecord], None]:
    """Takes record after record to the rules that look at it."""
    takers: dict[str, list[Callable[[Any], None]]] = {}
    for checker in checkers:
        for tag, take in checker.takes.items():
            takers.setdefault(tag, []).append(take)

    def step(record: TraceRecord) -> None:
        named = cycle_of(record)
        book.cycle = book.cycle if named is None else named
        for take in takers.get(record.record, ()):
            take(record)

    return step


# ---- Checking that a trace is what a run can have left ----


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

    See `examine`, which tells more.
    """
    found = examine(trace, hooks=hooks, head=head, key=key, witness=witness)
    return list(found.violations)


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
    Records in RAM are no chain, and their first ones may have been dropped: checking starts at
    the first snapshot.

    Args:
        trace: A run's folder or `Trace`, or the records of one run in order.
        hooks: A context of the run's domain, as new: its hook computes every change of the
            perceptual state again. It is used up. None to take the changes from the records.
        head: `Examination.head` as it was noted down before; None to compare nothing.
        key: Of a folder: the public key by which `seal.json` must be signed, as the path of a PEM
            file or in base64; None for that of `COAG_SEAL_PUBLIC_KEY`, if it is set.
        witness: Of a folder: a file to which `coag seal --witness` has appended; the run must be
            as it was then.

    Raises:
        ConfigurationError: The public key is none.
        TraceError: There is no run in the folder, or its trace cannot be read at all.
    """
    book = Book()
    if isinstance(trace, Trace) and trace.folder is not None:
        trace = trace.folder
    if isinstance(trace, Path | str | RunFolder):
        anchors = Anchors(head=head, key=key, witness=witness)
        return _examine_folder(_folder(trace), book, hooks, anchors)
    return _examine_records(trace, book, hooks, head)


def _folder(trace: Path | str | RunFolder) -> RunFolder:
    return trace if isinstance(trace, RunFolder) else RunFolder(Path(trace))


# ---- a run's folder ----


@dataclass(slots=True)
class _Read:
    """What was read of a file."""

    records: int = 0
    head: str = ""
    version: int = TRACE_VERSION
    bound: bool = False
    """True if the first line follows from `run.json`."""
    whole: bool = True
    """False if it ends in what is no whole line."""


def _examine_folder(
    folder: RunFolder, book: Book, hooks: CoagContext[Any] | None, anchors: Anchors
) -> Examination:
    info = read_run(folder.path)
    heads = Heads(anchors.witness, info.id)
    if not folder.trace_path.is_file():
        return _without_trace(folder, info, book, anchors, heads)
    lines = read_lines(folder.trace_path)
    first = next(lines, None)
    version = (first and first.version) or TRACE_VERSION
    if version < TRACE_VERSION:
        book.remark(f"The trace is of version {version}: its lines are not chained by hashes.")
    checkers = checkers_for(info.kind, book, version, hooks, run=info.id, cut=False)
    read = _Read(version=version, bound=first is not None and first.bound)
    pages = PageCheck(folder, info, book) if read.bound else None
    finished = info.ended_at is not None
    take = steps(checkers, book)
    for line in chain(() if first is None else (first,), lines):
        _take_line(line, read, book, take, checkers)
        heads.take(read.records, read.head)
        if pages is not None:
            pages.take(line)
    book.seq = None
    if not finished:
        book.remark("The run has not ended: it goes on, or it broke off.")
    for checker in checkers:
        checker.end(finished=finished)
    if pages is not None:
        pages.end()
    _check_seal(info, read, book)
    _check_folder(folder, info, read, book, anchors, heads)
    return _examination(read, book, info)


def _check_folder(
    folder: RunFolder, info: RunInfo, read: _Read, book: Book, anchors: Anchors, heads: Heads
) -> None:
    told = Told(
        records=read.records,
        head=read.head,
        bound=read.bound,
        chained=read.version == TRACE_VERSION,
    )
    check_info(folder, info, told, book)
    check_anchors(folder, info, told, anchors, book, heads)


def _without_trace(
    folder: RunFolder, info: RunInfo, book: Book, anchors: Anchors, heads: Heads
) -> Examination:
    read = _Read()
    if info.seal is not None or info.ended_at is not None:
        if info.seal is not None:
            _check_seal(info, read, book)
        book.remark("There is no trace: nothing was recorded, or it was removed.")
    else:
        book.remark("There is no trace yet.")
    _check_folder(folder, info, read, book, anchors, heads)
    return _examination(read, book, info)


def _take_line(
    line: TraceLine,
    read: _Read,
    book: Book,
    take: Callable[[TraceRecord], None],
    checkers: Iterable[Checker],
) -> None:
    book.seq = line.number - 1
    for problem in line.problems:
        read.whole = read.whole and problem.kind is not ProblemKind.TRUNCATED
        rule = _BROKEN.get(problem.kind)
        text = f"{problem.text[:1].upper()}{problem.text[1:]}."
        if rule is None:
            book.remark(f"{text} All before it was read.")
        else:
            book.violate(rule, text)
        if problem.kind in (ProblemKind.UNREADABLE, ProblemKind.NUMBER):
            _shake(checkers)
    if line.entry is not None:
        read.records, read.head = line.number, line.entry.hash
        take(line.entry.body)


def _shake(checkers: Iterable[Checker]) -> None:
    """What stood there is not known: rules that need it wait for the next snapshot."""
    for checker in checkers:
        if isinstance(checker, Story):
            checker.shaken = True


def _check_seal(info: RunInfo, read: _Read, book: Book) -> None:
    seal = info.seal
    if seal is None and info.ended_at is not None and read.version > 1 and read.whole:
        book.violate(
            Rule.SEAL,
            "The run has ended, and run.json seals no trace: what its end was cannot be told.",
        )
    if seal is not None and not read.whole:
        book.violate(Rule.SEAL, "Something was put behind the last line of a sealed trace.")
    if seal is None or (seal.records, seal.hash) == (read.records, read.head):
        return
    book.violate(
        Rule.SEAL,
        f"run.json seals {seal.records} records that end with the hash {shown(seal.hash)}; the "
        f"trace has {read.records} and ends with {shown(read.head)}.",
    )


def _check_head(head: str | None, read: _Read, book: Book) -> None:
    if head is not None and head != read.head:
        book.violate(
            Rule.SEAL,
            f"The trace was to end with the hash {shown(head)}; it ends with {shown(read.head)}.",
        )


def _examination(read: _Read, book: Book, info: RunInfo | None = None) -> Examination:
    if book.unlisted:
        book.seq = None
        book.remark(f"{book.unlisted} more violations than the first {FOUND_KEPT} were found.")
    return Examination(
        records=read.records,
        head=(info and info.seal and info.seal.closing) or read.head,
        violations=tuple(sorted(book.violations, key=_place)),
        remarks=tuple(book.remarks),
    )


def _place(violation: Violation) -> float:
    return float("inf") if violation.seq is None else violation.seq


# ---- records in RAM ----


def _examine_records(
    records: Iterable[Entry] | Iterable[TraceRecord],
    book: Book,
    hooks: CoagContext[Any] | None,
    head: str | None,
) -> Examination:
    rest = numbered(records)
    before: list[tuple[int, TraceRecord]] = []
    kind = kind_of(rest, before)
    kept = chain(before, rest)
    if kind == "coag":  # what came before the first snapshot may have been dropped
        kept = dropwhile(lambda one: one[1].record != "snapshot", kept)
    first = next(kept, None)
    cut = first is None or first[0] > 0 or (kind == "coag" and not is_opening(first[1]))
    checkers = checkers_for(kind, book, TRACE_VERSION, hooks, run=None, cut=cut)
    read = _Read()
    take = steps(checkers, book)
    for book.seq, record in chain(() if first is None else (first,), kept):
        read.records += 1
        take(record)
    book.seq = None
    for checker in checkers:
        checker.end(finished=False)
    _check_head(head, read, book)
    return _examination(read, book)
