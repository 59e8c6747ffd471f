"""One file that shows a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from coag._util.files import replace_file
from coag.errors import ConfigurationError
from coag.inspector.drawing import belief_svgs, cost_svg, course_svg, goals_svg, why_svg
from coag.inspector.pages import Pages, Place, ReportAddresses, Target, report_page
from coag.inspector.reading import Library, OpenRun
from coag.inspector.tracks import (
    AwarenessTrack,
    Placed,
    Side,
    belief,
    check_now,
    compare,
    is_aware,
    memory_page,
    procedures,
    why_graph,
)
from coag.inspector.views import (
    CallView,
    CycleRow,
    CycleView,
    Findings,
    MessageView,
    PartKind,
    PhaseView,
    PromptPart,
    RunCard,
    Trouble,
)
from coag.proof import Domain
from coag.schema import Percept, one_line
from coag.tracing import RunFolder

# ---- Texts that prompts repeat, written once ----


_ABSENT = object()
_SHORT = 160
"""Characters up to which a text is repeated: a reference would be as long."""


class Once:
    """Takes out of prompts what stood in an earlier one of the same run.

    The system messages of a phase are the same in every cycle, so that they would fill a report.
    """

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        """Where each text was met first."""
        self._brought: dict[str, str] = {}
        """Where each percept was told of first."""
        self._fields: dict[str, Any] = {}
        """The objects of the cycle before."""

    def cycle(self, view: CycleView) -> CycleView:
        """The cycle; of a text that stood before only where."""
        number = view.row.number
        phases = tuple(self._phase(phase, number) for phase in view.phases)
        calls = tuple(self._call(call, f"turn {number}") for call in view.calls)
        told = self._seen.setdefault(view.goal, f"cycle {number}")
        return replace(
            view,
            phases=phases,
            calls=calls,
            state=self._changed(view.state, "state", number),
            environment=self._changed(view.environment, "environment", number),
            goal=view.goal if told == f"cycle {number}" else f"(the same as in {told})",
            percepts=tuple(self._percept(one, "above") for one in view.percepts),
            brought=tuple(self._percept(one, f"cycle {number}") for one in view.brought),
        )

    def _changed(self, value: Any, which: str, number: int) -> Any:
        """Of an object the fields that are not as they were in the cycle before it."""
        before, self._fields[which] = self._fields.get(which), value
        if not (isinstance(value, dict) and isinstance(before, dict)):
            return cast("Any", value)
        now, was = cast("dict[str, Any]", value), cast("dict[str, Any]", before)
        kept = {name: field for name, field in now.items() if was.get(name, _ABSENT) != field}
        return {**kept, "…": f"the other fields are as in the cycle before {number}"}

    def _percept(self, percept: Percept, where: str) -> Percept:
        """What it brought is told in the cycle that brought it; what it changed, in tables."""
        short: dict[str, Any] = {"state_patch": {}, "data": None}
        if len(percept.content) <= _SHORT:
            return percept.model_copy(update=short)
        before = self._brought.setdefault(percept.id, where)
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
        parts: list[PromptPart] = []
        for part in message.parts:
            found = self._part(part, where)
            if parts and found.stood and parts[-1].stood == found.stood:
                parts[-1] = _both(parts[-1], found)
            else:
                parts.append(found)
        return replace(message, parts=tuple(parts))

    def _part(self, part: PromptPart, where: str) -> PromptPart:
        if len(part.text) <= _SHORT:
            return part
        before = self._seen.setdefault(part.text, where)
        return part if before == where else replace(part, stood=before)


def _both(first: PromptPart, second: PromptPart) -> PromptPart:
    """Neighbouring pieces of which the same is to be said, as one."""
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
class Written:
    """What a report holds."""

    bytes: int
    cycles: int
    left_out: int
    """Cycles for which there was no room."""


@dataclass(slots=True, kw_only=True)
class _Told:
    """One run, as far as the report tells of it."""

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
    once: Once = field(default_factory=Once)


def write_report(
    runs: Sequence[RunFolder],
    output: Path,
    *,
    domain: Domain | None = None,
    cycles: int = _CYCLES,
    on_progress: Callable[[str], None] | None = None,
) -> Written:
    """Writes runs into one file; it is there whole, or not at all.

    It holds every run with its cycles, prompts, beliefs, memory, procedures, violations and
    causes, and neighbouring runs side by side. Nothing in it is loaded from elsewhere. A text
    that a prompt repeats stands in it once.

    Args:
        runs: The runs, in order.
        output: The file.
        domain: What is known of the runs' domain, for the causes of failures.
        cycles: Cycles of each run that are kept: of a longer one the first half of them and the
            last half.
        on_progress: Is told what is being done.

    Raises:
        ConfigurationError: There is no run, two have the same id, or `output` is there and no
            file.
        TraceError: A run cannot be read at all.
        OSError: The file cannot be written.
    """
    tell = on_progress or _tell_nobody
    told: list[_Told] = []
    for number, folder in enumerate(runs):
        tell(f"checking {folder.path.name} ({number + 1} of {len(runs)})")
        told.append(_read(folder, domain, cycles, f"r{number}-"))
    _refuse(told)
    pairs = frozenset((left.card.key, right.card.key) for left, right in pairwise(told))
    names = {one.card.key: str(number) for number, one in enumerate(told, start=1)}
    addresses = ReportAddresses(_places(told), pairs, names)
    pages = Pages(addresses, layout="part")
    parts: list[str] = []
    for one in told:
        for part in _parts(one, pages, addresses):
            parts.append(part)
            tell(f"{one.card.key}: {len(parts)} pages")
    parts += [_side_by_side(*pair, pages) for pair in pairwise(told)]
    title = ", ".join(one_line(one.card.key, 60) for one in told[:3])
    more = f" and {len(told) - 3} more" if len(told) > 3 else ""
    text = report_page(f"{title}{more}", parts)
    return Written(
        bytes=_write(output, text),
        cycles=sum(len(one.rows) for one in told),
        left_out=sum(one.of - len(one.rows) for one in told),
    )


def _tell_nobody(text: str) -> None:
    """Nobody asked."""


def _refuse(told: Sequence[_Told]) -> None:
    keys = [one.card.key for one in told]
    if not keys:
        raise ConfigurationError("There is no run to report on.")
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ConfigurationError(
            f"Several of the runs have the id {twice[0]!r}; a report tells runs apart by it. "
            "Report on them one by one."
        )


def _read(folder: RunFolder, domain: Domain | None, cycles: int, prefix: str) -> _Told:
    library = Library(folder.path)
    while library.advance(_SCAN):
        pass
    key = library.cards()[0].key
    run = library.open(key)
    run.advance(_SCAN)
    findings = check_now(folder, domain=domain)
    placed = Placed(findings)
    of = run.view(0, 1).of
    half = -(-cycles // 2)
    rows = run.rows(0, of) if of <= cycles else run.rows(0, half)
    if of > cycles:
        rows += run.rows(of - (cycles - half), cycles - half)
    rows = tuple(placed.row(row) for row in rows)
    failed = [row.number for row in rows if row.findings or row.impasse or row.status == "failed"]
    drawn = [*failed, *(row.number for row in rows)][:_WHY] if not run.plain else []
    return _Told(
        run=run,
        card=replace(library.card(key), aware=is_aware(run.index)),
        findings=findings,
        rows=rows,
        of=of,
        why=frozenset(drawn),
        prefix=prefix,
    )


def _places(told: Sequence[_Told]) -> frozenset[tuple[Target, str, int | None]]:
    """Which pages the document has."""
    whole = (Target.RUN, Target.BELIEFS, Target.MEMORY, Target.PROCEDURES, Target.FINDINGS)
    places: set[tuple[Target, str, int | None]] = set()
    for one in told:
        key = one.card.key
        places |= {(target, key, None) for target in whole}
        places |= {(Target.AWARENESS, key, None)} if one.card.aware else set()
        places |= {(Target.CYCLE, key, row.number) for row in one.rows}
        places |= {(Target.WHY, key, number) for number in one.why}
    return frozenset(places)


def _parts(one: _Told, pages: Pages, addresses: ReportAddresses) -> Iterator[str]:
    """The pages of one run."""
    placed = Placed(one.findings)
    left_out = one.of - len(one.rows)
    view = one.run.view(0, 1)
    troubles = view.troubles
    if left_out:
        cycles = (
            "1 cycle in the middle is"
            if left_out == 1
            else f"{left_out:,} cycles in the middle are"
        )
        text = f"{cycles} left out of this report."
        troubles = (*troubles, Trouble(text=text))
    view = replace(
        view,
        rows=one.rows,
        strip=one.rows,
        first=0,
        of=len(one.rows),
        page_size=max(len(one.rows), 1),
        troubles=troubles,
    )
    cost = cost_svg(one.rows, prefix=f"{one.prefix}cost") if one.rows else ""
    yield pages.run_page(view, findings=one.findings, cost=cost)
    for row in one.rows:
        cycle = placed.cycle(one.run.cycle(row.number))
        yield pages.cycle_page(one.once.cycle(cycle), one.card)
        if row.number in one.why:
            yield _why(one, row.number, pages, addresses)
    yield from _whole(one, pages)


def _why(one: _Told, number: int, pages: Pages, addresses: ReportAddresses) -> str:
    """What one decision rested on."""

    def leads(spot: str) -> str:
        place = Place(target=Target.CYCLE, run=one.card.key, number=number, spot=spot)
        return addresses.to(place)

    graph = why_graph(one.run.folder, number, index=one.run.index)
    drawn = why_svg(graph, prefix=f"{one.prefix}why{number}", leads=leads)
    found = Placed(one.findings).found(number)
    return pages.why_page(one.card, graph, drawn, findings=found)


def _whole(one: _Told, pages: Pages) -> Iterator[str]:
    """What runs through the whole of a run."""
    found = belief(one.run.index, one.card.info.agent if one.card.info else "")
    drawn = belief_svgs(found, prefix=f"{one.prefix}b")
    yield pages.belief_page(one.card, found, drawn, findings=one.findings.found)
    if one.card.aware:
        yield _awareness(one, pages)
    yield pages.memory_page(one.card, memory_page(one.run.index), findings=one.findings.found)
    yield pages.procedures_page(one.card, procedures(one.run.index))
    yield pages.findings_page(one.card, one.findings)


def _awareness(one: _Told, pages: Pages) -> str:
    """Where the agent stood last, and how that came about."""
    view = AwarenessTrack(one.run.index).view()
    courses = enumerate(view.courses)
    return pages.awareness_page(
        one.card,
        view,
        [goals_svg(stand, prefix=f"{one.prefix}g{n}") for n, stand in enumerate(view.stands)],
        [course_svg(each, view.cycle, prefix=f"{one.prefix}c{n}") for n, each in courses],
    )


def _side_by_side(left: _Told, right: _Told, pages: Pages) -> str:
    both = compare(Side.of(left.card, left.run), Side.of(right.card, right.run))
    return pages.compare_page(both)


def _write(output: Path, text: str) -> int:
    """Bytes written; the file takes the place of an older one in one step."""
    output = output.resolve()
    if not output.name or (output.exists() and not output.is_file()):
        raise ConfigurationError(
            f"{str(output)!r} is no file that a report could be written to. Name one: -o run.html"
        )
    return replace_file(output, text)
