"""Verifying a trace: every rule, record by record."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, dropwhile
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from coag.context import CoagContext
from coag.errors import TraceError
from coag.schema import (
    TRACE_VERSION,
    Entry,
    Intent,
    Note,
    Receipt,
    ReceiptStatus,
    SnapshotReason,
    TraceRecord,
)
from coag.tracing import (
    PhasePages,
    PlainPages,
    ProblemKind,
    RunFolder,
    RunInfo,
    RunKind,
    Trace,
    TraceLine,
    Witness,
    Witnessed,
    closing_hash,
    file_hash,
    info_fields,
    page_text,
    read_lines,
    read_run,
    seal_problems,
    witness_problems,
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
from .rules_actions import CandidateRules, EffectRules
from .rules_memory import ProcedureRules, WriteRules
from .rules_turns import (
    CallRules,
    PlainRules,
    StateRules,
    TurnRules,
)

# ---- Whether a run's files are those that were sealed ----


@dataclass(slots=True)
class ReadTrace:
    """What was read of a trace file, as far as seals need it."""

    records: int = 0
    head: str = ""
    version: int = TRACE_VERSION
    bound: bool = False
    """True if the first line follows from `run.json`."""
    whole: bool = True
    """False if it ends in what is no whole line."""


@dataclass(slots=True, kw_only=True)
class Anchors:
    """What a run is compared with that is not in its folder."""

    head: str | None = None
    key: str | Path | None = None
    witness: Path | None = None
    _entries: list[Witnessed] = field(default_factory=list[Witnessed])
    _heads: dict[int, str] = field(default_factory=lambda: {0: ""})
    """Hashes of the lines that a witness saw as the last, by the number of records."""

    def read_witness(self, run: str) -> None:
        """Reads what was witnessed of the run."""
        if self.witness is not None:
            self._entries = [one for one in Witness(self.witness).entries() if one.run == run]

    def see(self, records: int, head: str) -> None:
        """So many records end with this hash."""
        if any(one.records == records for one in self._entries):
            self._heads[records] = head

    def witness_problems(self, run: Path) -> tuple[list[str], list[str]]:
        """Violations and remarks by what was witnessed."""
        if self.witness is None:
            return [], []
        if not self._entries:
            return [f"The run {run.name!r} is not witnessed: the file has no entry of it."], []
        return witness_problems(run, self._entries, self._heads)


def check_info(folder: RunFolder, info: RunInfo, read: ReadTrace) -> Findings:
    """Compares `run.json` with what was sealed when the run began and ended."""
    for path in (folder.info_path, folder.trace_path, folder.remembered_path):
        if path.is_symlink():
            yield Rule.SEAL.says(f"{path.name} is a link to somewhere else.")
    if repeated := _repeated(folder.info_path):
        yield Rule.SEAL.says(f"run.json has the field {shown(repeated)} more than once.")
    seal = info.seal
    if seal is None or not seal.closing:
        yield from _check_unclosed(info, read)
        return
    if not _ends_whole(folder.trace_path):
        yield Rule.SEAL.says("The trace does not end with a newline, as a sealed one does.")
    try:
        remembered = file_hash(folder.remembered_path)
    except OSError as error:
        yield Rule.SEAL.says(f"remembered.jsonl cannot be read: {error.strerror}.")
        return
    fields = info_fields(folder.info_path) or {}
    if closing_hash(fields, seal.records, seal.hash, remembered) != seal.closing:
        sealed = "what run.json says (agent, model, settings, times, result), or remembered.jsonl"
        yield Rule.SEAL.says(f"What was sealed at the run's end has changed: {sealed}.")


def _check_unclosed(info: RunInfo, read: ReadTrace) -> Findings:
    if read.bound and info.ended_at is not None and info.seal is not None:
        yield Rule.SEAL.says("The run has ended, and the seal of its run.json was taken away.")
    elif read.bound and info.ended_at is None and info.result is not None:
        yield Rule.SEAL.says("run.json has a result, and the run has not ended.")
    elif read.records and read.version == TRACE_VERSION and not read.bound:
        yield remark(
            "run.json and the pages are not sealed in this run: an older version of coag wrote it."
        )


def check_anchors(folder: RunFolder, info: RunInfo, read: ReadTrace, anchors: Anchors) -> Findings:
    """Compares a run with a noted hash, a signature and a witness, where they are given."""
    closing = info.seal.closing if info.seal else ""
    if anchors.head is not None and anchors.head not in {read.head, closing} - {""}:
        wanted, ends = shown(anchors.head), shown(closing or read.head)
        yield Rule.SEAL.says(f"The run was to end with the hash {wanted}; it ends with {ends}.")
    elif anchors.head is not None and closing and anchors.head == read.head:
        yield remark("The noted hash is that of the last line: it does not cover run.json.")
    name = folder.path.resolve().name
    if name != info.id:
        text = f"The folder is named {shown(name)}, the run {shown(info.id)}"
        if anchors.witness is not None or anchors.key is not None:
            yield Rule.SEAL.says(f"{text}: another run may have taken its place.")
        else:
            yield remark(f"{text}.")
    try:
        wrong = list(seal_problems(folder.path, anchors.key))
        more, remarks = anchors.witness_problems(folder.path)
    except TraceError as error:
        yield Rule.SEAL.says(f"{error}.")
        return
    yield from map(Rule.SEAL.says, (*wrong, *more))
    yield from map(remark, remarks)


def _ends_whole(trace: Path) -> bool:
    if not trace.is_file() or trace.stat().st_size == 0:
        return True
    with trace.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


def _repeated(path: Path) -> str | None:
    problems: list[str] = []

    def look(pairs: Iterable[tuple[str, Any]]) -> None:
        counts = Counter(name for name, _ in pairs)
        problems.extend(name for name, count in counts.items() if count > 1)

    try:
        json.loads(path.read_bytes(), object_pairs_hook=look)
    except (OSError, ValueError, RecursionError):
        return None
    return next(iter(problems), None)


# ---- Whether the pages for reading are those that the trace gives ----


_LONGEST = 1 << 28
"""Bytes of a page that are read at most."""


class PageRules(Checker):
    """Makes each page again from the trace's records, and compares it with its file.

    A page that is missing or cut off is no violation where a process may have been killed before
    it was made, or where a note says that pages could not be made.
    """

    def __init__(self, folder: RunFolder, info: RunInfo) -> None:
        self._folder = folder.cycles_path
        self._plain = info.kind != "coag"
        self._pages = PlainPages(self) if self._plain else PhasePages(self)
        self._ended = info.ended_at is not None
        self._counts: Counter[int] = Counter()
        self._expected: set[str] = set()
        self._wrong: dict[str, str] = {}
        """Pages that are not as they should be, with what is wrong."""
        self._missing: set[str] = set()
        self._resumed = False
        """Whether another process continued the run since the last page."""
        self._gaps = not self._ended
        """Whether pages may be missing."""
        self._settled: set[int] = set()
        """Cycles of a plain run to which a later process gave receipts."""
        self._last = 0

    def take_line(self, line: TraceLine) -> None:
        """Makes the pages of the next record."""
        record = line.entry and line.entry.body
        if record is None or not line.body:
            self._gaps = True
            return
        if record.record == "note" and record.about in ("resume", "repair", "pages"):
            self._gaps = self._resumed = True
        elif isinstance(record, Receipt) and record.status is ReceiptStatus.UNKNOWN:
            self._gaps = self._resumed = True
            if self._plain:
                self._settled.add(record.cycle)
        try:
            self._pages.add(record, line.body.decode())
        except (ValueError, KeyError):
            self._gaps = True  # a record that cannot be read is a finding of its own

    def count(self, cycle: int) -> int:
        """How many pages the cycle must have by now."""
        return self._counts[cycle]

    def write(self, cycle: int, name: str, page: dict[str, Any]) -> None:
        """Compares a page with its file."""
        resumed, self._resumed = self._resumed, False
        self._counts[cycle] += 1
        self._last = max(self._last, cycle)
        place = f"{cycle:04d}/{name}"
        self._expected.add(place)
        self._wrong.pop(place, None)
        self._missing.discard(place)
        path = self._folder / place
        if path.is_symlink() or path.parent.is_symlink():
            self._wrong[place] = "is a link to somewhere else"
            return
        try:
            with path.open("rb") as file:
                there = file.read(_LONGEST)
        except OSError:
            self._missing.add(place)
            return
        if there == page_text(page) or (resumed and _is_later_part(there, page)):
            return
        if _parsed(there) is None:
            self._missing.add(place)
        else:
            self._wrong[place] = "is not what the trace gives"

    def end(self, *, finished: bool) -> Findings:
        """What is wrong with the pages."""
        if not self._folder.exists() and not self._expected:
            return
        if self._folder.is_symlink():
            yield Rule.PAGE.says("The folder of pages is a link to somewhere else.")
        for place, what in sorted(self._wrong.items()):
            if not self._is_settled(place):
                yield Rule.PAGE.says(f"The page cycles/{place} {what}.")
        missing = [place for place in sorted(self._missing) if not self._is_settled(place)]
        if missing and self._gaps:
            cut = f"{len(missing)} pages are missing or cut off, as where a process was killed"
            yield remark(f"{cut}, from cycles/{missing[0]} on.")
        else:
            for place in missing:
                yield Rule.PAGE.says(f"The page cycles/{place} is missing or no JSON.")
        for place in sorted(self._files() - self._expected):
            if not self._is_settled(place) and not self._may_be_new(place):
                yield Rule.PAGE.says(f"The page cycles/{place} is there, and the trace gives none.")

    def _files(self) -> set[str]:
        return {
            Path(place, name).relative_to(self._folder).as_posix()
            for place, folders, names in os.walk(self._folder)
            for name in [*names, *(one for one in folders if Path(place, one).is_symlink())]
            if not name.startswith(".")
        }

    def _may_be_new(self, place: str) -> bool:
        """Whether the page may be of records that were written since the trace was read."""
        cycle = place.partition("/")[0]
        return not self._ended and cycle.isdigit() and int(cycle) >= self._last

    def _is_settled(self, place: str) -> bool:
        cycle = place.partition("/")[0]
        return cycle.isdigit() and int(cycle) in self._settled


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        value: object = from_json(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _is_later_part(text: bytes, page: dict[str, Any]) -> bool:
    """Whether the page has only what was recorded since another process continued the run."""
    there = _parsed(text)
    if there is None or not there.keys() <= page.keys() or page_text(there) != text:
        return False
    return all(
        there.get(name, [] if isinstance(held, list) else None) == held
        or (isinstance(held, list) and _ends_with(cast("list[Any]", held), there.get(name, [])))
        for name, held in page.items()
    )


def _ends_with(whole: list[Any], part: object) -> bool:
    if not isinstance(part, list):
        return False
    last = cast("list[Any]", part)
    return not last or whole[-len(last) :] == last


# ---- Every rule, record by record ----


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
        return (PlainRules(cut=cut),)
    state = StateRules(version=version, cut=cut, hooks=hooks)
    return (
        TurnRules(state),
        CandidateRules(state),
        EffectRules(state),
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
        sealed = f"run.json seals {seal.records} records that end with the hash {shown(seal.hash)}"
        ends = f"the trace has {read.records} and ends with {shown(read.head)}"
        yield Rule.SEAL.says(f"{sealed}; {ends}.")


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
