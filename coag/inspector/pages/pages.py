"""Each view as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from coag.inspector.views import (
    AwarenessView,
    Belief,
    Comparison,
    CycleRow,
    CycleView,
    Finding,
    Findings,
    MemoryPage,
    ProcedureHistory,
    RecordView,
    RunCard,
    RunList,
    RunView,
    WhyGraph,
)

from .addresses import Addresses
from .environment import Templates
from .visible import drawing

Layout = Literal["document", "part"]
"""A page of its own, or an article within `report_page`."""


class Pages:
    """Makes HTML of views.

    Args:
        addresses: Where links lead.
        layout: What a page is. A part has no head, no navigation between runs, and headings one
            level lower.
    """

    def __init__(self, addresses: Addresses, *, layout: Layout = "document") -> None:
        self._templates = Templates(addresses, whole=layout == "document")

    def runs_page(self, runs: RunList) -> str:
        """The runs of a folder, with their filters."""
        return self._page("runs", runs=runs)

    def run_page(self, view: RunView, *, findings: Findings, cost: str = "") -> str:
        """One run: its numbers, every cycle in short, and one page of its timeline.

        Args:
            view: The run.
            findings: What the checks found, as far as they are.
            cost: What it used over time, as SVG; empty for none.
        """
        return self._page("run", card=view.card, view=view, findings=findings, cost=drawing(cost))

    def cycle_page(self, view: CycleView, card: RunCard) -> str:
        """One cycle as its six phases; of a plain run one turn."""
        return self._page("cycle", card=card, view=view)

    def why_page(
        self,
        card: RunCard,
        graph: WhyGraph,
        svg: str = "",
        *,
        beside: tuple[int | None, int | None] = (None, None),
        findings: Sequence[Finding] = (),
    ) -> str:
        """What one decision rested on, as a picture and in words.

        Args:
            card: The run.
            graph: The decision.
            svg: The graph as a picture.
            beside: The cycles before and after it.
            findings: What was found in its cycle.
        """
        drawn = drawing(svg)
        told = {"beside": beside, "findings": findings}
        return self._page("why", card=card, graph=graph, svg=drawn, **told)

    def belief_page(
        self,
        card: RunCard,
        belief: Belief,
        svgs: Sequence[str] = (),
        *,
        findings: Sequence[Finding] = (),
    ) -> str:
        """What the agent believed beside what was so.

        Args:
            card: The run.
            belief: The fields.
            svgs: A picture of each field, in the same order; empty texts for none.
            findings: What was found in the run: its cycles are marked.
        """
        pictures = [drawing(svg) for svg in svgs] + [drawing("")] * len(belief.tracks)
        shown = list(zip(belief.tracks, pictures, strict=False))
        marked = frozenset(one.cycle for one in findings)
        return self._page("beliefs", card=card, belief=belief, shown=shown, marked=marked)

    def awareness_page(
        self,
        card: RunCard,
        view: AwarenessView,
        goals: Sequence[str],
        courses: Sequence[str],
        *,
        chosen: bool = False,
        beside: tuple[int | None, int | None] = (None, None),
    ) -> str:
        """Where the agent stood as a cycle began, and over all of them.

        Args:
            card: The run.
            view: What its awareness modules held.
            goals: Of each module its goals as a picture.
            courses: Of each module a picture of what it held over the cycles.
            chosen: True for a cycle of its own address, False for the last one of the run.
            beside: The cycles before and after it.
        """
        pictures = map(drawing, goals), map(drawing, courses)
        shown = list(zip(view.stands, view.courses, *pictures, strict=True))
        before, after = beside
        told = {"chosen": chosen, "before": before, "after": after}
        return self._page("awareness", card=card, view=view, shown=shown, **told)

    def memory_page(
        self, card: RunCard, memory: MemoryPage, findings: Sequence[Finding] = ()
    ) -> str:
        """What was written to long-term memory, and what was recalled.

        Args:
            card: The run.
            memory: The records.
            findings: What was found in the run: a recalled record that one names is marked.
        """
        return self._page("memory", card=card, memory=memory, findings=findings)

    def procedures_page(self, card: RunCard, histories: Sequence[ProcedureHistory]) -> str:
        """The procedures, with what was changed in them."""
        return self._page("procedures", card=card, histories=histories)

    def findings_page(self, card: RunCard, findings: Findings) -> str:
        """Broken invariants and causes of failures."""
        return self._page("findings", card=card, findings=findings)

    def record_page(self, card: RunCard, record: RecordView) -> str:
        """One record of the trace, with the way to where it belongs."""
        return self._page("record", card=card, record=record)

    def compare_page(self, comparison: Comparison) -> str:
        """Two runs side by side."""
        return self._page("compare", comparison=comparison)

    def choose_page(self, left: RunCard, runs: RunList) -> str:
        """Which run to put beside `left`."""
        return self._page("choose", left=left, runs=runs)

    def error_page(self, status: int, title: str, text: str) -> str:
        """What cannot be shown, and what to do."""
        return self._page("error", status=status, title=title, text=text)

    def _page(self, name: str, **values: Any) -> str:
        return self._templates.render(name, **values)


class Fragments:
    """Pieces of a run's page for live updates.

    Each element has an id and takes the place of the one with that id; one that is new goes to
    the end of the list that its `data-list` names.

    Args:
        addresses: Where links lead.
    """

    def __init__(self, addresses: Addresses) -> None:
        self._templates = Templates(addresses)

    def row(self, card: RunCard, row: CycleRow, *, known: bool = False) -> str:
        """A cycle in the timeline and in the strip.

        Args:
            card: The run.
            row: The cycle.
            known: True if it is passed over where the page does not show it already.
        """
        return self._piece("row", card=card, row=row, **({"again": True} if known else {}))

    def head(self, card: RunCard) -> str:
        """The numbers at the head of a run's page."""
        return self._piece("facts", card=card)

    def findings(self, card: RunCard, findings: Findings) -> str:
        """The summary of what the checks found."""
        return self._piece("summary", card=card, findings=findings)

    def cost(self, card: RunCard, svg: str) -> str:
        """The plot of what the run used."""
        return self._piece("cost", card=card, cost=drawing(svg))

    def _piece(self, name: str, **values: Any) -> str:
        return self._templates.render(f"fragments/{name}", **values)
