"""Runs as one HTML file that opens anywhere: the inspector's pages, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from coag._util.files import replace_file
from coag.errors import ConfigurationError
from coag.proof import DomainKnowledge
from coag.schema import Percept, one_line
from coag.tracing import RunFolder

from .awareness import AwarenessReader, is_aware
from .beliefs import read_beliefs
from .checks import check_run
from .compare import compare
from .library import Library
from .memory import read_memory, read_procedures
from .open_run import OpenRun
from .pages import Addresses, Pages, report_page
from .views import (
    CallView,
    CycleRow,
    CycleView,
    Findings,
    PartKind,
    PromptPiece,
    RunCard,
    Trouble,
)
from .why import why_graph

# ---- Texts that prompts repeat, written once ----


_ABSENT = object()
_SHORT = 160
"""Characters up to which a text is repeated: a reference would be as long."""


class _Repetitions:
    """Replaces what a run repeats by a note of where it is shown.

    The system messages of a phase are the same in every cycle, so that they would fill a report.
    """

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        """Where each text was met first."""
        self._percepts: dict[str, str] = {}
        """Where each percept was shown first."""
        self._fields: dict[str, Any] = {}
        """The objects of the cycle before."""

    def cycle(self, view: CycleView) -> CycleView:
        """The cycle; of a text that was shown before only where."""
        number, summary = view.row.number, view.summary
        here = f"cycle {number}"
        goal_in = self._seen.setdefault(summary.goal, here)
        summary = replace(
            summary,
            state=self._changed(summary.state, "state", number),
            goal=summary.goal if goal_in == here else f"(the same as in {goal_in})",
            percepts=tuple(self._percept(one, "above") for one in summary.percepts),
            returned=tuple(self._percept(one, here) for one in summary.returned),
        )
        phases = [
            replace(
                one, calls=tuple(self._call(c, f"{here}, {one.phase.value}") for c in one.calls)
            )
            for one in view.phases
        ]
        return replace(
            view,
            summary=summary,
            phases=tuple(phases),
            calls=tuple(self._call(call, f"turn {number}") for call in view.calls),
            environment=self._changed(view.environment, "environment", number),
        )

    def _changed(self, value: Any, which: str, number: int) -> Any:
        """Of an object the fields that are not as they were in the cycle before it."""
        before, self._fields[which] = self._fields.get(which), value
        if not (isinstance(value, dict) and isinstance(before, dict)):
            return cast("Any", value)
        now, was = cast("dict[str, Any]", value), cast("dict[str, Any]", before)
        changed = {name: one for name, one in now.items() if was.get(name, _ABSENT) != one}
        return {**changed, "…": f"the other fields are as in the cycle before {number}"}

    def _percept(self, percept: Percept, where: str) -> Percept:
        """Its text is shown in the cycle that returned it; what it changed, in tables."""
        short: dict[str, Any] = {"state_patch": {}, "data": None}
        if len(percept.content) > _SHORT:
            before = self._percepts.setdefault(percept.id, where)
            reference = f"(the same text as in {before}, among what came of it)"
            short |= {"content": reference} if before != where else {}
        return percept.model_copy(update=short)

    def _call(self, call: CallView, where: str) -> CallView:
        messages = [replace(one, parts=self._parts(one.parts, where)) for one in call.messages]
        return replace(call, messages=tuple(messages))

    def _parts(self, pieces: Sequence[PromptPiece], where: str) -> tuple[PromptPiece, ...]:
        """The pieces of a message; neighbouring ones that are shown elsewhere are one."""
        parts: list[PromptPiece] = []
        for piece in pieces:
            long = len(piece.text) > _SHORT
            before = self._seen.setdefault(piece.text, where) if long else where
            shared = piece if before == where else replace(piece, shown_in=before)
            if parts and shared.shown_in and parts[-1].shown_in == shared.shown_in:
                parts[-1] = _both(parts[-1], shared)
            else:
                parts.append(shared)
        return tuple(parts)


def _both(first: PromptPiece, second: PromptPiece) -> PromptPiece:
    """Neighbouring pieces as one, which is nothing in particular where they are not alike."""
    alike = all(getattr(first, of) == getattr(second, of) for of in ("kind", "source", "trust"))
    kind = first if alike else PromptPiece(kind=PartKind.PLAIN, title="", text="")
    return replace(
        kind,
        title=", ".join(title for title in (first.title, second.title) if title),
        text=first.text + second.text,
        tokens=first.tokens + second.tokens,
        same=first.same + second.same,
        shown_in=first.shown_in,
    )


# ---- Writing the file ----


_CYCLES = 1_000
"""Cycles of a run that are kept."""
_WHY = 6
"""Cycles of a run whose decision is drawn, those with a finding first."""
_SCAN = 600.0
"""Seconds for which the scan of one trace is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """What a report holds."""

    bytes: int
    cycles: int
    left_out: int
    """Cycles for which there was no room."""


@dataclass(slots=True, kw_only=True)
class _ReportedRun:
    """One run, as far as the report shows it."""

    run: OpenRun
    card: RunCard
    findings: Findings
    rows: tuple[CycleRow, ...]
    of: int
    why: frozenset[int]
    """The cycles whose decision is drawn."""
    repetitions: _Repetitions = field(default_factory=_Repetitions)


