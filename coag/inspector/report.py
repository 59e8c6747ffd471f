"""Runs as one HTML file that opens anywhere: the inspector's pages, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
from .charts import belief_svgs, cost_svg, history_svg, why_svg
from .checks import check_run
from .compare import Side, compare
from .library import Library
from .memory import read_memory, read_procedures
from .open_run import OpenRun
from .pages import Addresses, Pages, report_page
from .views import (
    CallView,
    CycleRow,
    CycleView,
    Findings,
    MessageView,
    PartKind,
    PhaseView,
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
        goal_in = self._seen.setdefault(summary.goal, f"cycle {number}")
        repeated = goal_in != f"cycle {number}"
        summary = replace(
            summary,
            state=self._changed(summary.state, "state", number),
            goal=f"(the same as in {goal_in})" if repeated else summary.goal,
            percepts=tuple(self._percept(one, "above") for one in summary.percepts),
            returned=tuple(self._percept(one, f"cycle {number}") for one in summary.returned),
        )
        return replace(
            view,
            summary=summary,
            phases=tuple(self._phase(phase, number) for phase in view.phases),
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
        if len(percept.content) <= _SHORT:
            return percept.model_copy(update=short)
        before = self._percepts.setdefault(percept.id, where)
        if before != where:
            short["content"] = f"(the same text as in {before}, among what came of it)"
        return percept.model_copy(update=short)

    def _phase(self, phase: PhaseView, number: int) -> PhaseView:
        where = f"cycle {number}, {phase.phase.value}"
        return replace(phase, calls=tuple(self._call(call, where) for call in phase.calls))

    def _call(self, call: CallView, where: str) -> CallView:
        messages = tuple(self._message(message, where) for message in call.messages)
        return replace(call, messages=messages)

    def _message(self, message: MessageView, where: str) -> MessageView:
        parts: list[PromptPiece] = []
        for part in message.parts:
            found = self._part(part, where)
            if parts and found.shown_in and parts[-1].shown_in == found.shown_in:
                parts[-1] = _both(parts[-1], found)
            else:
                parts.append(found)
        return replace(message, parts=tuple(parts))

    def _part(self, part: PromptPiece, where: str) -> PromptPiece:
        if len(part.text) <= _SHORT:
            return part
        before = self._seen.setdefault(part.text, where)
        return part if before == where else replace(part, shown_in=before)


def _both(first: PromptPiece, second: PromptPiece) -> PromptPiece:
    """Neighbouring pieces that are shown elsewhere, as one."""
    alike = first.kind is second.kind and (first.source, first.trust) == (
        second.source,
        second.trust,
    )
    return replace(
        first,
        kind=first.kind if alike else PartKind.PLAIN,
        title=", ".join(title for title in (first.title, second.title) if title),
        text=first.text + second.text,
        source=first.source if alike else "",
        trust=first.trust if alike else None,
        tokens=first.tokens + second.tokens,
        same=first.same + second.same,
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
    """Those that are kept."""
    of: int
    """How many there are."""
    why: frozenset[int]
    """The cycles whose decision is drawn."""
    prefix: str
    """Begins the ids of its drawings."""
    repetitions: _Repetitions = field(default_factory=_Repetitions)


def write_report(
    runs: Sequence[RunFolder],
    output: Path,
    *,
    domain: DomainKnowledge | None = None,
    cycles: int = _CYCLES,
    on_progress: Callable[[str], None] | None = None,
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
            file.
        TraceError: A run cannot be read at all.
        OSError: The file cannot be written.
    """
    report = on_progress or _ignore
    reported: list[_ReportedRun] = []
    for number, folder in enumerate(runs):
        report(f"checking {folder.path.name} ({number + 1} of {len(runs)})")
        reported.append(_read(folder, domain, cycles, f"r{number}-"))
    _refuse(reported)
    pairs = frozenset((left.card.key, right.card.key) for left, right in pairwise(reported))
    names = {one.card.key: str(number) for number, one in enumerate(reported, start=1)}
    addresses = Addresses(_places(reported), pairs, names)
    pages = Pages(addresses, whole=False)
    parts: list[str] = []
    for one in reported:
        for part in _parts(one, pages):
            parts.append(part)
            report(f"{one.card.key}: {len(parts)} pages")
    parts += [_side_by_side(*pair, pages) for pair in pairwise(reported)]
    title = ", ".join(one_line(one.card.key, 60) for one in reported[:3])
    more = f" and {len(reported) - 3} more" if len(reported) > 3 else ""
    text = report_page(f"{title}{more}", parts)
    return WrittenReport(
        bytes=_write(output, text),
        cycles=sum(len(one.rows) for one in reported),
        left_out=sum(one.of - len(one.rows) for one in reported),
    )


def _ignore(text: str) -> None:
    """Nobody follows the progress."""


def _refuse(reported: Sequence[_ReportedRun]) -> None:
    keys = [one.card.key for one in reported]
    if not keys:
        raise ConfigurationError("There is no run to report on.")
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ConfigurationError(
            f"Several of the runs have the id {twice[0]!r}; a report tells runs apart by it. "
            "Report on them one by one."
        )


def _read(
    folder: RunFolder, domain: DomainKnowledge | None, cycles: int, prefix: str
) -> _ReportedRun:
    library = Library(folder.path)
    while library.advance(_SCAN):
        pass
    key = library.cards()[0].key
    run = library.open(key)
    run.advance(_SCAN)
    findings = check_run(folder, domain)
    of = run.view(0, 1).of
    half = -(-cycles // 2)
    rows = run.rows(0, of) if of <= cycles else run.rows(0, half)
    if of > cycles:
        rows += run.rows(of - (cycles - half), cycles - half)
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
        prefix=prefix,
    )


def _places(reported: Sequence[_ReportedRun]) -> frozenset[tuple[str, str, int | None]]:
    """Which pages the document has."""
    places: set[tuple[str, str, int | None]] = set()
    for one in reported:
        key = one.card.key
        whole = ("run", "beliefs", "memory", "procedures", "findings")
        places |= {(target, key, None) for target in whole}
        places |= {("awareness", key, None)} if one.card.aware else set()
        places |= {("cycle", key, row.number) for row in one.rows}
        places |= {("why", key, number) for number in one.why}
    return frozenset(places)


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
    cost = cost_svg(one.rows, prefix=f"{one.prefix}cost") if one.rows else ""
    yield pages.render("run", card=view.card, view=view, findings=one.findings, cost=cost)
    for row in one.rows:
        cycle = one.findings.placed_in_cycle(one.run.cycle(row.number))
        yield pages.render("cycle", card=one.card, view=one.repetitions.cycle(cycle))
        if row.number in one.why:
            yield _why(one, row.number, pages)
    yield from _whole(one, pages)


def _why(one: _ReportedRun, number: int, pages: Pages) -> str:
    """What one decision was based on."""
    graph = why_graph(one.run.folder, number, one.run.index)
    address = partial(pages.addresses.to, "cycle", one.card.key, number)
    prefix = f"{one.prefix}why{number}"
    return pages.render(
        "why",
        card=one.card,
        graph=graph,
        svg=why_svg(graph, prefix=prefix, leads=lambda spot: address(spot=spot)),
        beside=(None, None),
        findings=one.findings.of_cycle(number),
    )


def _whole(one: _ReportedRun, pages: Pages) -> Iterator[str]:
    """The pages about the whole of a run."""
    index, card, found = one.run.index, one.card, one.findings.found
    beliefs = read_beliefs(index, card.info.agent if card.info else "")
    svgs = belief_svgs(beliefs, prefix=f"{one.prefix}b")
    yield pages.render("beliefs", card=card, belief=beliefs, svgs=svgs, findings=found)
    if card.aware:
        view = AwarenessReader(index).view()
        svgs = [
            history_svg(history, view.cycle, prefix=f"{one.prefix}c{n}")
            for n, (_, history) in enumerate(view.modules)
        ]
        yield pages.render("awareness", card=card, view=view, svgs=svgs, chosen=False)
    yield pages.render("memory", card=card, memory=read_memory(index), findings=found)
    yield pages.render("procedures", card=card, histories=read_procedures(index))
    yield pages.render("findings", card=card, findings=one.findings)


def _side_by_side(left: _ReportedRun, right: _ReportedRun, pages: Pages) -> str:
    sides = [Side.of(one.card, one.run) for one in (left, right)]
    return pages.render("compare", comparison=compare(sides[0], sides[1]))


def _write(output: Path, text: str) -> int:
    """Bytes written; the file takes the place of an older one in one step."""
    output = output.resolve()
    if not output.name or (output.exists() and not output.is_file()):
        raise ConfigurationError(
            f"{str(output)!r} is no file that a report can be written to. Name one: -o run.html"
        )
    return replace_file(output, text)