def write_report(
    runs: Sequence[RunFolder],
    output: Path,
    *,
    domain: DomainKnowledge | None = None,
    cycles: int = _CYCLES,
    on_progress: Callable[[str], None] = lambda text: None,
) -> WrittenReport:
    """Writes runs into one file; it is there whole, or not at all.

    It holds every run with its cycles, prompts, beliefs, memory, procedures, violations and
    causes, and neighbouring runs side by side. Nothing in it is loaded from elsewhere. A text
    that a prompt repeats is in it once.

    Args:
        runs: The runs, in order.
        output: The file.
        domain: What is known of the runs' domain, for the causes of failures.
        cycles: Cycles of each run that are kept: of a longer one the first half of them and the
            last half.
        on_progress: Called with what is being done.

    Raises:
        ConfigurationError: There is no run, two have the same id, or `output` is there and no
            file, or would be among a run's own files.
        TraceError: A run cannot be read at all.
        OSError: The file cannot be written.
    """
    reported: list[_ReportedRun] = []
    for number, folder in enumerate(runs):
        on_progress(f"checking {folder.path.name} ({number + 1} of {len(runs)})")
        reported.append(_read(folder, domain, cycles))
    keys = [one.card.key for one in reported]
    _refuse(keys)
    output = _place(output)
    names = {key: str(number) for number, key in enumerate(keys, start=1)}
    addresses = Addresses(frozenset(_places(reported)), frozenset(pairwise(keys)), names)
    pages = Pages(addresses, whole=False)
    parts: list[str] = []
    for one in reported:
        for part in _parts(one, pages):
            parts.append(part)
            on_progress(f"{one.card.key}: {len(parts)} pages")
    for left, right in pairwise(reported):
        comparison = compare((left.card, left.run), (right.card, right.run))
        parts.append(pages.render("compare", comparison=comparison))
    title = ", ".join(one_line(key, 60) for key in keys[:3])
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return WrittenReport(
        bytes=replace_file(output, report_page(f"{title}{more}", parts)),
        cycles=sum(len(one.rows) for one in reported),
        left_out=sum(one.of - len(one.rows) for one in reported),
    )


def _place(output: Path) -> Path:
    output = output.resolve()
    if not output.name or (output.exists() and not output.is_file()):
        raise ConfigurationError(
            f"{str(output)!r} is no file that a report can be written to. Name one: -o run.html"
        )
    if RunFolder(output.parent).exists and output.suffix != ".html":
        raise ConfigurationError(
            f"{str(output)!r} is a place of the run's own files. Name another: -o run.html"
        )
    return output


def _refuse(keys: Sequence[str]) -> None:
    if not keys:
        raise ConfigurationError("There is no run to report on.")
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ConfigurationError(
            f"Several of the runs have the id {twice[0]!r}; a report identifies runs by it. "
            "Report on them one by one."
        )


def _read(folder: RunFolder, domain: DomainKnowledge | None, cycles: int) -> _ReportedRun:
    library = Library(folder.path)
    while library.advance(_SCAN):
        pass
    key = library.cards()[0].key
    run = library.open(key)
    findings = check_run(folder, domain)
    of = run.view(0, 1).of
    half = -(-min(cycles, of) // 2)
    rest = min(cycles, of) - half
    rows = (*run.rows(0, half), *run.rows(of - rest, rest))
    rows = tuple(map(findings.placed_in, rows))
    failed = [row.number for row in rows if row.findings or row.impasse or row.status == "failed"]
    drawn = [*failed, *(row.number for row in rows)][:_WHY] if not run.plain else []
    return _ReportedRun(
        run=run,
        card=replace(library.card(key), aware=is_aware(run.index)),
        findings=findings,
        rows=rows,
        of=of,
        why=frozenset(drawn),
    )


def _places(reported: Sequence[_ReportedRun]) -> Iterator[tuple[str, str, int | None]]:
    """Which pages the document has."""
    for one in reported:
        targets = ("run", "beliefs", "memory", "procedures", "findings")
        for target in (*targets, "awareness") if one.card.aware else targets:
            yield target, one.card.key, None
        yield from (("cycle", one.card.key, row.number) for row in one.rows)
        yield from (("why", one.card.key, number) for number in one.why)


def _parts(one: _ReportedRun, pages: Pages) -> Iterator[str]:
    """The pages of one run."""
    view = one.run.view(0, 1)
    left_out = one.of - len(one.rows)
    are = "1 cycle in the middle is" if left_out == 1 else f"{left_out:,} cycles in the middle are"
    missing = (Trouble(text=f"{are} left out of this report."),) if left_out else ()
    view = replace(
        view,
        rows=one.rows,
        strip=one.rows,
        first=0,
        of=len(one.rows),
        page_size=max(len(one.rows), 1),
        troubles=(*view.troubles, *missing),
    )
    index, card, findings = one.run.index, one.card, one.findings.found
    yield pages.render("run", card=card, view=view, findings=one.findings)
    for row in one.rows:
        cycle = one.findings.placed_in_cycle(one.run.cycle(row.number))
        yield pages.render("cycle", card=card, view=one.repetitions.cycle(cycle))
        if row.number in one.why:
            graph = why_graph(one.run.folder, row.number, index)
            why = {"beside": (None, None), "findings": one.findings.of_cycle(row.number)}
            yield pages.render("why", card=card, graph=graph, **why)
    beliefs = read_beliefs(index, one.run.info.agent)
    yield pages.render("beliefs", card=card, belief=beliefs, findings=findings)
    if card.aware:
        view = AwarenessReader(index).view()
        yield pages.render("awareness", card=card, view=view, chosen=False)
    yield pages.render("memory", card=card, memory=read_memory(index), findings=findings)
    yield pages.render("procedures", card=card, histories=read_procedures(index))
    yield pages.render("findings", card=card, findings=one.findings)
